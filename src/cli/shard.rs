//! `sweepctl shard`: one shard of an emitted plan, as the matrix of a job.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::output;
use crate::config::problem::Problems;
use crate::matrix::bucket::Bucket;
use crate::plan_files;
use crate::runner::{self, RunnerFile};

/// `sweepctl shard`
#[derive(Debug, Args)]
pub(crate) struct Shard {
    /// The plan: the folder that `plan --emit` or `generate --emit` wrote, or its index
    #[arg(long, value_name = "FILE|DIR", default_value = "plan")]
    plan: PathBuf,
    /// The bucket, or `canary` for the job that runs before all others
    #[arg(long, value_parser = PossibleValuesParser::new(buckets()))]
    bucket: String,
    /// The shard's number, from 0
    #[arg(long, value_name = "N")]
    index: usize,
    /// Write the shard as the output `envelopes` to the file that GITHUB_OUTPUT names, and print nothing
    #[arg(long)]
    github_output: bool,
}

impl Shard {
    /// Prints or writes the shard.
    ///
    /// # Errors
    /// A folder that is no plan, and a shard that it has not.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let jobs = plan_files::shard_or_canary(&self.plan, &self.bucket, self.index).map_err(Problems::from)?;
        if self.github_output {
            return Ok(runner::append(RunnerFile::Output, &plan_files::shard_outputs(&jobs))?);
        }
        output::json(&jobs)
    }
}

fn buckets() -> impl Iterator<Item = &'static str> {
    [plan_files::CANARY]
        .into_iter()
        .chain(Bucket::ALL.iter().map(|bucket| bucket.name()))
}
