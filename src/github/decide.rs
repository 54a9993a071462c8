//! The decision on an event: whether a sweep starts, of what, and how.
//!
//! Everything here is computed from values: the event, what git says of its commits, and the labels file. Nothing is
//! read, and nothing of the network is asked.

use serde::Serialize;

use super::event::{Action, Event, Inputs, PullRequest, Push};
use super::text::{any_of, code, listed};
use crate::config::asked::{Asked, output_name, value_text};
use crate::config::labels::{Labels, Modifier, Primary};
use crate::config::problem::Problem;

/// What git says of an event's commits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The head commit's message; `None` where the commit is not here, which reads as one without a marker.
    pub head_message: Option<String>,
    /// The commit that the head is compared with; empty where there is none.
    pub base: String,
    /// The head commit; empty where the decision needs none.
    pub head: String,
    /// What could not be looked up, each with what is assumed instead.
    pub assumed: Vec<String>,
}

/// What is decided about an event. Field names, with `_`, are those of the outputs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Decision {
    /// Whether a sweep starts.
    pub run: bool,
    /// Why, in a sentence.
    pub reason: String,
    /// Where the changelog is compared from; empty where nothing is compared, or with nothing.
    pub base_ref: String,
    /// Where it is compared to; empty where nothing is compared.
    pub head_ref: String,
    /// What is asked of the sweep; nothing where it does not run.
    #[serde(flatten)]
    pub asked: Asked,
    /// One job first; the rest only if it succeeds.
    pub canary: bool,
    /// Whether a push may take over the results: a pull request's full sweep without a modifier that forbids it.
    pub reusable: bool,
    /// Whether a pull request's checks run, which take no GPU. They run on every event of an open pull request: a
    /// skipped job counts as passed, and must not cover a failure of the same commit.
    pub checks: bool,
    /// Whether the run takes the place of the pull request's running sweep (see [`concurrency_group`]).
    pub restarts: bool,
    /// Whether the commits come from another repository.
    ///
    /// This is told, not enforced. A fork's pull request runs the workflow file of that fork, which need not ask this
    /// command at all: what keeps it off the GPUs are the runner groups and the approval of its runs.
    pub fork: bool,
    /// Whether a pull request's sweep may stand in for this one: a push to the default branch. Whether one does is
    /// found out by asking GitHub.
    pub reuse_candidate: bool,
}

impl Decision {
    fn no(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            ..Self::default()
        }
    }

    /// The decision for people: whether, why and how.
    #[must_use]
    pub fn sentence(&self) -> String {
        let mut how: Vec<String> = Vec::new();
        how.extend(self.canary.then(|| "a canary first".to_owned()));
        how.extend(self.asked.said());
        how.extend(self.reusable.then(|| "a push may reuse the results".to_owned()));
        let answer = if self.run { "Sweep" } else { "No sweep" };
        let how = match how.is_empty() {
            true => String::new(),
            false => format!(" How: {}.", how.join(", ")),
        };
        let fork = if self.fork {
            " The commits come from a fork."
        } else {
            ""
        };
        format!("{answer}. {}{how}{fork}", self.reason)
    }

    /// The outputs of a step: `true`, `false`, text, or nothing.
    #[must_use]
    pub fn outputs(&self) -> Vec<(String, String)> {
        let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(self) else {
            unreachable!("a struct of booleans, numbers and texts is an object");
        };
        let output = |(name, value): (String, _)| (output_name(&name), value_text(&value));
        fields.into_iter().map(output).collect()
    }
}

/// Decides about an event.
///
/// # Errors
/// A pull request with two primary labels, and a dispatch that does not say what to sweep.
pub fn decide(event: &Event, facts: &Facts, labels: &Labels) -> Result<Decision, Problem> {
    match event {
        Event::PullRequest(pull) => pull_request(pull, facts, labels),
        Event::Push(push) => Ok(pushed(push, facts)),
        Event::WorkflowDispatch(inputs) => dispatched(inputs),
        Event::Other(name) => Ok(Decision::no(format!("{} events start no sweep.", code(name)))),
    }
}

