//! `sweepctl run`: a plan's jobs on this machine, from the launch to the collected table.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use clap::{ArgGroup, Args};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::inputs::{self, FleetArgs};
use super::output;
use crate::config::problem::{Problem, Problems};
use crate::plan_files;
use crate::plural;
use crate::process::Cancellation;
use crate::step::local_run::{self, Chosen, Finished, LocalRun, Verdict};

const HELP: &str = "\
Each job runs through the commands that a workflow's steps call: launch, result process, upload, eval validate. Then \
everything is collected. Jobs run where their runner's cluster is `local`, `container` or, on one node, `slurm`; others \
are refused by name. On a node of its own one job runs at a time, whatever --jobs says.

DIR holds plan.json, artifacts/ as a download of all artifacts lays them, jobs/<id>/ with each job's workspace and log, \
and the collected agg_bmk.json and agg_eval_all.json. The same command once more goes on where it was interrupted: \
finished jobs are not repeated, those that failed to be measured are.

Exit codes: 0 every job is done; 1 a job failed, a gate failed, or the run was interrupted: the table says which; 2 \
wrong usage.

Example:
  sweepctl run --latest --only 'smoke*' --out target/first-run";

/// Run a plan's jobs on this machine, and collect what they leave
#[derive(Debug, Args)]
#[command(after_help = HELP, group = ArgGroup::new("what").required(true).args(["plan", "latest"]))]
pub(crate) struct Run {
    /// The plan: a folder that `plan --emit` wrote, its index, or a list of envelopes
    #[arg(long, value_name = "FILE|DIR")]
    plan: Option<PathBuf>,
    /// Plan the newest commit that added changelog entries
    #[arg(long)]
    latest: bool,
    /// Only jobs whose config key, name, experiment, model prefix or id is like this; `*` and `?`
    #[arg(long, value_name = "GLOB")]
    only: Option<String>,
    /// Jobs at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    jobs: u16,
    /// The folder for everything; one of an interrupted run goes on
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    fleet: FleetArgs,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Printed<'a> {
    passed: bool,
    jobs: &'a [Finished],
    results: Option<PathBuf>,
    evals: Option<PathBuf>,
    problems: Vec<&'a str>,
}

impl Run {
    /// Runs, collects, and prints what became of each job.
    ///
    /// # Errors
    /// A plan that cannot be read or run here, and every job that is not done.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let cancel = Cancellation::install()?;
        inputs::declare_launch_secrets()?;
        let local = LocalRun {
            out: std::path::absolute(&self.out)?,
            program: std::env::current_exe()?,
            fleet: self.fleet.files(),
            jobs: self.jobs.into(),
        };
        let fleet = self.fleet.load()?;
        let envelopes = match &self.plan {
            Some(plan) => plan_files::envelopes(plan).map_err(Problems::from)?,
            None => latest(&local)?,
        };
        let chosen = local_run::choose(envelopes, self.only.as_deref(), &fleet)?;
        let _lock = local.claim(&chosen).map_err(Problems::from)?;
        let progress = Progress::new();
        local.take_over(&chosen, &cancel, &|line| progress.line(line))?;
        let finished = local.run(&chosen, &cancel, &|line| progress.line(line));
        progress.finish();
        if let Some(signal) = cancel.signal() {
            let message = format!(
                "ended by {signal} after {} of {}",
                finished.len(),
                plural::count(chosen.len(), "job")
            );
            let problem = Problem::file("", message).hint("the same command goes on where this one ended");
            return Err(Problems::from(problem).into());
        }
        self.conclude(&local, &chosen, &finished)
    }

    fn conclude(&self, local: &LocalRun, chosen: &[Chosen], finished: &[Finished]) -> anyhow::Result<()> {
        let json = output::wants_json(self.json);
        let has = |is: &dyn Fn(&Chosen) -> bool| chosen.iter().any(is);
        let results = has(&|job| !job.envelope.row.eval.eval_only);
        let evals = has(&|job| job.envelope.row.runs_eval());
        let mut problems = Problems::default();
        for (what, wanted) in [("results", results), ("evals", evals)] {
            if wanted && !collect(local, what, json)? {
                problems.push(Problem::file("", format!("the {what} could not be collected")));
            }
        }
        let bad = finished.iter().filter(|job| job.verdict != Verdict::Done);
        problems.extend(Problems(bad.map(|job| open_job(local, job)).collect()));
        if json {
            let file = |name: &str| Some(local.out.join(name)).filter(|path| path.exists());
            output::json(&Printed {
                passed: problems.0.is_empty(),
                jobs: finished,
                results: file("agg_bmk.json"),
                evals: file("agg_eval_all.json"),
                problems: problems.messages(),
            })?;
        } else {
            output::text(&format!("\n{}", output::table(&HEAD, &rows(finished))))?;
        }
        Ok(problems.into_result()?)
    }
}

