//! The decision on an event: whether a sweep starts, of what, and how.
//!
//! Everything here is computed from values: the event, what git and, for few events, GitHub say of its commits, and the
//! labels file. Nothing is read, and nothing of the network is asked.

mod pull_request;

use serde::Serialize;

use super::checks::HeadVerdict;
use super::event::{Event, Inputs, MergeGroup, Push};
use super::standing::decides;
use super::text::code;
use crate::config::asked::{Asked, output_name, value_text};
use crate::config::labels::Labels;
use crate::config::problem::Problem;
use crate::repo::CHANGELOG;

pub(super) use pull_request::Carried;

/// What is known of an event's commits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The head commit's message; `None` where the commit is not here, which reads as one without a marker.
    pub head_message: Option<String>,
    /// The commit that the head is compared with; empty where there is none.
    pub base: String,
    /// The head commit; empty where the decision needs none.
    pub head: String,
    /// What happened to the changelog between the two.
    pub change: Change,
    /// The newest verdict of the pull request's head, of a merge group; `None` where it was not asked for.
    pub head_verdict: Option<HeadVerdict>,
    /// Whether a full sweep of the head has passed; `None` where it was not asked for.
    pub full_sweep: Option<bool>,
    /// What could not be looked up, each with what is assumed instead.
    pub assumed: Vec<String>,
}

/// What happens to the changelog between two commits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Change {
    /// It gains entries, or is changed in a way that its check refuses; or it is not known, which reads as this.
    #[default]
    Entries,
    /// It is corrected and gains no entry, as its check allows: a link that was set right, a last line that was ended.
    Correction,
    /// It stays as it is.
    None,
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
    /// Whether the run takes the place of the pull request's running sweep (see [`super::standing::group`]).
    pub restarts: bool,
    /// Whether the run reports as the check that branches require (see [`decides`]).
    pub decides: bool,
    /// Whether the verdict fails, however the run goes: the pull request's head has no verdict that passed, or no full
    /// sweep where the labels file asks for one.
    pub blocked: bool,
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

/// What GitHub must be asked before an event is decided about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question<'e> {
    /// The newest verdict of the head of the pull request that this merge group is for.
    HeadVerdict(&'e MergeGroup),
    /// Whether a full sweep of this commit has passed.
    FullSweep(&'e str),
}

/// What is asked about an event, where anything is: only what its decision without an answer turns on.
#[must_use]
pub fn question<'e>(event: &'e Event, decision: &Decision) -> Option<Question<'e>> {
    match event {
        Event::MergeGroup(group) => Some(Question::HeadVerdict(group)),
        Event::PullRequest(pull) if decision.blocked => Some(Question::FullSweep(pull.head.as_str())),
        _ => None,
    }
}

/// Decides about an event.
///
/// # Errors
/// A pull request with two primary labels, a merge group that names no pull request, and a dispatch that does not say
/// what to sweep.
pub fn decide(event: &Event, facts: &Facts, labels: &Labels) -> Result<Decision, Problem> {
    let decision = match event {
        Event::PullRequest(pull) => pull_request::decide(pull, facts, labels)?,
        Event::Push(push) => pushed(push, facts),
        Event::MergeGroup(group) => queued(group, facts)?,
        Event::WorkflowDispatch(inputs) => dispatched(inputs)?,
        Event::Other(name) => Decision::no(format!("{} events start no sweep.", code(name))),
    };
    let decision = Decision {
        decides: decides(event, labels),
        ..decision
    };
    Ok(match event {
        Event::PullRequest(pull) if labels.require_sweep => pull_request::held(decision, pull, facts, labels),
        _ => decision,
    })
}

/// Why a change of the changelog gives nothing to plan; `None` where it may.
fn nothing_to_plan(change: Change) -> Option<String> {
    match change {
        Change::Entries => None,
        Change::Correction => Some(format!(
            "The change only corrects {}: there is nothing to plan.",
            code(CHANGELOG)
        )),
        Change::None => Some(format!(
            "The change leaves {} as it is: there is nothing to plan.",
            code(CHANGELOG)
        )),
    }
}

/// A merge queue does not sweep: what was swept is the pull request's head, and the queue would hold every other merge
/// for the hours that it takes.
fn queued(group: &MergeGroup, facts: &Facts) -> Result<Decision, Problem> {
    let pull = group.pull()?;
    let (blocked, reason) = match &facts.head_verdict {
        None => (false, format!("The verdict of pull request {pull}'s head counts.")),
        Some(verdict) => {
            let head = code(verdict.head.get(..9).unwrap_or(&verdict.head));
            let said = verdict.standing.said();
            (
                !verdict.standing.passed(),
                format!("The verdict of pull request {pull}'s head {head} counts, which {said}."),
            )
        }
    };
    Ok(Decision {
        blocked,
        ..Decision::no(reason)
    })
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
    if let Some(reason) = nothing_to_plan(facts.change) {
        return Decision {
            base_ref: facts.base.clone(),
            head_ref: facts.head.clone(),
            ..Decision::no(reason)
        };
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
