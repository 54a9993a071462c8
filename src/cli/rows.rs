//! How rows and buckets look on a terminal, and how they are emitted for workflows.

use std::path::{Path, PathBuf};

use clap::Args;
use indexmap::IndexMap;
use serde::Serialize;

use super::render::workflow_settings;
use super::{output, set_flags};
use crate::config::master::search_space::Nodes;
use crate::config::problem::Problems;
use crate::config::types::Role;
use crate::matrix::bucket::{self, Bucket, Buckets};
use crate::matrix::envelope::Overrides;
use crate::matrix::plan::ChangelogMetadata;
use crate::matrix::row::{Row, Scenario};
use crate::matrix::shard;
use crate::plan_files;
use crate::runner::{self, RunnerFile};

/// What to write for workflows, and what a dispatch changes.
#[derive(Debug, Args)]
pub struct EmitArgs {
    /// Write envelopes by bucket and shard, and an index, to a new folder
    #[arg(long, value_name = "DIR", help_heading = "For workflows")]
    emit: Option<PathBuf>,
    /// Take the canary out of its bucket, to run before all others: one node, fixed lengths, the lowest concurrency
    #[arg(long, requires = "emit", help_heading = "For workflows")]
    canary: bool,
    /// Append shard lists and counts to the file that GITHUB_OUTPUT names
    #[arg(long, requires = "emit", help_heading = "For workflows")]
    github_output: bool,
    /// Seconds of each agentic replay
    #[arg(long, value_name = "SECONDS", requires = "emit", value_parser = clap::value_parser!(u64).range(1..), help_heading = "For workflows")]
    override_duration: Option<u64>,
    /// What evaluates, instead of the rows' own
    #[arg(long, value_name = "NAME", requires = "emit", help_heading = "For workflows")]
    override_eval_framework: Option<String>,
    /// The evaluator's suite, instead of the rows' own
    #[arg(long, value_name = "NAME", requires = "emit", help_heading = "For workflows")]
    override_eval_suite: Option<String>,
    /// Samples of each eval; `full` is the whole split
    #[arg(long, value_name = "N", requires = "emit", help_heading = "For workflows")]
    override_eval_limit: Option<String>,
    /// Short agentic replays
    #[arg(long, requires = "emit", help_heading = "For workflows")]
    agentx_fast: bool,
}

impl EmitArgs {
    /// Whether anything is written for workflows; standard output then holds the index only.
    #[must_use]
    pub fn emits(&self) -> bool {
        self.emit.is_some()
    }

    /// What a dispatch changes.
    #[must_use]
    pub fn overrides(&self) -> Overrides {
        Overrides {
            duration: self.override_duration,
            eval_framework: self.override_eval_framework.clone(),
            eval_suite: self.override_eval_suite.clone(),
            eval_limit: self.override_eval_limit.clone(),
            agentx_fast: self.agentx_fast,
            ..Overrides::default()
        }
    }

    /// Writes the folder and the outputs, and prints the index. `changelog` is what the plan came from, if from entries;
    /// `flags` say which flags that narrow a sweep are set.
    ///
    /// # Errors
    /// Workflow settings that cannot be read, a folder that is not empty, a plan over GitHub's limits, and files that
    /// cannot be written.
    pub fn write(
        &self,
        buckets: &Buckets,
        changelog: Option<&ChangelogMetadata>,
        flags: &[(bool, &str)],
        json: bool,
    ) -> anyhow::Result<()> {
        let Some(dir) = &self.emit else { return Ok(()) };
        let settings = workflow_settings(Path::new("."))?;
        let mut rest = buckets.clone();
        for envelope in rest.values_mut().flatten() {
            envelope.set_timeout(&settings.timeouts.gpu);
        }
        let canary = if self.canary {
            bucket::take_canary(&mut rest)
        } else {
            None
        };
        let narrowed = set_flags(&[flags, &[(self.agentx_fast, "--agentx-fast")]].concat());
        let shards = shard::cut(&rest, &settings.max_parallel).map_err(Problems::from)?;
        let index = plan_files::write(dir, &shards, canary, narrowed)?;
        if let Some(changelog) = changelog {
            plan_files::write_changelog(dir, changelog).map_err(Problems::from)?;
        }
        if self.github_output {
            runner::append(RunnerFile::Output, &plan_files::outputs(&index))?;
        }
        if output::wants_json(json) {
            return output::json(&index);
        }
        output::text(&counts(buckets))
    }
}

/// A table of jobs by bucket.
#[must_use]
pub fn counts(buckets: &Buckets) -> String {
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
pub fn buckets(buckets: &Buckets) -> String {
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
pub fn line(row: &Row) -> Vec<String> {
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
    let sizes = |sizes: [(&str, u64); 4]| -> String {
        sizes
            .iter()
            .filter(|(_, size)| *size > 1)
            .map(|(name, size)| format!(" {name}{size}"))
            .collect()
    };
    let role = |role: &Role| {
        let more = sizes([
            ("pp", role.pp),
            ("dcp", role.dcp_size),
            ("pcp", role.pcp_size),
            ("ep", role.ep),
        ]);
        let dpa = if role.dp_attn { " dpa" } else { "" };
        format!("{}x tp{}{more}{dpa}", role.num_worker, role.tp)
    };
    let mut text = match &row.topology.nodes {
        Nodes::Single(p) => {
            let more = sizes([
                ("pp", p.pp),
                ("dcp", p.dcp_size),
                ("pcp", p.pcp_size),
                ("ep", p.ep.unwrap_or(1)),
            ]);
            let dpa = if p.dp_attn == Some(true) { " dpa" } else { "" };
            format!("tp{}{more}{dpa}", p.tp)
        }
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
    let evaluator = row.eval.evaluator.as_ref().map_or("eval", |e| e.framework.as_str());
    match (row.eval.eval_all_concs, row.eval.eval_conc) {
        (true, _) => format!("{evaluator} at each"),
        (false, Some(conc)) => format!("{evaluator} at {conc}"),
        (false, None) => evaluator.to_owned(),
    }
}

/// What a sweep costs: jobs and GPUs of one runner label in one bucket.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Cost {
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
pub fn costs(buckets: &Buckets) -> Vec<Cost> {
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
pub fn cost_table(costs: &[Cost]) -> String {
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
