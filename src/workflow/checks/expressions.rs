//! An expression inside a script is text that the shell runs: a branch's name or a title becomes a command.

use crate::config::problem::Problems;
use crate::findings::workflow;
use crate::workflow::check::Files;
use crate::workflow::tree::get;

/// Finds expressions in `run`, and in the script of `actions/github-script`.
pub(crate) fn check(files: &Files<'_>, problems: &mut Problems) {
    for file in files.own() {
        for step in file.steps() {
            let script = get(step, "with").and_then(|with| get(with, "script"));
            for text in [get(step, "run"), script].into_iter().flatten() {
                if text.text().contains("${{") {
                    let problem = file.finding(
                        &workflow::TEMPLATE_INJECTION,
                        text.span,
                        "an expression inside a script",
                    );
                    problems.push(problem.hint("pass the value through `env`, and read it as \"$NAME\""));
                }
            }
        }
    }
}
