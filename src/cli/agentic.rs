//! `sweepctl agentic`: replays of recorded conversations, one file a subcommand.

use clap::Subcommand;

use super::agentic_run::Run;
use super::agentic_watch::Watch;

/// What is done with a replay.
#[derive(Debug, Subcommand)]
pub(crate) enum Agentic {
    Watch(Box<Watch>),
    Run(Box<Run>),
}

impl Agentic {
    /// Runs the subcommand.
    ///
    /// # Errors
    /// As the subcommand's.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Watch(watch) => watch.run(),
            Self::Run(run) => run.run(),
        }
    }
}
