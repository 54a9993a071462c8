//! `sweepctl shard`: one shard of an emitted plan, as the matrix of a job.

use std::path::PathBuf;

use clap::Args;

use super::output;
use crate::config::problem::Problems;
use crate::matrix::bucket::Bucket;
use crate::plan_files;
use crate::runner::{self, RunnerFile};

/// `sweepctl shard`
#[derive(Debug, Args)]
pub struct Shard {
    /// The folder that `plan --emit` or `generate --emit` wrote
    #[arg(long, value_name = "DIR", default_value = "plan")]
    plan: PathBuf,
    /// The bucket
    #[arg(long)]
    bucket: Bucket,
    /// The shard's number, from 0
    #[arg(long, value_name = "N")]
    index: usize,
    /// Write it as the output `envelopes` to the file that GITHUB_OUTPUT names, and print nothing
    #[arg(long)]
    github_output: bool,
}

impl Shard {
    /// Prints or writes the shard.
    ///
    /// # Errors
    /// A folder that is no plan, and a shard that it has not.
    pub fn run(&self) -> anyhow::Result<()> {
        let shard = plan_files::shard(&self.plan, self.bucket, self.index).map_err(Problems::from)?;
        if self.github_output {
            let value = serde_json::to_string(&shard)?;
            return Ok(runner::append(RunnerFile::Output, &[("envelopes".to_owned(), value)])?);
        }
        output::json(&shard)
    }
}
