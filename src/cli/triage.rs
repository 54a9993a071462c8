//! `sweepctl triage`: why jobs of a run failed, and which are run again.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::client::RunArgs;
use super::output;
use super::render::workflow_settings;
use super::run_plan::RunPlan;
use crate::config::problem::Problems;
use crate::github::text;
use crate::github::triage::{self, Judged, Rerun, gather};
use crate::plural;
use crate::runner;
use crate::step::markdown;

const AFTER_HELP: &str = "\
A job's class is that of the exit code of its launch (sweepctl docs launch) and of the step that failed. Only a job that \
failed for the infrastructure is run again, and only until it was started as often as --max-attempts says. GitHub runs \
jobs again only of a run that has ended.

The token is that of GH_TOKEN, else GITHUB_TOKEN; it needs `actions: read` and `checks: read`, with --rerun also \
`actions: write`.

Examples:
  sweepctl triage 1234567890
      what failed, and what would be run again
  sweepctl triage https://github.com/acme/bench/actions/runs/1234567890 --rerun";

/// `sweepctl triage`
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Triage {
    #[command(flatten)]
    run: RunArgs,
    /// Run the jobs again that failed for the infrastructure
    #[arg(long)]
    rerun: bool,
    /// How often a job is started at most [default: `max-attempts` of configs/workflows.yaml, else 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10))]
    max_attempts: Option<u64>,
    /// The run's plan, to tell its jobs by: its folder, its index, or a list of envelopes
    #[arg(long, value_name = "FILE|DIR")]
    plan: Option<PathBuf>,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
}

/// What is printed as JSON.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Printed {
    run_id: u64,
    attempt: u64,
    conclusion: Option<String>,
    jobs: Vec<Judged>,
    rerun: Rerun,
    sent: bool,
    notes: Vec<String>,
}

impl Triage {
    /// Judges, and with --rerun asks GitHub.
    ///
    /// # Errors
    /// Settings or a plan that cannot be read, and requests that fail.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let plan = RunPlan::read(self.plan.as_deref()).map_err(Problems::from)?;
        let max_attempts = match self.max_attempts {
            Some(most) => most,
            None => workflow_settings(Path::new("."))?.max_attempts,
        };
        let client = self.run.client()?;
        let run = client.run(self.run.run.id).map_err(Problems::from)?;
        let found = gather::facts(&client, &run).map_err(Problems::from)?;
        let jobs = triage::judge(&found.failed, &plan.places, max_attempts);
        let rerun = triage::rerun(&run, &jobs);
        let mut sent = false;
        if self.rerun {
            match &rerun {
                Rerun::Nothing { .. } => {}
                Rerun::Job { job_id, .. } => client.rerun_job(*job_id).map_err(Problems::from)?,
                Rerun::AllFailed { .. } => client.rerun_failed_jobs(run.id).map_err(Problems::from)?,
            }
            sent = !matches!(rerun, Rerun::Nothing { .. });
        }
        let printed = Printed {
            run_id: run.id,
            attempt: run.run_attempt,
            conclusion: run.conclusion,
            jobs,
            rerun,
            sent,
            notes: found.notes,
        };
        runner::summarize(&printed.markdown())?;
        match output::wants_json(self.json) {
            true => output::json(&printed),
            false => output::prose(&printed.text()),
        }
    }
}

const HEAD: [&str; 6] = ["job", "class", "step", "why", "started", "again"];

impl Printed {
    fn rows(&self) -> Vec<Vec<String>> {
        let row = |judged: &Judged| {
            vec![
                judged.name.clone(),
                judged.class.as_str().to_owned(),
                judged.step.clone().unwrap_or_else(|| "-".to_owned()),
                judged.why.clone(),
                judged.attempts.to_string(),
                if judged.rerun { "yes" } else { "no" }.to_owned(),
            ]
        };
        self.jobs.iter().map(row).collect()
    }

    /// What failed, counted.
    fn counted(&self) -> String {
        let counts = triage::counts(&self.jobs);
        if counts.is_empty() {
            return format!("No job of run {} failed.", self.run_id);
        }
        let counts: Vec<String> = counts
            .iter()
            .map(|(class, n)| format!("{n} {}", class.as_str()))
            .collect();
        format!("Run {}, attempt {}: {}.", self.run_id, self.attempt, counts.join(", "))
    }

    /// What is asked of GitHub, in a sentence.
    fn asked(&self) -> String {
        let verb = if self.sent {
            "Run again"
        } else {
            "Would be run again, with --rerun"
        };
        match &self.rerun {
            Rerun::Nothing { reason } => format!("Nothing is run again: {reason}."),
            Rerun::AllFailed { jobs } => format!("{verb}: the {} that failed.", plural::count(*jobs, "job")),
            Rerun::Job { name, later: 0, .. } => format!("{verb}: {name}."),
            Rerun::Job { name, later, .. } => format!(
                "{verb}: {name}. {} more when that attempt has ended: other jobs failed for another reason, and GitHub \
                 then takes one at a time.",
                plural::count(*later, "job")
            ),
        }
    }

    fn text(&self) -> String {
        let mut text = format!("{}\n", text::one_line(&self.counted()));
        if !self.jobs.is_empty() {
            text.push_str(&format!("\n{}\n", output::table(&HEAD, &self.rows())));
            text.push_str(&format!("{}\n", text::one_line(&self.asked())));
        }
        for judged in self
            .jobs
            .iter()
            .filter(|judged| judged.class == triage::Class::Infrastructure && !judged.rerun)
        {
            let line = format!("{} is not run again: {}", judged.name, judged.why_not);
            text.push_str(&format!("{}\n", text::one_line(&line)));
        }
        for note in &self.notes {
            text.push_str(&format!("note: {}\n", text::one_line(note)));
        }
        text
    }

    fn markdown(&self) -> String {
        let mut text = format!("### Triage\n\n{}\n", markdown::escape(&self.counted()));
        if !self.jobs.is_empty() {
            text.push_str(&format!("\n{}", markdown::table(&HEAD, &self.rows())));
            text.push_str(&format!("\n{}\n", markdown::escape(&self.asked())));
        }
        text
    }
}
