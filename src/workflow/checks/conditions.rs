//! A job behind an optional one: without a status function its condition means `success()` over all ancestors, and a
//! skipped ancestor skips it silently.

use crate::config::problem::Problems;
use crate::findings::workflow;
use crate::workflow::check::Files;
use crate::workflow::tree::{File, Job};

const STATUS_FUNCTIONS: [&str; 4] = ["success()", "failure()", "always()", "cancelled()"];

/// Finds jobs without a status function that wait, directly or not, for a job that may be skipped.
pub(crate) fn check(files: &Files<'_>, problems: &mut Problems) {
    for file in files.own() {
        for job in file.jobs() {
            let condition = job.condition().replace(' ', "");
            if STATUS_FUNCTIONS.iter().any(|name| condition.contains(name)) {
                continue;
            }
            if let Some(optional) = optional_ancestor(file, &job) {
                let message = format!(
                    "`{}` is skipped whenever `{optional}` is: without a status function a condition asks that all \
                     ancestors succeeded",
                    job.id.text()
                );
                let span = job.get("if").map_or(job.id.span, |node| node.span);
                let hint = "write `!cancelled() && needs.<job>.outputs.<name> == 'true'`";
                problems.push(file.finding(&workflow::SKIPPED_BEHIND, span, message).hint(hint));
            }
        }
    }
}

fn optional_ancestor<'f>(file: &'f File<'_>, job: &Job<'f, '_>) -> Option<&'f str> {
    let ancestors = file.ancestors(job.id.text());
    let mut optional = file
        .jobs()
        .filter(|job| !job.condition().is_empty())
        .map(|job| job.id.text());
    optional.find(|id| ancestors.contains(id))
}
