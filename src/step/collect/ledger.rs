//! The plan is the denominator: of every planned job, whether it is done, failed or missing.

use std::collections::HashMap;

use crate::config::problem::Problem;
use crate::ledger::{Job, Score, State};
use crate::matrix::envelope::Envelope;
use crate::matrix::row::Row;

/// What was planned of one job.
#[derive(Debug, Clone)]
struct Planned<'p> {
    envelope: &'p Envelope,
    /// The concurrencies that it measures.
    concs: Vec<u64>,
}

/// What was found of one job.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    /// Where, for people.
    pub source: String,
    /// The concurrencies that are there.
    pub concs: Vec<u64>,
    /// What is wrong with it.
    pub problems: Vec<String>,
    /// Why the gate of its job refuses it, its scores aside.
    pub refused: Vec<String>,
    /// What is to be known of it where nothing is wrong.
    pub remark: Option<String>,
    /// Its scores, each with what it was held against.
    pub scores: Vec<Score>,
    /// Whether a limit on samples was set.
    pub diagnostic: bool,
}

impl Found {
    /// A result that is there and cannot be read.
    #[must_use]
    pub(crate) fn broken(problem: &Problem) -> Self {
        Self {
            source: problem.file.clone(),
            concs: Vec::new(),
            problems: vec![problem.message.clone()],
            ..Self::default()
        }
    }
}

/// What was planned, by job.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger<'p> {
    planned: Vec<Planned<'p>>,
    names: HashMap<&'p str, &'p str>,
}

impl<'p> Ledger<'p> {
    /// The jobs of a plan that measure something.
    #[must_use]
    pub(crate) fn new(plan: &'p [Envelope], concs: impl Fn(&'p Row) -> Vec<u64>) -> Self {
        let planned = plan.iter().map(|envelope| Planned {
            envelope,
            concs: concs(&envelope.row),
        });
        let planned: Vec<_> = planned.filter(|planned| !planned.concs.is_empty()).collect();
        let name = |planned: &Planned<'p>| (planned.envelope.id.as_str(), planned.envelope.name.as_str());
        Self {
            names: planned.iter().map(name).collect(),
            planned,
        }
    }

    /// Whether a job is planned.
    #[must_use]
    pub(crate) fn has(&self, job: &str) -> bool {
        self.names.contains_key(job)
    }

    /// Compares what was planned with what was found: every job in the plan's order, then the superseded attempts.
    #[must_use]
    pub(crate) fn jobs(&self, found: &HashMap<String, Found>, superseded: Vec<Job>) -> Vec<Job> {
        let job = |planned: &Planned<'_>| {
            let found = found.get(&planned.envelope.id);
            let (state, reason) = match found {
                None => (State::Missing, "no result arrived".to_owned()),
                Some(found) => judge(planned, found),
            };
            Job {
                id: planned.envelope.id.clone(),
                name: planned.envelope.name.clone(),
                state,
                reason,
                scores: found.map(|found| found.scores.clone()).unwrap_or_default(),
                diagnostic: found.is_some_and(|found| found.diagnostic),
                ..Job::default()
            }
        };
        let named = |mut job: Job| {
            job.name = self.names.get(job.id.as_str()).copied().unwrap_or_default().to_owned();
            job
        };
        let planned = self.planned.iter().map(job);
        planned.chain(superseded.into_iter().map(named)).collect()
    }
}

fn judge(planned: &Planned<'_>, found: &Found) -> (State, String) {
    let mut reasons = found.problems.clone();
    let lacking: Vec<String> = planned
        .concs
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
    // The gate fails a job that only evaluates; in others the eval is told, and fails nothing.
    if planned.envelope.row.eval.eval_only {
        let unsaid = found.refused.iter().filter(|why| !found.problems.contains(why));
        reasons.extend(unsaid.cloned());
        reasons.extend(found.scores.iter().filter(|score| !score.passed).map(missed));
    }
    match reasons.is_empty() {
        true => (State::Done, found.remark.clone().unwrap_or_default()),
        false => (State::Failed, reasons.join("; ")),
    }
}

fn missed(score: &Score) -> String {
    let Score {
        task, conc, score_name, ..
    } = score;
    let held = match score.floor {
        None => "which nothing judges".to_owned(),
        Some(floor) => format!("which does not clear {floor}"),
    };
    format!(
        "`{task}` at concurrency {conc} has {} for {score_name}, {held}",
        score.score
    )
}
