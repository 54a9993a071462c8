//! A plan on disk: what workflows hand from job to job, and what collectors count against.
//!
//! `DIR/index.json` says which shards there are; `DIR/<bucket>/<n>.json` is a shard, a list of envelopes. A plan of
//! changelog entries has `DIR/changelog_metadata.json` beside them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::config::asked::{Asked, only_given};
use crate::config::problem::{Problem, Problems, nearest};
use crate::files;
use crate::matrix::bucket::Bucket;
use crate::matrix::envelope::Envelope;
use crate::matrix::names::{self, ArtifactKind};
use crate::matrix::plan::ChangelogMetadata;
use crate::matrix::shard::{MAX_BUNDLES, MAX_PLAN_BYTES, Shard};
use crate::runner::utf16_bytes;

/// The index's file name.
pub const INDEX: &str = "index.json";
/// The file name of the refs and entries that a plan came from.
const CHANGELOG_METADATA: &str = "changelog_metadata.json";

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
    /// What was asked of the sweep.
    #[serde(default, skip_serializing_if = "Asked::is_empty", serialize_with = "only_given")]
    pub asked: Asked,
    /// Buckets by name; only those with jobs.
    pub buckets: IndexMap<String, BucketIndex>,
}

/// What one bucket holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BucketIndex {
    /// Its jobs.
    pub jobs: usize,
    /// Its shards, by number.
    pub shards: Vec<ShardIndex>,
}

/// What one shard holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ShardIndex {
    /// Its jobs.
    pub jobs: usize,
    /// How many of them run or queue at a time.
    pub max_parallel: u64,
}

impl Index {
    /// Jobs of one bucket.
    #[must_use]
    pub fn jobs_in(&self, bucket: Bucket) -> usize {
        self.buckets.get(bucket.name()).map_or(0, |of_bucket| of_bucket.jobs)
    }
}

