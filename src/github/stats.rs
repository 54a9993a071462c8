//! How long the jobs of a run waited and ran, and how many GPU hours they took.

use std::collections::HashMap;

use indexmap::IndexMap;
use jiff::Timestamp;
use serde::Serialize;

use super::client::answers::Job;
use crate::matrix::envelope::Envelope;

/// Seconds of an hour.
const HOUR: f64 = 3600.0;

/// One job. Field names are those of `run_stats.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct JobTime {
    /// Its name, with those of the jobs that called it.
    pub name: String,
    /// How it ended; `None` where it has not.
    pub conclusion: Option<String>,
    /// The labels that it asked for.
    pub labels: Vec<String>,
    /// The runner that took it; `None` where none did.
    pub runner_name: Option<String>,
    /// When it was queued.
    pub created_at: Option<String>,
    /// When a runner took it.
    pub started_at: Option<String>,
    /// When it ended.
    pub completed_at: Option<String>,
    /// Seconds that it waited for a runner; `None` where no runner took it.
    pub queue_seconds: Option<u64>,
    /// Seconds that it ran; `None` where it did not, or has not ended.
    pub run_seconds: Option<u64>,
    /// The GPUs that it occupied; `None` where it is no job of the plan.
    pub gpus: Option<u64>,
}

/// All jobs of one label.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OfLabel {
    /// Jobs that a runner took.
    pub jobs: usize,
    /// Of these, jobs that did not succeed.
    pub not_successful: usize,
    /// Hours on runners.
    pub hours: f64,
    /// Hours, each times the job's GPUs.
    pub gpu_hours: f64,
    /// The longest wait, in seconds.
    pub longest_queue: u64,
}

/// The times of jobs; the plan says how many GPUs each took.
#[must_use]
pub fn of(jobs: Vec<Job>, plan: &[Envelope]) -> Vec<JobTime> {
    let gpus: HashMap<&str, u64> = plan
        .iter()
        .map(|envelope| (envelope.name.as_str(), envelope.row.topology.gpus()))
        .collect();
    jobs.into_iter().map(|job| of_job(job, &gpus)).collect()
}

fn of_job(job: Job, gpus: &HashMap<&str, u64>) -> JobTime {
    let runner_name = job.runner_name.filter(|name| !name.is_empty());
    let ran = runner_name.is_some();
    // A caller's name stands before that of the job that it called.
    let planned = job.name.split(" / ").find_map(|part| gpus.get(part).copied());
    JobTime {
        queue_seconds: seconds(&job.created_at, &job.started_at).filter(|_| ran),
        run_seconds: seconds(&job.started_at, &job.completed_at).filter(|_| ran),
        gpus: planned,
        name: job.name,
        conclusion: job.conclusion,
        labels: job.labels,
        runner_name,
        created_at: job.created_at,
        started_at: job.started_at,
        completed_at: job.completed_at,
    }
}

/// From one time to another; 0 where clocks disagree about their order.
fn seconds(from: &Option<String>, to: &Option<String>) -> Option<u64> {
    let time = |text: &Option<String>| text.as_ref()?.parse::<Timestamp>().ok();
    let seconds = time(to)?.as_second() - time(from)?.as_second();
    Some(seconds.try_into().unwrap_or(0))
}

/// Jobs that a runner took by their labels, in the order of the run.
#[must_use]
pub fn by_label(jobs: &[JobTime]) -> IndexMap<String, OfLabel> {
    let mut labels: IndexMap<String, OfLabel> = IndexMap::new();
    for job in jobs.iter().filter(|job| job.runner_name.is_some()) {
        let label = labels.entry(job.labels.join(", ")).or_default();
        let hours = job.run_seconds.map_or(0.0, whole) / HOUR;
        label.jobs += 1;
        label.not_successful += usize::from(job.conclusion.as_deref() != Some("success"));
        label.hours += hours;
        label.gpu_hours += hours * job.gpus.map_or(0.0, whole);
        label.longest_queue = label.longest_queue.max(job.queue_seconds.unwrap_or(0));
    }
    labels
}

/// The job that waited longest.
#[must_use]
pub fn longest_queue(jobs: &[JobTime]) -> Option<&JobTime> {
    jobs.iter()
        .filter(|job| job.queue_seconds.is_some())
        .max_by_key(|job| job.queue_seconds)
}

#[allow(clippy::cast_precision_loss, reason = "seconds of a run and GPUs of a job are small")]
fn whole(number: u64) -> f64 {
    number as f64
}
