//! Why a job did not succeed: its class, by the step that failed and what the runner said of it.
//!
//! Steps are `exec sweepctl ...`, so the runner's own annotation ("Process completed with exit code N.") holds the exit
//! code that tells kinds of failure apart; which step it was says the rest. What the runner says when it is lost is its own
//! text.

use serde::Serialize;

use crate::github::client::answers::{Annotation, Job};
use crate::github::run_jobs::{self, State};
use crate::github::watch::{LONGEST_QUEUE, failed_step};
use crate::step::launch::failure::Kind;

/// What failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Class {
    /// The machine, its disk, its scheduler, its network, or GitHub: the same job may succeed elsewhere.
    Infrastructure,
    /// The node or its cluster's settings do not fit the job; nothing was started.
    Preflight,
    /// The server did not start, or died.
    Engine,
    /// The client failed, its result is not whole, or the job took too long.
    Benchmark,
    /// The eval failed, or its score is under its threshold.
    Gate,
    /// Two parts do not fit: a config, a script, a result that is not its job's, a step of the repository's own.
    Integration,
    /// Somebody or something cancelled it.
    Cancelled,
    /// It only says what others did.
    Consequence,
}

impl Class {
    /// Every class, the most urgent first.
    pub(crate) const ALL: [Self; 8] = [
        Self::Infrastructure,
        Self::Preflight,
        Self::Engine,
        Self::Benchmark,
        Self::Gate,
        Self::Integration,
        Self::Cancelled,
        Self::Consequence,
    ];

    /// One word for it.
    #[must_use]
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Infrastructure => "infrastructure",
            Self::Preflight => "preflight",
            Self::Engine => "engine",
            Self::Benchmark => "benchmark",
            Self::Gate => "gate",
            Self::Integration => "integration",
            Self::Cancelled => "cancelled",
            Self::Consequence => "consequence",
        }
    }

    fn of_kind(kind: Kind) -> Self {
        match kind {
            Kind::Infrastructure => Self::Infrastructure,
            Kind::Preflight => Self::Preflight,
            Kind::Engine => Self::Engine,
            Kind::Benchmark => Self::Benchmark,
            Kind::Eval => Self::Gate,
            Kind::Cancelled(_) => Self::Cancelled,
        }
    }
}

/// Why a job did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cause {
    /// What failed.
    pub class: Class,
    /// Which step failed; `None` where none did.
    pub step: Option<String>,
    /// Its exit code, where that is known.
    pub exit_code: Option<i32>,
    /// Why it is of that class, in a few words.
    pub why: String,
    /// Whether what it was for was measured and uploaded all the same.
    pub measured: bool,
}

/// Texts of the runner and of GitHub that say that the machine, not the job, is to blame.
const LOST: [(&str, &str); 9] = [
    ("lost communication with the server", "the runner was lost"),
    ("runner has received a shutdown signal", "the runner was shut down"),
    ("not acquired by runner", "no runner took it"),
    ("no space left on device", "the disk was full"),
    ("runner failed", "the runner failed"),
    ("internal server error", "GitHub failed"),
    ("service unavailable", "GitHub failed"),
    ("failed to download action", "GitHub failed"),
    ("maximum number of connections", "GitHub refused connections"),
];

/// Steps before the job's own work that need the network, GitHub and a clean disk alone.
const PREPARATION: [&str; 7] = [
    "Set up job",
    "Fetch sweepctl",
    "Put sweepctl on the path",
    "Fetch the plan",
    "Check out",
    "Clean",
    "Provide sweepctl",
];
/// Steps after everything was measured and uploaded.
const AFTERWARDS: [&str; 4] = ["Release the node", "Clean again", "Complete job", "Stop containers"];
/// The step that launches.
pub(crate) const LAUNCH: &str = "Launch";
/// The step that judges an eval.
const GATE: &str = "Gate the eval";
/// The start of the names of steps that hand results to GitHub.
const UPLOAD: &str = "Upload ";
/// The start of the names of the steps in which actions end.
const POST: &str = "Post ";
/// Jobs that only say what others did.
const CONSEQUENCES: [&str; 2] = ["Verdict", "Comment on the pull request"];

