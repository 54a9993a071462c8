//! `sweepctl collect sweep`: the results of a whole run, as far as they are published, and its ledger.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::collect::{arrival, below, finish, not_planned, summarize, write_pretty};
use super::gate;
use super::inputs::both;
use super::output;
use super::published::{self, PublishArgs};
use crate::config::problem::Problems;
use crate::config::thresholds::Thresholds;
use crate::github::ledger::Ledgers;
use crate::ledger::publish::RunLedger;
use crate::ledger::{Job, State};
use crate::runner::{self, RunnerFile};
use crate::step::collect::evals::{self, Evals, Order};
use crate::step::collect::reused;
use crate::step::collect::summary;
use crate::step::collect::throughput::{self, Throughput};

/// The file name of a run's ledger, and the name of the artifact that holds it.
const LEDGER: &str = "ledger.json";

/// `collect sweep`
#[derive(Debug, Args)]
pub(crate) struct Sweep {
    /// The folder that the artifacts were downloaded to, each in its own folder
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The plan, every job of which is accounted for: its folder, its index, or a list of envelopes
    #[arg(long, value_name = "FILE|DIR")]
    plan: PathBuf,
    /// The text of `toJson(needs)`, which says how whole buckets ended; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    needs: Option<PathBuf>,
    #[command(flatten)]
    publish: PublishArgs,
    /// What eval rows are sorted by first
    #[arg(long, value_name = "FIELD", default_value = "model")]
    sort: Order,
    /// The thresholds [default: configs/thresholds.yaml, else the built-in ones]
    #[arg(long, value_name = "FILE")]
    thresholds: Option<PathBuf>,
    /// The folder to write to
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Fail on everything that is wrong, not only where nothing arrived
    #[arg(long)]
    strict: bool,
    /// Append the outputs `rows`, `published` and `withheld` (counts of rows and recipes) to the file that GITHUB_OUTPUT
    /// names
    #[arg(long)]
    github_output: bool,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
}

/// What the command prints as JSON: the ledger, and what else was found.
#[derive(Serialize)]
struct Printed<'a> {
    #[serde(flatten)]
    ledger: &'a RunLedger,
    rows: usize,
    superseded: Vec<&'a Job>,
    unplanned: Vec<&'a String>,
    problems: Vec<&'a str>,
}

impl Sweep {
    /// Collects both, decides and writes.
    ///
    /// # Errors
    /// Inputs that cannot be read, a folder that cannot be searched or written, nothing where the plan expects something,
    /// and with --strict every problem.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let plan = published::Plan::read(&self.plan).map_err(Problems::from);
        let (plan, thresholds) = both(plan, Thresholds::here(self.thresholds.as_deref()))?;
        let needs = self.needs.as_deref().map(gate::read_needs).transpose();
        let needs = needs.map_err(Problems::from)?;
        let dir = below(&self.dir);
        let outputs = [reused::RESULTS, reused::EVALS].map(|(folder, file)| self.out.join(folder).join(file));
        let [results_file, evals_file] = &outputs;
        let mut results = throughput::collect(&dir, Some(&plan.envelopes), results_file).map_err(Problems::from)?;
        let mut evals = evals::collect(&dir, Some(&plan.envelopes), self.sort, &thresholds).map_err(Problems::from)?;
        let nothing = results.aggregates.is_empty() && evals.rows.is_empty();
        let mut ledgers = Ledgers::default();
        let found = results.jobs.drain(..).chain(evals.jobs.drain(..));
        let (superseded, found): (Vec<Job>, Vec<Job>) = found.partition(|job| job.state == State::Superseded);
        ledgers.extend(found);
        let ledger = self.publish.ledger(&plan, &ledgers, needs.as_ref())?;
        keep_published(&ledger, &mut results, &mut evals);
        write_pretty(&self.out.join(LEDGER), &ledger)?;
        if !results.aggregates.is_empty() {
            write_pretty(results_file, &results.aggregates)?;
        }
        if !evals.rows.is_empty() {
            write_pretty(evals_file, &evals.rows)?;
        }
        let markdown = || summary::sweep(&ledger, &superseded, &results, &evals);
        summarize(markdown, &self.out.join(LEDGER))?;
        if self.github_output {
            runner::append(RunnerFile::Output, &self.outputs(&ledger, &results, &evals))?;
        }
        let jobs = ledger.jobs.iter().chain(&superseded).cloned().collect::<Vec<_>>();
        let arrival = arrival(&self.dir, self.strict, "result", nothing, &jobs);
        evals.problems.extend(arrival);
        self.print(&ledger, &superseded, &results, &evals)?;
        not_planned("result", &[results.unplanned, evals.unplanned].concat());
        let mut problems = results.problems;
        problems.extend(evals.problems);
        finish(self.strict, nothing, problems, &jobs)
    }

    fn outputs(&self, ledger: &RunLedger, results: &Throughput, evals: &Evals) -> Vec<(String, String)> {
        let rows = results.aggregates.len() + evals.rows.len();
        let counts = [
            ("rows", rows),
            ("published", ledger.published().count()),
            ("withheld", ledger.withheld().count()),
        ];
        counts.map(|(name, count)| (name.to_owned(), count.to_string())).into()
    }

    fn print(&self, ledger: &RunLedger, superseded: &[Job], results: &Throughput, evals: &Evals) -> anyhow::Result<()> {
        if output::wants_json(self.json) {
            let problems = results.problems.iter().chain(&evals.problems);
            return output::json(&Printed {
                ledger,
                rows: results.aggregates.len() + evals.rows.len(),
                superseded: superseded.iter().collect(),
                unplanned: results.unplanned.iter().chain(&evals.unplanned).collect(),
                problems: problems.map(|problem| problem.message.as_str()).collect(),
            });
        }
        output::text(&format!("{}\n", ledger.sentence()))?;
        let withheld = summary::withheld_rows(ledger);
        match withheld.is_empty() {
            true => Ok(()),
            false => output::text(&format!("\n{}", output::table(&summary::WITHHELD, &withheld))),
        }
    }
}

/// Leaves the rows of jobs that are published.
fn keep_published(ledger: &RunLedger, results: &mut Throughput, evals: &mut Evals) {
    let published = ledger.publishes();
    results
        .aggregates
        .retain(|aggregate| aggregate.job().is_some_and(|job| published.contains(job)));
    evals
        .rows
        .retain(|row| row.job_id.as_deref().is_some_and(|job| published.contains(job)));
}
