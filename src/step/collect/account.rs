//! The plan is the denominator: of every planned job, whether it is done, failed or missing.

use std::collections::HashMap;

use serde::Serialize;

use crate::matrix::envelope::Envelope;

/// What became of a job, or of one attempt at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Everything that was planned is there.
    Done,
    /// Something is there, and not all of it is right.
    Failed,
    /// Nothing is there.
    Missing,
    /// A newer attempt took its place.
    Superseded,
}

impl State {
    /// The text form.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Missing => "missing",
            Self::Superseded => "superseded",
        }
    }
}

/// One job, or one superseded attempt at it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Job {
    /// Its id.
    pub id: String,
    /// Its name in the plan; empty where it is in none.
    pub name: String,
    /// What became of it.
    pub state: State,
    /// Why, where it is not done.
    pub reason: String,
}

/// What was planned of one job.
#[derive(Debug, Clone)]
pub struct Planned<'p> {
    /// The job.
    pub envelope: &'p Envelope,
    /// The concurrencies that it measures.
    pub concs: Vec<u64>,
}

/// What was found of one job.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// Where, for people.
    pub source: String,
    /// The concurrencies that are there.
    pub concs: Vec<u64>,
    /// What is wrong with it.
    pub problems: Vec<String>,
}

/// Compares what was planned with what was found; jobs come in the plan's order.
#[must_use]
pub fn account(planned: &[Planned<'_>], found: &HashMap<String, Found>) -> Vec<Job> {
    let job = |planned: &Planned<'_>| {
        let (state, reason) = match found.get(&planned.envelope.id) {
            None => (State::Missing, "no result arrived".to_owned()),
            Some(found) => judge(&planned.concs, found),
        };
        Job {
            id: planned.envelope.id.clone(),
            name: planned.envelope.name.clone(),
            state,
            reason,
        }
    };
    planned.iter().map(job).collect()
}

fn judge(concs: &[u64], found: &Found) -> (State, String) {
    let mut reasons = found.problems.clone();
    let lacking: Vec<String> = concs
        .iter()
        .filter(|c| !found.concs.contains(c))
        .map(u64::to_string)
        .collect();
    // Where nothing could be read, the problems say why; the points need no second mention.
    if !lacking.is_empty() && (reasons.is_empty() || !found.concs.is_empty()) {
        reasons.push(format!(
            "{}: nothing at concurrency {}",
            found.source,
            lacking.join(", ")
        ));
    }
    match reasons.is_empty() {
        true => (State::Done, String::new()),
        false => (State::Failed, reasons.join("; ")),
    }
}
