//! Whether a push takes over a pull request's sweep: facts in, decision out.
//!
//! The rules stand here; what they ask about is fetched by [`gather`]. Labels, the command, whose comment counts and
//! what an unauthorized merge does are data of the labels file.

pub(crate) mod gather;

use serde::Serialize;

use super::baseline::{RESULTS, WORKFLOW};
use super::client::answers::{Artifact, Comment, Run};
use super::decide::Carried;
use super::text::{any_of, code, listed};
use crate::config::labels::{Labels, Reuse, UnauthorizedMerge};
use crate::config::problem::Problem;

/// The artifact that holds a sweep's eval results.
pub const EVALS: &str = "eval_results_all";
/// The start of the names of artifacts with one agentic result each.
pub const AGENTIC: &str = "bmk_agentic_";

/// What is known of a pushed commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The commit.
    pub commit: String,
    /// The merged pull requests that it belongs to.
    pub pulls: Vec<u64>,
    /// The only one of them; `None` where there is none or more than one.
    pub pull: Option<PullFacts>,
}

/// What is known of the pull request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PullFacts {
    /// Its number.
    pub number: u64,
    /// Its labels.
    pub labels: Vec<String>,
    /// The commits that it has now.
    pub commits: Vec<String>,
    /// Its comments, the oldest first.
    pub comments: Vec<Comment>,
    /// The pinned run where there is one, then the others of its branch, the newest first.
    pub candidates: Vec<Candidate>,
}

/// A run that may stand in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The run.
    pub run: Run,
    /// Its artifacts with results, as far as they were asked for.
    pub artifacts: Vec<Artifact>,
}

/// Who said that a sweep may be reused, and which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authorization {
    /// Who, by name.
    pub by: String,
    /// Which.
    pub which: Which,
}

/// Which run a command asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The newest good one.
    Newest,
    /// This one.
    Pinned(u64),
    /// What follows the command is no run's number.
    Unclear(String),
}

