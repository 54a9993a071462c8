//! `sweepctl collect`: one file of what all jobs left.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Subcommand};
use serde::Serialize;

use super::collect_sweep::Sweep;
use super::inputs::both;
use super::{Told, annotate, output};
use crate::config::problem::{Problem, Problems};
use crate::config::thresholds::Thresholds;
use crate::ledger::{Job, State};
use crate::matrix::envelope::Envelope;
use crate::matrix::names;
use crate::plan_files;
use crate::runner::{self, MAX_SUMMARY, RunnerFile};
use crate::step::collect::evals::{self, Order};
use crate::step::collect::{summary, throughput};
use crate::step::results::file;

/// What is gathered.
#[derive(Debug, Subcommand)]
pub(crate) enum Collect {
    /// Gather the eval results of all jobs in agg_eval_<NAME>.json
    ///
    /// Every folder with a meta_env.json below DIR is a set, or DIR itself. Of several attempts at one job the newest
    /// counts. A set that cannot be read loses only itself: it is listed with its reason, and fails the command only
    /// with --strict.
    Evals(Evals),
    /// Gather the throughput results of all jobs in agg_<NAME>.json
    ///
    /// Every agg_*.json below DIR is a result, of fixed lengths or agentic. Two results of one point, and files that
    /// cannot be read, are listed; they fail the command only with --strict.
    Results(Results),
    /// Gather the results of a whole run, as far as they are published, and write its ledger
    ///
    /// Both of the above at once. A job is done where everything that was planned is there, its scores clear their floors,
    /// and GitHub does not say that it failed. Written to --out: ledger.json, with what became of each planned job and
    /// recipe; results_bmk/agg_bmk.json and eval_results_all/agg_eval_all.json, with the rows that are published. A recipe
    /// is the jobs of one fingerprint and the evals of their topology: one with a job that is not done is withheld, by name.
    Sweep(Box<Sweep>),
}

/// What both share.
#[derive(Debug, Args)]
struct Common {
    /// The folder that the artifacts were downloaded to, each in its own folder or one alone
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The plan, every job of which is accounted for: its folder, its index, or a list of envelopes
    #[arg(long, value_name = "FILE|DIR")]
    plan: Option<PathBuf>,
    /// Fail on everything that is wrong, not only where nothing arrived
    #[arg(long)]
    strict: bool,
    /// The folder to write to
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Write the JSON to a file: the rows, and of each planned job what became of it; `sweepctl verdict` reads it
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// Append the output `rows`, how many there are, to the file that GITHUB_OUTPUT names
    #[arg(long)]
    github_output: bool,
    /// Print JSON, also on a terminal; with --ledger only if this is set
    #[arg(long)]
    json: bool,
}

/// `collect evals`
#[derive(Debug, Args)]
pub(crate) struct Evals {
    #[command(flatten)]
    common: Common,
    /// What the written file is called after
    #[arg(long, default_value = "all", value_parser = file_part)]
    name: String,
    /// What rows are sorted by first
    #[arg(long, value_name = "FIELD", default_value = "model")]
    sort: Order,
    /// The thresholds, which may name the metric that is a task's score
    /// [default: configs/thresholds.yaml, else the built-in ones]
    #[arg(long, value_name = "FILE", verbatim_doc_comment)]
    thresholds: Option<PathBuf>,
}

/// `collect results`
#[derive(Debug, Args)]
pub(crate) struct Results {
    #[command(flatten)]
    common: Common,
    /// What the written file is called after
    #[arg(long, default_value = "bmk", value_parser = file_part)]
    name: String,
}

fn file_part(text: &str) -> Result<String, String> {
    match names::is_legal_artifact(text) {
        true => Ok(text.to_owned()),
        false => Err("a part of a file name, without `/` and the like".to_owned()),
    }
}

impl Collect {
    /// Runs the command.
    ///
    /// # Errors
    /// A plan that cannot be read, a folder that cannot be searched or written, nothing where the plan expects
    /// something, and with --strict every problem.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Evals(evals) => evals.run(),
            Self::Results(results) => results.run(),
            Self::Sweep(sweep) => sweep.run(),
        }
    }
}