/// Writes a plan's folder; `asked` is what it was planned with. The folder must be missing or empty, so that no shard of
/// another plan stays in it.
///
/// # Errors
/// A folder that holds something, files that cannot be written, and a plan over GitHub's limits.
pub fn write(dir: &Path, shards: &[Shard<'_>], canary: Option<Envelope>, asked: &Asked) -> Result<Index, Problems> {
    let place = dir.display().to_string();
    std::fs::create_dir_all(dir).map_err(|error| unwritten(dir, &error))?;
    if std::fs::read_dir(dir)
        .map_err(|error| unwritten(dir, &error))?
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
        asked: asked.clone(),
        ..Index::default()
    };
    let mut bytes = utf16_bytes(&canary_text(&index));
    for shard in shards {
        let of_bucket = index.buckets.entry(shard.bucket.name().to_owned()).or_default();
        let path = shard_path(dir, shard.bucket, of_bucket.shards.len());
        let text = serde_json::to_string(&shard.jobs)
            .map_err(|error| Problem::file(&place, format!("a shard cannot be written: {error}")))?;
        bytes += utf16_bytes(&text);
        let folder = dir.join(shard.bucket.name());
        std::fs::create_dir_all(&folder).map_err(|error| unwritten(&folder, &error))?;
        files::write_atomic(&path, text.as_bytes()).map_err(|error| unwritten(&path, &error))?;
        let jobs = shard.jobs.len();
        of_bucket.jobs += jobs;
        of_bucket.shards.push(ShardIndex {
            jobs,
            max_parallel: shard.max_parallel,
        });
        index.jobs += jobs;
        match shard.bucket.is_eval() {
            true => index.eval_jobs += jobs,
            false => index.throughput_jobs += jobs,
        }
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
    write_json(&dir.join(INDEX), &index)?;
    Ok(index)
}

/// Writes the refs and entries that a plan came from into its folder.
///
/// # Errors
/// A file that cannot be written.
pub fn write_changelog(dir: &Path, metadata: &ChangelogMetadata) -> Result<(), Problem> {
    write_json(&dir.join(CHANGELOG_METADATA), metadata)
}

/// The base and the head that a plan compares, where it came from changelog entries and is a folder.
///
/// # Errors
/// A file that is something else.
pub fn changelog(path: &Path) -> Result<Option<(String, String)>, Problem> {
    #[derive(Deserialize)]
    struct Refs {
        base_ref: String,
        head_ref: String,
    }
    let Some(file) = in_folder(path)
        .map(|dir| dir.join(CHANGELOG_METADATA))
        .filter(|file| file.exists())
    else {
        return Ok(None);
    };
    let refs: Refs = read_json(&file, "what a plan came from")?;
    Ok(Some((refs.base_ref, refs.head_ref)))
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Problem> {
    let text = serde_json::to_string_pretty(value).map_err(|error| unwritten(path, &error))?;
    files::write_atomic(path, (text + "\n").as_bytes()).map_err(|error| unwritten(path, &error))
}

fn unwritten(path: &Path, error: &dyn std::error::Error) -> Problem {
    let place = path.display().to_string();
    Problem::file(&place, format!("`{place}` cannot be written: {error}"))
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
/// and count, the totals, the names of the shards' artifacts, and whether the first failure cancels the rest. GitHub drops an output that holds a masked value; the counts tell.
/// Names use `_`, as expressions like them.
#[must_use]
pub fn outputs(index: &Index) -> Vec<(String, String)> {
    let mut outputs = vec![
        ("jobs".to_owned(), index.jobs.to_string()),
        ("throughput_jobs".to_owned(), index.throughput_jobs.to_string()),
        ("eval_jobs".to_owned(), index.eval_jobs.to_string()),
        ("canary".to_owned(), canary_text(index)),
        ("canary_jobs".to_owned(), index.canary.iter().len().to_string()),
        ("fail_fast".to_owned(), index.asked.fail_fast.to_string()),
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

/// The folder of the plan that a path names: a folder, or the index in it.
///
/// # Errors
/// A path that is not there, and a list of envelopes, which has no shards.
pub fn folder(path: &Path) -> Result<&Path, Problem> {
    in_folder(path).ok_or_else(|| {
        let place = path.display().to_string();
        let message = match path.exists() {
            true => format!("`{place}` is no folder of a plan, nor its index"),
            false => format!("`{place}` is not found"),
        };
        Problem::file(&place, message).hint("name the folder that `sweepctl plan --emit DIR` wrote")
    })
}

fn in_folder(path: &Path) -> Option<&Path> {
    match path.file_name() {
        Some(name) if name == INDEX && !path.is_dir() => path.parent(),
        _ => path.is_dir().then_some(path),
    }
}

/// Reads a plan's index: of its folder, or counted from a list of envelopes, which knows no shards.
///
/// # Errors
/// A path that names no plan.
pub fn index(path: &Path) -> Result<Index, Problem> {
    if let Some(dir) = in_folder(path) {
        return read_json(&dir.join(INDEX), "an index of a plan");
    }
    let mut index = Index::default();
    for envelope in envelopes(path)? {
        let bucket = Bucket::of(&envelope.row);
        index.buckets.entry(bucket.name().to_owned()).or_default().jobs += 1;
        index.jobs += 1;
        match bucket.is_eval() {
            true => index.eval_jobs += 1,
            false => index.throughput_jobs += 1,
        }
    }
    Ok(index)
}

/// Reads one shard: its jobs, and how many of them run at a time.
///
/// # Errors
/// A folder that is no plan, a bucket without jobs, and a number past its last shard.
pub fn shard(dir: &Path, bucket: Bucket, number: usize) -> Result<(Vec<Envelope>, u64), Problem> {
    let index = index(dir)?;
    let place = dir.display().to_string();
    let Some(of_bucket) = index.buckets.get(bucket.name()) else {
        let known = nearest(bucket.name(), index.buckets.keys().map(String::as_str));
        return Err(Problem::file(&place, format!("the plan has no job in `{}`", bucket.name())).hint(known));
    };
    let Some(of_shard) = of_bucket.shards.get(number) else {
        let message = format!("`{}` has no shard {number}", bucket.name());
        let hint = format!("its shards are 0 to {}", of_bucket.shards.len().saturating_sub(1));
        return Err(Problem::file(&place, message).hint(hint));
    };
    Ok((shard_jobs(dir, bucket, number)?, of_shard.max_parallel))
}

fn shard_jobs(dir: &Path, bucket: Bucket, number: usize) -> Result<Vec<Envelope>, Problem> {
    read_json(&shard_path(dir, bucket, number), "a shard of a plan")
}

/// The name that stands for the canary where a bucket is asked for: it is in none, and its job is a shard of one.
pub const CANARY: &str = "canary";

/// Reads one shard of a bucket by name, or the canary's: its jobs, and how many of them run at a time.
///
/// # Errors
/// As [`shard`], a path that names no folder of a plan, a bucket that is none, and a plan without a canary.
pub fn shard_or_canary(path: &Path, bucket: &str, number: usize) -> Result<(Vec<Envelope>, u64), Problem> {
    let dir = folder(path)?;
    let place = dir.display().to_string();
    if bucket != CANARY {
        let known = || Bucket::ALL.iter().map(|bucket| bucket.name());
        let found = Bucket::ALL.iter().find(|known| known.name() == bucket);
        let bucket = found
            .ok_or_else(|| Problem::file(&place, format!("`{bucket}` is no bucket")).hint(nearest(bucket, known())))?;
        return shard(dir, *bucket, number);
    }
    let canary = index(dir)?.canary.filter(|_| number == 0);
    canary.map(|envelope| (vec![envelope], 1)).ok_or_else(|| {
        let problem = Problem::file(&place, format!("the plan has no shard {number} of a canary"));
        problem.hint("emit it with --canary; its only shard is 0")
    })
}

/// The outputs that a shard's jobs are started with: its envelopes, the names of the artifacts that collectors read, and
/// how many jobs run at a time.
///
/// # Panics
/// Never: an envelope of a row that was built is JSON.
#[must_use]
pub fn shard_outputs(jobs: &[Envelope], max_parallel: u64) -> Vec<(String, String)> {
    let artifacts: Vec<String> = jobs
        .iter()
        .map(|envelope| names::artifact(ArtifactKind::collected(&envelope.row), envelope))
        .collect();
    vec![
        (
            "envelopes".to_owned(),
            serde_json::to_string(jobs).expect("an envelope of a row that was built"),
        ),
        ("artifacts".to_owned(), serde_json::json!(artifacts).to_string()),
        ("max_parallel".to_owned(), max_parallel.to_string()),
    ]
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
    let Some(dir) = in_folder(path) else {
        return read_json(path, "a list of envelopes");
    };
    let index = index(dir)?;
    let mut envelopes = Vec::with_capacity(index.jobs);
    envelopes.extend(index.canary.clone());
    for bucket in Bucket::ALL {
        let Some(of_bucket) = index.buckets.get(bucket.name()) else {
            continue;
        };
        for (number, of_shard) in of_bucket.shards.iter().enumerate() {
            let shard = shard_jobs(dir, *bucket, number)?;
            if shard.len() != of_shard.jobs {
                let path = shard_path(dir, *bucket, number).display().to_string();
                let message = format!("the shard holds {} jobs, the index says {}", shard.len(), of_shard.jobs);
                return Err(Problem::file(&path, message).hint("fetch the plan again"));
            }
            envelopes.extend(shard);
        }
    }
    Ok(envelopes)
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path, what: &str) -> Result<T, Problem> {
    let place = path.display().to_string();
    let text = files::read_named(path, files::MAX_BYTES).map_err(|error| {
        Problem::file(&place, format!("`{place}` cannot be read: {error}"))
            .hint("write a plan with `sweepctl plan --emit DIR`, or fetch the run's artifact")
    })?;
    serde_json::from_slice(&text).map_err(|error| Problem::file(&place, format!("`{place}` is not {what}: {error}")))
}
