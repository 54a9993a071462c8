//! What a pull request's labels ask for, and what holds it back.

use super::{Change, Decision, Facts, nothing_to_plan};
use crate::config::asked::Asked;
use crate::config::labels::{Labels, Modifier, Primary};
use crate::config::problem::Problem;
use crate::github::event::{Action, PullRequest};
use crate::github::standing::{is_same, restarts};
use crate::github::text::{any_of, code, listed};

/// Decides about what happened to a pull request.
///
/// # Errors
/// Two primary labels.
pub(super) fn decide(pull: &PullRequest, facts: &Facts, labels: &Labels) -> Result<Decision, Problem> {
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

/// With `require-sweep`: a decision that no run may merge by, unless a full sweep of the head has passed or this run is
/// one, whose own end then counts.
pub(super) fn held(decision: Decision, pull: &PullRequest, facts: &Facts, labels: &Labels) -> Decision {
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
pub(in crate::github) struct Carried<'l> {
    pub primary: Option<(&'l str, &'l Primary)>,
    pub modifiers: Vec<(&'l str, &'l Modifier)>,
}

impl<'l> Carried<'l> {
    /// # Errors
    /// Two primary labels.
    pub(crate) fn of(pull: u64, carried: &[String], labels: &'l Labels) -> Result<Self, Problem> {
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
