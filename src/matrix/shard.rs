//! Shards: buckets cut into matrices, and how many jobs of each run at a time.
//!
//! All shards of a sweep run side by side, and a matrix has one `max-parallel` for all its jobs. So a shard holds the
//! jobs of one runner label, and a label's limit is shared out among its shards.

use indexmap::IndexMap;

use super::bucket::{Bucket, Buckets};
use super::envelope::Envelope;
use crate::config::problem::Problem;
use crate::config::workflows::MaxParallel;
use crate::findings::plan as findings;
use crate::runner::utf16_bytes;

/// Jobs of one matrix; GitHub generates at most so many for one job of one workflow run.
pub const MAX_SHARD_JOBS: usize = 256;
/// UTF-16 bytes of one shard; a job's outputs hold 1,048,576, and a shard is one of them.
pub const MAX_SHARD_BYTES: usize = 900_000;
/// UTF-16 bytes of all shards; a run's outputs hold 50 MB, and other outputs need room.
pub const MAX_PLAN_BYTES: usize = 45_000_000;
/// Bytes of the envelopes that travel in the outputs of the job that plans, as `toJson(needs)` writes them. A job's
/// outputs hold more, but jobs behind it are told all outputs in one variable, and Linux takes no variable of more than
/// 131,072 bytes (`MAX_ARG_STRLEN`).
pub const MAX_INLINE_BYTES: usize = 98_304;
/// Shards of throughput, the canary's among them, and shards of evals that a plan may have: in a large plan each takes a
/// hosted job that loads it.
pub const MAX_SHARDS: usize = 64;

/// The jobs of one matrix, in the order of their bucket.
#[derive(Debug, Clone, PartialEq)]
pub struct Shard<'e> {
    /// The bucket.
    pub bucket: Bucket,
    /// Its jobs.
    pub jobs: Vec<&'e Envelope>,
    /// How many of them run or queue at a time.
    pub max_parallel: u64,
}

/// Cuts buckets into shards of at most [`MAX_SHARD_JOBS`] jobs and [`MAX_SHARD_BYTES`], in the order of the buckets and
/// of each shard's first job.
///
/// A shard holds one label's jobs. Where that gives more than [`MAX_SHARDS`], the smallest of a bucket are
/// joined; a joined shard runs no more jobs at a time than the label with the smallest share may.
///
/// # Errors
/// One envelope that is too large for a shard of its own.
pub fn cut<'e>(buckets: &'e Buckets, limits: &MaxParallel) -> Result<Vec<Shard<'e>>, Problem> {
    let mut pieces = Vec::new();
    for evals in [false, true] {
        let mut side = Vec::new();
        for (bucket, envelopes) in buckets.iter().filter(|(bucket, _)| bucket.is_eval() == evals) {
            side.extend(by_label(*bucket, envelopes)?);
        }
        // The canary takes one place.
        while side.len() >= MAX_SHARDS && join_smallest(&mut side) {}
        pieces.extend(side);
    }
    pieces.sort_by_key(|piece| (piece.bucket, piece.jobs.first().map(|job| job.index)));
    let parallel = max_parallel(&pieces, limits);
    let shard = |(piece, max_parallel): (Piece<'e>, u64)| Shard {
        bucket: piece.bucket,
        jobs: piece.jobs.into_iter().map(|job| job.envelope).collect(),
        max_parallel,
    };
    Ok(pieces.into_iter().zip(parallel).map(shard).collect())
}

/// A job, with its place in its bucket.
struct Job<'e> {
    index: usize,
    envelope: &'e Envelope,
}

/// A shard in the making.
struct Piece<'e> {
    bucket: Bucket,
    jobs: Vec<Job<'e>>,
    bytes: usize,
}

impl Piece<'_> {
    fn fits(&self, jobs: usize, bytes: usize) -> bool {
        self.jobs.len() + jobs <= MAX_SHARD_JOBS && self.bytes + bytes <= MAX_SHARD_BYTES
    }

    /// Its jobs by label.
    fn labels(&self) -> IndexMap<&str, u64> {
        let mut labels = IndexMap::new();
        for job in &self.jobs {
            *labels.entry(job.envelope.runs_on.as_str()).or_default() += 1;
        }
        labels
    }
}

