//! `sweepctl agentic watch`: a replay while it runs.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;

use super::{Told, annotate, output};
use crate::config::problem::{Problem, Problems, printable};
use crate::files;
use crate::step::results::file;
use crate::step::watch::{self, Backend, Report, Request, Role, Verdict, Weight};

const AFTER_HELP: &str = "\
Exit code 1 says that the evidence already disqualifies the run; what is merely slow is said, and is none. Nothing is \
cancelled: GitHub's own cancel lets the job clean up, and scancel does not.

From a runner and a Slurm job to its logs:
  gh run view RUN --json jobs --jq '.jobs[] | [.databaseId, .status, .conclusion, .name] | @tsv'
  squeue -u RUNNER_USER -o '%.8i %.8T %.10M %.20N %.100j'
  scontrol show job -o JOB | tr ' ' '\\n' | grep -E '^(JobState|RunTime|TimeLimit|NodeList|WorkDir)='
  ls WORKDIR/outputs/JOB/logs/

Examples:
  sweepctl agentic watch logs/benchmark.out logs/*_w*.out logs/*_frontend_*.out
  sweepctl agentic watch logs/*.out --metrics prefill=http://n1:8081/metrics
  sweepctl agentic watch logs/*.out --samples 4 --record watch.json

More: sweepctl docs evidence";

/// Watch a replay: its phase, its backends, whose end was seen, and what disqualifies it
///
/// Everything is looked at twice at least, so that trends are seen. Logs may grow and be replaced meanwhile.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Watch {
    /// The logs: the client's, every worker's, the frontend's, Slurm's
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,
    /// A metrics endpoint, with its role where its address does not say it: prefill, decode, frontend, aggregate
    #[arg(long, value_name = "[ROLE=]URL", value_parser = endpoint)]
    metrics: Vec<(Option<Role>, String)>,
    /// How often everything is looked at
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    samples: u32,
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, value_parser = seconds)]
    interval: f64,
    /// Seconds without any progress after which a run is stuck
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    stuck_after: u64,
    /// The file to write topology, phase and evidence to, before anybody cancels
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// The run, for the command that would cancel it
    #[arg(long, value_name = "RUN", value_parser = clap::value_parser!(u64).range(1..))]
    run: Option<u64>,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
    match (0.01..=3600.0).contains(&value) {
        true => Ok(value),
        false => Err(format!("{value} is not from 0.01 to 3600")),
    }
}

fn endpoint(text: &str) -> Result<(Option<Role>, String), String> {
    let roles = [Role::Prefill, Role::Decode, Role::Frontend, Role::Aggregate];
    let named = text.split_once('=').and_then(|(role, url)| {
        let role = roles.into_iter().find(|known| known.as_str() == role)?;
        Some((Some(role), url))
    });
    let (role, url) = named.unwrap_or((None, text));
    match url.starts_with("http://") || url.starts_with("https://") {
        true => Ok((role, url.to_owned())),
        false => Err(
            "it is no address of http:// or https://, with `prefill=`, `decode=`, `frontend=` or `aggregate=` \
                      before it or not"
                .to_owned(),
        ),
    }
}

impl Watch {
    /// Looks, prints and records.
    ///
    /// # Errors
    /// Logs that cannot be read, a record that cannot be written, and evidence that disqualifies the run.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        self.there()?;
        let report = watch::look(&Request {
            logs: self.logs.clone(),
            metrics: self.metrics.clone(),
            samples: self.samples,
            interval: Duration::from_secs_f64(self.interval),
            stuck_after: Duration::from_secs(self.stuck_after),
        })?;
        if let Some(path) = &self.record {
            let mut text = serde_json::to_vec_pretty(&report)?;
            text.push(b'\n');
            files::write_atomic(path, &text).with_context(|| format!("`{}` cannot be written", path.display()))?;
        }
        match output::wants_json(self.json) {
            true => output::json(&report)?,
            false => output::text(&text(&report))?,
        }
        let disqualifying = report.verdicts.iter().filter(|one| one.weight == Weight::Disqualifies);
        let problems: Vec<Problem> = disqualifying.map(|one| self.problem(one)).collect();
        Problems(problems).into_result().map_err(Told)?;
        Ok(())
    }

    /// Says which logs are not there yet, and refuses to wait where nothing is.
    fn there(&self) -> Result<(), Problems> {
        let missing = self.logs.iter().filter(|log| !log.exists());
        let missing: Vec<Problem> = missing
            .map(|log| {
                let name = file::shown(log);
                let problem = Problem::file(&name, format!("the log `{name}` is not found"));
                problem.hint("name logs that are written to: a run's job says where they lie")
            })
            .collect();
        if missing.len() == self.logs.len() && self.metrics.is_empty() {
            return Err(Problems(missing));
        }
        annotate::warn(&missing);
        Ok(())
    }

    fn problem(&self, verdict: &Verdict) -> Problem {
        let place = verdict.at.as_ref();
        let file = place.map(|at| at.file.clone()).unwrap_or_default();
        let mut message = verdict.what.clone();
        if let Some(line) = place.and_then(|at| at.line) {
            message.push_str(&format!(" (line {line})"));
        }
        let run = self.run.map_or_else(|| "RUN".to_owned(), |run| run.to_string());
        let recorded = match &self.record {
            Some(path) => format!("it is kept in {}", path.display()),
            None => "keep it with --record FILE".to_owned(),
        };
        let hint = format!("{recorded}, ask, and stop it with `gh run cancel {run}`");
        let log = place.map(|at| at.text.clone()).filter(|text| !text.is_empty());
        Problem::file(&file, message).hint(hint).log(log.into_iter().collect())
    }
}

/// The report for people.
fn text(report: &Report) -> String {
    let duration = |seconds: f64| {
        let whole = std::time::Duration::from_secs_f64(seconds.max(0.0)).as_secs();
        format!("{}m{:02}s", whole / 60, whole % 60)
    };
    let mut text = match &report.phase {
        None => "Phase: none yet\n".to_owned(),
        Some(phase) => {
            let state = if phase.is_over { "over after" } else { "for" };
            let remaining = match (phase.is_over, phase.remaining) {
                (false, Some(seconds)) => format!(", {} remain", duration(seconds)),
                _ => String::new(),
            };
            format!(
                "Phase: {} {state} {}{remaining}\n",
                printable(&phase.name),
                duration(phase.elapsed)
            )
        }
    };
    let count = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), |count| count.to_string());
    text.push_str(&format!(
        "Requests: {} back, {} failed\n",
        count(report.completed),
        count(report.errors)
    ));
    if let Some(workers) = &report.workers {
        text.push_str(&format!("Workers: {}\n", printable(workers)));
    }
    if let Some(ended) = &report.ended {
        let by = match ended.by {
            watch::End::Benchmark => "the benchmark's own",
            watch::End::Slurm => "Slurm's",
            watch::End::Github => "GitHub's",
        };
        text.push_str(&format!("End: {by}, in {}\n", printable(&ended.at.file)));
    }
    if !report.backends.is_empty() {
        let rows: Vec<Vec<String>> = report.backends.iter().map(cells).collect();
        let head = [
            "source",
            "role",
            "samples",
            "running",
            "waiting",
            "KV %",
            "output tokens/s",
        ];
        text.push_str(&format!("\n{}", output::table(&head, &rows)));
    }
    let said = report.verdicts.iter().filter(|one| one.weight == Weight::Slow);
    for one in said {
        text.push_str(&format!("\nSlow, and no reason to stop: {}\n", printable(&one.what)));
    }
    if !report.is_disqualified() {
        text.push_str("\nNothing disqualifies this run so far.\n");
    }
    text
}

/// A backend's first and last sample.
fn cells(backend: &Backend) -> Vec<String> {
    let trend = |part: fn(&watch::Load) -> Option<f64>, scale: f64| {
        let of = |load: &Option<watch::Load>| {
            load.as_ref()
                .and_then(part)
                .map(|value| format!("{:.0}", value * scale))
        };
        match (of(&backend.first), of(&backend.last)) {
            (Some(first), Some(last)) if first != last => format!("{first} > {last}"),
            (_, Some(last)) => last,
            (Some(first), None) => first,
            (None, None) => "-".to_owned(),
        }
    };
    vec![
        backend.source.clone(),
        backend.role.as_str().to_owned(),
        backend.samples.to_string(),
        trend(|load| load.running, 1.0),
        trend(|load| load.waiting, 1.0),
        trend(|load| load.kv, 100.0),
        trend(|load| load.output, 1.0),
    ]
}
