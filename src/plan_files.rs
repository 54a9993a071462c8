//! A plan on disk: what workflows hand from job to job, and what collectors count against.
//!
//! `DIR/index.json` says which shards there are; `DIR/<bucket>/<n>.json` is a shard, a list of envelopes.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::config::problem::{Problem, Problems, nearest};
use crate::matrix::bucket::{Bucket, Buckets, MAX_BUNDLES, MAX_PLAN_BYTES, shards};
use crate::matrix::envelope::Envelope;
use crate::runner::utf16_bytes;

/// The index's file name.
pub const INDEX: &str = "index.json";

/// What a plan's folder holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Index {
    /// All jobs, the canary among them.
    pub jobs: usize,
    /// Jobs that measure throughput.
    pub throughput_jobs: usize,
    /// Jobs that evaluate.
    pub eval_jobs: usize,
    /// The job that runs before all others; it is in no bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<Envelope>,
    /// The flags that leave out a part of what a full sweep measures; such a sweep stands in for none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub narrowed: Vec<String>,
    /// Buckets by name; only those with jobs.
    pub buckets: IndexMap<String, BucketIndex>,
}

/// What one bucket holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BucketIndex {
    /// Its jobs.
    pub jobs: usize,
    /// Jobs of each shard.
    pub shards: Vec<usize>,
}

impl Index {
    /// Jobs of one bucket.
    #[must_use]
    pub fn jobs_in(&self, bucket: Bucket) -> usize {
        self.buckets.get(bucket.name()).map_or(0, |of_bucket| of_bucket.jobs)
    }
}

/// Writes a plan's folder; `narrowed` are the flags that leave out a part of it. The folder must be missing or empty, so that no shard of another plan stays in it.
///
/// # Errors
/// A folder that holds something, files that cannot be written, and a plan over GitHub's limits.
pub fn write(
    dir: &Path,
    buckets: &Buckets,
    canary: Option<Envelope>,
    narrowed: Vec<String>,
) -> Result<Index, Problems> {
    let place = dir.display().to_string();
    let failed = |path: &Path, error: std::io::Error| {
        Problem::file(
            &path.display().to_string(),
            format!("`{}` cannot be written: {error}", path.display()),
        )
    };
    std::fs::create_dir_all(dir).map_err(|error| failed(dir, error))?;
    if std::fs::read_dir(dir)
        .map_err(|error| failed(dir, error))?
        .next()
        .is_some()
    {
        let problem = Problem::file(&place, format!("the folder `{place}` is not empty"));
        return Err(problem.hint("name a new folder, or remove this one").into());
    }
    let mut index = Index {
        jobs: canary.iter().len(),
        throughput_jobs: canary.iter().len(),
        canary,
        narrowed,
        ..Index::default()
    };
    let mut bytes = utf16_bytes(&canary_text(&index));
    for (bucket, envelopes) in buckets {
        let folder = dir.join(bucket.name());
        std::fs::create_dir(&folder).map_err(|error| failed(&folder, error))?;
        let mut counts = Vec::new();
        for (number, shard) in shards(envelopes)?.into_iter().enumerate() {
            let text = serde_json::to_string(shard)
                .map_err(|error| Problem::file(&place, format!("a shard cannot be written: {error}")))?;
            bytes += utf16_bytes(&text);
            let path = shard_path(dir, *bucket, number);
            std::fs::write(&path, text).map_err(|error| failed(&path, error))?;
            counts.push(shard.len());
        }
        index.jobs += envelopes.len();
        match bucket.is_eval() {
            true => index.eval_jobs += envelopes.len(),
            false => index.throughput_jobs += envelopes.len(),
        }
        let of_bucket = BucketIndex {
            jobs: envelopes.len(),
            shards: counts,
        };
        index.buckets.insert(bucket.name().to_owned(), of_bucket);
    }
    for (what, evals) in [("throughput", false), ("evals", true)] {
        let shards = bundles(&index, evals).len();
        if shards > MAX_BUNDLES {
            let message = format!("the plan has {shards} shards of {what}, a collector fetches {MAX_BUNDLES}");
            return Err(Problem::file(&place, message)
                .hint("split the change into several sweeps")
                .into());
        }
    }
    if bytes > MAX_PLAN_BYTES {
        let message = format!("the plan takes {bytes} bytes of outputs, a run holds {MAX_PLAN_BYTES}");
        return Err(Problem::file(&place, message)
            .hint("split the change into several sweeps")
            .into());
    }
    let path = dir.join(INDEX);
    let text = serde_json::to_string_pretty(&index)
        .map_err(|error| Problem::file(&place, format!("the index cannot be written: {error}")))?;
    std::fs::write(&path, text + "\n").map_err(|error| failed(&path, error))?;
    Ok(index)
}

/// The canary as one line of JSON; empty where there is none.
fn canary_text(index: &Index) -> String {
    index
        .canary
        .as_ref()
        .map(|canary| serde_json::to_string(canary).expect("an envelope of a row that was built"))
        .unwrap_or_default()
}

fn shard_path(dir: &Path, bucket: Bucket, number: usize) -> PathBuf {
    dir.join(bucket.name()).join(format!("{number}.json"))
}

