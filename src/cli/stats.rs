//! `sweepctl stats`: how long the jobs of a run waited and ran.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use indexmap::IndexMap;
use serde::Serialize;

use super::client::{self, ClientArgs};
use super::output;
use super::run_plan::RunPlan;
use crate::config::problem::{Problem, Problems};
use crate::github::run_address::RunAddress;
use crate::github::run_jobs;
use crate::github::stats::{self, FirstGpuJob, JobTime, Sum};
use crate::github::text;
use crate::github::watch::shown;
use crate::runner;
use crate::step::markdown;
use crate::step::results::file;

/// `sweepctl stats`
#[derive(Debug, Args)]
#[command(after_help = client::ABOUT)]
pub(crate) struct Stats {
    /// The run, with all its attempts [default: GITHUB_RUN_ID, up to its attempt GITHUB_RUN_ATTEMPT]
    #[arg(long, value_name = "RUN")]
    run_id: Option<RunAddress>,
    /// The plan, for the GPUs and the hardware of each job: its folder, its index, or a list of envelopes
    #[arg(long, value_name = "FILE|DIR")]
    plan: Option<PathBuf>,
    /// The file to write every execution of a job to, as JSON
    #[arg(long, value_name = "FILE", default_value = "run_stats.json")]
    output: PathBuf,
    #[command(flatten)]
    client: ClientArgs,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
}

/// What is printed as JSON.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Printed<'s> {
    run_id: u64,
    attempts: u64,
    to_first_gpu_job: FirstGpuJob,
    all: Sum,
    labels: IndexMap<String, Sum>,
    hardware: IndexMap<String, Sum>,
    jobs: &'s [JobTime],
}

impl Stats {
    /// Asks, counts and writes.
    ///
    /// # Errors
    /// No run, a plan that cannot be read, requests that fail, and a file that cannot be written.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let plan = RunPlan::read(self.plan.as_deref()).map_err(Problems::from)?;
        let client = match &self.run_id {
            Some(run) => self.client.client_of(run)?,
            None => self.client.client()?,
        };
        let (id, attempt) = self.which().map_err(Problems::from)?;
        let run = client.run(id).map_err(Problems::from)?;
        let attempts = attempt.unwrap_or(run.run_attempt);
        let (executions, complete) = run_jobs::executions(&client, id, attempts).map_err(Problems::from)?;
        if !complete {
            anstream::eprintln!(
                "note: the run has more jobs than the {} that are counted",
                executions.len()
            );
        }
        let jobs = stats::of(executions, &plan.envelopes, &plan.places);
        let json = serde_json::to_vec(&jobs)?;
        file::write_atomic(&self.output, &json)
            .with_context(|| format!("`{}` cannot be written", self.output.display()))?;
        let planned = self.plan.is_some();
        let known = |sum: Sum| Sum {
            gpu_hours: sum.gpu_hours.filter(|_| planned),
            ..sum
        };
        let printed = Printed {
            run_id: id,
            attempts,
            to_first_gpu_job: stats::first_gpu_job(&run, &jobs, &plan.places),
            all: known(stats::all(&jobs)),
            labels: stats::by_label(&jobs)
                .into_iter()
                .map(|(name, sum)| (name, known(sum)))
                .collect(),
            hardware: stats::by_hardware(&jobs),
            jobs: &jobs,
        };
        runner::summarize(&printed.markdown())?;
        match output::wants_json(self.json) {
            true => output::json(&printed),
            false => output::prose(&printed.text()),
        }
    }

    /// The run, and of this process's own the attempt: GitHub knows the newest of any other.
    fn which(&self) -> Result<(u64, Option<u64>), Problem> {
        if let Some(run) = &self.run_id {
            return Ok((run.id, None));
        }
        let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
        let own = number("GITHUB_RUN_ID").zip(number("GITHUB_RUN_ATTEMPT"));
        own.map(|(run, attempt)| (run, Some(attempt))).ok_or_else(|| {
            Problem::file("", "there is no run: GITHUB_RUN_ID is not set").hint("name a run with --run-id")
        })
    }
}

const COLUMNS: [&str; 8] = [
    "jobs",
    "not successful",
    "repeated",
    "hours",
    "GPU hours",
    "longest queue (min)",
    "before launch (s)",
    "after launch (s)",
];

fn head(first: &'static str) -> Vec<&'static str> {
    std::iter::once(first).chain(COLUMNS).collect()
}

fn row(name: &str, sum: &Sum) -> Vec<String> {
    let seconds = |seconds: Option<u64>| seconds.map_or_else(|| "-".to_owned(), |seconds| seconds.to_string());
    vec![
        name.to_owned(),
        sum.jobs.to_string(),
        sum.not_successful.to_string(),
        sum.repeated.to_string(),
        format!("{:.2}", sum.hours),
        sum.gpu_hours
            .map_or_else(|| "-".to_owned(), |hours| format!("{hours:.2}")),
        sum.longest_queue.div_ceil(60).to_string(),
        seconds(sum.before_launch),
        seconds(sum.after_launch),
    ]
}

impl Printed<'_> {
    /// Executions by label, and those of planned jobs by hardware: the name of the first column, and the rows.
    fn tables(&self) -> Vec<(&'static str, Vec<Vec<String>>)> {
        let rows = |sums: &IndexMap<String, Sum>| sums.iter().map(|(name, sum)| row(name, sum)).collect::<Vec<_>>();
        let mut labels = rows(&self.labels);
        labels.push(row("all", &self.all));
        let mut tables = vec![("runner label", labels)];
        if !self.hardware.is_empty() {
            tables.push(("hardware", rows(&self.hardware)));
        }
        tables
    }

    fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        if let Some(queued) = self.to_first_gpu_job.queued_seconds {
            let taken = self.to_first_gpu_job.taken_seconds;
            let taken = taken.map_or_else(String::new, |seconds| format!(", and taken after {}", shown(seconds)));
            sentences.push(format!(
                "From the event to the first job on a GPU: queued after {}{taken}.",
                shown(queued)
            ));
        }
        sentences.push(match stats::longest_queue(self.jobs) {
            Some(job) => format!(
                "Longest in the queue, {} min: {}",
                job.queue_seconds.unwrap_or_default().div_ceil(60),
                markdown::escape(&job.name)
            ),
            None => "No job was taken by a runner.".to_owned(),
        });
        sentences
    }

    fn markdown(&self) -> String {
        let mut text = "### Run statistics\n".to_owned();
        for (first, rows) in self.tables() {
            text.push_str(&format!("\n{}", markdown::table(&head(first), &rows)));
        }
        for sentence in self.sentences() {
            text.push_str(&format!("\n{sentence}\n"));
        }
        text
    }

    fn text(&self) -> String {
        let tables = self
            .tables()
            .into_iter()
            .map(|(first, rows)| output::table(&head(first), &rows) + "\n");
        let lines = self
            .sentences()
            .into_iter()
            .map(|sentence| text::one_line(&sentence) + "\n");
        tables.chain(lines).collect()
    }
}
