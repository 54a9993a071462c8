//! `sweepctl baseline`: the run that new results are compared with.

use clap::Args;

use super::client::{self, ClientArgs};
use super::output;
use crate::config::problem::Problems;
use crate::github::baseline::{self, Baseline};
use crate::github::text;
use crate::runner::{self, RunnerFile};

/// `sweepctl baseline`
#[derive(Debug, Args)]
#[command(after_help = client::ABOUT)]
pub(crate) struct BaselineArgs {
    /// The branch whose sweeps are looked through [default: the repository's default branch]
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    #[command(flatten)]
    client: ClientArgs,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
    /// Append the outputs `run_id` (empty where there is none) and `reason` to the file that GITHUB_OUTPUT names
    #[arg(long)]
    github_output: bool,
}

impl BaselineArgs {
    /// Finds it.
    ///
    /// # Errors
    /// Requests that fail. That there is none is no failure.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let client = self.client.client()?;
        let baseline = baseline::find(&client, self.branch.as_deref()).map_err(Problems::from)?;
        if self.github_output {
            runner::append(RunnerFile::Output, &baseline.outputs())?;
        }
        match output::wants_json(self.json) {
            true => output::json(&baseline),
            false => output::text(&shown(&baseline)),
        }
    }
}

fn shown(baseline: &Baseline) -> String {
    format!(
        "{}\n{}\n",
        text::one_line(&baseline.reason),
        text::one_line(&baseline.url)
    )
}
