//! A run as it is now: its jobs by bucket and state, what waits longest, what failed, and who is there to run them.

pub(crate) mod log;
pub(crate) mod pools;

use indexmap::IndexMap;
use jiff::Timestamp;
use serde::Serialize;

use super::client::answers::{Job, Run};
use super::run_jobs::{self, HOSTED, Place, Places, State};
use crate::matrix::bucket::Bucket;
use crate::plan_files::{CANARY, Index};
use pools::Pool;

/// How long a job may wait for a runner before GitHub drops it, in seconds.
pub(crate) const LONGEST_QUEUE: u64 = 24 * 3600;
/// From which share of that on a wait is worth a warning.
const WARN_FROM: u64 = LONGEST_QUEUE / 4 * 3;
/// Failed jobs that are listed.
const LISTED: usize = 8;

/// What is known of a run.
#[derive(Debug)]
pub(crate) struct Facts<'f> {
    /// The run.
    pub run: &'f Run,
    /// The jobs of its latest attempt.
    pub jobs: &'f [Job],
    /// Whether these are all.
    pub complete: bool,
    /// What was planned, where that is known.
    pub plan: Option<&'f Index>,
    /// Where jobs belong.
    pub places: &'f Places,
    /// The time.
    pub now: Timestamp,
}

/// A run at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Snapshot {
    /// The run's number.
    pub run_id: u64,
    /// Its page.
    pub url: String,
    /// Its name.
    pub title: String,
    /// What started it.
    pub event: String,
    /// Its commit.
    pub commit: String,
    /// Which attempt at it this is.
    pub attempt: u64,
    /// How far it is.
    pub status: String,
    /// How it ended; `None` where it has not.
    pub conclusion: Option<String>,
    /// Seconds since this attempt was started, as long as it goes on.
    pub seconds: Option<u64>,
    /// Jobs by bucket; the canary first, jobs without a GPU last.
    pub buckets: Vec<Line>,
    /// The job that has waited longest for a runner.
    pub oldest_queued: Option<Queued>,
    /// Jobs that failed, the latest first.
    pub failed: Vec<Failed>,
    /// How many more failed.
    pub more_failed: usize,
    /// Runners and jobs by label, where that was asked for.
    pub pools: Option<Vec<Pool>>,
    /// What else is worth knowing.
    pub notes: Vec<String>,
}

/// The jobs of one bucket, by state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Line {
    /// The bucket, `canary`, or `hosted`.
    pub bucket: String,
    /// Planned jobs; `None` where the plan is not known, or says nothing of them.
    pub planned: Option<usize>,
    /// Jobs that wait for other jobs or a limit, those among them that GitHub has not made yet.
    pub waiting: usize,
    /// Jobs that wait for a runner.
    pub queued: usize,
    /// Jobs that run.
    pub running: usize,
    /// Jobs that succeeded.
    pub done: usize,
    /// Jobs that failed.
    pub failed: usize,
    /// Jobs that were cancelled.
    pub cancelled: usize,
    /// Jobs that were skipped.
    pub skipped: usize,
    /// The longest wait for a runner so far, in seconds.
    pub queue_seconds: Option<u64>,
}

/// A job that waits for a runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Queued {
    /// Its name.
    pub name: String,
    /// The labels that it asks for.
    pub labels: Vec<String>,
    /// How long, in seconds.
    pub seconds: u64,
    /// How long GitHub lets it.
    pub limit_seconds: u64,
}

/// A job that failed, or will.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Failed {
    /// Its number.
    #[serde(rename = "job-id")]
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Its bucket, or `hosted`.
    pub bucket: String,
    /// Its page.
    pub url: Option<String>,
    /// Whether it has ended: only then GitHub has its log.
    pub ended: bool,
    /// The step that failed; `None` where none did.
    pub step: Option<String>,
    /// The last lines that this step printed.
    pub lines: Vec<String>,
}

/// The run at a time; lines of logs and pools are added by whoever fetched them.
#[must_use]
pub(crate) fn snapshot(facts: &Facts<'_>) -> Snapshot {
    let run = facts.run;
    let goes_on = !run_jobs::has_ended(run);
    let age = |since: Option<&String>| {
        let seconds = facts.now.as_second() - run_jobs::time(since)?.as_second();
        Some(u64::try_from(seconds).unwrap_or(0))
    };
    let queued = facts.jobs.iter().filter(|job| State::of(job) == State::Queued);
    let oldest_queued = queued
        .filter_map(|job| Some((age(job.created_at.as_ref())?, job)))
        .max_by_key(|(seconds, _)| *seconds);
    let mut failed = failed(facts);
    let more_failed = failed.len().saturating_sub(LISTED);
    failed.truncate(LISTED);
    let mut snapshot = Snapshot {
        run_id: run.id,
        url: run.html_url.clone(),
        title: run.display_title.clone(),
        event: run.event.clone(),
        commit: run.head_sha.as_str().to_owned(),
        attempt: run.run_attempt,
        status: run.status.clone().unwrap_or_default(),
        conclusion: run.conclusion.clone(),
        seconds: age(run.run_started_at.as_ref().or(run.created_at.as_ref())).filter(|_| goes_on),
        buckets: lines(facts, &age),
        oldest_queued: oldest_queued.map(|(seconds, job)| Queued {
            name: run_jobs::short(&job.name).to_owned(),
            labels: job.labels.clone(),
            seconds,
            limit_seconds: LONGEST_QUEUE,
        }),
        failed,
        more_failed,
        pools: None,
        notes: Vec::new(),
    };
    snapshot.notes = notes(facts, &snapshot);
    snapshot
}