/// What the command prints as JSON.
#[derive(Serialize)]
struct Printed<'a, R> {
    file: String,
    rows: &'a [R],
    jobs: &'a [Job],
    unplanned: &'a [String],
    problems: Vec<&'a str>,
}

impl Evals {
    fn run(&self) -> anyhow::Result<()> {
        let common = &self.common;
        let (plan, thresholds) = both(common.plan(), Thresholds::here(self.thresholds.as_deref()))?;
        let found = evals::collect(&common.dir(), plan.as_deref(), self.sort, &thresholds);
        let mut found = found.map_err(Problems::from)?;
        let nothing = found.sets == 0;
        found
            .problems
            .extend(common.arrival("eval result", nothing, &found.jobs));
        let path = common.out.join(format!("agg_eval_{}.json", self.name));
        let (jobs, unplanned) = (&found.jobs, &found.unplanned);
        common.write(&path, &found.rows, jobs, unplanned, &found.problems)?;
        summarize(|| summary::evals(&found), &path)?;
        if !common.prints_json() {
            for multinode in [false, true] {
                let rows = summary::eval_rows(&found.rows, multinode);
                if !rows.is_empty() {
                    output::text(&output::table(&summary::eval_columns(multinode), &rows))?;
                }
            }
        }
        not_planned("set", &found.unplanned);
        common.finish(nothing, found.problems, &found.jobs)
    }
}

impl Results {
    fn run(&self) -> anyhow::Result<()> {
        let common = &self.common;
        let plan = common.plan()?;
        let path = common.out.join(format!("agg_{}.json", self.name));
        let mut found = throughput::collect(&common.dir(), plan.as_deref(), &path).map_err(Problems::from)?;
        let nothing = found.aggregates.is_empty() && found.problems.is_empty();
        let arrival = common.arrival("throughput result", nothing, &found.jobs);
        found.problems.extend(arrival);
        let (jobs, unplanned) = (&found.jobs, &found.unplanned);
        common.write(&path, &found.aggregates, jobs, unplanned, &found.problems)?;
        summarize(|| summary::throughput(&found), &path)?;
        if !common.prints_json() && !found.aggregates.is_empty() {
            let rows = summary::throughput_rows(&found.aggregates);
            output::text(&output::table(&summary::throughput_columns(), &rows))?;
        }
        not_planned("result", &found.unplanned);
        common.finish(nothing, found.problems, &found.jobs)
    }
}

impl Common {
    fn plan(&self) -> Result<Option<Vec<Envelope>>, Problems> {
        Ok(self.plan.as_deref().map(plan_files::envelopes).transpose()?)
    }

    fn dir(&self) -> PathBuf {
        below(&self.dir)
    }

    /// Whether standard output holds the JSON; else it has the tables.
    fn prints_json(&self) -> bool {
        match self.ledger {
            Some(_) => self.json,
            None => output::wants_json(self.json),
        }
    }

    /// Writes the rows, the ledger and the outputs, and prints JSON where that is wanted.
    fn write<R: Serialize>(
        &self,
        path: &Path,
        rows: &[R],
        jobs: &[Job],
        unplanned: &[String],
        problems: &[Problem],
    ) -> anyhow::Result<()> {
        write_pretty(path, &rows)?;
        let printed = Printed {
            file: file::shown(path),
            rows,
            jobs,
            unplanned,
            problems: problems.iter().map(|problem| problem.message.as_str()).collect(),
        };
        if let Some(ledger) = &self.ledger {
            write_pretty(ledger, &printed)?;
        }
        if self.github_output {
            runner::append(RunnerFile::Output, &[("rows".to_owned(), rows.len().to_string())])?;
        }
        match self.prints_json() {
            true => output::json(&printed),
            false => Ok(()),
        }
    }

    fn arrival(&self, what: &str, nothing: bool, jobs: &[Job]) -> Vec<Problem> {
        arrival(&self.dir, self.strict, what, nothing, jobs)
    }

    fn finish(&self, nothing: bool, problems: Vec<Problem>, jobs: &[Job]) -> anyhow::Result<()> {
        finish(self.strict, nothing, problems, jobs)
    }
}