/// The concurrency group of an event's run, in a workflow whose groups cancel what runs in them.
///
/// GitHub claims a workflow's group before it evaluates any `if`, so a run that will do nothing cancels a sweep if it
/// shares its group. The workflow's expression must therefore say exactly what this function says:
/// - `sweep-pr-<number>` on `pull_request` events of open pull requests (`github.event.pull_request.state`) whose
///   action is `opened`, `reopened`, `ready_for_review` or `synchronize`, or `labeled` or `unlabeled` where
///   `github.event.label.name` is one of [`sweep_labels`], written out in it (GitHub's `contains` ignores case, and so
///   does this module);
/// - `sweep-run-<run id>`, which no other run has, on everything else: another label, another action, and every push,
///   because merges neither cancel each other nor wait.
#[must_use]
pub fn concurrency_group(event: &Event, labels: &Labels, run_id: u64) -> String {
    match event {
        Event::PullRequest(pull) if restarts(pull, labels) => format!("sweep-pr-{}", pull.number),
        _ => format!("sweep-run-{run_id}"),
    }
}

/// The labels whose coming or going restarts a pull request's sweep.
pub fn sweep_labels(labels: &Labels) -> impl Iterator<Item = &str> {
    labels.primary.keys().chain(labels.modifiers.keys()).map(String::as_str)
}

/// Whether what happened to a pull request changes what its sweep is.
fn restarts(pull: &PullRequest, labels: &Labels) -> bool {
    pull.open
        && match &pull.action {
            Action::Opened | Action::Reopened | Action::ReadyForReview | Action::Synchronize => true,
            Action::Labeled(label) | Action::Unlabeled(label) => {
                sweep_labels(labels).any(|known| is_same(known, label))
            }
            Action::Closed | Action::Other(_) => false,
        }
}

/// GitHub keeps the case of a label's name and ignores it otherwise.
fn is_same(known: &str, label: &str) -> bool {
    known.eq_ignore_ascii_case(label)
}

fn pull_request(pull: &PullRequest, facts: &Facts, labels: &Labels) -> Result<Decision, Problem> {
    if !pull.open {
        return Ok(Decision {
            fork: pull.fork,
            ..Decision::no("The pull request is closed.")
        });
    }
    let (sweep, reason) = asked(pull, facts, labels)?;
    Ok(Decision {
        reason,
        base_ref: facts.base.clone(),
        head_ref: facts.head.clone(),
        checks: true,
        restarts: restarts(pull, labels),
        fork: pull.fork,
        ..sweep.unwrap_or_default()
    })
}

/// The sweep that an open pull request asks for, or none, and why.
fn asked(pull: &PullRequest, facts: &Facts, labels: &Labels) -> Result<(Option<Decision>, String), Problem> {
    if !restarts(pull, labels) {
        return Ok((None, no_restart(&pull.action)));
    }
    let carried = Carried::of(pull.number, &pull.labels, labels)?;
    Ok(match carried.primary {
        _ if pull.draft => (
            None,
            "A draft starts no GPU job: mark it as ready for review.".to_owned(),
        ),
        None => (None, no_primary(pull, &carried, labels)),
        Some(_) if is_marked(facts, labels) => {
            let marker = code(&labels.skip_marker);
            let reason =
                format!("The head commit's message says {marker}: its benchmarks are skipped, its checks are not.");
            (None, reason)
        }
        Some((name, how)) => (Some(carried.sweep(how)), carried.reason(name)),
    })
}

fn no_restart(action: &Action) -> String {
    match action {
        Action::Labeled(label) => format!("The label {} does not concern sweeps.", code(label)),
        Action::Unlabeled(label) => format!("The removed label {} does not concern sweeps.", code(label)),
        Action::Other(name) => format!("{} changes nothing about a sweep.", code(name)),
        _ => "The action changes nothing about a sweep.".to_owned(),
    }
}

fn no_primary(pull: &PullRequest, carried: &Carried<'_>, labels: &Labels) -> String {
    let choices: Vec<&String> = labels.primary.keys().collect();
    let add = format!("add {}", any_of(&choices));
    match &pull.action {
        Action::Unlabeled(label) if labels.primary.keys().any(|known| is_same(known, label)) => {
            format!("The label {} was removed: no label asks for a sweep.", code(label))
        }
        _ if !carried.modifiers.is_empty() => {
            let names: Vec<&str> = carried.modifiers.iter().map(|(name, _)| *name).collect();
            let verb = if names.len() == 1 { "changes" } else { "change" };
            format!(
                "{} only {verb} a sweep that another label starts: {add}.",
                listed(&names)
            )
        }
        _ => format!("No label asks for a sweep: {add}."),
    }
}

fn is_marked(facts: &Facts, labels: &Labels) -> bool {
    facts
        .head_message
        .as_ref()
        .is_some_and(|message| message.contains(&labels.skip_marker))
}

/// The labels of a pull request that mean something here.
pub(super) struct Carried<'l> {
    pub primary: Option<(&'l str, &'l Primary)>,
    pub modifiers: Vec<(&'l str, &'l Modifier)>,
}

