//! Whether a threshold that was meant for this job reaches it.

use super::Judge;
use crate::config::problem::Problem;
use crate::step::results::lm_eval::ResultFile;
use crate::step::results::meta::MetaEnv;

/// Finds keys of the thresholds that miss this job by their case, or name its model in full.
pub(super) fn check<'r>(
    judge: &Judge<'_>,
    meta: &MetaEnv,
    results: impl Iterator<Item = &'r ResultFile>,
    problems: &mut Vec<Problem>,
) {
    let request = judge.request;
    let planned = request
        .envelope
        .as_ref()
        .map(|envelope| envelope.row.topology.model.as_str());
    let model = planned.or_else(|| meta.cell("model").text());
    let mut tasks: Vec<&str> = results.flat_map(ResultFile::tasks).map(|(task, _)| task).collect();
    tasks.sort_unstable();
    tasks.dedup();
    problems.extend(request.thresholds.missed_keys(judge.prefix.as_deref(), model, &tasks));
}
