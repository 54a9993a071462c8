//! How rows and buckets look on a terminal, and how they are emitted for workflows.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::error::ErrorKind;
use indexmap::IndexMap;
use serde::Serialize;

use super::queue::{self, Trigger};
use super::render::workflow_settings;
use super::{output, usage};
use crate::config::asked::Asked;
use crate::config::master::search_space::Nodes;
use crate::config::problem::Problems;
use crate::config::types::Role;
use crate::config::workflows::{PriorityUse, Workflows};
use crate::matrix::bucket::{self, Bucket, Buckets};
use crate::matrix::plan::ChangelogMetadata;
use crate::matrix::priority;
use crate::matrix::row::{Row, Scenario};
use crate::matrix::shard;
use crate::plan_files::{self, Index};
use crate::runner::{self, RunnerFile};
use crate::step::launch::runnable;

/// What to write for workflows.
#[derive(Debug, Args)]
pub(crate) struct EmitArgs {
    /// Write envelopes by bucket and shard, and an index, to a new folder
    #[arg(long, value_name = "DIR", help_heading = "For workflows")]
    emit: Option<PathBuf>,
    /// Take the canary out of its bucket, to run before all others: one node, fixed lengths, the lowest concurrency
    #[arg(long, requires = "emit", help_heading = "For workflows")]
    canary: bool,
    /// Append counts, shard lists and, of a small plan, envelopes to the file that GITHUB_OUTPUT names
    #[arg(long, requires = "emit", help_heading = "For workflows")]
    github_output: bool,
}

impl EmitArgs {
    /// Whether anything is written for workflows; standard output then holds the index only.
    #[must_use]
    pub(crate) fn emits(&self) -> bool {
        self.emit.is_some()
    }

    /// Refuses what only the jobs of an emitted plan can be asked for, where none is.
    ///
    /// # Errors
    /// Wrong usage.
    pub(crate) fn check(&self, asked: &Asked) -> anyhow::Result<()> {
        let of_jobs = Asked {
            fail_fast: asked.fail_fast,
            ..asked.of_jobs()
        };
        match of_jobs.flags().first() {
            Some(flag) if !self.emits() => {
                let message =
                    format!("{flag} changes the jobs of a plan that --emit writes: name a folder with --emit");
                Err(usage(ErrorKind::MissingRequiredArgument, message))
            }
            _ => Ok(()),
        }
    }

    /// Writes the folder and the outputs, and prints the index. `changelog` is what the plan came from, if from entries;
    /// `asked` is what it was planned with.
    ///
    /// # Errors
    /// Workflow settings that cannot be read, a folder that is not empty, a plan over GitHub's limits, and files that
    /// cannot be written.
    pub(crate) fn write(
        &self,
        buckets: &Buckets,
        changelog: Option<&ChangelogMetadata>,
        asked: &Asked,
        json: bool,
    ) -> anyhow::Result<()> {
        let Some(dir) = &self.emit else { return Ok(()) };
        // Anew: what was asked of the sweep may name another evaluator than the policy does.
        let rows: Vec<Row> = buckets
            .values()
            .flatten()
            .map(|envelope| envelope.row.clone())
            .collect();
        runnable::check(&rows, None, &|_| Ok(None), &[".".into()])?;
        let settings = workflow_settings(Path::new("."))?;
        let mut buckets = buckets.clone();
        queue::score(&mut buckets, Path::new("."), &settings, &Trigger::of_run()?)?;
        let jobs = counts(&buckets);
        let index = emit(dir, buckets, self.canary, asked, &settings)?;
        if let Some(changelog) = changelog {
            plan_files::write_changelog(dir, changelog).map_err(Problems::from)?;
        }
        if self.github_output {
            let outputs = plan_files::outputs(&index, dir).map_err(Problems::from)?;
            runner::append(RunnerFile::Output, &outputs)?;
        }
        if output::wants_json(json) {
            return output::json(&index);
        }
        output::text(&jobs)
    }
}

/// Writes buckets as a plan's folder, the canary taken out of them where it is asked for, the others in the order of their
/// scores. Where no scheduler reads a score, no envelope has one.
///
/// # Errors
/// A folder that is not empty, a plan over GitHub's limits, and files that cannot be written.
pub(crate) fn emit(
    dir: &Path,
    mut buckets: Buckets,
    canary: bool,
    asked: &Asked,
    settings: &Workflows,
) -> Result<Index, Problems> {
    for envelope in buckets.values_mut().flatten() {
        envelope.set_timeout(&settings.timeouts.gpu);
    }
    let mut canary = canary.then(|| bucket::take_canary(&mut buckets)).flatten();
    priority::order(&mut buckets);
    if settings.priority == PriorityUse::Order {
        let all = canary.iter_mut().chain(buckets.values_mut().flatten());
        all.for_each(|envelope| envelope.priority = None);
    }
    let shards = shard::cut(&buckets, &settings.max_parallel)?;
    plan_files::write(dir, &shards, canary, asked)
}

