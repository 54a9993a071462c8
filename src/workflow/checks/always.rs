//! No `always()` on a job that takes a GPU: it would start after a cancel, and hold its node.

use crate::config::problem::Problems;
use crate::findings::workflow;
use crate::workflow::check::Files;

/// Finds conditions with `always()` on jobs that reach a runner which is not GitHub's own.
pub(crate) fn check(files: &Files<'_>, problems: &mut Problems) {
    for file in files.workflows() {
        for job in file
            .jobs()
            .filter(|job| job.condition().replace(' ', "").contains("always()"))
        {
            if files.takes_gpu(&job) {
                let message = format!(
                    "`{}` takes a GPU, and `always()` starts it even after a cancel",
                    job.id.text()
                );
                let span = job.get("if").map_or(job.id.span, |node| node.span);
                problems.push(
                    file.finding(&workflow::ALWAYS_ON_GPU, span, message)
                        .hint("write `!cancelled()` and what must hold of the jobs before it"),
                );
            }
        }
    }
}
