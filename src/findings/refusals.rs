//! Refusals without an id of their own: each has that of its area.
//!
//! The area is that of the source file that says the refusal, which `#[track_caller]` tells. So no refusal is without an
//! id, and one that deserves its own gets it where it is said: `Problem::id`, or a constructor of `Finding`. Where every
//! finding has its own (`config`, `changelog`, `matrix`, `workflow::checks`), clippy refuses the constructors that end
//! up here (clippy.toml).

use std::panic::Location;

use super::{Finding, Severity, config};

super::findings! {
    CHANGELOG = Error "changelog/refused"
        "The changelog is not changed"
        "A repair of the changelog needs something that is not there, or could lose text."
        "Correct what the message names, and run the command again.";
    PLAN = Error "plan/refused"
        "No plan is made, written or read"
        "The message says which input, row or file stands in the way."
        "Correct what the message names, and run the command again.";
    WORKFLOW = Error "workflow/refused"
        "No workflow is rendered, written or simulated"
        "The message says which template, setting or file stands in the way."
        "Correct what the message names, and run the command again.";
    GIT = Error "git/refused"
        "The repository does not give what is asked of it"
        "A ref, a file at a ref or a merge base is not there, or the repository has a form that is not supported."
        "Correct what the message names, and run the command again.";
    GITHUB = Error "github/refused"
        "A decision about an event, or a request to GitHub, is refused"
        "The event, the run or the answer of GitHub does not allow it."
        "Correct what the message names, and run the command again.";
    LAUNCH = Error "launch/refused"
        "A launch does not start, or failed"
        "The node, the settings, the script or the engine stands in the way; the end of the log is beside the message."
        "Correct what the message names, and launch again; the exit code tells kinds of failure apart.";
    LAUNCH_CODE = Notice "launch/exit-code"
        "A launch failed by its exit code, and left everything that it should"
        "What a job left decides whether it passed. Something behind its results failed."
        "See the end of its output.";
    EVAL = Error "eval/refused"
        "An eval does not run, or does not pass"
        "A task, an endpoint, a result or a score stands in the way."
        "Correct what the message names, and run the command again.";
    RESULT = Error "result/refused"
        "A result is missing, wrong, or not that of its job"
        "Results are judged before they are handed on: what is wrong is said, never averaged away."
        "Correct what the message names, and run the command again.";
    STEP = Error "step/refused"
        "A step of a job cannot do its work"
        "The message says which file, variable or value stands in the way."
        "Correct what the message names, and run the command again.";
    MOCK_SERVER = Error "mock-server/refused"
        "The mock server does not start"
        "Its address, answers or settings stand in the way."
        "Correct what the message names, and run the command again.";
    WARNING = Warning "command/warning"
        "Something is worth a look, and nothing was refused"
        "The command goes on; the message says what it took, left out or did not find."
        "See whether what it took is what you mean.";
    COMMAND = Error "command/refused"
        "A command cannot do what is asked"
        "The message says what stands in the way."
        "Correct what the message names, and run the command again.";
}

/// Where the source files of an area lie; the first that fits counts.
const AREAS: &[(&str, &Finding)] = &[
    ("config/", &config::RULE),
    ("changelog/", &CHANGELOG),
    ("cli/changelog", &CHANGELOG),
    ("matrix/", &PLAN),
    ("plan_files", &PLAN),
    ("cli/plan", &PLAN),
    ("cli/generate", &PLAN),
    ("cli/dispatch_plan", &PLAN),
    ("cli/shard", &PLAN),
    ("cli/rows", &PLAN),
    ("cli/explain", &PLAN),
    ("cli/inputs", &PLAN),
    ("workflow/", &WORKFLOW),
    ("cli/render", &WORKFLOW),
    ("cli/simulate", &WORKFLOW),
    ("cli/workflow", &WORKFLOW),
    ("cli/init", &WORKFLOW),
    ("repo", &GIT),
    ("artifacts/", &GITHUB),
    ("cli/fetch", &GITHUB),
    ("github/", &GITHUB),
    ("cli/client", &GITHUB),
    ("cli/decide", &GITHUB),
    ("cli/dispatch", &GITHUB),
    ("cli/recover", &GITHUB),
    ("cli/reuse", &GITHUB),
    ("cli/verdict", &GITHUB),
    ("backends/", &LAUNCH),
    ("step/launch/", &LAUNCH),
    ("step/local_run/", &LAUNCH),
    ("cli/launch", &LAUNCH),
    ("cli/run", &LAUNCH),
    ("step/eval/", &EVAL),
    ("step/validate/", &EVAL),
    ("cli/eval", &EVAL),
    ("step/results/", &RESULT),
    ("step/collect/", &RESULT),
    ("step/evidence/", &RESULT),
    ("step/watch/", &RESULT),
    ("cli/evidence", &RESULT),
    ("step/compare/", &RESULT),
    ("step/throughput", &RESULT),
    ("step/upload", &RESULT),
    ("cli/collect", &RESULT),
    ("cli/compare", &RESULT),
    ("cli/result", &RESULT),
    ("cli/throughput", &RESULT),
    ("cli/upload", &RESULT),
    ("step/", &STEP),
    ("mock_server/", &MOCK_SERVER),
    ("cli/mock_server", &MOCK_SERVER),
];

/// The finding of the area of a source file.
#[must_use]
pub fn of_area(said_at: &Location<'_>) -> &'static Finding {
    let file = said_at.file().replace('\\', "/");
    let file = file.rsplit_once("src/").map_or(&*file, |(_, inside)| inside);
    let area = AREAS.iter().find(|(start, _)| file.starts_with(start));
    area.map_or(&COMMAND, |(_, finding)| finding)
}

/// Whether a finding is that of an area, and so says no more than where it comes from.
#[must_use]
pub fn is_of_area(finding: &Finding) -> bool {
    *finding == config::RULE || ALL.contains(&finding)
}

/// Whether a finding says that something is refused, and no more.
pub(crate) fn is_a_refusal(finding: &Finding) -> bool {
    ALL.contains(&finding) && finding.severity == Severity::Error
}
