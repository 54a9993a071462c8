//! Runners that are there, against the jobs that ask for them.

use serde::Serialize;

use crate::github::client::answers::{Job, Runner};
use crate::github::client::{Client, Error};
use crate::github::run_jobs::{Places, State};

/// The runners of one label, or of one set of labels that jobs ask for, and the run's jobs for them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Pool {
    /// The labels, with commas.
    pub label: String,
    /// Runners that have them all; `None` where nobody says.
    pub runners: Option<usize>,
    /// Those of them that are online.
    pub online: Option<usize>,
    /// Those of them that a job runs on, of this run or of another.
    pub busy: Option<usize>,
    /// Jobs of this run that run.
    pub running: usize,
    /// Jobs of this run that wait for a runner.
    pub queued: usize,
}

/// Pools by what the GPU jobs of a run ask for, in the order of the run.
#[must_use]
pub(crate) fn of(jobs: &[Job], places: &Places, runners: Option<&[Runner]>) -> Vec<Pool> {
    let mut pools: Vec<(Vec<String>, Pool)> = Vec::new();
    for job in jobs
        .iter()
        .filter(|job| places.of(&job.name).takes_gpus() && !job.labels.is_empty())
    {
        let index = match pools.iter().position(|(labels, _)| *labels == job.labels) {
            Some(index) => index,
            None => {
                pools.push((job.labels.clone(), pool(&job.labels, runners)));
                pools.len() - 1
            }
        };
        let (_, pool) = &mut pools[index];
        match State::of(job) {
            State::Running => pool.running += 1,
            State::Queued => pool.queued += 1,
            _ => {}
        }
    }
    pools.into_iter().map(|(_, pool)| pool).collect()
}

fn pool(labels: &[String], runners: Option<&[Runner]>) -> Pool {
    // GitHub takes no notice of the case of labels.
    let has = |runner: &Runner, label: &String| runner.labels.iter().any(|own| own.name.eq_ignore_ascii_case(label));
    let fitting: Option<Vec<&Runner>> = runners.map(|all| {
        all.iter()
            .filter(|runner| labels.iter().all(|label| has(runner, label)))
            .collect()
    });
    let count = |is: fn(&Runner) -> bool| {
        fitting
            .as_ref()
            .map(|all| all.iter().filter(|runner| is(runner)).count())
    };
    Pool {
        label: labels.join(", "),
        runners: count(|_| true),
        online: count(|runner| runner.status == "online"),
        busy: count(|runner| runner.busy),
        running: 0,
        queued: 0,
    }
}

/// The runners of the repository and of its organization; what of them cannot be seen is said. `None` where nothing can.
///
/// # Errors
/// Requests that fail for another reason than the token's permissions.
pub(crate) fn runners(client: &Client) -> Result<(Option<Vec<Runner>>, Vec<String>), Error> {
    let (mut found, mut notes): (Option<Vec<Runner>>, _) = (None, Vec::new());
    for (whose, answer) in [
        ("the repository", client.runners()),
        ("its organization", client.runners_of_owner()),
    ] {
        match answer {
            Ok(listing) => found.get_or_insert_default().extend(listing.items),
            // A person's repository has no organization, and needs none where it has runners.
            Err(error) if error.is_not_found() && found.as_ref().is_some_and(|found| !found.is_empty()) => {}
            Err(error @ Error::Status { status: 403 | 404, .. }) => {
                notes.push(format!("runners of {whose} are not counted: {error}"));
            }
            Err(error) => return Err(error),
        }
    }
    Ok((found, notes))
}
