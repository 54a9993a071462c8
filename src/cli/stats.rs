//! `sweepctl stats`: how long the jobs of a run waited and ran.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use super::client::{self, ClientArgs};
use super::output;
use crate::config::problem::{Problem, Problems};
use crate::github::client::Client;
use crate::github::stats::{self, JobTime};
use crate::github::text;
use crate::plan_files;
use crate::runner;
use crate::step::markdown;
use crate::step::results::file;

/// `sweepctl stats`
#[derive(Debug, Args)]
#[command(after_help = client::ABOUT)]
pub struct Stats {
    /// The run, its latest attempt [default: GITHUB_RUN_ID, at its attempt GITHUB_RUN_ATTEMPT]
    #[arg(long, value_name = "RUN", value_parser = clap::value_parser!(u64).range(1..))]
    run_id: Option<u64>,
    /// The plan, for the GPUs of each job: its folder, its index, or a list of envelopes
    #[arg(long, value_name = "FILE|DIR")]
    plan: Option<PathBuf>,
    /// The file to write every job to, as JSON
    #[arg(long, value_name = "FILE", default_value = "run_stats.json")]
    output: PathBuf,
    #[command(flatten)]
    client: ClientArgs,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
}

impl Stats {
    /// Asks, counts and writes.
    ///
    /// # Errors
    /// No run, a plan that cannot be read, requests that fail, and a file that cannot be written.
    pub fn run(&self) -> anyhow::Result<()> {
        let plan = self
            .plan
            .as_deref()
            .map(plan_files::envelopes)
            .transpose()
            .map_err(Problems::from)?;
        let client = self.client.client()?;
        let (run, attempt) = self.which(&client)?;
        let listing = client.jobs(run, attempt).map_err(Problems::from)?;
        if !listing.complete {
            anstream::eprintln!(
                "note: the run has more jobs than the {} that are counted",
                listing.items.len()
            );
        }
        let jobs = stats::of(listing.items, &plan.unwrap_or_default());
        let json = serde_json::to_vec(&jobs)?;
        file::write_atomic(&self.output, &json)
            .with_context(|| format!("`{}` cannot be written", self.output.display()))?;
        runner::summarize(&format!(
            "### Run statistics\n\n{}\n{}\n",
            markdown::table(&HEAD, &rows(&jobs)),
            longest(&jobs)
        ))?;
        match output::wants_json(self.json) {
            true => output::json(&jobs),
            false => output::text(&format!(
                "{}\n{}\n",
                output::table(&HEAD, &rows(&jobs)),
                text::one_line(&longest(&jobs))
            )),
        }
    }

    fn which(&self, client: &Client) -> Result<(u64, u64), Problems> {
        if let Some(run) = self.run_id {
            return Ok((run, client.run(run)?.run_attempt));
        }
        let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
        let own = number("GITHUB_RUN_ID").zip(number("GITHUB_RUN_ATTEMPT"));
        own.ok_or_else(|| {
            Problem::file("", "there is no run: GITHUB_RUN_ID is not set")
                .hint("name a run with --run-id")
                .into()
        })
    }
}

const HEAD: [&str; 6] = [
    "runner label",
    "jobs",
    "not successful",
    "hours",
    "GPU hours",
    "longest queue (min)",
];

fn rows(jobs: &[JobTime]) -> Vec<Vec<String>> {
    let mut lines: Vec<Vec<String>> = Vec::new();
    let mut all = stats::OfLabel::default();
    for (label, of_label) in stats::by_label(jobs) {
        all.jobs += of_label.jobs;
        all.not_successful += of_label.not_successful;
        all.hours += of_label.hours;
        all.gpu_hours += of_label.gpu_hours;
        all.longest_queue = all.longest_queue.max(of_label.longest_queue);
        lines.push(row(&label, &of_label));
    }
    lines.push(row("all", &all));
    lines
}

fn row(label: &str, of_label: &stats::OfLabel) -> Vec<String> {
    vec![
        label.to_owned(),
        of_label.jobs.to_string(),
        of_label.not_successful.to_string(),
        format!("{:.2}", of_label.hours),
        format!("{:.2}", of_label.gpu_hours),
        of_label.longest_queue.div_ceil(60).to_string(),
    ]
}

fn longest(jobs: &[JobTime]) -> String {
    match stats::longest_queue(jobs) {
        Some(job) => format!(
            "Longest in the queue, {} min: {}",
            job.queue_seconds.unwrap_or_default().div_ceil(60),
            markdown::escape(&job.name)
        ),
        None => "No job was taken by a runner.".to_owned(),
    }
}
