//! An artifact that is fetched by name must have been uploaded by then.

use std::collections::HashSet;

use crate::config::problem::{Problems, nearest};
use crate::config::tree::Node;
use crate::findings::workflow;
use crate::workflow::check::Files;
use crate::workflow::checks::nesting::MAX_LEVELS;
use crate::workflow::tree::{File, Job, get, uses};

/// Finds downloads by a name that no job before them uploads. Names with expressions are not known here, nor is what
/// another run left.
pub fn check(files: &Files<'_>, problems: &mut Problems) {
    for file in files
        .workflows()
        .filter(|file| !file.is_callable() || file.triggers().count() > 1)
    {
        follow(files, file, &HashSet::new(), 0, problems);
    }
}

fn follow<'f>(
    files: &'f Files<'_>,
    file: &'f File<'_>,
    before: &HashSet<&'f str>,
    depth: usize,
    problems: &mut Problems,
) {
    for job in file.jobs() {
        let mut there = before.clone();
        for ancestor in file.ancestors(job.id.text()) {
            if let Some(ancestor) = file.jobs().find(|job| job.id.text() == ancestor) {
                uploads(files, &ancestor, depth, &mut there);
            }
        }
        for step in job.steps() {
            if let Some(name) = name_of(step, "actions/download-artifact")
                && !of_another_run(step)
                && !there.contains(name.text())
            {
                let message = format!(
                    "no job before `{}` uploads the artifact `{}`",
                    job.id.text(),
                    name.text()
                );
                let hint = format!(
                    "upload it in a job that this one needs; {}",
                    nearest(name.text(), there.iter().copied())
                );
                problems.push(file.finding(&workflow::UNKNOWN_ARTIFACT, name.span, message).hint(hint));
            }
            there.extend(name_of(step, "actions/upload-artifact").map(Node::text));
        }
        if let Some(callee) = files.callee(&job).filter(|_| depth < MAX_LEVELS) {
            follow(files, callee, &there, depth + 1, problems);
        }
    }
}

/// What a job and those that it calls upload by name.
fn uploads<'f>(files: &'f Files<'_>, job: &Job<'f, '_>, depth: usize, names: &mut HashSet<&'f str>) {
    names.extend(
        job.steps()
            .iter()
            .filter_map(|step| name_of(step, "actions/upload-artifact"))
            .map(Node::text),
    );
    if let Some(callee) = files.callee(job).filter(|_| depth < MAX_LEVELS) {
        callee.jobs().for_each(|job| uploads(files, &job, depth + 1, names));
    }
}

fn of_another_run(step: &Node<'_>) -> bool {
    get(step, "with").and_then(|with| get(with, "run-id")).is_some()
}

/// The name of what a step uploads or downloads, where it stands in the file.
fn name_of<'n, 's>(step: &'n Node<'s>, action: &str) -> Option<&'n Node<'s>> {
    let name = get(step, "with").and_then(|with| get(with, "name"));
    name.filter(|name| uses(step, action) && !name.text().contains("${{"))
}