/// Why a job did not succeed; `None` where it did, was skipped, or goes on.
#[must_use]
pub(super) fn cause(job: &Job, annotations: &[Annotation]) -> Option<Cause> {
    let state = State::of(job);
    if !matches!(state, State::Failed | State::Cancelled) {
        return None;
    }
    let step = failed_step(job);
    let name = step.map(|step| step.name.as_str());
    let cause = |class, why: &str| {
        Some(Cause {
            class,
            step: name.map(str::to_owned),
            exit_code: exit_code(annotations),
            why: why.to_owned(),
            measured: false,
        })
    };
    if job
        .name
        .split(" / ")
        .last()
        .is_some_and(|last| CONSEQUENCES.contains(&last))
    {
        return cause(Class::Consequence, "it says what other jobs did");
    }
    // A process that ended with a code was not lost with its runner, whatever else was printed.
    if let (None, Some(why)) = (exit_code(annotations), lost(annotations)) {
        return cause(Class::Infrastructure, why);
    }
    let runner = job.runner_name.as_ref().filter(|name| !name.is_empty());
    let waited = run_jobs::seconds(job.created_at.as_ref(), job.completed_at.as_ref());
    if runner.is_none() && waited.is_some_and(|seconds| seconds >= LONGEST_QUEUE) {
        return cause(Class::Infrastructure, "no runner took it within 24 hours");
    }
    match (state, job.conclusion.as_deref()) {
        (State::Cancelled, _) => cause(Class::Cancelled, "it was cancelled"),
        (_, Some("timed_out")) => cause(Class::Benchmark, "it passed its deadline"),
        (_, Some("startup_failure" | "action_required" | "stale")) => {
            cause(Class::Integration, "it could not be started")
        }
        _ if step.is_none() && runner.is_none() => cause(Class::Infrastructure, "no runner took it"),
        _ => Some(of_step(name, annotations)),
    }
}

/// Why a step failed.
fn of_step(name: Option<&str>, annotations: &[Annotation]) -> Cause {
    let code = exit_code(annotations);
    let cause = |class, why: String, measured| Cause {
        class,
        step: name.map(str::to_owned),
        exit_code: code,
        why,
        measured,
    };
    let Some(name) = name else {
        return cause(
            Class::Infrastructure,
            "no step failed: the runner ended it".to_owned(),
            false,
        );
    };
    let is_of = |names: &[&str]| names.contains(&name);
    if is_of(&PREPARATION) {
        return cause(
            Class::Infrastructure,
            "it failed before its own work began".to_owned(),
            false,
        );
    }
    if is_of(&AFTERWARDS) || name.starts_with(POST) {
        let why = "its results were uploaded; the node was not left as it was found".to_owned();
        return cause(Class::Infrastructure, why, true);
    }
    if name.starts_with(UPLOAD) {
        return cause(
            Class::Infrastructure,
            "GitHub did not take its artifact".to_owned(),
            false,
        );
    }
    if name == GATE {
        return cause(Class::Gate, "its eval did not pass".to_owned(), true);
    }
    match (name, code) {
        (LAUNCH, Some(code)) => match Kind::of_code(code) {
            Some(kind) => cause(Class::of_kind(kind), format!("exit code {code}"), false),
            None if code > 128 => cause(Class::Cancelled, format!("a signal ended it (exit code {code})"), false),
            None => cause(
                Class::Integration,
                format!("the launch was refused (exit code {code})"),
                false,
            ),
        },
        (LAUNCH, None) => cause(Class::Integration, "its exit code is not known".to_owned(), false),
        _ => cause(Class::Integration, "a step beside the launch failed".to_owned(), false),
    }
}

/// What a runner that was lost left to say.
fn lost(annotations: &[Annotation]) -> Option<&'static str> {
    // What this tool finds is annotated too, with the id of the finding as its title; the runner's own have none.
    let untitled = |annotation: &&Annotation| annotation.title.as_ref().is_none_or(String::is_empty);
    let own = annotations
        .iter()
        .filter(|annotation| annotation.annotation_level == "failure")
        .filter(untitled);
    let mut texts = own
        .filter_map(|annotation| annotation.message.as_ref())
        .map(|text| text.to_lowercase());
    texts.find_map(|text| LOST.iter().find(|(part, _)| text.contains(part)).map(|(_, why)| *why))
}

/// The exit code that the runner annotates a failed `run` step with; the first is that of the step that failed first.
fn exit_code(annotations: &[Annotation]) -> Option<i32> {
    let code = |annotation: &Annotation| {
        let message = annotation.message.as_deref()?.trim();
        let number = message.strip_prefix("Process completed with exit code ")?;
        number.trim_end_matches('.').parse().ok()
    };
    annotations.iter().find_map(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workflow_calls_its_steps_so() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/.github/workflows/benchmark-tmpl.yml");
        let job = std::fs::read_to_string(path).expect("the file");
        let uploads = job
            .lines()
            .filter(|line| line.trim_start().starts_with("- name: Upload "))
            .count();
        assert!(uploads > 3, "{uploads}");
        // GitHub's own steps stand in no file.
        let own = AFTERWARDS
            .iter()
            .filter(|name| !["Complete job", "Stop containers"].contains(name));
        for name in [LAUNCH, GATE, "Clean", "Check out"].iter().chain(own) {
            assert!(job.contains(&format!("- name: {name}\n")), "{name}");
        }
    }
}
