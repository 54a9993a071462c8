//! `sweepctl shard`: one shard of an emitted plan, as the matrix of a job.

use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};

use super::output;
use crate::config::problem::{Problem, Problems};
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
    /// The bucket, or `canary` for the job that runs before all others
    #[arg(long, value_parser = PossibleValuesParser::new(buckets()))]
    bucket: String,
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
        let (jobs, max_parallel) = self.shard().map_err(Problems::from)?;
        if self.github_output {
            return Ok(runner::append(RunnerFile::Output, &outputs(&jobs, max_parallel)?)?);
        }
        output::json(&jobs)
    }

    fn shard(&self) -> Result<(Vec<Envelope>, u64), Problem> {
        match Bucket::from_str(&self.bucket, false) {
            Ok(bucket) => plan_files::shard(&self.plan, bucket, self.index),
            Err(_) => Ok((canary(&self.plan, self.index)?, 1)),
        }
    }
}

/// The canary stands in no bucket; its job is a shard with one element.
const CANARY: &str = "canary";

fn buckets() -> impl Iterator<Item = &'static str> {
    [CANARY]
        .into_iter()
        .chain(Bucket::ALL.iter().map(|bucket| bucket.name()))
}

fn canary(plan: &Path, index: usize) -> Result<Vec<Envelope>, Problem> {
    let canary = plan_files::index(plan)?.canary.filter(|_| index == 0);
    canary.map(|envelope| vec![envelope]).ok_or_else(|| {
        let place = plan.display().to_string();
        let problem = Problem::file(&place, format!("the plan has no shard {index} of a canary"));
        problem.hint("emit it with --canary; its only shard is 0")
    })
}

fn outputs(jobs: &[Envelope], max_parallel: u64) -> anyhow::Result<Vec<(String, String)>> {
    let artifacts: Vec<String> = jobs
        .iter()
        .map(|envelope| names::artifact(ArtifactKind::collected(&envelope.row), envelope))
        .collect();
    Ok(vec![
        ("envelopes".to_owned(), serde_json::to_string(jobs)?),
        ("artifacts".to_owned(), serde_json::to_string(&artifacts)?),
        ("max_parallel".to_owned(), max_parallel.to_string()),
    ])
}
