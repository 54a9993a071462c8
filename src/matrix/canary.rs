//! The canary: the one job that runs before a sweep fans out.

use super::bucket::{Bucket, Buckets};

/// The buckets that a canary is taken from: throughput of fixed sequences on one node.
const CANDIDATES: [Bucket; 3] = [Bucket::SingleNode1k1k, Bucket::SingleNode8k1k, Bucket::SingleNodeOther];

/// Moves the job of the lowest concurrency that runs no eval to a bucket of its own, the first of several. A plan
/// without such a job has no canary.
pub fn set_apart(buckets: &mut Buckets) {
    let mut lowest: Option<(u64, Bucket, usize)> = None;
    for bucket in CANDIDATES {
        for (index, envelope) in buckets.get(&bucket).into_iter().flatten().enumerate() {
            let Some(conc) = envelope.row.conc.points().first().copied() else {
                continue;
            };
            if !envelope.row.runs_eval() && lowest.is_none_or(|(known, ..)| conc < known) {
                lowest = Some((conc, bucket, index));
            }
        }
    }
    let Some((_, bucket, index)) = lowest else { return };
    let Some(envelopes) = buckets.get_mut(&bucket) else {
        return;
    };
    let canary = envelopes.remove(index);
    if envelopes.is_empty() {
        buckets.shift_remove(&bucket);
    }
    buckets.shift_insert(0, Bucket::Canary, vec![canary]);
}