fn open_job(local: &LocalRun, job: &Finished) -> Problem {
    let message = format!("{} ({}: {}, {})", job.reason, job.verdict.as_str(), job.name, job.id);
    let log = local.log(&job.id);
    let shown = std::env::current_dir()
        .ok()
        .and_then(|here| log.strip_prefix(here).ok());
    Problem::file("", message).hint(format!("see {}", shown.unwrap_or(&log).display()))
}

/// The columns of [`rows`].
const HEAD: [&str; 4] = ["job", "id", "state", "seconds"];

fn rows(finished: &[Finished]) -> Vec<Vec<String>> {
    finished
        .iter()
        .map(|job| {
            let seconds = format!("{:.0}", job.seconds);
            vec![
                job.name.clone(),
                job.id.clone(),
                job.verdict.as_str().to_owned(),
                seconds,
            ]
        })
        .collect()
}

/// The envelopes of the newest plan. An interrupted run keeps the plan that it started with.
fn latest(local: &LocalRun) -> anyhow::Result<Vec<crate::matrix::envelope::Envelope>> {
    let folder = local.out.join("plan");
    if !folder.join(plan_files::INDEX).exists() {
        if folder.exists() {
            std::fs::remove_dir_all(&folder).with_context(|| format!("`{}` cannot be removed", folder.display()))?;
        }
        let mut command = Command::new(&local.program);
        command.args(["plan", "--latest", "--emit"]).arg(&folder);
        // The index is written last. Standard output is this command's own.
        let status = command.stdout(Stdio::null()).status()?;
        if !status.success() {
            return Err(Problems::from(Problem::file("", "the newest changelog entries cannot be planned")).into());
        }
    }
    Ok(plan_files::envelopes(&folder).map_err(Problems::from)?)
}

/// Collects one kind, with its table on standard output where tables are wanted; whether it could be.
fn collect(local: &LocalRun, what: &str, quiet: bool) -> anyhow::Result<bool> {
    let mut command = Command::new(&local.program);
    command.args(["collect", what]).arg(Path::new(&local.artifacts()));
    command.arg("--plan").arg(local.plan()).arg("--out").arg(&local.out);
    if quiet {
        command.stdout(Stdio::null());
    }
    Ok(command.status()?.success())
}

/// Shows a line; a terminal that was closed ends no job.
fn show(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// A line for each step, above a bar where standard error is a terminal.
pub(super) struct Progress(Option<ProgressBar>);

impl Progress {
    pub(super) fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            let style = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar.enable_steady_tick(Duration::from_millis(250));
            bar
        });
        Self(bar)
    }

    pub(super) fn line(&self, line: &str) {
        match &self.0 {
            Some(bar) => {
                bar.suspend(|| show(line));
                bar.set_message(line.to_owned());
            }
            None => show(line),
        }
    }

    pub(super) fn finish(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::{Screen, table};
    use super::*;

    #[test]
    fn the_table_of_jobs_fits_80_and_120_columns() {
        let job = |name: &str, verdict| Finished {
            id: "0123456789ab".to_owned(),
            name: name.to_owned(),
            verdict,
            reason: String::new(),
            seconds: 12.4,
        };
        let name = "alpha 8k1k h200 vllm fp8 tp8 ep8 with speculative decoding c64 and its eval";
        let finished = [job(name, Verdict::Done), job("beta c4", Verdict::GateFailed)];
        let at = |width| table(&HEAD, &rows(&finished), Screen { width, colour: false });
        insta::with_settings!({
            snapshot_path => concat!(env!("CARGO_MANIFEST_DIR"), "/snapshots"),
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, {
            for width in [80, 120] {
                insta::assert_snapshot!(format!("screen_run_{width}"), at(width));
                assert!(at(width).lines().all(|line| line.len() <= usize::from(width)));
            }
        });
        let coloured = table(
            &HEAD,
            &rows(&finished),
            Screen {
                width: 80,
                colour: true,
            },
        );
        assert!(coloured.contains("\u{1b}["), "{coloured}");
    }
}
