//! `sweepctl gate`: whether a job behind optional ones runs.

use std::path::{Path, PathBuf};

use clap::Args;

use super::output;
use super::published::{self, ResultsArgs};
use crate::config::problem::{Problem, Problems};
use crate::github::gate::{self, For};
use crate::github::needs::Needs;
use crate::github::text;
use crate::plan_files;
use crate::runner::{self, RunnerFile};

const AFTER_HELP: &str = "\
A job behind one that may be skipped cannot rely on `success()`. It runs this command instead:

  gate-evals:
    needs: [setup, sweep-evals, sweep-agentic-evals, ...]
    if: ${{ !cancelled() }}
    ...
      env: { NEEDS: '${{ toJson(needs) }}' }
      run: >
        exec sweepctl gate --for collect-evals --needs - --github-output
        <<< \"$NEEDS\"
  collect-evals:
    needs: [gate-evals]
    if: ${{ !cancelled() && needs.gate-evals.outputs.run == 'true' }}

The exit code is 0 for both answers. A job that the answer depends on and that is not among `needs` \
is an error.";

/// `sweepctl gate`
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct GateArgs {
    #[command(flatten)]
    needs: NeedsArgs,
    /// What stands behind the gate
    #[arg(long, value_name = "JOB")]
    r#for: For,
    /// The plan, to distinguish what was not planned from what did not run: its folder, its index, or a list of envelopes
    #[arg(long, value_name = "FILE|DIR")]
    plan: Option<PathBuf>,
    #[command(flatten)]
    results: ResultsArgs,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
    /// Append the outputs `run` and `reason` to the file that GITHUB_OUTPUT names
    #[arg(long)]
    github_output: bool,
}

/// What became of the jobs that were waited for.
#[derive(Debug, Args)]
pub struct NeedsArgs {
    /// The text of `toJson(needs)`; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    needs: PathBuf,
}

impl NeedsArgs {
    /// Reads them.
    ///
    /// # Errors
    /// A file that cannot be read or holds something else.
    pub fn read(&self) -> Result<Needs, Problem> {
        read_needs(&self.needs)
    }
}

/// Reads the text of `toJson(needs)`.
///
/// # Errors
/// A file that cannot be read or holds something else.
pub(super) fn read_needs(path: &Path) -> Result<Needs, Problem> {
    let source = text::read(path)?;
    Needs::parse(&source.text, &source.name)
}

impl GateArgs {
    /// Answers.
    ///
    /// # Errors
    /// Needs or a plan that cannot be read, and needs that lack a job or a count that the answer depends on.
    pub fn run(&self) -> anyhow::Result<()> {
        let needs = self.needs.read().map_err(Problems::from)?;
        let plan = self
            .plan
            .as_deref()
            .map(plan_files::index)
            .transpose()
            .map_err(Problems::from)?;
        let ledger = match &self.plan {
            Some(path) => self.results.ledger(|| published::Plan::read(path), &needs)?,
            None => None,
        };
        let answer = gate::gate(self.r#for, &needs, plan.as_ref(), ledger.as_ref())?;
        if self.github_output {
            runner::append(RunnerFile::Output, &answer.outputs())?;
        }
        match output::wants_json(self.json) {
            true => output::json(&answer),
            false => output::text(&format!(
                "{}. {}\n",
                if answer.run { "Run" } else { "Skip" },
                answer.reason
            )),
        }
    }
}
