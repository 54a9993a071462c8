//! What a job that calls a workflow may say: GitHub refuses some keys, and inputs that the callee does not know.

use crate::config::problem::{Problems, nearest};
use crate::findings::workflow;
use crate::workflow::check::Files;
use crate::workflow::tree::{get, is_same, pairs};

/// Keys that a job with `uses` may not have (GitHub: "Supported keywords for jobs that call a reusable workflow").
const REFUSED: [&str; 7] = [
    "timeout-minutes",
    "env",
    "runs-on",
    "steps",
    "outputs",
    "container",
    "services",
];

/// Finds keys that a call may not have, callees that are not there or cannot be called, and inputs that do not fit.
pub(crate) fn check(files: &Files<'_>, problems: &mut Problems) {
    for file in files.workflows() {
        for job in file.jobs().filter(|job| job.get("uses").is_some()) {
            let id = job.id.text();
            for key in REFUSED {
                if let Some(span) = job.key(key) {
                    let message = format!("`{id}` calls a workflow, and such a job allows no `{key}`");
                    problems.push(
                        file.finding(&workflow::REFUSED_KEY, span, message)
                            .hint("the jobs of the called workflow have their own"),
                    );
                }
            }
            let Some((name, span)) = job.callee() else { continue };
            let Some(callee) = files.callee(&job) else {
                if files.is_unread(name) {
                    continue;
                }
                let known: Vec<&str> = files.workflows().map(|file| file.file_name()).collect();
                let problem = file.finding(
                    &workflow::UNKNOWN_CALLEE,
                    span,
                    format!("`{id}` calls `{name}`, which is not there"),
                );
                problems.push(problem.hint(nearest(name, known)));
                continue;
            };
            if !callee.is_callable() {
                let problem = file.finding(
                    &workflow::NOT_CALLABLE,
                    span,
                    format!("`{id}` calls `{name}`, which has no `workflow_call`"),
                );
                problems.push(problem.hint("add `workflow_call` to its `on`"));
                continue;
            }
            let declared = callee.declared("inputs");
            let passed = job.get("with").map_or(&[][..], pairs);
            for (input, _) in passed {
                if !declared.iter().any(|(known, _)| is_same(known, input)) {
                    let message = format!("`{name}` has no input `{}`", input.text());
                    let hint = nearest(input.text(), declared.iter().map(|(known, _)| known.text()));
                    problems.push(file.finding(&workflow::UNKNOWN_INPUT, input.span, message).hint(hint));
                }
            }
            for (input, how) in declared {
                let is_required = get(how, "required").is_some_and(|node| node.text() == "true");
                let is_passed = passed.iter().any(|(known, _)| is_same(known, input));
                if is_required && get(how, "default").is_none() && !is_passed {
                    let message = format!("`{id}` does not pass `{}`, which `{name}` requires", input.text());
                    problems.push(
                        file.finding(&workflow::MISSING_INPUT, span, message)
                            .hint(format!("add `{}:` under `with`", input.text())),
                    );
                }
            }
        }
    }
}
