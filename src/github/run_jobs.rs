//! The jobs of a run, as their names and times tell: which bucket each is of, which ones take GPUs, and which executions
//! of several attempts are one and the same.

use std::collections::HashMap;

use jiff::Timestamp;

use super::client::answers::{Job, Run};
use super::client::{Client, Error};
use super::needs;
use crate::matrix::bucket::Bucket;
use crate::matrix::envelope::Envelope;
use crate::plan_files::CANARY;

/// The name of the job on a GPU, in the workflow that runs one.
pub(crate) const BENCHMARK: &str = "Benchmark";
/// The name of the canary's job.
const CANARY_TITLE: &str = "Canary";
/// What jobs without a GPU are called together.
pub(crate) const HOSTED: &str = "hosted";
/// What parts the name of a job from those of the jobs that called it.
const CALLED: &str = " / ";

/// One execution of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Execution {
    /// The attempt at the run that it was of.
    pub attempt: u64,
    /// The job as it was then.
    pub job: Job,
}

/// Every execution of the attempts at a run, the earliest first, and whether that is all of them. GitHub lists a job that
/// an attempt did not run again in that attempt too: it counts once.
///
/// # Errors
/// Requests that fail.
pub(crate) fn executions(client: &Client, run: u64, attempts: u64) -> Result<(Vec<Execution>, bool), Error> {
    let mut all = Vec::new();
    let mut complete = true;
    for attempt in 1..=attempts {
        let listing = client.jobs(run, attempt)?;
        complete &= listing.complete;
        all.extend(listing.items.into_iter().map(|job| Execution { attempt, job }));
    }
    Ok((distinct(all), complete))
}

/// Executions without those that an earlier attempt has already.
#[must_use]
pub(crate) fn distinct(executions: Vec<Execution>) -> Vec<Execution> {
    let mut seen: HashMap<_, u64> = HashMap::new();
    let is_new = |execution: &Execution| {
        let job = &execution.job;
        // One that has not ended, or never started, can only be of its own attempt.
        let (Some(started), Some(ended)) = (&job.started_at, &job.completed_at) else {
            return true;
        };
        if job.runner_name.as_ref().is_none_or(String::is_empty) {
            return true;
        }
        let what = (
            job.name.clone(),
            job.runner_name.clone(),
            started.clone(),
            ended.clone(),
        );
        *seen.entry(what).or_insert(execution.attempt) == execution.attempt
    };
    executions.into_iter().filter(is_new).collect()
}

/// Where a job belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// It takes GPUs, for a bucket or, by [`CANARY`], before all of them.
    Gpu(&'static str),
    /// It takes none.
    Hosted,
    /// It is no job of its own: a bucket's job that called nothing.
    Caller,
}

impl Place {
    /// Whether it takes GPUs.
    #[must_use]
    pub(crate) fn takes_gpus(self) -> bool {
        matches!(self, Self::Gpu(_))
    }

    /// Its bucket; `hosted` where it takes no GPU.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Gpu(bucket) => bucket,
            Self::Hosted | Self::Caller => HOSTED,
        }
    }
}

/// Tells where jobs belong: by the plan, where there is one, else by the titles of the workflow's jobs.
#[derive(Debug, Default)]
pub(crate) struct Places {
    by_name: HashMap<String, &'static str>,
}

impl Places {
    /// By a plan; `canary` is the id of its canary.
    #[must_use]
    pub(crate) fn of_plan(plan: &[Envelope], canary: Option<&str>) -> Self {
        let place = |envelope: &Envelope| match canary {
            Some(id) if id == envelope.id => CANARY,
            _ => Bucket::of(&envelope.row).name(),
        };
        Self {
            by_name: plan.iter().map(|e| (e.name.clone(), place(e))).collect(),
        }
    }

