//! An artifact that is fetched by name must have been uploaded by then.

use crate::config::problem::{Problems, nearest};
use crate::config::tree::Node;
use crate::findings::workflow;
use crate::workflow::check::Files;
use crate::workflow::checks::nesting::MAX_LEVELS;
use crate::workflow::tree::{File, get, uses};
use crate::workflow::uploads::Uploaded;

/// Finds downloads by a name that no job before them can have uploaded. Names with expressions fit what they may become;
/// an action or a workflow of another repository may upload anything. What another run left is not known, and a download
/// that may fail is no finding.
pub(crate) fn check(files: &Files<'_>, problems: &mut Problems) {
    for file in files
        .workflows()
        .filter(|file| !file.is_callable() || file.triggers().count() > 1)
    {
        follow(files, file, &Uploaded::default(), 0, problems);
    }
}

fn follow<'f>(files: &'f Files<'_>, file: &'f File<'_>, before: &Uploaded<'f>, depth: usize, problems: &mut Problems) {
    for job in file.jobs() {
        let mut there = before.clone();
        for ancestor in file.ancestors(job.id.text()) {
            if let Some(ancestor) = file.jobs().find(|job| job.id.text() == ancestor) {
                there.add_job(files, &ancestor, depth);
            }
        }
        for step in job.steps() {
            if let Some(name) = downloaded(step)
                && !there.may_have(name.text())
            {
                let message = format!(
                    "no job before `{}` uploads the artifact `{}`",
                    job.id.text(),
                    name.text()
                );
                let hint = format!(
                    "upload it in a job that this one needs; {}",
                    nearest(name.text(), there.known())
                );
                problems.push(file.finding(&workflow::UNKNOWN_ARTIFACT, name.span, message).hint(hint));
            }
            there.add_step(files, step, depth);
        }
        if let Some(callee) = files.callee(&job).filter(|_| depth < MAX_LEVELS) {
            follow(files, callee, &there, depth + 1, problems);
        }
    }
}

/// The name that a step fetches from its own run, where it stands in the file and the step needs it.
fn downloaded<'n, 's>(step: &'n Node<'s>) -> Option<&'n Node<'s>> {
    let with = |key: &str| get(step, "with").and_then(|with| get(with, key));
    let may_fail = get(step, "continue-on-error").is_some_and(|node| node.text() != "false");
    let name = with("name").filter(|name| !name.text().is_empty() && !name.text().contains("${{"));
    name.filter(|_| uses(step, "actions/download-artifact") && with("run-id").is_none() && !may_fail)
}
