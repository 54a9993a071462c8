//! Whether a threshold that was meant for this job reaches it.

use std::path::PathBuf;

use super::Judge;
use crate::config::problem::Problem;
use crate::step::results::lm_eval::ResultFile;
use crate::step::results::meta::MetaEnv;

/// Finds keys of the thresholds that miss this job by their case, or name its model in full.
pub(super) fn check(
    judge: &Judge<'_>,
    meta: &MetaEnv,
    results: &[(&PathBuf, ResultFile)],
    problems: &mut Vec<Problem>,
) {
    let request = judge.request;
    let planned = request
        .envelope
        .as_ref()
        .map(|envelope| envelope.row.topology.model.as_str());
    let model = planned.or_else(|| meta.cell("model").text());
    let mut tasks: Vec<&str> = results
        .iter()
        .flat_map(|(_, result)| result.tasks())
        .map(|(task, _)| task)
        .collect();
    tasks.sort_unstable();
    tasks.dedup();
    problems.extend(request.thresholds.missed_keys(judge.prefix.as_deref(), model, &tasks));
}
