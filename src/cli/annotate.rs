//! Problems as annotations of a step, within what a step may make.

use crate::config::problem::Problem;
use crate::runner::{self, Level, MAX_ANNOTATIONS};

/// Annotates each problem on GitHub Actions, up to the limit of a step, and then says how many more there are.
pub fn problems(level: Level, title: &str, problems: &[Problem]) {
    if !runner::on_actions() {
        return;
    }
    for problem in problems.iter().take(MAX_ANNOTATIONS) {
        runner::annotate(level, title, &problem.message, None);
    }
    let more = problems.len().saturating_sub(MAX_ANNOTATIONS);
    if more > 0 {
        let message = format!("{more} more: see the log and the step summary");
        runner::annotate(level, title, &message, None);
    }
}
