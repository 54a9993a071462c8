//! The counters of energy that a node was asked for before and after: a second opinion on the integral, which makes
//! nothing invalid.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::integrate::{sort, trapezoids};
use super::telemetry::{self, by_gpu, column, table};
use crate::step::results::file;

/// How far the integral may lie from the counters.
const TOLERANCE: f64 = 0.05;

/// What the counters say.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum CrossCheck {
    /// Why they say nothing.
    Unavailable {
        /// False.
        available: bool,
        /// Which snapshot is missing or no such file.
        reason: &'static str,
    },
    /// How far the two agree.
    Available(Comparison),
}

/// The two, in joules.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs, reason = "named as written, units included")]
pub(crate) struct Comparison {
    pub available: bool,
    pub accumulator_delta_j: f64,
    pub integrated_stream_j: f64,
    /// Null where the counters did not go up.
    pub relative_error: Option<f64>,
    pub within_tolerance: bool,
    pub tolerance: f64,
    pub per_gpu_delta_j: BTreeMap<String, f64>,
    pub integrated_gpu_ids: Vec<String>,
    /// GPUs of one snapshot alone.
    pub unmatched_gpus: Vec<String>,
    /// GPUs whose counter went down.
    pub negative_delta_gpus: Vec<String>,
    pub stream_span_s: f64,
}

/// Compares the samples of a file with the snapshots beside it; `None` where there are none.
#[must_use]
pub(super) fn check(samples: &Path) -> Option<CrossCheck> {
    let [start, end] = ["start", "end"].map(|which| beside(samples, which));
    let unavailable = |reason| {
        Some(CrossCheck::Unavailable {
            available: false,
            reason,
        })
    };
    let is_there = |path: &Path| path.symlink_metadata().is_ok();
    match (is_there(&start), is_there(&end)) {
        (false, false) => return None,
        (false, true) => return unavailable("missing_start_snapshot"),
        (true, false) => return unavailable("missing_end_snapshot"),
        (true, true) => {}
    }
    let Some(start) = snapshot(&start) else {
        return unavailable("unparseable_start_snapshot");
    };
    let Some(end) = snapshot(&end) else {
        return unavailable("unparseable_end_snapshot");
    };
    match telemetry::read(samples) {
        Ok(rows) => Some(CrossCheck::Available(compare(&start, &end, &rows))),
        Err(_) => unavailable("cross_check_error"),
    }
}

fn compare(start: &BTreeMap<String, f64>, end: &BTreeMap<String, f64>, rows: &telemetry::Rows) -> Comparison {
    let deltas: BTreeMap<String, f64> = start
        .iter()
        .filter_map(|(gpu, before)| Some((gpu.clone(), end.get(gpu)? - before)))
        .collect();
    let apart = |a: &BTreeMap<String, f64>, b: &BTreeMap<String, f64>| -> Vec<String> {
        a.keys().filter(|gpu| !b.contains_key(*gpu)).cloned().collect()
    };
    let mut unmatched = [apart(start, end), apart(end, start)].concat();
    let mut negative: Vec<String> = deltas
        .iter()
        .filter(|(_, delta)| **delta < 0.0)
        .map(|(gpu, _)| gpu.clone())
        .collect();
    let mut integrated = Vec::new();
    let (mut energy, mut first, mut last) = (0.0, f64::INFINITY, f64::NEG_INFINITY);
    for (gpu, mut samples) in rows.all().into_iter().filter(|(gpu, _)| deltas.contains_key(*gpu)) {
        sort(&mut samples);
        energy += trapezoids(&samples);
        first = samples.first().map_or(first, |(time, _)| first.min(*time));
        last = samples.last().map_or(last, |(time, _)| last.max(*time));
        integrated.push(gpu.to_owned());
    }
    for gpus in [&mut unmatched, &mut negative, &mut integrated] {
        gpus.sort_by(|a, b| by_gpu(a, b));
    }
    let delta: f64 = deltas.values().sum();
    let error = (delta > 0.0).then(|| (delta - energy).abs() / delta);
    Comparison {
        available: true,
        accumulator_delta_j: delta,
        integrated_stream_j: energy,
        relative_error: error,
        within_tolerance: negative.is_empty() && error.is_some_and(|error| error <= TOLERANCE),
        tolerance: TOLERANCE,
        per_gpu_delta_j: deltas,
        stream_span_s: if integrated.is_empty() { 0.0 } else { last - first },
        integrated_gpu_ids: integrated,
        unmatched_gpus: unmatched,
        negative_delta_gpus: negative,
    }
}

/// `gpu_metrics_energy_start.csv` for `gpu_metrics.csv`.
fn beside(samples: &Path, which: &str) -> PathBuf {
    let stem = samples.file_stem().unwrap_or_default().to_string_lossy();
    samples.with_file_name(format!("{stem}_energy_{which}.csv"))
}

/// The counters by GPU, in joules; `None` for a file that has none.
fn snapshot(path: &Path) -> Option<BTreeMap<String, f64>> {
    let lines = table(&file::read(path).ok()?)?;
    let header = lines.first()?;
    let gpu = column(header, |name| name == "gpu")?;
    let energy = column(header, |name| name == "total_energy_consumption")?;
    let counters: BTreeMap<String, f64> = lines[1..]
        .iter()
        .filter_map(|line| {
            let counter: f64 = line
                .get(energy)?
                .parse()
                .ok()
                .filter(|counter: &f64| counter.is_finite())?;
            let gpu = line.get(gpu).filter(|gpu| !gpu.is_empty())?;
            Some((gpu.clone(), counter))
        })
        .collect();
    (!counters.is_empty()).then_some(counters)
}
