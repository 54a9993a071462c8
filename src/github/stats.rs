//! How long the jobs of a run waited and ran, in every attempt, and how many GPU hours they took.

use std::collections::HashMap;

use indexmap::IndexMap;
use jiff::Timestamp;
use serde::Serialize;

use super::client::answers::{Job, Run, Step};
use super::run_jobs::{self, Execution, Places, seconds};
use super::triage::LAUNCH;
use crate::config::master::search_space::Nodes;
use crate::matrix::envelope::Envelope;

/// Seconds of an hour.
const HOUR: f64 = 3600.0;

/// One execution of a job. Field names are those of `run_stats.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct JobTime {
    /// Its name, with those of the jobs that called it.
    pub name: String,
    /// The attempt at the run that it was of.
    pub attempt: u64,
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
    /// The hardware that it was planned for; `None` where it is no job of the plan.
    pub hardware: Option<String>,
    /// Seconds that its node was held before its launch began; `None` where it takes no GPU, or did not launch.
    pub before_launch_seconds: Option<u64>,
    /// Seconds that its node was held after its launch had ended.
    pub after_launch_seconds: Option<u64>,
}

/// What is summed of jobs of one kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Sum {
    /// Executions that a runner took.
    pub jobs: usize,
    /// Of these, those that did not succeed.
    pub not_successful: usize,
    /// Of these, those of later attempts than the first.
    pub repeated: usize,
    /// Hours on runners.
    pub hours: f64,
    /// Hours, each times the job's GPUs; `None` without a plan, which alone knows them.
    pub gpu_hours: Option<f64>,
    /// The longest wait, in seconds.
    pub longest_queue: u64,
    /// The median of the seconds that nodes were held before launches began; `None` where nothing launched.
    pub before_launch: Option<u64>,
    /// The median of the seconds that nodes were held after launches had ended.
    pub after_launch: Option<u64>,
}

/// From the event to the first job on a GPU, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct FirstGpuJob {
    /// Until it was queued: what the jobs before it take.
    pub queued_seconds: Option<u64>,
    /// Until a runner took it.
    pub taken_seconds: Option<u64>,
}

/// The times of executions; the plan says how many GPUs each took.
#[must_use]
pub(crate) fn of(executions: Vec<Execution>, plan: &[Envelope], places: &Places) -> Vec<JobTime> {
    let planned: HashMap<&str, &Envelope> = plan.iter().map(|envelope| (envelope.name.as_str(), envelope)).collect();
    executions
        .into_iter()
        .map(|execution| of_job(execution, &planned, places))
        .collect()
}

fn of_job(execution: Execution, planned: &HashMap<&str, &Envelope>, places: &Places) -> JobTime {
    let Execution { attempt, job } = execution;
    let runner_name = job.runner_name.clone().filter(|name| !name.is_empty());
    let ran = runner_name.is_some();
    // A caller's name stands before that of the job that it called; only the job on a GPU holds GPUs.
    let takes_gpus = places.of(&job.name).takes_gpus();
    let envelope = job
        .name
        .split(" / ")
        .find_map(|part| planned.get(part).copied())
        .filter(|_| takes_gpus);
    let (before, after) = held(&job).filter(|_| ran && takes_gpus).unzip();
    JobTime {
        attempt,
        queue_seconds: seconds(job.created_at.as_ref(), job.started_at.as_ref()).filter(|_| ran),
        run_seconds: seconds(job.started_at.as_ref(), job.completed_at.as_ref()).filter(|_| ran),
        gpus: envelope.map(|envelope| envelope.row.topology.gpus()),
        hardware: envelope.map(hardware),
        before_launch_seconds: before.flatten(),
        after_launch_seconds: after.flatten(),
        name: job.name,
        conclusion: job.conclusion,
        labels: job.labels,
        runner_name,
        created_at: job.created_at,
        started_at: job.started_at,
        completed_at: job.completed_at,
    }
}

/// Seconds before a job's launch began and after it had ended; the latter is not known of one that goes on.
fn held(job: &Job) -> Option<(Option<u64>, Option<u64>)> {
    let is_launch = |step: &&Step| step.name == LAUNCH && step.started_at.is_some();
    let launch = job
        .steps
        .iter()
        .find(is_launch)
        .filter(|step| step.conclusion.as_deref() != Some("skipped"))?;
    Some((
        seconds(job.started_at.as_ref(), launch.started_at.as_ref()),
        seconds(launch.completed_at.as_ref(), job.completed_at.as_ref()),
    ))
}

