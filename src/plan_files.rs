//! A plan on disk: what workflows hand from job to job, and what collectors count against.
//!
//! `DIR/index.json` says which shards there are; `DIR/<bucket>/<n>.json` is a shard, a list of envelopes. A plan of
//! changelog entries has `DIR/changelog_metadata.json` beside them.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::config::asked::{Asked, only_given};
use crate::config::problem::{Problem, Problems, nearest};
use crate::files;
use crate::matrix::bucket::Bucket;
use crate::matrix::envelope::Envelope;
use crate::matrix::fingerprint::hex;
use crate::matrix::plan::ChangelogMetadata;
use crate::matrix::shard::{MAX_INLINE_BYTES, MAX_PLAN_BYTES, MAX_SHARDS, Shard};
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
    /// The plan's [`digest`]; empty where it was written without.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
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
    let all = shards.iter().flat_map(|shard| shard.jobs.iter().copied());
    let mut index = Index {
        digest: digest(all.chain(canary.as_ref())),
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
        let shards = shards_of(&index, evals);
        if shards > MAX_SHARDS {
            let message = format!("the plan has {shards} shards of {what}, a sweep takes {MAX_SHARDS}");
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

/// Shards of evals or of throughput; the canary is one of its own.
fn shards_of(index: &Index, evals: bool) -> usize {
    let canary = if evals { 0 } else { index.canary.iter().len() };
    let buckets = Bucket::ALL.iter().filter(|bucket| bucket.is_eval() == evals);
    let of_bucket = |bucket: &Bucket| index.buckets.get(bucket.name()).map_or(0, |bucket| bucket.shards.len());
    canary + buckets.map(of_bucket).sum::<usize>()
}

/// The outputs that a workflow decides with: the totals, the canary's envelope and count, whether the first failure
/// cancels the rest; and of each bucket
/// - `<bucket>_jobs`: how many there are,
/// - `<bucket>_shards`: a list of the numbers of its shards,
/// - `<bucket>_inputs`: of each shard, `max-parallel`, how many of its jobs run at a time, and `envelopes`, the list of
///   them as text. Where those of the whole plan and the canary take more than [`MAX_INLINE_BYTES`], that text is empty,
///   and each shard is loaded from the plan instead.
///
/// GitHub drops an output that holds a masked value; the counts tell. Names use `_`, as expressions like them.
///
/// # Errors
/// Shards that cannot be read.
pub fn outputs(index: &Index, dir: &Path) -> Result<Vec<(String, String)>, Problem> {
    let mut outputs = vec![
        ("jobs".to_owned(), index.jobs.to_string()),
        ("throughput_jobs".to_owned(), index.throughput_jobs.to_string()),
        ("eval_jobs".to_owned(), index.eval_jobs.to_string()),
        ("canary".to_owned(), canary_text(index)),
        ("canary_jobs".to_owned(), index.canary.iter().len().to_string()),
        ("fail_fast".to_owned(), index.asked.fail_fast.to_string()),
        ("plan_digest".to_owned(), index.digest.clone()),
    ];
    let mut inputs = inputs(index, |bucket, number| {
        Ok(envelopes_text(&shard_jobs(dir, bucket, number)?))
    })?;
    let written: usize = inputs
        .values()
        .chain([&canary_text(index)])
        .map(|text| written(text))
        .sum();
    if written > MAX_INLINE_BYTES {
        inputs = self::inputs(index, |_, _| Ok(String::new()))?;
    }
    for bucket in Bucket::ALL {
        let name = bucket.name();
        let of_bucket = index.buckets.get(name).cloned().unwrap_or_default();
        let numbers: Vec<usize> = (0..of_bucket.shards.len()).collect();
        outputs.push((format!("{name}_jobs"), of_bucket.jobs.to_string()));
        outputs.push((format!("{name}_shards"), serde_json::json!(numbers).to_string()));
        outputs.push((format!("{name}_inputs"), inputs.remove(bucket).unwrap_or_default()));
    }
    Ok(outputs)
}

/// What the shards of each bucket are called with, where `envelopes` says which a shard is handed.
fn inputs(
    index: &Index,
    envelopes: impl Fn(Bucket, usize) -> Result<String, Problem>,
) -> Result<HashMap<Bucket, String>, Problem> {
    let of_bucket = |bucket: &Bucket| {
        let shards = index
            .buckets
            .get(bucket.name())
            .map_or(&[][..], |of_bucket| &of_bucket.shards);
        let inputs = shards.iter().enumerate().map(|(number, shard)| {
            let envelopes = envelopes(*bucket, number)?;
            Ok(serde_json::json!({ "max-parallel": shard.max_parallel, "envelopes": envelopes }))
        });
        let inputs: Vec<serde_json::Value> = inputs.collect::<Result<_, Problem>>()?;
        Ok((*bucket, serde_json::json!(inputs).to_string()))
    };
    Bucket::ALL.iter().map(of_bucket).collect()
}

/// The bytes that an output takes in the text of `toJson(needs)`, where other characters than ASCII may be escaped.
fn written(output: &str) -> usize {
    let escaped = serde_json::Value::from(output).to_string();
    let bytes = |character: char| {
        if character.is_ascii() {
            1
        } else {
            6 * character.len_utf16()
        }
    };
    escaped.chars().map(bytes).sum()
}

/// Envelopes as one line of JSON.
fn envelopes_text(jobs: &[Envelope]) -> String {
    serde_json::to_string(jobs).expect("an envelope of a row that was built")
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

/// What two plans of the same jobs and recipes share, and no two others: 16 hex digits. Neither the order of jobs nor how
/// they are cut into shards counts.
#[must_use]
pub fn digest<'e>(plan: impl IntoIterator<Item = &'e Envelope>) -> String {
    let of = |envelope: &Envelope| {
        let fingerprint = envelope.row.recipe_fingerprint.as_deref().unwrap_or_default();
        format!("{} {fingerprint}\n", envelope.id)
    };
    let mut lines: Vec<String> = plan.into_iter().map(of).collect();
    lines.sort_unstable();
    hex(&Sha256::digest(lines.concat().as_bytes())[..8])
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
        let hint = format!("its shards are 0 to {}", of_bucket.shards.len().saturating_sub(1));
        return Err(Problem::file(&place, message).hint(hint));
    }
    shard_jobs(dir, bucket, number)
}

fn shard_jobs(dir: &Path, bucket: Bucket, number: usize) -> Result<Vec<Envelope>, Problem> {
    read_json(&shard_path(dir, bucket, number), "a shard of a plan")
}

/// The name that stands for the canary where a bucket is asked for: it is in none, and its job is a shard of one.
pub const CANARY: &str = "canary";

/// Reads one shard of a bucket by name, or the canary's.
///
/// # Errors
/// As [`shard`], a path that names no folder of a plan, a bucket that is none, and a plan without a canary.
pub fn shard_or_canary(path: &Path, bucket: &str, number: usize) -> Result<Vec<Envelope>, Problem> {
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
    canary.map(|envelope| vec![envelope]).ok_or_else(|| {
        let problem = Problem::file(&place, format!("the plan has no shard {number} of a canary"));
        problem.hint("emit it with --canary; its only shard is 0")
    })
}

/// The output that a shard's jobs are started with: its envelopes.
#[must_use]
pub fn shard_outputs(jobs: &[Envelope]) -> Vec<(String, String)> {
    vec![("envelopes".to_owned(), envelopes_text(jobs))]
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
                let message = format!(
                    "the shard holds {}, the index says {}",
                    crate::plural::count(shard.len(), "job"),
                    of_shard.jobs
                );
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
