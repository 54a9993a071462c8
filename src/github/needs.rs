//! The jobs of a run: their names, and `toJson(needs)`, which says what became of those that a job waits for.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::text::{code, listed};
use crate::config::problem::{Problem, nearest};
use crate::matrix::bucket::Bucket;

/// The job that decides, checks the changelog, looks for an earlier run whose results stand in, and plans.
pub const DECIDE: &str = "decide";
/// The job that takes over the results of an earlier run.
pub const REUSE_RESULTS: &str = "reuse-results";
/// The job that runs before all others.
pub const CANARY: &str = "canary";
/// The job that collects.
pub const COLLECT: &str = "collect";
/// A job or step of a repository's own that collects throughput results.
pub const COLLECT_RESULTS: &str = "collect-results";
/// One that collects evals.
pub const COLLECT_EVALS: &str = "collect-evals";

/// The job of a bucket: `sweep-` and its name, with `-`.
#[must_use]
pub fn job_of(bucket: Bucket) -> String {
    let name = bucket.name().replace("multinode", "multi_node").replace('_', "-");
    format!("sweep-{name}")
}

/// The name of a bucket's job, for people.
#[must_use]
pub fn title_of(bucket: Bucket) -> &'static str {
    match bucket {
        Bucket::SingleNode1k1k => "One node, 1k1k",
        Bucket::SingleNode8k1k => "One node, 8k1k",
        Bucket::SingleNodeOther => "One node, other lengths",
        Bucket::SingleNodeAgentic => "One node, agentic",
        Bucket::MultiNode1k1k => "Multi-node, 1k1k",
        Bucket::MultiNode8k1k => "Multi-node, 8k1k",
        Bucket::MultiNodeOther => "Multi-node, other lengths",
        Bucket::MultiNodeAgentic => "Multi-node, agentic",
        Bucket::Evals => "Evals",
        Bucket::AgenticEvals => "Agentic evals",
        Bucket::MultinodeEvals => "Multi-node evals",
        Bucket::MultinodeAgenticEvals => "Multi-node agentic evals",
    }
}

/// What became of a job. A job that is a matrix, or a workflow of its own, has the worst result of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum JobResult {
    /// It ran, and all of it well.
    Success,
    /// Some of it failed.
    Failure,
    /// Some of it was cancelled or timed out; parts of it may have finished.
    Cancelled,
    /// None of it ran.
    Skipped,
}

impl JobResult {
    /// The text form.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Cancelled => "cancelled",
            Self::Skipped => "skipped",
        }
    }

    /// Whether it may have left something.
    #[must_use]
    pub fn ran(self) -> bool {
        self != Self::Skipped
    }
}

/// One job that was waited for, or one step of a job.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Need {
    /// What became of it; of a step, before its `continue-on-error` counts.
    #[serde(alias = "outcome")]
    pub result: JobResult,
    /// What it said; a runner may write null for a job that was skipped. GitHub leaves out an output whose value holds a
    /// masked one.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub outputs: IndexMap<String, String>,
}

fn null_is_empty<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<IndexMap<String, String>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Every job that was waited for, by name, or the steps of a job, by id.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Needs(pub IndexMap<String, Need>);

impl Needs {
    /// Reads the text of `toJson(needs)` or `toJson(steps)`; `place` is where it stands.
    ///
    /// # Errors
    /// Text that is none.
    pub fn parse(text: &str, place: &str) -> Result<Self, Problem> {
        serde_json::from_str(text).map_err(|error| {
            Problem::file(place, format!("this is not the JSON of `needs`: {error}"))
                .hint("pass `${{ toJson(needs) }}` through an environment variable, and that to --needs -")
        })
    }

    /// A job that must be waited for.
    ///
    /// # Errors
    /// A job that is not.
    pub fn job(&self, name: &str) -> Result<&Need, Problem> {
        self.0.get(name).ok_or_else(|| {
            let known = nearest(name, self.0.keys().map(String::as_str));
            Problem::file("", format!("the job {} is not among `needs`", code(name)))
                .hint(format!("add it to the job's `needs`; {known}"))
        })
    }

    /// Jobs that must be waited for.
    ///
    /// # Errors
    /// All that are not, in one problem.
    pub fn jobs(&self, names: &[String]) -> Result<Vec<(String, &Need)>, Problem> {
        let (found, missing): (Vec<_>, Vec<_>) = names
            .iter()
            .map(|name| (name, self.0.get(name)))
            .partition(|(_, n)| n.is_some());
        if missing.is_empty() {
            return Ok(found
                .into_iter()
                .filter_map(|(name, need)| Some((name.clone(), need?)))
                .collect());
        }
        let missing: Vec<&String> = missing.into_iter().map(|(name, _)| name).collect();
        let (are, them) = if missing.len() == 1 {
            ("is", "it")
        } else {
            ("are", "them")
        };
        Err(
            Problem::file("", format!("{} {are} not among `needs`", listed(&missing)))
                .hint(format!("add {them} to the job's `needs`")),
        )
    }
}

impl Need {
    /// An output that is a count.
    ///
    /// # Errors
    /// One that is not there, which GitHub does to values with a masked part, and one that is no count.
    pub fn count(&self, job: &str, output: &str) -> Result<usize, Problem> {
        let Some(text) = self.outputs.get(output).filter(|text| !text.is_empty()) else {
            let message = format!("the job {} gave no output {}", code(job), code(output));
            return Err(Problem::file("", message).hint(DROPPED));
        };
        text.parse().map_err(|_| {
            let message = format!(
                "the output {} of {} is {}, which is no count",
                code(output),
                code(job),
                code(text)
            );
            Problem::file("", message).hint("see what the job wrote to GITHUB_OUTPUT")
        })
    }
}

/// Why an output may be missing.
pub(super) const DROPPED: &str = "see whether the job declares it under `outputs`; GitHub also drops an output that \
                                  holds a masked value, and says so in the job's log";
