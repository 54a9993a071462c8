//! A checkout keeps its token in the work tree, where every later step finds it, unless it is told not to.

use crate::config::problem::Problems;
use crate::findings::workflow;
use crate::workflow::check::Files;
use crate::workflow::tree::get;

/// Finds checkouts that persist their credentials.
pub(crate) fn check(files: &Files<'_>, problems: &mut Problems) {
    for file in files.own() {
        for step in file.steps() {
            let Some(uses) = get(step, "uses").filter(|uses| uses.text().starts_with("actions/checkout@")) else {
                continue;
            };
            let persists = get(step, "with").and_then(|with| get(with, "persist-credentials"));
            if persists.is_none_or(|value| value.text() != "false") {
                let problem = file.finding(
                    &workflow::KEPT_CREDENTIALS,
                    uses.span,
                    "this checkout leaves its token in the work tree",
                );
                problems.push(problem.hint("add `persist-credentials: false` under `with`"));
            }
        }
    }
}