fn lines(facts: &Facts<'_>, age: &impl Fn(Option<&String>) -> Option<u64>) -> Vec<Line> {
    let names = [CANARY]
        .into_iter()
        .chain(Bucket::ALL.iter().map(|bucket| bucket.name()));
    let mut lines: IndexMap<&str, Line> = names
        .chain([HOSTED])
        .map(|name| {
            (
                name,
                Line {
                    bucket: name.to_owned(),
                    planned: planned(facts.plan, name),
                    ..Line::default()
                },
            )
        })
        .collect();
    for job in facts.jobs {
        let place = facts.places.of(&job.name);
        let Some(line) = lines.get_mut(place.name()).filter(|_| place != Place::Caller) else {
            continue;
        };
        let state = State::of(job);
        *line.count(state) += 1;
        if state == State::Queued {
            line.queue_seconds = line.queue_seconds.max(age(job.created_at.as_ref()));
        }
    }
    let ended = run_jobs::has_ended(facts.run);
    for line in lines.values_mut() {
        let missing = line.planned.unwrap_or_default().saturating_sub(line.seen());
        match ended {
            // Jobs that were never made were skipped with the job that makes them.
            true => line.skipped += missing,
            false => line.waiting += missing,
        }
    }
    lines.into_values().filter(|line| line.seen() > 0).collect()
}

fn planned(plan: Option<&Index>, name: &str) -> Option<usize> {
    let plan = plan?;
    match name {
        HOSTED => None,
        CANARY => Some(plan.canary.iter().len()),
        bucket => Some(plan.buckets.get(bucket).map_or(0, |of_bucket| of_bucket.jobs)),
    }
}

impl Line {
    fn count(&mut self, state: State) -> &mut usize {
        match state {
            State::Waiting => &mut self.waiting,
            State::Queued => &mut self.queued,
            State::Running => &mut self.running,
            State::Done => &mut self.done,
            State::Failed => &mut self.failed,
            State::Cancelled => &mut self.cancelled,
            State::Skipped => &mut self.skipped,
        }
    }

    /// Jobs of any state.
    fn seen(&self) -> usize {
        let waits = self.waiting + self.queued + self.running;
        waits + self.done + self.failed + self.cancelled + self.skipped
    }
}

/// Jobs that failed, and those that still run with a step that did; the latest first.
fn failed(facts: &Facts<'_>) -> Vec<Failed> {
    let is_failed = |job: &&Job| match State::of(job) {
        State::Failed => true,
        State::Running => failed_step(job).is_some(),
        _ => false,
    };
    let mut jobs: Vec<&Job> = facts.jobs.iter().filter(is_failed).collect();
    jobs.sort_by(|a, b| b.completed_at.cmp(&a.completed_at).then(a.id.cmp(&b.id)));
    let listed = |job: &Job| Failed {
        id: job.id,
        name: run_jobs::short(&job.name).to_owned(),
        bucket: facts.places.of(&job.name).name().to_owned(),
        url: job.html_url.clone(),
        ended: State::of(job) == State::Failed,
        step: failed_step(job).map(|step| step.name.clone()),
        lines: Vec::new(),
    };
    jobs.into_iter().map(listed).collect()
}

/// The first step of a job that failed.
#[must_use]
pub(crate) fn failed_step(job: &Job) -> Option<&super::client::answers::Step> {
    let failed =
        |step: &&super::client::answers::Step| matches!(step.conclusion.as_deref(), Some("failure" | "timed_out"));
    job.steps.iter().find(failed)
}

fn notes(facts: &Facts<'_>, snapshot: &Snapshot) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(queued) = &snapshot.oldest_queued
        && queued.seconds >= WARN_FROM
    {
        notes.push(format!(
            "GitHub drops a job that waits 24 hours for a runner: {} has {} left",
            queued.name,
            shown(LONGEST_QUEUE.saturating_sub(queued.seconds))
        ));
    }
    if !facts.complete {
        notes.push(format!(
            "the run has more jobs than the {} that are counted",
            facts.jobs.len()
        ));
    }
    notes
}

/// A span of time in two units, such as `3 h 12 min`.
#[must_use]
pub(crate) fn shown(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}
