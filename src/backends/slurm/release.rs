//! The end of jobs that nobody waits for: by their ids, and only where the name is the runner's own.

use std::path::Path;
use std::time::{Duration, Instant};

use super::call;
use super::jobs::{self, Queued, Record};
use super::state::is_over;
use super::submit::LAST_SIGNAL;
use crate::config::problem::Problem;
use crate::process::GRACE;

/// Within which a cancelled job is gone: the runner kills the step 10 s after its first signal.
pub(crate) const CANCEL: Duration = Duration::from_millis(6200);
/// Within which a job that an earlier launch left is gone.
const RELEASE: Duration = Duration::from_secs(60);
/// After the grace, what the batch script has not killed is left to Slurm.
const SECOND: Duration = Duration::from_secs(1);
/// How long one scancel may take.
const LIMIT: Duration = Duration::from_secs(5);
/// How often the queue is looked at meanwhile.
const PAUSE: Duration = Duration::from_millis(200);

/// Cancels every job of a runner that is written down, and forgets what is gone. Says what it cancelled.
///
/// # Errors
/// Slurm does not answer, or a job is still there.
pub(crate) fn release(runner: &str, state: &Path) -> Result<Vec<String>, Problem> {
    let records = Record::all(state)?;
    if records.is_empty() {
        return Ok(Vec::new());
    }
    let queue = jobs::queue().map_err(|failure| {
        let message = format!("jobs of {runner} may be left, and the queue cannot be read: {failure}");
        Problem::file("", message).hint("release again once `squeue --me` answers")
    })?;
    let mut said = Vec::new();
    let mut left = Vec::new();
    for record in &records {
        let ids = record.ids();
        for job in queue
            .iter()
            .filter(|job| !is_over(&job.state) && record.owns(&ids, job))
        {
            if job.name == runner {
                said.push(format!(
                    "Slurm job {} ({}) was left by an earlier launch: cancelled",
                    job.id, job.state
                ));
                left.push(job.id.clone());
            } else {
                said.push(format!(
                    "Slurm job {} is called `{}`, not `{runner}`: left alone",
                    job.id, job.name
                ));
            }
        }
    }
    end(&left, RELEASE, &mut || {})?;
    for record in records {
        record.forget()?;
    }
    Ok(said)
}

/// Ends jobs: they are asked to end, killed after a grace, and waited for.
///
/// # Errors
/// A job that is still there when the time is over.
pub(crate) fn end(ids: &[String], within: Duration, meanwhile: &mut dyn FnMut()) -> Result<(), Problem> {
    if ids.is_empty() {
        return Ok(());
    }
    let started = Instant::now();
    // What waits is taken off the queue; what runs is signalled, its batch script and all steps.
    let mut stages: Vec<(Duration, &[&[&str]])> = vec![
        (GRACE + SECOND, &[&["--batch", "--signal=KILL"], &[]]),
        (GRACE, &[&["--full", LAST_SIGNAL]]),
        (Duration::ZERO, &[&["--state=PENDING"], &["--full", "--signal=TERM"]]),
    ];
    let last = loop {
        if let Some((_, calls)) = stages.pop_if(|(since, _)| started.elapsed() >= *since) {
            calls.iter().for_each(|options| scancel(options, ids));
        }
        let left = jobs::queue().map(|queue| remaining(&queue, ids));
        if left.as_ref().is_ok_and(Vec::is_empty) {
            return Ok(());
        }
        if started.elapsed() >= within {
            break left;
        }
        meanwhile();
        std::thread::sleep(PAUSE);
    };
    match last {
        // Its processes were killed; what is left is the node's epilog, which may take minutes.
        Ok(jobs) if jobs.iter().all(|job| job.state == "COMPLETING") => Ok(()),
        Ok(jobs) => Err(still_there(&jobs[0].id, &format!("is still {}", jobs[0].state))),
        Err(failure) => Err(still_there(&ids[0], &format!("may be left: {failure}"))),
    }
}

fn remaining(queue: &[Queued], ids: &[String]) -> Vec<Queued> {
    let left = queue.iter().filter(|job| ids.contains(&job.id) && !is_over(&job.state));
    left.cloned().collect()
}

/// A refusal is no news: the job may have ended meanwhile, and the queue is what counts.
fn scancel(options: &[&str], ids: &[String]) {
    let arguments: Vec<&str> = options.iter().copied().chain(ids.iter().map(String::as_str)).collect();
    let _ = call::ask("scancel", &arguments, LIMIT);
}

fn still_there(id: &str, what: &str) -> Problem {
    let message = format!("Slurm job {id} was cancelled and {what}");
    Problem::file("", message).hint(format!(
        "`sweepctl launch --release` tries again; by hand it is `scancel {id}`"
    ))
}
