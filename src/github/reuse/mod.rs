//! Whether a push takes over a pull request's sweep, and whether a new commit of a pull request need not be swept again:
//! facts in, decision out.
//!
//! The rules stand here; what they ask about is fetched by [`gather`]. Labels, the command, whose comment counts and
//! what an unauthorized merge does are data of the labels file.

mod command;
pub(crate) mod gather;
mod judge;

use std::collections::HashMap;

use serde::Serialize;

use super::client::answers::{Artifact, Comment, Run};
use super::decide::Carried;
use super::text::{any_of, code, listed};
use crate::config::labels::{Labels, UnauthorizedMerge};
use crate::config::problem::Problem;
use crate::plural;
use command::authorization;
use judge::{judge, kept};

/// The artifact that holds a sweep's eval results.
pub(crate) const EVALS: &str = "eval_results_all";
/// The start of the names of artifacts with one agentic result each.
pub(crate) const AGENTIC: &str = "bmk_agentic_";

/// What is known of a commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The commit.
    pub commit: String,
    /// Where the repository is shown, `https://github.com/owner/name`.
    pub address: String,
    /// What writers of comments may do, as far as it was asked.
    pub access: HashMap<String, Access>,
    /// The merged pull requests that it belongs to, or the open one that is asked about.
    pub pulls: Vec<u64>,
    /// The only one of them; `None` where there is none or more than one.
    pub pull: Option<PullFacts>,
}

/// What is known of the pull request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PullFacts {
    /// Its number.
    pub number: u64,
    /// Whether it is open: then a run stands in for its newest commit, not for a push.
    pub open: bool,
    /// Its labels.
    pub labels: Vec<String>,
    /// The name of its branch.
    pub branch: String,
    /// Whose branch that is, `owner/name`; `None` where the repository is gone.
    pub repository: Option<String>,
    /// The commits that it has now.
    pub commits: Vec<String>,
    /// Its comments, the oldest first.
    pub comments: Vec<Comment>,
    /// The pinned run where there is one, then the others of its branch, the newest first.
    pub candidates: Vec<Candidate>,
    /// Why the search ended before the last run of the branch, where it did.
    pub stopped: Option<String>,
}

/// What somebody may do in the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Access {
    /// The permission, and the role behind it; nothing for somebody who is no collaborator.
    Has(Vec<String>),
    /// It cannot be seen, for this reason.
    Unseen(String),
}

/// A run that may stand in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// The run.
    pub run: Run,
    /// Its artifacts with results, as far as they were asked for.
    pub artifacts: Vec<Artifact>,
    /// Whether its plan is that of the commit; `None` where that was not asked.
    pub same_plan: Option<bool>,
}

/// Who said that a sweep may be reused, and which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Authorization {
    /// Who, by name.
    pub by: String,
    /// Which.
    pub which: Which,
    /// What could not be seen of the writer.
    pub note: Option<String>,
}

/// Which run a command asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Which {
    /// The newest good one.
    Newest,
    /// This one.
    Pinned(u64),
    /// What follows the command is no run's number or address.
    Unclear(String),
}

/// What is decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Decision {
    /// What happens.
    pub outcome: Outcome,
    /// Why, in a sentence.
    pub reason: String,
    /// The pull request, where the commit has one.
    pub pull_request: Option<u64>,
    /// The run that stands in.
    pub run_id: Option<u64>,
    /// Whether that run did everything that it planned.
    pub complete: bool,
    /// How that run ended, where its verdict is that of a commit of an open pull request.
    pub verdict: Option<String>,
    /// What could not be seen, and what was assumed instead.
    pub notes: Vec<String>,
    /// What that run left: [`RESULTS`], [`EVALS`], and `bmk_agentic` for single agentic results.
    pub artifacts: Vec<&'static str>,
    /// What was found of each run that was looked at.
    pub candidates: Vec<Judgement>,
    /// The comment that pins a good run, where one is needed.
    pub command: Option<String>,
}

