//! `sweepctl gate`: whether what was collected is published and compared.

use std::path::PathBuf;

use clap::Args;

use super::output;
use crate::config::problem::{Problem, Problems};
use crate::github::gate::{self, For};
use crate::github::needs::Needs;
use crate::github::text;
use crate::plan_files;
use crate::runner::{self, RunnerFile};

const AFTER_HELP: &str = "\
A job cannot see from conditions alone whether results are worth publishing. The job that collects asks this command, \
with what became of its steps:

  - id: ingest
    env: { STEPS: '${{ toJson(steps) }}' }
    run: exec sweepctl gate --for ingest --needs - --plan plan --github-output <<< \"$STEPS\"

and the job behind it runs where `steps.ingest.outputs.run` is `true`. The exit code is 0 for both answers. A step that \
the answer depends on and that is not there is an error.";

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
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
    /// Append the outputs `run` and `reason` to the file that GITHUB_OUTPUT names
    #[arg(long)]
    github_output: bool,
}

/// What became of jobs, or of the steps of a job.
#[derive(Debug, Args)]
pub struct NeedsArgs {
    /// The text of `toJson(needs)`, or of `toJson(steps)`; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    needs: PathBuf,
}

impl NeedsArgs {
    /// Reads them.
    ///
    /// # Errors
    /// A file that cannot be read or holds something else.
    pub fn read(&self) -> Result<Needs, Problem> {
        let source = text::read(&self.needs)?;
        Needs::parse(&source.text, &source.name)
    }
}

impl GateArgs {
    /// Answers.
    ///
    /// # Errors
    /// Steps or a plan that cannot be read, and steps that lack one, or a count, that the answer depends on.
    pub fn run(&self) -> anyhow::Result<()> {
        let needs = self.needs.read().map_err(Problems::from)?;
        let plan = self
            .plan
            .as_deref()
            .map(plan_files::index)
            .transpose()
            .map_err(Problems::from)?;
        let answer = gate::gate(self.r#for, &needs, plan.as_ref())?;
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