/// What is decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Decision {
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
pub enum Outcome {
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
pub struct Judgement {
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

/// Who authorizes reuse: the writer of the latest comment that starts with the command and counts.
///
/// # Errors
/// Nobody does, for the reason that is given.
pub fn authorization(facts: &Facts, reuse: &Reuse) -> Result<Authorization, String> {
    let Some(pull) = &facts.pull else {
        return Err(match facts.pulls.len() {
            0 => "The commit belongs to no merged pull request.".to_owned(),
            count => format!("The commit belongs to {count} merged pull requests, not to one."),
        });
    };
    let asked = |comment: &Comment| {
        let counts = reuse.author_associations.contains(&comment.author_association);
        let which = which(comment.body.as_deref().unwrap_or_default(), &reuse.command)?;
        counts.then(|| Authorization {
            by: comment.user.as_ref().map_or("somebody", |user| &user.login).to_owned(),
            which,
        })
    };
    pull.comments.iter().rev().find_map(asked).ok_or_else(|| {
        let associations = any_of(&reuse.author_associations);
        let command = code(&reuse.command);
        format!(
            "Pull request {} has no comment {command} by an {associations}.",
            pull.number
        )
    })
}

/// What a comment asks for: its first line is the command and, at most, a run's number.
fn which(body: &str, command: &str) -> Option<Which> {
    let line = body.trim_start().lines().next()?.trim();
    let rest = line.strip_prefix(command)?;
    if !rest.is_empty() && !rest.starts_with(char::is_whitespace) {
        return None;
    }
    Some(match rest.trim() {
        "" => Which::Newest,
        number => match number.parse() {
            Ok(id) if number.bytes().all(|byte| byte.is_ascii_digit()) => Which::Pinned(id),
            _ => Which::Unclear(number.to_owned()),
        },
    })
}

/// Decides about a pushed commit.
#[must_use]
pub fn decide(facts: &Facts, labels: &Labels) -> Decision {
    let decision = |outcome, reason: String| Decision {
        outcome,
        reason,
        pull_request: facts.pull.as_ref().map(|pull| pull.number),
        run_id: None,
        complete: false,
        artifacts: Vec::new(),
        candidates: Vec::new(),
        command: None,
    };
    let (pull, authorization) = match (&facts.pull, authorization(facts, &labels.reuse)) {
        (Some(pull), Ok(authorization)) => (pull, authorization),
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
    let pin = match authorization.which {
        Which::Newest => None,
        Which::Pinned(id) => Some(id),
        Which::Unclear(text) => {
            let reason = format!("{} is not the number of a run.", code(&text));
            return decision(Outcome::Refuse, reason);
        }
    };
    let candidates: Vec<Judgement> = pull.candidates.iter().map(|c| judgement(c, pull, pin)).collect();
    let command = candidates.iter().find(|judgement| judgement.pinnable);
    let command = command.map(|judgement| format!("{} {}", labels.reuse.command, judgement.run_id));
    let refused = |reason: String| Decision {
        candidates: candidates.clone(),
        command: command.clone(),
        ..decision(Outcome::Refuse, reason)
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
            None => format!("No run of pull request {} can be reused.", pull.number),
        });
    };
    let (run, judgement) = (&pull.candidates[chosen].run, &candidates[chosen]);
    if !judgement.good {
        return refused(format!("Run {} cannot be reused: {}.", run.id, judgement.reason));
    }
    let reason = format!(
        "Run {} of {} in pull request {} stands in, as {} asked.",
        run.id,
        run.head_sha.short(),
        pull.number,
        code(&authorization.by)
    );
    Decision {
        run_id: Some(run.id),
        complete: run.conclusion.as_deref() == Some("success"),
        artifacts: kept(&pull.candidates[chosen].artifacts),
        candidates: candidates[..=chosen].to_vec(),
        ..decision(Outcome::Reuse, reason)
    }
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

fn judgement(candidate: &Candidate, pull: &PullFacts, pin: Option<u64>) -> Judgement {
    let run = &candidate.run;
    let judged = judge(candidate, pull, pin == Some(run.id));
    Judgement {
        run_id: run.id,
        url: run.html_url.clone(),
        commit: run.head_sha.as_str().to_owned(),
        good: judged.is_ok(),
        pinnable: judge(candidate, pull, true).is_ok(),
        reason: judged.err().unwrap_or_default(),
    }
}

/// Whether a run can stand in, by every rule.
fn judge(candidate: &Candidate, pull: &PullFacts, pinned: bool) -> Result<(), String> {
    fits(&candidate.run, pull, pinned)?;
    if !kept(&candidate.artifacts).is_empty() {
        return Ok(());
    }
    match candidate.artifacts.iter().any(|artifact| has_results(&artifact.name)) {
        true => Err("its results have expired".to_owned()),
        false => Err("it left no results: it swept nothing".to_owned()),
    }
}

/// Whether a run can stand in, as far as the run itself says.
fn fits(run: &Run, pull: &PullFacts, pinned: bool) -> Result<(), String> {
    let file = run.path.split('@').next().unwrap_or_default();
    if file != format!(".github/workflows/{WORKFLOW}") {
        return Err(format!("it is a run of {}, not of `{WORKFLOW}`", code(&run.path)));
    }
    if run.event != "pull_request" {
        return Err(format!("it started on {}, not on `pull_request`", code(&run.event)));
    }
    if run.status.as_deref() != Some("completed") {
        return Err("it has not ended yet".to_owned());
    }
    if !pull.commits.iter().any(|commit| commit == run.head_sha.as_str()) {
        return Err(format!(
            "its commit {} is not in pull request {}",
            run.head_sha.short(),
            pull.number
        ));
    }
    match (run.conclusion.as_deref().unwrap_or("nothing"), pinned) {
        ("success", _) | ("failure" | "cancelled", true) => Ok(()),
        (other @ ("failure" | "cancelled"), false) => Err(format!("it ended as {}, and is not pinned", code(other))),
        (other, _) => Err(format!("it ended as {}", code(other))),
    }
}

fn has_results(name: &str) -> bool {
    name == RESULTS || name == EVALS || name.starts_with(AGENTIC)
}

/// The kinds of results that have not expired.
fn kept(artifacts: &[Artifact]) -> Vec<&'static str> {
    let has = |is: &dyn Fn(&str) -> bool| artifacts.iter().any(|artifact| !artifact.expired && is(&artifact.name));
    let kinds: [(&'static str, bool); 3] = [
        (RESULTS, has(&|name| name == RESULTS)),
        (EVALS, has(&|name| name == EVALS)),
        (AGENTIC.trim_end_matches('_'), has(&|name| name.starts_with(AGENTIC))),
    ];
    kinds
        .iter()
        .filter(|(_, there)| *there)
        .map(|(kind, _)| *kind)
        .collect()
}

impl Decision {
    /// The outputs of a step; none where it fails, so that no later job takes them for an answer.
    #[must_use]
    pub fn outputs(&self) -> Vec<(String, String)> {
        if self.outcome == Outcome::Refuse {
            return Vec::new();
        }
        let run_id = self.run_id.map(|id| id.to_string()).unwrap_or_default();
        let outputs = [
            ("reuse", (self.outcome == Outcome::Reuse).to_string()),
            ("run_id", run_id),
            ("complete", self.complete.to_string()),
            ("artifacts", serde_json::json!(self.artifacts).to_string()),
            ("reason", self.reason.clone()),
        ];
        outputs.map(|(name, value)| (name.to_owned(), value)).into()
    }

    /// The problem of a refusal; `None` where nothing is refused.
    #[must_use]
    pub fn problem(&self) -> Option<Problem> {
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