/// The hardware of a job: that of its two sides where they differ from each other, else its runner label.
fn hardware(envelope: &Envelope) -> String {
    let topology = &envelope.row.topology;
    let of_sides = match &topology.nodes {
        Nodes::Single(_) => None,
        Nodes::Multi(roles) => roles.prefill.hardware.clone().zip(roles.decode.hardware.clone()),
    };
    match of_sides {
        Some((prefill, decode)) if prefill == decode => prefill,
        Some((prefill, decode)) => format!("{prefill} + {decode}"),
        None => {
            let label = topology.runner.strip_prefix("cluster:").unwrap_or(&topology.runner);
            label.split(['-', '_']).next().unwrap_or(label).to_owned()
        }
    }
}

/// Executions that a runner took, by the labels that they asked for, in the order of the run.
#[must_use]
pub(crate) fn by_label(jobs: &[JobTime]) -> IndexMap<String, Sum> {
    sums(jobs, |job| Some(job.labels.join(", ")))
}

/// Executions of planned jobs that a runner took, by hardware, in the order of the run.
#[must_use]
pub(crate) fn by_hardware(jobs: &[JobTime]) -> IndexMap<String, Sum> {
    sums(jobs, |job| job.hardware.clone())
}

/// All executions that a runner took.
#[must_use]
pub(crate) fn all(jobs: &[JobTime]) -> Sum {
    sums(jobs, |_| Some(String::new())).swap_remove("").unwrap_or_default()
}

fn sums(jobs: &[JobTime], key: impl Fn(&JobTime) -> Option<String>) -> IndexMap<String, Sum> {
    let mut groups: IndexMap<String, Vec<&JobTime>> = IndexMap::new();
    for job in jobs.iter().filter(|job| job.runner_name.is_some()) {
        if let Some(key) = key(job) {
            groups.entry(key).or_default().push(job);
        }
    }
    groups.into_iter().map(|(key, jobs)| (key, sum(&jobs))).collect()
}

fn sum(jobs: &[&JobTime]) -> Sum {
    let mut sum = Sum {
        before_launch: median(jobs.iter().filter_map(|job| job.before_launch_seconds)),
        after_launch: median(jobs.iter().filter_map(|job| job.after_launch_seconds)),
        ..Sum::default()
    };
    let mut gpu_hours = 0.0;
    for job in jobs {
        let hours = job.run_seconds.map_or(0.0, whole) / HOUR;
        sum.jobs += 1;
        sum.repeated += usize::from(job.attempt > 1);
        sum.not_successful += usize::from(job.conclusion.as_deref() != Some("success"));
        sum.hours += hours;
        gpu_hours += hours * job.gpus.map_or(0.0, whole);
        sum.longest_queue = sum.longest_queue.max(job.queue_seconds.unwrap_or(0));
    }
    sum.gpu_hours = Some(gpu_hours);
    sum
}

/// The lower median.
fn median(values: impl Iterator<Item = u64>) -> Option<u64> {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied()
}

/// How long the event waited for the first job on a GPU, in the first attempt.
#[must_use]
pub(crate) fn first_gpu_job(run: &Run, jobs: &[JobTime], places: &Places) -> FirstGpuJob {
    let on_gpus = || {
        jobs.iter()
            .filter(|job| job.attempt == 1 && places.of(&job.name).takes_gpus())
    };
    let taken = on_gpus().filter(|job| job.runner_name.is_some());
    let earliest = |times: &mut dyn Iterator<Item = Option<&String>>| -> Option<Timestamp> {
        times.filter_map(run_jobs::time).min()
    };
    let event = run_jobs::time(run.created_at.as_ref());
    let since = |time: Option<Timestamp>| {
        let seconds = time?.as_second() - event?.as_second();
        Some(u64::try_from(seconds).unwrap_or(0))
    };
    // GitHub makes a job when those that it needs are done; one that is skipped is never queued.
    let queued = on_gpus().filter(|job| job.conclusion.as_deref() != Some("skipped"));
    FirstGpuJob {
        queued_seconds: since(earliest(&mut queued.map(|job| job.created_at.as_ref()))),
        taken_seconds: since(earliest(&mut taken.map(|job| job.started_at.as_ref()))),
    }
}

/// The job that waited longest.
#[must_use]
pub(crate) fn longest_queue(jobs: &[JobTime]) -> Option<&JobTime> {
    jobs.iter()
        .filter(|job| job.queue_seconds.is_some())
        .max_by_key(|job| job.queue_seconds)
}

#[allow(clippy::cast_precision_loss, reason = "seconds of a run and GPUs of a job are small")]
fn whole(number: u64) -> f64 {
    number as f64
}
