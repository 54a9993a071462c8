//! A job without a limit takes its runner for six hours when it hangs.

use crate::config::problem::Problems;
use crate::findings::workflow;
use crate::workflow::check::Files;

/// Finds jobs without `timeout-minutes`. A job that calls a workflow cannot have one.
pub(crate) fn check(files: &Files<'_>, problems: &mut Problems) {
    for file in files.own() {
        for job in file.jobs() {
            if job.get("uses").is_none() && job.get("timeout-minutes").is_none() {
                let message = format!("`{}` has no `timeout-minutes`, so it may hang for 360", job.id.text());
                problems.push(
                    file.finding(&workflow::NO_TIMEOUT, job.id.span, message)
                        .hint("add `timeout-minutes:`"),
                );
            }
        }
    }
}
