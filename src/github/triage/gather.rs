//! What the judgement of a run's failures asks about, fetched as far as it is needed.

use std::collections::HashSet;

use super::Facts;
use crate::github::client::answers::Run;
use crate::github::client::{Client, Error};
use crate::github::run_jobs::{self, State};

/// Jobs whose annotations are asked for: a request each.
const LOOKED_AT: usize = 100;

/// What is known of the jobs of a run that did not succeed.
#[derive(Debug)]
pub(crate) struct Found {
    /// Those of the latest attempt.
    pub failed: Vec<Facts>,
    /// What else is worth knowing.
    pub notes: Vec<String>,
}

/// Fetches them.
///
/// # Errors
/// Requests that fail.
pub(crate) fn facts(client: &Client, run: &Run) -> Result<Found, Error> {
    let latest = client.jobs(run.id, run.run_attempt)?;
    let mut notes = Vec::new();
    if !latest.complete {
        notes.push(format!(
            "the run has more jobs than the {} that are looked at",
            latest.items.len()
        ));
    }
    let failed: Vec<_> = latest
        .items
        .into_iter()
        .filter(|job| matches!(State::of(job), State::Failed | State::Cancelled))
        .collect();
    if failed.is_empty() {
        return Ok(Found {
            failed: Vec::new(),
            notes,
        });
    }
    let (executions, _) = run_jobs::executions(client, run.id, run.run_attempt)?;
    if failed.len() > LOOKED_AT {
        let more = failed.len() - LOOKED_AT;
        notes.push(format!(
            "what {more} more failed jobs said was not asked for: their steps alone decide"
        ));
    }
    let mut facts = Vec::with_capacity(failed.len());
    for (index, job) in failed.into_iter().enumerate() {
        let annotations = match index < LOOKED_AT {
            true => annotations(client, job.id, &mut notes)?,
            false => Vec::new(),
        };
        // One that no runner took was not started.
        let started = executions.iter().filter(|execution| execution.job.name == job.name);
        let started = started.filter(|execution| State::of(&execution.job) != State::Skipped);
        let started: HashSet<u64> = started.map(|execution| execution.attempt).collect();
        facts.push(Facts {
            job,
            annotations,
            attempts: u64::try_from(started.len()).unwrap_or(u64::MAX).max(1),
        });
    }
    Ok(Found { failed: facts, notes })
}

/// What a job said. A token that may not read checks is no failure: steps are known all the same.
fn annotations(client: &Client, job: u64, notes: &mut Vec<String>) -> Result<Vec<super::Annotation>, Error> {
    match client.annotations(job) {
        Err(error @ Error::Status { status: 403 | 404, .. }) => {
            let note = format!("exit codes are not known: {error}; the token needs `checks: read`");
            if notes.iter().all(|known| !known.starts_with("exit codes")) {
                notes.push(note);
            }
            Ok(Vec::new())
        }
        answer => answer,
    }
}
