//! Names that stand once: of workflows, of jobs, and of artifacts, whose second upload in a run is refused.

use std::collections::HashMap;

use crate::config::problem::{Problems, Span};
use crate::findings::workflow;
use crate::matrix::names::is_legal_artifact;
use crate::workflow::check::Files;
use crate::workflow::checks::nesting::MAX_LEVELS;
use crate::workflow::tree::{File, get};

/// Finds workflows, jobs and artifacts that share a name. Names with expressions differ by their values.
pub fn check(files: &Files<'_>, problems: &mut Problems) {
    let mut workflows: HashMap<&str, &str> = HashMap::new();
    for file in files.workflows() {
        if let Some(name) = file.get("name")
            && let Some(first) = workflows.insert(name.text(), &file.source.name)
        {
            let message = format!("`{}` is also the name of {first}", name.text());
            problems.push(
                file.finding(&workflow::WORKFLOW_NAME, name.span, message)
                    .hint("give each workflow a name of its own"),
            );
        }
        jobs(file, problems);
        if !file.is_callable() || file.triggers().count() > 1 {
            artifacts(files, file, problems);
        }
    }
}

fn jobs(file: &File<'_>, problems: &mut Problems) {
    let mut names: HashMap<&str, &str> = HashMap::new();
    for job in file.jobs() {
        let name = job.get("name").unwrap_or(job.id);
        if name.text().contains("${{") {
            continue;
        }
        if let Some(first) = names.insert(name.text(), job.id.text()) {
            let message = format!("`{}` is also the name of the job `{first}`", name.text());
            problems.push(
                file.finding(&workflow::JOB_NAME, name.span, message)
                    .hint("required checks go by the name: give each its own"),
            );
        }
    }
}

/// The job that takes over an earlier run's results. It runs where the jobs do not whose artifacts it keeps by name.
const STAND_IN: &str = "reuse-results";

/// An upload in a run, told apart by its file and place.
struct Upload<'n> {
    name: &'n str,
    stands_in: bool,
    file: &'n str,
    span: Span,
}

/// The artifacts of a run that starts with a workflow.
fn artifacts(files: &Files<'_>, file: &File<'_>, problems: &mut Problems) {
    let mut uploads = Vec::new();
    collect(files, file, 0, &mut uploads);
    let mut seen: HashMap<(&str, bool), &Upload<'_>> = HashMap::new();
    for upload in &uploads {
        let Some(at) = files.all().find(|f| f.source.name == upload.file) else {
            continue;
        };
        if !is_legal_artifact(upload.name) {
            let message = format!("no artifact may be called `{}`", upload.name);
            let hint = "1 to 256 characters, none of \" : < > | * ? \\ /";
            problems.push(at.finding(&workflow::ARTIFACT_NAME, upload.span, message).hint(hint));
        }
        if let Some(first) = seen.insert((upload.name, upload.stands_in), upload) {
            let message = format!(
                "a run of {} uploads the artifact `{}` twice: also at {}:{}",
                file.source.name, upload.name, first.file, first.span.line
            );
            problems.push(
                at.finding(&workflow::DUPLICATE_ARTIFACT, upload.span, message)
                    .hint("put the job's or the shard's own name into it"),
            );
        }
    }
}

fn collect<'f>(files: &'f Files<'_>, file: &'f File<'_>, depth: usize, uploads: &mut Vec<Upload<'f>>) {
    for job in file.jobs() {
        // A matrix runs its jobs more than once.
        let times = if job.get("strategy").is_some() { 2 } else { 1 };
        for _ in 0..times {
            for step in job.steps() {
                let is_upload =
                    get(step, "uses").is_some_and(|uses| uses.text().starts_with("actions/upload-artifact@"));
                let name = get(step, "with").and_then(|with| get(with, "name"));
                let Some(name) = name.filter(|name| is_upload && !name.text().contains("${{")) else {
                    continue;
                };
                uploads.push(Upload {
                    name: name.text(),
                    stands_in: job.id.text() == STAND_IN,
                    file: &file.source.name,
                    span: name.span,
                });
            }
            if let Some(callee) = files.callee(&job).filter(|_| depth < MAX_LEVELS) {
                collect(files, callee, depth + 1, uploads);
            }
        }
    }
}
