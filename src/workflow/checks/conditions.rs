//! A job behind an optional one: without a status function its condition means `success()` over all ancestors, and a
//! skipped ancestor skips it silently.

use std::collections::HashSet;

use crate::config::problem::Problems;
use crate::workflow::check::Files;
use crate::workflow::tree::{File, Job};

const STATUS_FUNCTIONS: [&str; 4] = ["success()", "failure()", "always()", "cancelled()"];

/// Finds jobs without a status function that wait, directly or not, for a job that may be skipped.
pub fn check(files: &Files<'_>, problems: &mut Problems) {
    for file in files.workflows() {
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
                let hint = "write `!cancelled() && needs.<gate>.outputs.<name> == 'true'`";
                problems.push(file.problem(span, message).hint(hint));
            }
        }
    }
}

fn optional_ancestor<'f>(file: &'f File<'_>, job: &Job<'f, '_>) -> Option<&'f str> {
    let mut seen = HashSet::new();
    let mut open = job.needs();
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        let Some(ancestor) = file.jobs().find(|job| job.id.text() == id) else {
            continue;
        };
        if !ancestor.condition().is_empty() {
            return Some(ancestor.id.text());
        }
        open.extend(ancestor.needs());
    }
    None
}
