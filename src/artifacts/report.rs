//! What became of every artifact that was wanted.

use std::collections::HashMap;

use serde::Serialize;

use super::Listed;
use super::folder::Note;
use super::wanted::Wanted;
use crate::config::problem::{Problem, Problems, nearest};
use crate::matrix::names::ArtifactKind;
use crate::plural::count;
use crate::step::markdown;

/// What became of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// It arrived.
    Fetched,
    /// It was there already.
    Kept,
    /// The run has none.
    Missing,
    /// The run lists it, and its content is gone.
    Expired,
    /// It is there, and did not arrive.
    Failed,
}

impl State {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fetched => "fetched",
            Self::Kept => "kept",
            Self::Missing => "missing",
            Self::Expired => "expired",
            Self::Failed => "failed",
        }
    }
}

/// One artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Outcome {
    /// Its name.
    pub name: String,
    /// The job that it is of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Its kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// What became of it.
    pub state: State,
    /// Its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// The digest of what arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Whether the service gave no digest to hold it against.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unchecked: bool,
    /// The sizes of its files together, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// How many files it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<usize>,
    /// How often its download was tried; 0 where it was not.
    pub attempts: u32,
    /// Why it is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Outcome {
    /// Of a listed artifact, as yet nothing.
    pub(crate) fn of(artifact: &Listed) -> Self {
        Self {
            id: Some(artifact.id),
            unchecked: artifact.digest.is_none(),
            ..Self::missing(artifact.name.clone())
        }
    }

    fn missing(name: String) -> Self {
        Self {
            name,
            job: None,
            kind: None,
            state: State::Missing,
            id: None,
            digest: None,
            unchecked: false,
            bytes: None,
            files: None,
            attempts: 0,
            reason: Some("the run has no artifact of this name".to_owned()),
        }
    }

    /// It is in the folder.
    pub(crate) fn arrived(self, state: State, note: &Note, attempts: u32) -> Self {
        Self {
            state,
            digest: Some(note.digest.clone()),
            bytes: Some(note.bytes()),
            files: Some(note.files.len()),
            attempts,
            reason: None,
            ..self
        }
    }

    /// It is not.
    pub(crate) fn lacking(self, state: State, reason: String, attempts: u32) -> Self {
        Self {
            state,
            reason: Some(reason),
            attempts,
            unchecked: false,
            ..self
        }
    }
}

/// What became of all of them.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Who was asked: `runner` or `rest`.
    pub via: &'static str,
    /// How many were wanted.
    pub wanted: usize,
    /// How many arrived.
    pub fetched: usize,
    /// How many were there already.
    pub kept: usize,
    /// How many the run does not have.
    pub missing: usize,
    /// How many have no content any more.
    pub expired: usize,
    /// How many did not arrive.
    pub failed: usize,
    /// The sizes of all files that are in the folder, in bytes.
    pub bytes: u64,
    /// Each, in the order in which they were wanted.
    pub artifacts: Vec<Outcome>,
}

impl Report {
    /// Puts the outcomes of what was listed in the order of what was wanted, with what was not listed among them.
    pub(crate) fn new(via: &'static str, wanted: &[Wanted], outcomes: Vec<Outcome>) -> Self {
        let mut by_name: HashMap<String, Outcome> = outcomes
            .into_iter()
            .map(|outcome| (outcome.name.clone(), outcome))
            .collect();
        let artifacts: Vec<Outcome> = wanted
            .iter()
            .map(|wanted| Outcome {
                job: wanted.of.as_ref().map(|(job, _)| job.clone()),
                kind: wanted.of.as_ref().map(|(_, kind)| ArtifactKind::name(*kind)),
                ..by_name
                    .remove(&wanted.name)
                    .unwrap_or_else(|| Outcome::missing(wanted.name.clone()))
            })
            .collect();
        let of = |state: State| artifacts.iter().filter(|outcome| outcome.state == state).count();
        Self {
            via,
            wanted: wanted.len(),
            fetched: of(State::Fetched),
            kept: of(State::Kept),
            missing: of(State::Missing),
            expired: of(State::Expired),
            failed: of(State::Failed),
            bytes: artifacts.iter().filter_map(|outcome| outcome.bytes).sum(),
            artifacts,
        }
    }

    /// How many are in the folder.
    pub(crate) fn here(&self) -> usize {
        self.fetched + self.kept
    }

    /// Those that are not in the folder.
    pub(crate) fn lacking(&self) -> impl Iterator<Item = &Outcome> {
        let is_here = |outcome: &&Outcome| matches!(outcome.state, State::Fetched | State::Kept);
        self.artifacts.iter().filter(move |outcome| !is_here(outcome))
    }

    /// What fails the command: what is there and did not arrive, and what must be there and is not. `listed` are the names
    /// that the run has.
    pub(crate) fn problems(&self, wanted: &[Wanted], listed: &[&str]) -> Problems {
        let mut problems = Problems::default();
        for (wanted, outcome) in wanted.iter().zip(&self.artifacts) {
            let message = format!("`{}`: {}", outcome.name, outcome.reason.as_deref().unwrap_or_default());
            let problem = Problem::file("", message);
            match outcome.state {
                State::Fetched | State::Kept => {}
                State::Missing if !wanted.required => {}
                State::Missing => {
                    let known = nearest(&wanted.name, listed.iter().copied());
                    problems.push(problem.hint(format!("{known}; --optional for one that need not be there")));
                }
                State::Expired => problems.push(problem.hint("run its job again, or name a run that is younger")),
                State::Failed => problems.push(problem.hint("run it again: what arrived is kept")),
            }
        }
        problems
    }

    /// The counts in a sentence.
    pub(crate) fn sentence(&self) -> String {
        let mut parts = vec![format!("{} fetched", self.fetched)];
        for (number, what) in [
            (self.kept, "kept"),
            (self.missing, "missing"),
            (self.expired, "expired"),
            (self.failed, "failed"),
        ] {
            if number > 0 {
                parts.push(format!("{number} {what}"));
            }
        }
        let mib = self.bytes.div_ceil(1 << 20);
        format!("{}: {} ({mib} MiB)", count(self.wanted, "artifact"), parts.join(", "))
    }

    /// The head of a table of what is not there.
    pub(crate) const HEAD: [&str; 3] = ["artifact", "state", "why"];

    /// The rows of a table of what is not there.
    pub(crate) fn rows(&self) -> Vec<Vec<String>> {
        let row = |outcome: &Outcome| {
            let reason = outcome.reason.clone().unwrap_or_default();
            vec![outcome.name.clone(), outcome.state.name().to_owned(), reason]
        };
        self.lacking().map(row).collect()
    }

    /// For a step summary.
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("### Artifacts\n\n{}\n", self.sentence());
        if self.here() < self.wanted {
            text.push_str(&format!("\n{}", markdown::table(&Self::HEAD, &self.rows())));
        }
        text
    }
}
