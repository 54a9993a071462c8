//! The verdict is the one check that a branch requires: it runs whatever happened, and waits for every other job.

use crate::config::problem::Problems;
use crate::findings::workflow;
use crate::workflow::check::Files;
use crate::workflow::tree::calls;

/// Finds verdicts that may be skipped, and jobs that they do not wait for.
pub(crate) fn check(files: &Files<'_>, problems: &mut Problems) {
    for file in files.workflows() {
        for verdict in file
            .jobs()
            .filter(|job| job.steps().iter().any(|step| calls(step, &["verdict"])))
        {
            let id = verdict.id.text();
            let condition = verdict.condition().replace(' ', "");
            if !matches!(condition.as_str(), "always()" | "${{always()}}") {
                let message =
                    format!("`{id}` is skipped where its condition is false, and a skipped check counts as passed");
                let span = verdict.get("if").map_or(verdict.id.span, |node| node.span);
                problems.push(
                    file.finding(&workflow::VERDICT_SKIPPED, span, message)
                        .hint("write `if: always()`"),
                );
            }
            let waits_for = file.ancestors(id);
            let missed: Vec<&str> = file
                .jobs()
                .map(|job| job.id.text())
                .filter(|other| *other != id && !waits_for.contains(other) && !file.ancestors(other).contains(id))
                .collect();
            let direct = verdict.needs();
            let unseen = waits_for.iter().filter(|other| !direct.contains(other));
            let missed: Vec<&str> = missed.into_iter().chain(unseen.copied()).collect();
            if !missed.is_empty() {
                let message = format!("`{id}` does not judge {}", missed.join(", "));
                let span = verdict.get("needs").map_or(verdict.id.span, |node| node.span);
                problems.push(
                    file.finding(&workflow::VERDICT_INCOMPLETE, span, message)
                        .hint("add them to its `needs`"),
                );
            }
        }
    }
}