    /// Where a job belongs.
    #[must_use]
    pub(crate) fn of(&self, name: &str) -> Place {
        let parts: Vec<&str> = name.split(CALLED).collect();
        let first = parts.first().copied().unwrap_or_default();
        // GitHub may put the values of a matrix behind a job's name.
        let first = first.split(" (").next().unwrap_or_default();
        let bucket = Bucket::ALL.iter().find(|bucket| needs::title_of(**bucket) == first);
        let title = match first == CANARY_TITLE {
            true => Some(CANARY),
            false => bucket.map(|bucket| bucket.name()),
        };
        let called = parts.len() > 1 && parts.last() == Some(&BENCHMARK);
        if let (Some(title), true) = (title, called) {
            return Place::Gpu(title);
        }
        let planned = parts.iter().find_map(|part| self.by_name.get(*part));
        match planned {
            Some(bucket) => Place::Gpu(bucket),
            None if title.is_some() && parts.len() == 1 => Place::Caller,
            None => Place::Hosted,
        }
    }
}

/// The short name of a job: that of its envelope where it takes GPUs.
#[must_use]
pub(crate) fn short(name: &str) -> &str {
    let parts: Vec<&str> = name.split(CALLED).collect();
    match parts.as_slice() {
        [.., envelope, last] if *last == BENCHMARK => envelope,
        _ => name,
    }
}

/// How far a job is, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum State {
    /// It waits for other jobs, a limit, or an approval.
    Waiting,
    /// It waits for a runner.
    Queued,
    /// It runs.
    Running,
    /// It succeeded.
    Done,
    /// It failed, or took too long.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// It was skipped.
    Skipped,
}

impl State {
    /// The state of a job.
    #[must_use]
    pub(crate) fn of(job: &Job) -> Self {
        match (job.status.as_str(), job.conclusion.as_deref()) {
            ("queued", _) => Self::Queued,
            ("in_progress", _) => Self::Running,
            ("completed", Some("success" | "neutral")) => Self::Done,
            ("completed", Some("skipped")) => Self::Skipped,
            ("completed", Some("cancelled")) => Self::Cancelled,
            ("completed", _) => Self::Failed,
            _ => Self::Waiting,
        }
    }
}

/// A time of GitHub's.
#[must_use]
pub(crate) fn time(text: Option<&String>) -> Option<Timestamp> {
    text?.parse().ok()
}

/// Seconds from one time to another; 0 where clocks disagree about their order.
#[must_use]
pub(crate) fn seconds(from: Option<&String>, to: Option<&String>) -> Option<u64> {
    let seconds = time(to)?.as_second() - time(from)?.as_second();
    Some(seconds.try_into().unwrap_or(0))
}

/// Whether a run is over.
#[must_use]
pub(crate) fn has_ended(run: &Run) -> bool {
    run.status.as_deref() == Some("completed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_bucket() {
        let places = Places::default();
        for (name, place) in [
            ("One node, 8k1k / m1 c64 / Benchmark", Place::Gpu("single_node_8k1k")),
            (
                "One node, 8k1k (0) / m1 c64 / Benchmark",
                Place::Gpu("single_node_8k1k"),
            ),
            (
                "Multi-node agentic evals / m1 / Benchmark",
                Place::Gpu("multinode_agentic_evals"),
            ),
            ("Canary / m1 c4 / Benchmark", Place::Gpu("canary")),
            ("One node, 8k1k / Load", Place::Hosted),
            ("One node, 8k1k", Place::Caller),
            ("Benchmark", Place::Hosted),
            ("Something / Benchmark", Place::Hosted),
            ("Decide", Place::Hosted),
            ("", Place::Hosted),
        ] {
            assert_eq!(places.of(name), place, "{name}");
        }
        assert_eq!(short("One node, 8k1k (0) / m1 c64 / Benchmark"), "m1 c64");
        assert_eq!(short("Collect results / Collect"), "Collect results / Collect");
    }

    #[test]
    fn the_workflow_calls_its_job_so() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/.github/workflows/");
        let job = std::fs::read_to_string(format!("{path}benchmark-tmpl.yml")).expect("the file");
        assert!(job.contains(&format!("    name: {BENCHMARK}\n")));
        let sweep = std::fs::read_to_string(format!("{path}run-sweep.yml")).expect("the file");
        assert!(sweep.contains(&format!("    name: {CANARY_TITLE}\n")));
        for bucket in Bucket::ALL {
            let title = needs::title_of(*bucket);
            assert!(sweep.contains(&format!("    name: {title}\n")), "{title}");
        }
    }
}
