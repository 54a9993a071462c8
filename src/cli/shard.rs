//! `sweepctl shard`: one shard of an emitted plan, as the matrix of a job.

use std::path::{Path, PathBuf};

use clap::Args;

use super::output;
use super::render::workflow_settings;
use crate::config::problem::Problems;
use crate::matrix::bucket::Bucket;
use crate::matrix::envelope::Envelope;
use crate::matrix::names::{self, ArtifactKind};
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
    /// Write outputs to the file that GITHUB_OUTPUT names, and print nothing: the shard as `envelopes`, the names of
    /// the artifacts that collectors read as `artifacts`, and how many jobs run at a time as `max_parallel`
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
            return Ok(runner::append(RunnerFile::Output, &outputs(&shard)?)?);
        }
        output::json(&shard)
    }
}

fn outputs(shard: &[Envelope]) -> anyhow::Result<Vec<(String, String)>> {
    let settings = workflow_settings(Path::new("."))?;
    let artifacts: Vec<String> = shard
        .iter()
        .map(|envelope| names::artifact(ArtifactKind::collected(&envelope.row), envelope))
        .collect();
    let max_parallel = settings
        .max_parallel
        .of(shard.iter().map(|envelope| envelope.runs_on.as_str()));
    Ok(vec![
        ("envelopes".to_owned(), serde_json::to_string(shard)?),
        ("artifacts".to_owned(), serde_json::to_string(&artifacts)?),
        ("max_parallel".to_owned(), max_parallel.to_string()),
    ])
}