impl<'l> Carried<'l> {
    /// # Errors
    /// Two primary labels.
    pub fn of(pull: u64, carried: &[String], labels: &'l Labels) -> Result<Self, Problem> {
        let has = |known: &str| carried.iter().any(|label| is_same(known, label));
        let primary = labels.primary.iter().filter(|(name, _)| has(name));
        let primary: Vec<(&str, &Primary)> = primary.map(|(name, how)| (name.as_str(), how)).collect();
        if primary.len() > 1 {
            let names: Vec<&str> = primary.iter().map(|(name, _)| *name).collect();
            let message = format!(
                "pull request {pull} carries {} primary labels: {}",
                names.len(),
                listed(&names)
            );
            return Err(Problem::file("", message).hint("keep the one that says how to sweep, and remove the others"));
        }
        let modifiers = labels.modifiers.iter().filter(|(name, _)| has(name));
        Ok(Self {
            primary: primary.first().copied(),
            modifiers: modifiers.map(|(name, how)| (name.as_str(), how)).collect(),
        })
    }

    fn sweep(&self, primary: &Primary) -> Decision {
        let asked = self.modifiers.iter().map(|(_, modifier)| &modifier.asked);
        Decision {
            run: true,
            asked: asked.fold(primary.asked.clone(), Asked::with_switches),
            canary: primary.canary,
            reusable: primary.is_full() && self.modifiers.iter().all(|(_, modifier)| modifier.reusable),
            ..Decision::default()
        }
    }

    fn reason(&self, primary: &str) -> String {
        let names: Vec<&str> = self.modifiers.iter().map(|(name, _)| *name).collect();
        match names.is_empty() {
            true => format!("The label {} asks for a sweep.", code(primary)),
            false => format!("The label {} asks for a sweep, with {}.", code(primary), listed(&names)),
        }
    }
}

/// A merge sweeps in full and at once: neither labels nor a skip marker are asked.
fn pushed(push: &Push, facts: &Facts) -> Decision {
    if !push.is_to_default_branch() {
        let (pushed, branch) = (code(&push.r#ref), code(&push.default_branch));
        return Decision::no(format!("A push to {pushed} starts no sweep, one to {branch} does."));
    }
    if push.after.is_none() {
        return Decision::no(format!("The push deleted {}.", code(&push.r#ref)));
    }
    let short = |hash: &str| code(hash.get(..9).unwrap_or(hash));
    let head = short(&facts.head);
    let compared = match (push.before.is_some(), facts.base.is_empty()) {
        (true, _) if push.forced => format!(
            "its head {head} is compared with {}, which it replaced",
            short(&facts.base)
        ),
        (true, _) => format!("{head} is compared with {}", short(&facts.base)),
        (false, false) => format!(
            "the branch is new, so {head} is compared with its first parent {}",
            short(&facts.base)
        ),
        (false, true) => format!("{head} is a first commit, and everything in it is new"),
    };
    let kind = if push.forced { "forced push" } else { "push" };
    Decision {
        run: true,
        reason: format!("A {kind} to {} sweeps: {compared}.", code(&push.default_branch)),
        base_ref: facts.base.clone(),
        head_ref: facts.head.clone(),
        reuse_candidate: true,
        ..Decision::default()
    }
}

fn dispatched(inputs: &Inputs) -> Result<Decision, Problem> {
    let reason = match (
        &inputs.refs.base_ref,
        &inputs.refs.head_ref,
        &inputs.generate_cli_command,
    ) {
        (Some(_), Some(_), Some(_)) => {
            return Err(dispatch_problem(
                "the dispatch names both a comparison and a generator command",
            ));
        }
        (Some(base), Some(head), None) => format!("The dispatch compares {} with {}.", code(base), code(head)),
        (None, None, Some(_)) => "The dispatch names what to generate.".to_owned(),
        (None, None, None) => return Err(dispatch_problem("the dispatch does not say what to sweep")),
        (Some(_), None, _) => return Err(dispatch_problem("the dispatch has a `base-ref` and no `head-ref`")),
        (None, Some(_), _) => return Err(dispatch_problem("the dispatch has a `head-ref` and no `base-ref`")),
    };
    Ok(Decision {
        run: true,
        reason,
        base_ref: inputs.refs.base_ref.clone().unwrap_or_default(),
        head_ref: inputs.refs.head_ref.clone().unwrap_or_default(),
        asked: inputs.asked.clone(),
        canary: inputs.canary,
        ..Decision::default()
    })
}

fn dispatch_problem(message: &str) -> Problem {
    Problem::file("", message).hint("give `base-ref` and `head-ref` together, or `generate-cli-command` alone")
}
