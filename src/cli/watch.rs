//! `sweepctl watch`: a run as it goes on, by bucket and state.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;

use super::client::{self, RunArgs};
use super::output;
use super::run_plan::RunPlan;
use crate::config::problem::Problems;
use crate::github::client::answers::{Job, Run};
use crate::github::client::{Client, Error};
use crate::github::text;
use crate::github::watch::pools::Pool;
use crate::github::watch::{self, Facts, Failed, Line, Snapshot, log, pools, shown};

/// Jobs of one page of an answer.
const PAGE: usize = 100;

/// `sweepctl watch`
#[derive(Debug, Args)]
#[command(after_help = client::ABOUT)]
pub(crate) struct Watch {
    #[command(flatten)]
    run: RunArgs,
    /// The run's plan, for the jobs that GitHub has not made yet: its folder, its index, or a list of envelopes
    #[arg(long, value_name = "FILE|DIR")]
    plan: Option<PathBuf>,
    /// Show the runners that are online and busy, against the run's jobs that run and wait, by label
    #[arg(long)]
    pools: bool,
    /// Seconds between two looks at least; it waits longer where the hour's requests would not last
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..))]
    interval: u64,
    /// Lines that are shown of each failed step
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(..=50))]
    lines: u64,
    /// Show it as it is now, also on a terminal
    #[arg(long)]
    once: bool,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
}

impl Watch {
    /// Shows the run, on a terminal again and again until it ends.
    ///
    /// # Errors
    /// A plan that cannot be read, and requests that fail.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let plan = RunPlan::read(self.plan.as_deref()).map_err(Problems::from)?;
        let client = self.run.client()?;
        let mut logs = Logs {
            lines: usize::try_from(self.lines)?,
            known: HashMap::new(),
        };
        let json = output::wants_json(self.json);
        let live = !json && !self.once && std::io::stdout().is_terminal();
        let mut screen = Redrawn::default();
        loop {
            let (snapshot, requests) = self.look(&client, &plan, &mut logs).map_err(Problems::from)?;
            if json {
                return output::json(&snapshot);
            }
            let (title, repository) = (text::one_line(&snapshot.title), client.repository().to_string());
            let text = format!("Run {} of {repository}: {title}\n{}", snapshot.run_id, drawn(&snapshot));
            screen.draw(&text)?;
            if !live || snapshot.status == "completed" {
                return Ok(());
            }
            std::thread::sleep(client.pause(requests, Duration::from_secs(self.interval)));
        }
    }

    /// The run now, and how many requests that took.
    fn look(&self, client: &Client, plan: &RunPlan, logs: &mut Logs) -> Result<(Snapshot, u64), Error> {
        let run: Run = client.run(self.run.run.id)?;
        let listing = client.jobs(run.id, run.run_attempt)?;
        let mut snapshot = watch::snapshot(&Facts {
            run: &run,
            jobs: &listing.items,
            complete: listing.complete,
            plan: plan.index.as_ref(),
            places: &plan.places,
            now: Timestamp::now(),
        });
        let mut requests = 2 + listing.items.len() / PAGE;
        for failed in &mut snapshot.failed {
            requests += logs.fill(client, failed, &listing.items);
        }
        if self.pools {
            let (runners, notes) = pools::runners(client)?;
            snapshot.pools = Some(pools::of(&listing.items, &plan.places, runners.as_deref()));
            snapshot.notes.extend(notes);
            requests += 2;
        }
        Ok((snapshot, u64::try_from(requests).unwrap_or(u64::MAX)))
    }
}

/// The last lines of steps that failed; each log is asked for once.
struct Logs {
    lines: usize,
    known: HashMap<u64, Vec<String>>,
}

impl Logs {
    /// Fills in the lines of a job that ended; how many requests that took. A log that cannot be had is not worth an error.
    fn fill(&mut self, client: &Client, failed: &mut Failed, jobs: &[Job]) -> usize {
        if !failed.ended || self.lines == 0 {
            return 0;
        }
        if let Some(lines) = self.known.get(&failed.id) {
            failed.lines.clone_from(lines);
            return 0;
        }
        let job = jobs.iter().find(|job| job.id == failed.id);
        let step = job.and_then(watch::failed_step);
        let lines = match client.log_end(failed.id) {
            Ok(log) => log::last_lines(&log, step, self.lines),
            Err(error) => vec![format!(
                "(its log cannot be read: {})",
                text::one_line(&error.to_string())
            )],
        };
        failed.lines.clone_from(&lines);
        self.known.insert(failed.id, lines);
        1
    }
}

/// A text that takes the place of the one before.
#[derive(Default)]
struct Redrawn {
    rows: usize,
}