/// What happens to the push.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Outcome {
    /// A run stands in.
    Reuse,
    /// The normal sweep runs.
    Sweep,
    /// Nothing runs, and the step fails.
    Refuse,
}

/// What was found of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Judgement {
    /// The run.
    pub run_id: u64,
    /// Its page.
    pub url: String,
    /// Its commit.
    pub commit: String,
    /// Whether it stands in as it is.
    pub good: bool,
    /// Whether it would, if it were pinned.
    pub pinnable: bool,
    /// Why not; empty where it does.
    pub reason: String,
}

/// Decides about a commit: one that was pushed, or the newest of an open pull request. What stands in the way of reuse
/// refuses the push, for somebody expects that nothing is swept; a commit of a pull request is swept then.
#[must_use]
pub(crate) fn decide(facts: &Facts, labels: &Labels) -> Decision {
    let decision = |outcome, reason: String| Decision {
        outcome,
        reason,
        pull_request: facts.pull.as_ref().map(|pull| pull.number),
        run_id: None,
        complete: false,
        verdict: None,
        notes: Vec::new(),
        artifacts: Vec::new(),
        candidates: Vec::new(),
        command: None,
    };
    let (pull, authorization) = match (&facts.pull, authorization(facts, &labels.reuse)) {
        (Some(pull), Ok(authorization)) => (pull, authorization),
        (Some(pull), Err(reason)) if pull.open => return decision(Outcome::Sweep, reason),
        (_, Err(reason)) => {
            return match labels.reuse.unauthorized_merge {
                UnauthorizedMerge::Sweep => decision(Outcome::Sweep, reason),
                UnauthorizedMerge::Refuse => Decision {
                    command: Some(labels.reuse.command.clone()),
                    ..decision(Outcome::Refuse, reason)
                },
            };
        }
        (None, Ok(_)) => unreachable!("who authorizes comments on a pull request"),
    };
    let against = if pull.open { Outcome::Sweep } else { Outcome::Refuse };
    let notes: Vec<String> = authorization.note.iter().cloned().collect();
    let pin = match authorization.which {
        Which::Newest => None,
        Which::Pinned(id) => Some(id),
        Which::Unclear(text) => {
            let (text, address) = (code(&text), &facts.address);
            let reason = format!("{text} is not the number of a run, nor the address of one of {address}.");
            return decision(against, reason);
        }
    };
    let judged = pull.candidates.iter().map(|c| judgement(c, facts, pull, pin));
    let candidates: Vec<Judgement> = judged.collect();
    let command = candidates.iter().find(|judgement| judgement.pinnable);
    let command = command.map(|judgement| format!("{} {}", labels.reuse.command, judgement.run_id));
    let refused = |reason: String| Decision {
        candidates: candidates.clone(),
        command: command.clone(),
        notes: notes.clone(),
        ..decision(against, reason)
    };
    if let Err(reason) = allowed_by_labels(pull, labels) {
        return Decision {
            command: None,
            ..refused(reason)
        };
    }
    let chosen = match pin {
        Some(id) => candidates.iter().position(|judgement| judgement.run_id == id),
        None => candidates.iter().position(|judgement| judgement.good),
    };
    let Some(chosen) = chosen else {
        return refused(match pin {
            Some(id) => format!("There is no run {id}."),
            None => none_found(pull, &labels.reuse.command),
        });
    };
    let (run, judgement) = (&pull.candidates[chosen].run, &candidates[chosen]);
    if !judgement.good {
        return refused(format!("Run {} cannot be reused: {}.", run.id, judgement.reason));
    }
    let stands_in = match pull.open {
        true => "had the plan of this commit, and its verdict counts",
        false => "stands in",
    };
    let reason = format!(
        "Run {} of {} in pull request {} {stands_in}, as {} asked.",
        run.id,
        run.head_sha.short(),
        pull.number,
        code(&authorization.by)
    );
    Decision {
        run_id: Some(run.id),
        complete: run.conclusion.as_deref() == Some("success"),
        verdict: run.conclusion.clone().filter(|_| pull.open),
        artifacts: kept(&pull.candidates[chosen].artifacts),
        candidates: candidates[..=chosen].to_vec(),
        notes,
        ..decision(Outcome::Reuse, reason)
    }
}

