//! `pull_request_target` runs with the base repository's secrets on what a stranger wrote.

use crate::config::problem::Problems;
use crate::findings::workflow;
use crate::workflow::check::Files;

/// Finds workflows that `pull_request_target` starts.
pub(crate) fn check(files: &Files<'_>, problems: &mut Problems) {
    for file in files.own() {
        for trigger in file
            .triggers()
            .filter(|trigger| trigger.text() == "pull_request_target")
        {
            let problem = file.finding(
                &workflow::DANGEROUS_TRIGGER,
                trigger.span,
                "`pull_request_target` gives a stranger's code this repository's secrets",
            );
            problems.push(problem.hint("use `pull_request`, and dispatch what was looked at"));
        }
    }
}
