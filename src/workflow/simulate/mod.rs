//! Which jobs of a workflow run for an event and a plan, without running any.
//!
//! Conditions, names, matrices and groups are evaluated as GitHub does it; what jobs say is asked of the commands
//! themselves where they are this binary's own. Everything else is assumed to succeed, unless it is told otherwise.
//!
//! The model of the job graph, where GitHub's documentation says little:
//! - `success()` asks that every ancestor succeeded, those that are no direct need included: one that was skipped far
//!   up skips every job that asks for success, also behind jobs that ran all the same. A condition without a status
//!   function asks `success()` as well.
//! - `failure()` asks whether any ancestor failed; `cancelled()` whether the run was.
//! - When a run is cancelled, jobs that run are asked their condition anew, and go on where it still holds.
//! - A job that is a matrix, or a workflow of its own, failed if a part failed, else was cancelled if a part was.
//! - A matrix without a value fails its job ("Matrix vector does not contain any values").
//! - A job that may fail (`continue-on-error`) is a success to the jobs behind it.
//! - The jobs of a called workflow see no ancestors of their caller. This is an assumption.

mod asked;
mod commands;
pub mod evaluate;
mod functions;
mod graph;
mod matrix;
pub mod template;
mod trigger;
pub mod value;

use std::sync::Arc;

use indexmap::IndexMap;
use serde::Serialize;

pub use commands::{Commands, Plan};
use evaluate::Scope;
use graph::Player;
use value::Value;

use super::check::Files;
use crate::config::problem::{Problem, Problems, nearest};
use crate::github::needs::JobResult;

/// What is asked.
#[derive(Debug)]
pub struct Ask<'a> {
    /// The workflow: the name of its file without `.yml`.
    pub workflow: &'a str,
    /// The event's name.
    pub event: &'a str,
    /// Its payload.
    pub payload: &'a serde_json::Value,
    /// Which run it is.
    pub run: Run,
    /// What the commands are asked with.
    pub commands: Commands,
    /// What differs from a run without faults.
    pub faults: Faults,
}

/// A run, by its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Its own.
    pub id: u64,
    /// How often it was started: 1, unless it was started again.
    pub attempt: u64,
}

/// What differs from a run in which everything succeeds. Jobs are named by their id; one of a called workflow by that of
/// its caller, a slash and its own.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    /// How jobs end that run; `skipped` keeps one from running.
    pub results: IndexMap<String, JobResult>,
    /// Outputs of jobs, by job and name, instead of those that are known.
    pub outputs: IndexMap<(String, String), String>,
    /// The job of the workflow during which the run is cancelled. Jobs that wait for nothing that it does not wait for
    /// are taken to run beside it.
    pub cancelled_in: Option<String>,
}

/// What would happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Simulation {
    /// The workflow's name.
    pub workflow: String,
    /// The event's name.
    pub event: String,
    /// Whether the event starts the workflow.
    pub starts: bool,
    /// Why it does not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The concurrency group that the run claims before any job; empty where it claims none.
    pub group: String,
    /// Whether it cancels what runs in that group.
    pub cancels: bool,
    /// How the run ends.
    pub result: JobResult,
    /// Its jobs, in the order of the file.
    pub jobs: Vec<JobReport>,
}

/// What becomes of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct JobReport {
    /// Its id.
    pub job: String,
    /// Whether it starts.
    pub runs: bool,
    /// What its `result` is to the jobs behind it.
    pub result: JobResult,
    /// Why it does not run, or does not succeed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Whether the first failure of its matrix cancels the rest; `None` without a matrix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_fast: Option<bool>,
    /// One for each value of its matrix; one where it has none.
    pub legs: Vec<Leg>,
}

/// One run of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Leg {
    /// Its name, as a pull request's checks show it.
    pub name: String,
    /// The labels of its runner; none where it calls a workflow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs_on: Vec<String>,
    /// Its concurrency group; empty where it has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The jobs of the workflow that it calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobReport>,
}

impl Simulation {
    /// A job of the workflow.
    #[must_use]
    pub fn job(&self, id: &str) -> Option<&JobReport> {
        self.jobs.iter().find(|job| job.job == id)
    }
}

/// Plays a workflow.
///
/// # Errors
/// A workflow that is not there, faults of jobs that it has not, and jobs that wait for each other.
pub fn simulate(files: &Files<'_>, ask: &Ask<'_>) -> Result<Simulation, Problems> {
    let file_name = format!("{}.yml", ask.workflow);
    let Some(file) = files.workflows().find(|file| file.file_name() == file_name) else {
        let known = files.workflows().map(|file| file.file_name().trim_end_matches(".yml"));
        let problem = Problem::file(&file_name, format!("there is no workflow `{}`", ask.workflow));
        return Err(problem.hint(nearest(ask.workflow, known)).into());
    };
    let name = file.get("name").map_or(ask.workflow, |node| node.text());
    let github = trigger::github(name, ask.event, ask.payload, ask.run);
    let given: Value = ask.payload.get("inputs").map_or(Value::Null, Value::from);
    let inputs = trigger::inputs(file, ask.event, &given);
    let scope = Scope::default()
        .with("github", github)
        .with("inputs", inputs)
        .with("vars", Value::Object(Arc::default()));
    let concurrency = asked::concurrency(file.get("concurrency"), &scope)
        .map_err(|error| Problem::file(&file.source.name, format!("`concurrency`: {error}")))?;
    let why = trigger::why_not(file, ask.event, ask.payload);
    let player = Player::new(files, ask);
    let mut simulation = Simulation {
        workflow: name.to_owned(),
        event: ask.event.to_owned(),
        starts: why.is_none(),
        why: why.unwrap_or_default(),
        group: concurrency.group,
        cancels: concurrency.cancels,
        result: JobResult::Skipped,
        jobs: Vec::new(),
    };
    player.check(file)?;
    if simulation.starts {
        let played = player.play(file, &scope, "", 0)?;
        simulation.result = played.result;
        simulation.jobs = played.jobs;
    } else {
        simulation.group = String::new();
    }
    Ok(simulation)
}
