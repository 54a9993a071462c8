//! What the decision on a recovery asks about, fetched.

use super::PLAN;
use crate::config::problem::{Problem, Problems};
use crate::github::baseline::WORKFLOW;
use crate::github::client::answers::{Artifact, Job, Run};
use crate::github::client::{Client, Error};

/// The job that tells another repository.
const ANNOUNCES: &str = "Announce the results";
/// Runs of one commit whose artifacts are asked for.
const LOOKED_AT: usize = 20;

/// The newest run on a pull request's newest commit that planned something.
///
/// # Errors
/// Requests that fail, and no such run.
pub(crate) fn run_of_pull(client: &Client, number: u64) -> Result<Run, Problems> {
    let pull = client.pull(number)?;
    let head = &pull.head.sha;
    let runs = client.runs_of_commit(WORKFLOW, head.as_str())?.items;
    let count = runs.len();
    for run in runs.into_iter().take(LOOKED_AT) {
        let goes_on = !crate::github::run_jobs::has_ended(&run);
        let kept = || client.artifacts(run.id, Some(PLAN));
        if goes_on || kept()?.items.iter().any(|artifact| artifact.name == PLAN) {
            return Ok(run);
        }
    }
    let message = match count {
        0 => format!(
            "there is no sweep of {}, the newest commit of pull request {number}",
            head.short()
        ),
        count => format!(
            "none of the {count} newest runs on {} of pull request {number} planned anything",
            head.short()
        ),
    };
    Err(Problem::file("", message)
        .hint("name a run instead, or sweep the commit")
        .into())
}

/// The artifacts of a run, all of them.
///
/// # Errors
/// Requests that fail, and more artifacts than are listed.
pub(crate) fn artifacts(client: &Client, run: u64) -> Result<Vec<Artifact>, Problems> {
    let listing = client.all_artifacts(run)?;
    if !listing.complete {
        let message = format!(
            "run {run} has more than {} artifacts: not all were listed",
            listing.items.len()
        );
        return Err(Problem::file("", message)
            .hint("fetch what is needed by name, with `sweepctl fetch`")
            .into());
    }
    Ok(listing.items)
}

/// Whether a run has told another repository, in any attempt.
///
/// # Errors
/// Requests that fail.
pub(crate) fn announced(client: &Client, run: &Run) -> Result<bool, Error> {
    let told =
        |job: &Job| job.name.split(" / ").any(|part| part == ANNOUNCES) && job.conclusion.as_deref() == Some("success");
    for attempt in (1..=run.run_attempt).rev() {
        if client.jobs(run.id, attempt)?.items.iter().any(told) {
            return Ok(true);
        }
    }
    Ok(false)
}
