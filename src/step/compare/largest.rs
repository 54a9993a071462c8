//! What changed most of a comparison, for those who read no more than a few lines.

use super::{Comparison, Metric, Performance, Score};

/// The change in percent from which on a metric has changed; less is the noise of any measurement.
const NOISE_PERCENT: f64 = 1.0;
/// The change in standard errors from which on a score has.
const NOISE_ERRORS: f64 = 1.0;

/// What changed, the largest first.
#[derive(Debug)]
pub(crate) struct Largest<'c> {
    /// Points, each with the metric that changed most.
    pub points: Vec<(&'c Performance, &'c Metric)>,
    /// Scores.
    pub scores: Vec<&'c Score>,
    /// Points and scores that did not change beyond noise.
    pub unchanged: usize,
}

/// What changed of a comparison beyond noise, for better or worse, the largest change first.
#[must_use]
pub(crate) fn of(comparison: &Comparison) -> Largest<'_> {
    let most = |performance: &'_ Performance| -> Option<usize> {
        let metrics = performance.metrics.iter().enumerate();
        let largest = metrics.max_by(|(_, a), (_, b)| a.change_percent.abs().total_cmp(&b.change_percent.abs()));
        largest.map(|(index, _)| index)
    };
    let mut points: Vec<(&Performance, &Metric)> = comparison
        .points
        .iter()
        .filter_map(|point| Some((point, &point.metrics[most(point)?])))
        .filter(|(_, metric)| metric.change_percent.abs() >= NOISE_PERCENT)
        .collect();
    points.sort_by(|(_, a), (_, b)| b.change_percent.abs().total_cmp(&a.change_percent.abs()));
    // Without a standard error nobody knows what is noise: every change counts, in points of a percent.
    let size = |score: &Score| score.change_in_se.unwrap_or(score.change * 100.0).abs();
    let mut scores: Vec<&Score> = comparison
        .scores
        .iter()
        .filter(|score| size(score) >= NOISE_ERRORS)
        .collect();
    scores.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let all = comparison.points.len() + comparison.scores.len();
    Largest {
        unchanged: all - points.len() - scores.len(),
        points,
        scores,
    }
}