impl Redrawn {
    fn draw(&mut self, text: &str) -> anyhow::Result<()> {
        // Up to the first row of what stands there, and everything from there on away.
        let away = match self.rows {
            0 => String::new(),
            rows => format!("\u{1b}[{rows}A\u{1b}[J"),
        };
        let (text, rows) = output::fitted(text);
        self.rows = rows;
        output::text(&format!("{away}{text}"))
    }
}

/// What stands where there is nothing.
const NOTHING: &str = "-";

const HEAD: [&str; 10] = [
    "bucket",
    "planned",
    "waiting",
    "queued",
    "running",
    "done",
    "failed",
    "cancelled",
    "skipped",
    "in the queue for",
];

fn drawn(snapshot: &Snapshot) -> String {
    let commit = snapshot.commit.get(..9).unwrap_or_default();
    let how = match (&snapshot.conclusion, snapshot.seconds) {
        (Some(conclusion), _) => format!("ended as {conclusion}"),
        (None, Some(seconds)) => format!("{} for {}", snapshot.status.replace('_', " "), shown(seconds)),
        (None, None) => snapshot.status.replace('_', " "),
    };
    let line = format!("{} at {commit}, attempt {}, {how}", snapshot.event, snapshot.attempt);
    let mut text = format!("{}\n{}\n\n", text::one_line(&line), text::one_line(&snapshot.url));
    match snapshot.buckets.is_empty() {
        true => text.push_str("No job has been made yet.\n"),
        false => text.push_str(&buckets(&snapshot.buckets)),
    }
    if let Some(queued) = &snapshot.oldest_queued {
        let line = format!(
            "Longest in the queue: {} for {}, {} of {}",
            queued.name,
            queued.labels.join(", "),
            shown(queued.seconds),
            shown(queued.limit_seconds)
        );
        text.push_str(&format!("\n{}\n", text::one_line(&line)));
    }
    if let Some(pools) = &snapshot.pools {
        let rows: Vec<Vec<String>> = pools.iter().map(pool_row).collect();
        let head = ["label", "runners", "online", "busy", "jobs that run", "jobs that wait"];
        text.push_str(&format!("\n{}", output::table(&head, &rows)));
    }
    for failed in &snapshot.failed {
        text.push_str(&format!("\n{}", drawn_failure(failed)));
    }
    if snapshot.more_failed > 0 {
        text.push_str(&format!(
            "\n{} more failed: see --json, or sweepctl triage\n",
            snapshot.more_failed
        ));
    }
    for note in &snapshot.notes {
        text.push_str(&format!("\nnote: {}\n", text::one_line(note)));
    }
    text
}

/// The table of buckets, without the columns that say nothing of any.
fn buckets(lines: &[Line]) -> String {
    let rows: Vec<Vec<String>> = lines.iter().map(row).collect();
    let said = |column: &usize| rows.iter().any(|row| row[*column] != NOTHING);
    let columns: Vec<usize> = (0..HEAD.len()).filter(said).collect();
    let head: Vec<&str> = columns.iter().map(|column| HEAD[*column]).collect();
    let of = |row: &Vec<String>| {
        columns
            .iter()
            .map(|column| row[*column].clone())
            .collect::<Vec<String>>()
    };
    output::table(&head, &rows.iter().map(of).collect::<Vec<_>>())
}

fn row(line: &Line) -> Vec<String> {
    let count = |count: usize| match count {
        0 => NOTHING.to_owned(),
        count => count.to_string(),
    };
    vec![
        line.bucket.clone(),
        line.planned
            .map_or_else(|| NOTHING.to_owned(), |planned| planned.to_string()),
        count(line.waiting),
        count(line.queued),
        count(line.running),
        count(line.done),
        count(line.failed),
        count(line.cancelled),
        count(line.skipped),
        line.queue_seconds.map_or_else(|| NOTHING.to_owned(), shown),
    ]
}

fn pool_row(pool: &Pool) -> Vec<String> {
    let count = |count: Option<usize>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
    vec![
        pool.label.clone(),
        count(pool.runners),
        count(pool.online),
        count(pool.busy),
        pool.running.to_string(),
        pool.queued.to_string(),
    ]
}

fn drawn_failure(failed: &Failed) -> String {
    let step = failed
        .step
        .as_deref()
        .map_or_else(String::new, |step| format!(", at `{step}`"));
    let how = if failed.ended { "failed" } else { "is failing" };
    let mut text = format!("{} {how}{step}\n", text::one_line(&failed.name));
    if let Some(url) = &failed.url {
        text.push_str(&format!("  {}\n", text::one_line(url)));
    }
    for line in &failed.lines {
        text.push_str(&format!("{}{line}\n", output::QUOTED));
    }
    text
}
