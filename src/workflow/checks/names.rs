//! Names that stand once: of workflows, of jobs, and of artifacts, whose second upload in a run is refused.

use std::collections::HashMap;

use crate::config::problem::{Problems, Span};
use crate::config::tree::{Node, Value};
use crate::findings::workflow;
use crate::matrix::names::is_legal_artifact;
use crate::workflow::check::Files;
use crate::workflow::checks::nesting::MAX_LEVELS;
use crate::workflow::tree::{File, Job, get, pairs};
use crate::workflow::uploads;

/// Finds workflows, jobs and artifacts that share a name. Names with expressions differ by their values.
pub(crate) fn check(files: &Files<'_>, problems: &mut Problems) {
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
    let mut names: HashMap<&str, Job<'_, '_>> = HashMap::new();
    for job in file.jobs() {
        let name = job.get("name").unwrap_or(job.id);
        if name.text().contains("${{") {
            continue;
        }
        let Some(first) = names.insert(name.text(), job) else {
            continue;
        };
        // Of two jobs with conditions one may stand in for the other.
        if is_certain(first.condition()) || is_certain(job.condition()) {
            let message = format!("`{}` is also the name of the job `{}`", name.text(), first.id.text());
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
    /// Whether nothing but a failure or a cancellation keeps it from happening.
    is_certain: bool,
    /// Whether only one job of a matrix may upload it.
    of_one_leg: bool,
    file: &'n str,
    span: Span,
}

impl Upload<'_> {
    /// Whether one run has both.
    fn meets(&self, other: &Self) -> bool {
        match (self.file, self.span.line) == (other.file, other.span.line) {
            true => !self.of_one_leg,
            false => self.is_certain || other.is_certain,
        }
    }
}

/// Whether a condition holds unless something fails or is cancelled. Two others may exclude each other.
fn is_certain(condition: &str) -> bool {
    let text = condition.trim();
    let inner = text
        .strip_prefix("${{")
        .and_then(|text| text.strip_suffix("}}"))
        .unwrap_or(text);
    let inner: String = inner.split_whitespace().collect();
    matches!(inner.as_str(), "" | "true" | "always()" | "success()" | "!cancelled()")
}

/// Whether a condition may hold for one job of a matrix and not for another.
fn tells_legs_apart(condition: &str) -> bool {
    ["matrix.", "strategy.", "inputs.", "env.", "steps."]
        .iter()
        .any(|context| condition.contains(context))
}

/// The artifacts of a run that starts with a workflow.
fn artifacts(files: &Files<'_>, file: &File<'_>, problems: &mut Problems) {
    let mut uploads = Vec::new();
    collect(files, file, &[], &mut uploads);
    let mut seen: HashMap<(&str, bool), Vec<&Upload<'_>>> = HashMap::new();
    for upload in &uploads {
        let Some(at) = files.all().find(|f| f.source.name == upload.file) else {
            continue;
        };
        if !is_legal_artifact(upload.name) {
            let message = format!("no artifact may be called `{}`", upload.name);
            let hint = "1 to 256 characters, none of \" : < > | * ? \\ /";
            problems.push(at.finding(&workflow::ARTIFACT_NAME, upload.span, message).hint(hint));
        }
        let others = seen.entry((upload.name, upload.stands_in)).or_default();
        if let Some(first) = others.iter().find(|other| other.meets(upload)) {
            let message = format!(
                "a run of {} uploads the artifact `{}` twice: also at {}:{}",
                file.source.name, upload.name, first.file, first.span.line
            );
            problems.push(
                at.finding(&workflow::DUPLICATE_ARTIFACT, upload.span, message)
                    .hint("put the job's or the shard's own name into it"),
            );
        }
        others.push(upload);
    }
}

/// The uploads of a workflow's jobs and of those that they call; `conditions` are those of the calls that lead here.
fn collect<'f>(files: &'f Files<'_>, file: &'f File<'_>, conditions: &[&'f str], uploads: &mut Vec<Upload<'f>>) {
    for job in file.jobs() {
        let conditions: Vec<&str> = conditions.iter().copied().chain([job.condition()]).collect();
        for _ in 0..times(&job) {
            uploads.extend(
                job.steps()
                    .iter()
                    .filter_map(|step| upload(file, &job, &conditions, step)),
            );
            if let Some(callee) = files.callee(&job).filter(|_| conditions.len() <= MAX_LEVELS) {
                collect(files, callee, &conditions, uploads);
            }
        }
    }
}

/// What a step uploads under a name that the file says.
fn upload<'f>(file: &'f File<'_>, job: &Job<'f, '_>, of_jobs: &[&'f str], step: &'f Node<'_>) -> Option<Upload<'f>> {
    let name = uploads::name(step).filter(|name| !name.text.contains("${{"))?;
    // An upload may replace an earlier one; before version 4 of the action all went into one.
    let overwrites = get(step, "with").and_then(|with| get(with, "overwrite"));
    let action = get(step, "uses").map_or("", Node::text);
    let is_old = ["@v1", "@v2", "@v3"].iter().any(|version| action.ends_with(version));
    if is_old || overwrites.is_some_and(|node| node.text() != "false") {
        return None;
    }
    let own = get(step, "if").map_or("", Node::text);
    let mut conditions = of_jobs.iter().copied().chain([own]);
    Some(Upload {
        name: name.text,
        stands_in: job.id.text() == STAND_IN,
        of_one_leg: conditions.clone().any(tells_legs_apart),
        is_certain: conditions.all(is_certain),
        file: &file.source.name,
        span: name.span,
    })
}

/// How often a run has a job, as far as it matters: a matrix of more than one combination runs it more than once.
fn times(job: &Job<'_, '_>) -> usize {
    let Some(matrix) = job.get("strategy").and_then(|strategy| get(strategy, "matrix")) else {
        return 1;
    };
    let is_one = |values: &Node<'_>| matches!(&values.value, Value::Seq(items) if items.len() == 1);
    match pairs(matrix).is_empty() || !pairs(matrix).iter().all(|(_, values)| is_one(values)) {
        true => 2,
        false => 1,
    }
}