/// A table of jobs by bucket.
#[must_use]
pub(crate) fn counts(buckets: &Buckets) -> String {
    let mut rows: Vec<Vec<String>> = buckets
        .iter()
        .map(|(bucket, envelopes)| vec![bucket.name().to_owned(), envelopes.len().to_string()])
        .collect();
    let all: usize = buckets.values().map(Vec::len).sum();
    rows.push(vec!["all".to_owned(), all.to_string()]);
    output::table(&["bucket", "jobs"], &rows)
}

/// Tables of buckets: counts, then the rows of each.
#[must_use]
pub(crate) fn buckets(buckets: &Buckets) -> String {
    let mut text = counts(buckets);
    for (bucket, envelopes) in buckets {
        let lines: Vec<Vec<String>> = envelopes.iter().map(|envelope| line(&envelope.row)).collect();
        text.push_str(&format!("\n{}\n", bucket.name()));
        text.push_str(&output::table(&HEAD, &lines));
    }
    text
}

/// The columns of a row's line.
const HEAD: [&str; 7] = [
    "experiment",
    "framework",
    "precision",
    "runner",
    "topology",
    "conc",
    "eval",
];

/// A row on one line.
#[must_use]
pub(crate) fn line(row: &Row) -> Vec<String> {
    let topology = &row.topology;
    let points: Vec<String> = row.conc.points().iter().map(u64::to_string).collect();
    vec![
        row.exp_name.clone(),
        topology.framework.clone(),
        topology.precision.clone(),
        topology.runner.clone(),
        topology_text(row),
        points.join(","),
        eval_text(row),
    ]
}

fn topology_text(row: &Row) -> String {
    let role = |role: &Role| format!("{}x {}", role.num_worker, role.sizes.shown());
    let mut text = match &row.topology.nodes {
        Nodes::Single(sizes) => sizes.shown(),
        Nodes::Multi(roles) => format!("{} / {}", role(&roles.prefill), role(&roles.decode)),
    };
    let spec = row.topology.spec_decoding.as_str();
    if spec != "none" {
        text.push_str(&format!(" {spec}"));
    }
    if let Scenario::Agentic(offload) = &row.topology.scenario
        && let Some(backend) = &offload.backend
    {
        text.push_str(&format!(" {}:{}", offload.mode.as_str(), backend.name));
    }
    text
}

fn eval_text(row: &Row) -> String {
    if !row.runs_eval() {
        return String::new();
    }
    let evaluator = row.eval.evaluator.as_ref().map_or("eval", |e| match e.is_benchmark() {
        true => e.suite.as_str(),
        false => e.framework.as_str(),
    });
    match (row.eval.eval_all_concs, row.eval.eval_conc) {
        (true, _) => format!("{evaluator} at each"),
        (false, Some(conc)) => format!("{evaluator} at {conc}"),
        (false, None) => evaluator.to_owned(),
    }
}

/// What a sweep costs: jobs and GPUs of one runner label in one bucket.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Cost {
    /// The runner label.
    pub runner: String,
    /// The bucket.
    pub bucket: &'static str,
    /// Its jobs.
    pub jobs: usize,
    /// GPUs of its largest job.
    pub largest_job_gpus: u64,
    /// GPUs of all its jobs, as if they ran at once.
    pub gpus: u64,
}

/// What a sweep costs, by runner label and bucket.
#[must_use]
pub(crate) fn costs(buckets: &Buckets) -> Vec<Cost> {
    let mut costs: IndexMap<(String, Bucket), Cost> = IndexMap::new();
    for (bucket, envelope) in buckets.iter().flat_map(|(b, all)| all.iter().map(move |e| (b, e))) {
        let gpus = envelope.row.topology.gpus();
        let cost = costs
            .entry((envelope.runs_on.clone(), *bucket))
            .or_insert_with(|| Cost {
                runner: envelope.runs_on.clone(),
                bucket: bucket.name(),
                jobs: 0,
                largest_job_gpus: 0,
                gpus: 0,
            });
        cost.jobs += 1;
        cost.largest_job_gpus = cost.largest_job_gpus.max(gpus);
        cost.gpus += gpus;
    }
    costs.sort_keys();
    costs.into_values().collect()
}

/// [`costs`] as a table.
#[must_use]
pub(crate) fn cost_table(costs: &[Cost]) -> String {
    let line = |runner: &str, bucket: &str, jobs: usize, largest: u64, gpus: u64| {
        vec![
            runner.to_owned(),
            bucket.to_owned(),
            jobs.to_string(),
            largest.to_string(),
            gpus.to_string(),
        ]
    };
    let mut rows: Vec<Vec<String>> = costs
        .iter()
        .map(|c| line(&c.runner, c.bucket, c.jobs, c.largest_job_gpus, c.gpus))
        .collect();
    let jobs = costs.iter().map(|c| c.jobs).sum();
    let gpus = costs.iter().map(|c| c.gpus).sum();
    let largest = costs.iter().map(|c| c.largest_job_gpus).max().unwrap_or(0);
    rows.push(line("all", "", jobs, largest, gpus));
    output::table(
        &["runner", "bucket", "jobs", "gpus of the largest", "gpus in all"],
        &rows,
    )
}
