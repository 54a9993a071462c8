//! `sweepctl provenance`: what a run's results come from, as one JSON.

use std::path::{Path, PathBuf};

use clap::Args;

use super::client::RunArgs;
use super::{output, own_command};
use crate::config::problem::Problems;
use crate::github::client::Client;
use crate::github::provenance::gather;
use crate::github::recover::PLAN;

const AFTER_HELP: &str = "\
The record is JSON, also on a terminal. What the token may not see, or is gone, is named in `notes`.

The token is that of GH_TOKEN, else GITHUB_TOKEN; it needs `actions: read`, `contents: read` and `pull-requests: read`.";

/// `sweepctl provenance`
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Provenance {
    #[command(flatten)]
    run: RunArgs,
    /// The run's plan, instead of its artifact: its folder, its index, or a list of envelopes
    #[arg(long, value_name = "FILE|DIR")]
    plan: Option<PathBuf>,
}

impl Provenance {
    /// Asks and prints.
    ///
    /// # Errors
    /// A plan that cannot be read, and requests that fail.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let client = self.run.client()?;
        let run = client.run(self.run.run.id).map_err(Problems::from)?;
        let away = tempfile::tempdir()?;
        let plan = match &self.plan {
            Some(plan) => Some(plan.clone()),
            None => fetched(&client, run.id, away.path())?,
        };
        let record = gather::provenance(&client, run, plan.as_deref())?;
        let mut text = serde_json::to_vec_pretty(&record)?;
        text.push(b'\n');
        output::write(&text)
    }
}

/// The plan that the run kept; `None` where it kept none, or GitHub keeps it no longer.
fn fetched(client: &Client, run: u64, folder: &Path) -> anyhow::Result<Option<PathBuf>> {
    let kept = client.artifacts(run, Some(PLAN)).map_err(Problems::from)?.items;
    let kept = kept.iter().filter(|artifact| artifact.name == PLAN);
    match kept.max_by_key(|artifact| artifact.id) {
        Some(artifact) if !artifact.expired => own_command::fetch_plan(client, run, folder).map(Some),
        _ => Ok(None),
    }
}