/// A folder, relative to where the command runs if it lies below: published rows name files by it.
pub(super) fn below(dir: &Path) -> PathBuf {
    let below = std::env::current_dir()
        .ok()
        .and_then(|cwd| dir.strip_prefix(cwd).ok().map(Path::to_owned));
    below
        .filter(|dir| !dir.as_os_str().is_empty())
        .unwrap_or_else(|| dir.to_owned())
}

/// The jobs of which something is missing.
fn open(jobs: &[Job]) -> Vec<&Job> {
    jobs.iter()
        .filter(|job| matches!(job.state, State::Failed | State::Missing))
        .collect()
}

/// What is wrong where nothing arrived: the problems of no result, which belong to the JSON as all others do.
pub(super) fn arrival(dir: &Path, strict: bool, what: &str, nothing: bool, jobs: &[Job]) -> Vec<Problem> {
    let open = open(jobs).len();
    let is_there = dir.is_dir();
    let dir = file::shown(dir);
    let mut problems = Vec::new();
    if strict && !is_there {
        problems.push(
            Problem::file("", format!("the folder {dir} was not found"))
                .hint("name the folder that the artifacts were downloaded to; a download of nothing makes none"),
        );
    }
    if nothing && open == 0 {
        let why = if is_there { "" } else { ": the folder was not found" };
        anstream::eprintln!("there is no {what} in {dir}{why}");
    }
    if nothing && open > 0 {
        let message = format!("no {what} arrived in {dir}, the plan has {open}");
        problems.push(Problem::file("", message).hint("see why their jobs failed, or what was downloaded"));
    }
    problems
}

/// Names what no job of the plan left: its rows stand among the planned ones. It fails nothing: a folder may hold the
/// results of more than one plan.
pub(super) fn not_planned(what: &str, unplanned: &[String]) {
    /// How many names a warning holds; the JSON and the step summary have all.
    const SHOWN: usize = 10;
    let Some(first) = unplanned.first() else { return };
    let mut names = unplanned.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if let Some(more) = unplanned.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        names.push_str(&format!(" and {more} more"));
    }
    let message = format!(
        "{} of no planned job: {names}",
        crate::plural::count(unplanned.len(), what)
    );
    let hint = "name the plan that they are of, or remove what another run left";
    annotate::warn(&[Problem::file(first, message).hint(hint)]);
}

/// Says what is wrong, and decides whether it fails the command.
pub(super) fn finish(strict: bool, nothing: bool, problems: Vec<Problem>, jobs: &[Job]) -> anyhow::Result<()> {
    let open = open(jobs);
    let mut all = Problems(problems);
    let fails = strict || (nothing && !open.is_empty());
    if !nothing || open.is_empty() {
        // What is wrong with a job's result is said already.
        let said = |job: &&&Job| !all.0.iter().any(|problem| job.reason.contains(&problem.message));
        let unsaid: Vec<Problem> = open.iter().filter(said).map(|job| open_job(job)).collect();
        all.extend(Problems(unsaid));
    }
    if fails {
        return Ok(all.into_result().map_err(Told)?);
    }
    annotate::warn(&all.0);
    Ok(())
}

fn open_job(job: &Job) -> Problem {
    let message = format!("{} ({}) is {}: {}", job.name, job.id, job.state.as_str(), job.reason);
    Problem::file("", message).hint("see the log of the job")
}

pub(super) fn write_pretty(path: &Path, value: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    file::write_atomic(path, &text).with_context(|| format!("`{}` cannot be written", path.display()))
}

/// Writes the step summary where there is one, and the whole of it to a file beside the rows where it does not fit.
pub(super) fn summarize(markdown: impl FnOnce() -> String, rows: &Path) -> anyhow::Result<()> {
    let Some(summary) = RunnerFile::Summary.path() else {
        return Ok(());
    };
    let used = std::fs::metadata(summary).map_or(0, |summary| summary.len());
    let markdown = markdown();
    let markdown = runner::visible(&markdown);
    runner::summarize(&markdown)?;
    if used + markdown.len() as u64 > MAX_SUMMARY as u64 {
        file::write_atomic(&rows.with_extension("md"), markdown.as_bytes())?;
    }
    Ok(())
}