/// The jobs of each label, cut where a matrix is full.
fn by_label(bucket: Bucket, envelopes: &[Envelope]) -> Result<Vec<Piece<'_>>, Problem> {
    let mut labels: IndexMap<&str, Vec<Piece<'_>>> = IndexMap::new();
    for (index, envelope) in envelopes.iter().enumerate() {
        let bytes = size(envelope)?;
        let pieces = labels.entry(&envelope.runs_on).or_default();
        if !pieces.last().is_some_and(|piece| piece.fits(1, bytes)) {
            pieces.push(Piece {
                bucket,
                jobs: Vec::new(),
                bytes: 0,
            });
        }
        if let Some(piece) = pieces.last_mut() {
            piece.jobs.push(Job { index, envelope });
            piece.bytes += bytes;
        }
    }
    Ok(labels.into_values().flatten().collect())
}

/// The UTF-16 bytes that an envelope takes in a shard.
fn size(envelope: &Envelope) -> Result<usize, Problem> {
    let text = serde_json::to_string(envelope)
        .map_err(|error| findings::ROW.file("", format!("an envelope cannot be written: {error}")))?;
    // The comma or bracket beside it counts too.
    let size = utf16_bytes(&text) + 4;
    if size > MAX_SHARD_BYTES {
        let name = &envelope.name;
        let message = format!("the job `{name}` takes {size} bytes, a matrix holds {MAX_SHARD_BYTES}");
        return Err(findings::ROW.file("", message).hint("shorten its additional-settings"));
    }
    Ok(size)
}

/// Joins the two smallest pieces that stand in one bucket and fit one matrix; false where no two do.
fn join_smallest(pieces: &mut Vec<Piece<'_>>) -> bool {
    pieces.sort_by_key(|piece| (piece.bucket, piece.jobs.len()));
    let pair = pieces
        .windows(2)
        .enumerate()
        .filter(|(_, pair)| pair[0].bucket == pair[1].bucket && pair[0].fits(pair[1].jobs.len(), pair[1].bytes))
        .min_by_key(|(_, pair)| pair[0].jobs.len() + pair[1].jobs.len());
    let Some((at, _)) = pair else { return false };
    let other = pieces.remove(at + 1);
    let piece = &mut pieces[at];
    piece.bytes += other.bytes;
    piece.jobs.extend(other.jobs);
    piece.jobs.sort_by_key(|job| job.index);
    true
}

/// How many jobs of each piece run at a time: no more than each label's share allows.
fn max_parallel(pieces: &[Piece<'_>], limits: &MaxParallel) -> Vec<u64> {
    let mut labels: IndexMap<&str, Vec<(usize, u64)>> = IndexMap::new();
    for (at, piece) in pieces.iter().enumerate() {
        for (label, jobs) in piece.labels() {
            labels.entry(label).or_default().push((at, jobs));
        }
    }
    // As many as there are, until a label allows less.
    let mut parallel: Vec<u64> = pieces.iter().map(|piece| piece.jobs.len() as u64).collect();
    for (label, of_label) in labels {
        let jobs: Vec<u64> = of_label.iter().map(|(_, jobs)| *jobs).collect();
        for ((at, jobs), share) in of_label.iter().zip(shares(limits.of(label), &jobs)) {
            // A label whose jobs there may all run at once is no reason to hold the others back.
            if share < *jobs {
                parallel[*at] = parallel[*at].min(share);
            }
        }
    }
    parallel
}

/// A label's limit, shared out among its shards: one each, for a matrix cannot stand still, and each further one to the
/// shard that has the most jobs for each it has got.
fn shares(limit: u64, jobs: &[u64]) -> Vec<u64> {
    let mut shares = vec![1; jobs.len()];
    for _ in jobs.len() as u64..limit {
        let hungry = (0..jobs.len()).filter(|at| shares[*at] < jobs[*at]);
        let Some(next) = hungry.min_by(|a, b| (jobs[*b] * shares[*a]).cmp(&(jobs[*a] * shares[*b]))) else {
            break;
        };
        shares[next] += 1;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_shared_out_by_jobs() {
        assert_eq!(shares(8, &[10, 10]), [4, 4]);
        assert_eq!(shares(8, &[30, 10]), [6, 2]);
        assert_eq!(shares(8, &[100, 1]), [7, 1]);
        assert_eq!(shares(8, &[3, 2]), [3, 2]);
        assert_eq!(shares(2, &[5, 5, 5]), [1, 1, 1]);
        assert_eq!(shares(1, &[5]), [1]);
    }
}
