//! The decision on an event: whether a sweep starts, of what, and how.
//!
//! Everything here is computed from values: the event, what git and, for few events, GitHub say of its commits, and the
//! labels file. Nothing is read, and nothing of the network is asked.

use serde::Serialize;

use super::checks::HeadVerdict;
use super::event::{Action, Event, Inputs, MergeGroup, PullRequest, Push};
use super::standing::{decides, is_same, restarts};
use super::text::{any_of, code, listed};
use crate::config::asked::{Asked, output_name, value_text};
use crate::config::labels::{Labels, Modifier, Primary};
use crate::config::problem::Problem;
use crate::repo::CHANGELOG;

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
        Event::PullRequest(pull) => pull_request(pull, facts, labels)?,
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
        Event::PullRequest(pull) if labels.require_sweep => held(decision, pull, facts, labels),
        _ => decision,
    })
}

fn pull_request(pull: &PullRequest, facts: &Facts, labels: &Labels) -> Result<Decision, Problem> {
    let known = Decision {
        restarts: restarts(pull, labels),
        fork: pull.fork,
        ..Decision::default()
    };
    if !pull.open || pull.action == Action::Closed {
        return Ok(Decision {
            reason: "The pull request is closed.".to_owned(),
            ..known
        });
    }
    let (sweep, reason) = asked(pull, facts, labels)?;
    Ok(Decision {
        reason,
        base_ref: facts.base.clone(),
        head_ref: facts.head.clone(),
        checks: facts.change != Change::None,
        restarts: known.restarts,
        fork: known.fork,
        ..sweep.unwrap_or_default()
    })
}

/// The sweep that an open pull request asks for, or none, and why.
fn asked(pull: &PullRequest, facts: &Facts, labels: &Labels) -> Result<(Option<Decision>, String), Problem> {
    if !restarts(pull, labels) {
        return Ok((None, no_restart(&pull.action)));
    }
    let carried = Carried::of(pull.number, &pull.labels, labels)?;
    if let Some(reason) = nothing_to_plan(facts.change) {
        return Ok((None, reason));
    }
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

/// Why a change of the changelog gives nothing to plan; `None` where it may.
fn nothing_to_plan(change: Change) -> Option<String> {
    match change {
        Change::Entries => None,
        Change::Correction => Some(format!("The change only corrects {}: there is nothing to plan.", code(CHANGELOG))),
        Change::None => Some(format!("The change leaves {} as it is: there is nothing to plan.", code(CHANGELOG))),
    }
}

/// With `require-sweep`: a decision that no run may merge by, unless a full sweep of the head has passed or this run is
/// one, whose own end then counts.
fn held(decision: Decision, pull: &PullRequest, facts: &Facts, labels: &Labels) -> Decision {
    let is_one = decision.run && decision.reusable;
    let asks = decision.decides && facts.change == Change::Entries && !is_one;
    if !asks {
        return decision;
    }
    let head = code(pull.head.short());
    if facts.full_sweep == Some(true) {
        return Decision {
            reason: format!("{} A full sweep of {head} has passed.", decision.reason),
            ..decision
        };
    }
    let full = labels.primary.iter().filter(|(_, how)| how.is_full());
    let full: Vec<&String> = full.map(|(name, _)| name).collect();
    Decision {
        blocked: true,
        reason: format!(
            "{} `require-sweep` asks for a full sweep of {head}, and none has passed: add {}.",
            decision.reason,
            any_of(&full)
        ),
        ..decision
    }
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
