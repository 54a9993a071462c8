//! `sweepctl gate`: whether what was collected is published and compared.

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
For jobs of a repository's own. A job cannot see from conditions alone whether results are worth publishing; one with \
the run's ledger asks this command, and what stands behind it runs where its output `run` is `true`:

  - id: ask
    env: { NEEDS: '${{ toJson(needs) }}' }
    run: exec sweepctl gate --for ingest --needs - --plan plan --results ledger.json --github-output <<< \"$NEEDS\"

The exit code is 0 for both answers. Without --results, jobs or steps called `collect-results` and `collect-evals`, each \
with the output `rows`, must be among what is passed with --needs.";

/// `sweepctl gate`
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct GateArgs {
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

/// What became of jobs, or of the steps of a job.
#[derive(Debug, Args)]
pub(crate) struct NeedsArgs {
    /// The text of `toJson(needs)`, or of `toJson(steps)`; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    needs: PathBuf,
}

impl NeedsArgs {
    /// Reads them.
    ///
    /// # Errors
    /// A file that cannot be read or holds something else.
    pub(crate) fn read(&self) -> Result<Needs, Problem> {
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
    /// Steps or a plan that cannot be read, and steps that lack one, or a count, that the answer depends on.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
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