/// The artifacts that bundle the results of shards, of evals or of throughput; the canary is a shard of its own.
fn bundles(index: &Index, evals: bool) -> Vec<String> {
    let canary = index
        .canary
        .iter()
        .filter(|_| !evals)
        .map(|_| "bundle_canary_0".to_owned());
    let buckets = Bucket::ALL.iter().filter(|bucket| bucket.is_eval() == evals);
    let of_bucket = |bucket: &Bucket| {
        let name = bucket.name();
        let shards = index.buckets.get(name).map_or(0, |of_bucket| of_bucket.shards.len());
        (0..shards).map(move |number| format!("bundle_{name}_{number}"))
    };
    canary.chain(buckets.flat_map(of_bucket)).collect()
}

/// The outputs that a workflow decides with: a list of shard numbers and a count for each bucket, the canary's envelope
/// and count, the totals, and the names of the shards' artifacts. GitHub drops an output that holds a masked value; the counts tell.
/// Names use `_`, as expressions like them.
#[must_use]
pub fn outputs(index: &Index) -> Vec<(String, String)> {
    let mut outputs = vec![
        ("jobs".to_owned(), index.jobs.to_string()),
        ("throughput_jobs".to_owned(), index.throughput_jobs.to_string()),
        ("eval_jobs".to_owned(), index.eval_jobs.to_string()),
        ("canary".to_owned(), canary_text(index)),
        ("canary_jobs".to_owned(), index.canary.iter().len().to_string()),
    ];
    for (name, evals) in [("throughput_bundles", false), ("eval_bundles", true)] {
        outputs.push((name.to_owned(), serde_json::json!(bundles(index, evals)).to_string()));
    }
    for bucket in Bucket::ALL {
        let of_bucket = index.buckets.get(bucket.name()).cloned().unwrap_or_default();
        let numbers: Vec<String> = (0..of_bucket.shards.len()).map(|n| n.to_string()).collect();
        outputs.push((format!("{}_shards", bucket.name()), format!("[{}]", numbers.join(","))));
        outputs.push((format!("{}_jobs", bucket.name()), of_bucket.jobs.to_string()));
    }
    outputs
}

/// Reads a plan's index.
///
/// # Errors
/// A folder that is no plan.
pub fn index(dir: &Path) -> Result<Index, Problem> {
    read_json(&dir.join(INDEX), "an index of a plan")
}

/// Reads one shard.
///
/// # Errors
/// A folder that is no plan, a bucket without jobs, and a number past its last shard.
pub fn shard(dir: &Path, bucket: Bucket, number: usize) -> Result<Vec<Envelope>, Problem> {
    let index = index(dir)?;
    let place = dir.display().to_string();
    let Some(of_bucket) = index.buckets.get(bucket.name()) else {
        let known = nearest(bucket.name(), index.buckets.keys().map(String::as_str));
        return Err(Problem::file(&place, format!("the plan has no job in `{}`", bucket.name())).hint(known));
    };
    if number >= of_bucket.shards.len() {
        let message = format!("`{}` has no shard {number}", bucket.name());
        let hint = format!("its shards are 0 to {}", of_bucket.shards.len() - 1);
        return Err(Problem::file(&place, message).hint(hint));
    }
    read_json(&shard_path(dir, bucket, number), "a shard of a plan")
}

/// Every envelope of a plan: from its folder, its index, or a file that is a list of envelopes.
///
/// # Errors
/// Files that are no plan, shards whose counts differ from the index, and an id that stands in it twice.
pub fn envelopes(path: &Path) -> Result<Vec<Envelope>, Problem> {
    let envelopes = unproved(path)?;
    let mut seen = HashSet::new();
    match envelopes.iter().find(|envelope| !seen.insert(&envelope.id)) {
        None => Ok(envelopes),
        Some(twice) => {
            let message = format!("the plan holds the job `{}` ({}) twice", twice.id, twice.name);
            Err(Problem::file(&path.display().to_string(), message).hint("plan again: ids are unique in a plan"))
        }
    }
}

fn unproved(path: &Path) -> Result<Vec<Envelope>, Problem> {
    let dir = if path.is_dir() {
        path
    } else if path.file_name().is_some_and(|name| name == INDEX) {
        path.parent().unwrap_or(Path::new(""))
    } else {
        return read_json(path, "a list of envelopes");
    };
    let index = index(dir)?;
    let mut envelopes = Vec::with_capacity(index.jobs);
    envelopes.extend(index.canary.clone());
    for bucket in Bucket::ALL {
        let Some(of_bucket) = index.buckets.get(bucket.name()) else {
            continue;
        };
        for (number, jobs) in of_bucket.shards.iter().enumerate() {
            let shard = shard(dir, *bucket, number)?;
            if shard.len() != *jobs {
                let path = shard_path(dir, *bucket, number).display().to_string();
                let message = format!("the shard holds {} jobs, the index says {jobs}", shard.len());
                return Err(Problem::file(&path, message).hint("fetch the plan again"));
            }
            envelopes.extend(shard);
        }
    }
    Ok(envelopes)
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path, what: &str) -> Result<T, Problem> {
    let place = path.display().to_string();
    let text = std::fs::read(path).map_err(|error| {
        Problem::file(&place, format!("`{place}` cannot be read: {error}"))
            .hint("write a plan with `sweepctl plan --emit DIR`, or fetch the run's artifact")
    })?;
    serde_json::from_slice(&text).map_err(|error| Problem::file(&place, format!("`{place}` is not {what}: {error}")))
}
