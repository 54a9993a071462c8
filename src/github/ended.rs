//! How the jobs of a plan ended, as GitHub says it: of single jobs by their names, of whole buckets by `needs`.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;

use super::needs::{self, CANARY, Needs};
use super::text;
use crate::config::problem::Problem;
use crate::ledger::publish::Ended;
use crate::matrix::bucket::Bucket;
use crate::matrix::envelope::Envelope;

/// A job of a run, as `sweepctl stats` writes it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Told {
    /// Its name, with those of the jobs that called it.
    name: String,
    /// How it ended; `None` where it has not.
    #[serde(default)]
    conclusion: Option<String>,
    /// The attempt that it is of, where the file says so.
    #[serde(default, alias = "run_attempt")]
    attempt: Option<u64>,
}

/// Reads what `sweepctl stats` wrote.
///
/// # Errors
/// A file that cannot be read, or holds something else.
pub(crate) fn read(path: &Path) -> Result<Vec<Told>, Problem> {
    /// A list of jobs, or an object that has one.
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum File {
        Jobs(Vec<Told>),
        Object { jobs: Vec<Told> },
    }
    let source = text::read(path)?;
    match serde_json::from_str(&source.text) {
        Ok(File::Jobs(jobs) | File::Object { jobs }) => Ok(jobs),
        Err(error) => Err(Problem::file(
            &source.name,
            format!("`{}` is no list of a run's jobs: {error}", source.name),
        )
        .hint("write it with `sweepctl stats --output FILE`")),
    }
}

/// How the jobs of a plan ended. `canary` is the id of the job that ran first.
#[must_use]
pub(crate) fn of(plan: &[Envelope], canary: Option<&str>, needs: Option<&Needs>, told: &[Told]) -> Ended {
    let mut ended = Ended::default();
    let mut named: HashMap<&str, Vec<&str>> = HashMap::new();
    for envelope in plan {
        named.entry(&envelope.name).or_default().push(&envelope.id);
        let job = match canary == Some(envelope.id.as_str()) {
            true => CANARY.to_owned(),
            false => needs::job_of(Bucket::of(&envelope.row)),
        };
        if let Some(need) = needs.and_then(|needs| needs.0.get(&job)) {
            let result = need.result.as_str().to_owned();
            ended.whole.insert(envelope.id.clone(), (job, result));
        }
    }
    for (name, results) in by_name(told, &named) {
        let ids = &named[name];
        let failed = results.iter().find(|result| **result != "success");
        let result = match (failed, ids.len()) {
            (None, _) => "success".to_owned(),
            (Some(failed), 1) => (*failed).to_owned(),
            // Nothing tells them apart: none of them is known to have succeeded.
            (Some(failed), jobs) => format!("{failed} (or another of the {jobs} jobs of that name did)"),
        };
        ended
            .jobs
            .extend(ids.iter().map(|id| ((*id).to_owned(), result.clone())));
    }
    ended
}

/// How the jobs of each planned name ended, in the newest attempt at each.
fn by_name<'t>(told: &'t [Told], named: &HashMap<&'t str, Vec<&str>>) -> HashMap<&'t str, Vec<&'t str>> {
    let mut newest: HashMap<&str, u64> = HashMap::new();
    for job in told {
        let attempt = newest.entry(&job.name).or_default();
        *attempt = job.attempt.unwrap_or(0).max(*attempt);
    }
    let mut results: HashMap<&str, Vec<&str>> = HashMap::new();
    for job in told
        .iter()
        .filter(|job| job.attempt.unwrap_or(0) == newest[job.name.as_str()])
    {
        // A caller's name stands before that of the job that it called.
        let planned = job.name.split(" / ").find(|part| named.contains_key(part));
        if let Some(planned) = planned {
            let conclusion = job.conclusion.as_deref().unwrap_or("nothing yet");
            results.entry(planned).or_default().push(conclusion);
        }
    }
    results
}