/// That no run can stand in, how many were looked at, and whether those were all.
fn none_found(pull: &PullFacts, command: &str) -> String {
    let looked_at = match pull.candidates.len() {
        0 => String::new(),
        count => format!(" {} looked at.", plural::count(count, "run")),
    };
    let stopped = pull.stopped.as_ref().map(|why| {
        let pin = code(&format!("{command} RUN"));
        format!(" The search stopped there, for {why}: {pin} pins an older one.")
    });
    let number = pull.number;
    format!(
        "No run of pull request {number} can be reused.{looked_at}{}",
        stopped.unwrap_or_default()
    )
}

/// Whether a pull request carries a full-sweep label, and none that forbids reuse.
fn allowed_by_labels(pull: &PullFacts, labels: &Labels) -> Result<(), String> {
    let carried = Carried::of(pull.number, &pull.labels, labels).map_err(|problem| format!("{}.", problem.message))?;
    let full: Vec<&String> = labels
        .primary
        .iter()
        .filter(|(_, how)| how.is_full())
        .map(|(name, _)| name)
        .collect();
    let number = pull.number;
    match carried.primary {
        None => {
            return Err(format!(
                "Pull request {number} carries no label of a full sweep: {}.",
                any_of(&full)
            ));
        }
        Some((name, how)) if !how.is_full() => return Err(format!("The label {} asks for no full sweep.", code(name))),
        Some(_) => {}
    }
    let forbidding = carried.modifiers.iter().filter(|(_, modifier)| !modifier.reusable);
    let forbidding: Vec<&str> = forbidding.map(|(name, _)| *name).collect();
    match forbidding.len() {
        0 => Ok(()),
        1 => Err(format!("The label {} forbids reuse.", listed(&forbidding))),
        _ => Err(format!("The labels {} forbid reuse.", listed(&forbidding))),
    }
}

fn judgement(candidate: &Candidate, facts: &Facts, pull: &PullFacts, pin: Option<u64>) -> Judgement {
    let run = &candidate.run;
    let judged = judge(candidate, facts, pull, pin == Some(run.id));
    Judgement {
        run_id: run.id,
        url: run.html_url.clone(),
        commit: run.head_sha.as_str().to_owned(),
        good: judged.is_ok(),
        pinnable: judge(candidate, facts, pull, true).is_ok(),
        reason: judged.err().unwrap_or_default(),
    }
}

impl Decision {
    /// The outputs of a step; none where it fails, so that no later job takes them for an answer.
    #[must_use]
    pub(crate) fn outputs(&self) -> Vec<(String, String)> {
        if self.outcome == Outcome::Refuse {
            return Vec::new();
        }
        let run_id = self.run_id.map(|id| id.to_string()).unwrap_or_default();
        let outputs = [
            ("reuse", (self.outcome == Outcome::Reuse).to_string()),
            ("run_id", run_id),
            ("complete", self.complete.to_string()),
            ("verdict", self.verdict.clone().unwrap_or_default()),
            ("artifacts", serde_json::json!(self.artifacts).to_string()),
            ("reason", self.reason.clone()),
        ];
        outputs.map(|(name, value)| (name.to_owned(), value)).into()
    }

    /// The problem of a refusal; `None` where nothing is refused.
    #[must_use]
    pub(crate) fn problem(&self) -> Option<Problem> {
        if self.outcome != Outcome::Refuse {
            return None;
        }
        let hint = match (&self.command, self.pull_request) {
            (Some(command), Some(number)) => {
                format!("comment `{command}` on pull request {number}, then run this job again")
            }
            (None, Some(number)) => format!(
                "correct what is wrong with pull request {number}, or delete the comment there to sweep anew; then run \
                 this job again"
            ),
            (_, None) => "merge through a pull request whose sweep may be reused".to_owned(),
        };
        Some(Problem::file("", self.reason.trim_end_matches('.').to_owned()).hint(hint))
    }
}
