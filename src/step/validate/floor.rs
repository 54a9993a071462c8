//! What a score is held against: a task's floor, or where less is better its ceiling.

use super::report::Bound;
use super::{Judge, Limit};
use crate::config::thresholds::{Calibrated, Threshold};
use crate::step::results::lm_eval::ResultFile;

/// A floor or a ceiling.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Floor {
    pub bound: Bound,
    pub value: f64,
    /// Where it stands, and how it was scaled.
    pub source: String,
}

/// What a task's score is held against; `None` where its threshold has nothing for this direction.
pub(super) fn of(judge: &Judge<'_>, result: &ResultFile, task: &str, less_is_better: bool) -> Option<Floor> {
    let threshold = judge.threshold(task);
    let bound = match less_is_better {
        true => Bound::Max,
        false => Bound::Min,
    };
    let value = match (bound, threshold) {
        (Bound::Max, threshold) => threshold?.max()?,
        (Bound::Min, Some(threshold)) => threshold.min_score()?,
        (Bound::Min, None) => judge.request.min_score,
    };
    let source = judge.source(task);
    let is_limited = judge.request.limit(result) != Limit::None;
    let calibrated = threshold.and_then(Threshold::calibrated).filter(|_| is_limited);
    let Some((samples, count, scaled)) = calibrated.and_then(|c| scaled(c, value, result.effective(task)?)) else {
        return Some(Floor { bound, value, source });
    };
    Some(Floor {
        bound,
        value: scaled,
        source: format!("{source}: {value} of {samples} samples, scaled to the {count} that were judged"),
    })
}

/// The bound that a published score is held against, by the rules of [`of`]: `count` samples were judged of a run with a
/// limit, `None` of one without. `None` where the threshold has nothing for this direction.
pub(crate) fn of_published(threshold: Option<&Threshold>, bound: Bound, count: Option<f64>) -> Option<f64> {
    let value = match (bound, threshold) {
        (Bound::Max, threshold) => threshold?.max()?,
        (Bound::Min, Some(threshold)) => threshold.min_score()?,
        (Bound::Min, None) => super::MIN_SCORE,
    };
    let calibrated = threshold.and_then(Threshold::calibrated).zip(count);
    let scaled = calibrated.and_then(|(calibrated, count)| scaled(calibrated, value, count));
    Some(scaled.map_or(value, |(_, _, scaled)| scaled))
}

/// A bound that was calibrated on runs of `samples`, for a run of `count`: chance moves a score by the root of the
/// counts' ratio further from its mean. With both counts.
#[allow(clippy::cast_precision_loss, reason = "counts of samples stay far below 2^53")]
fn scaled(calibrated: &Calibrated, value: f64, count: f64) -> Option<(u64, f64, f64)> {
    let (mean, samples) = (calibrated.mean?, calibrated.samples?);
    let ratio = (samples as f64 / count).sqrt();
    // Without samples the ratio is no number that a floor can have.
    let scaled = mean - (mean - value) * ratio;
    scaled.is_finite().then_some((samples, count, scaled.max(0.0)))
}

/// What is known about the runs that a threshold was calibrated on.
pub(super) fn calibration(threshold: &Threshold) -> String {
    let Some(calibrated) = threshold.calibrated() else {
        return String::new();
    };
    match (calibrated.mean, calibrated.spread, calibrated.samples) {
        (Some(mean), Some(spread), Some(samples)) => {
            format!("; calibrated on a mean of {mean}, a spread of {spread}, {samples} samples")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_widens_with_the_root_of_the_counts() {
        let calibrated = Calibrated {
            min_score: Some(0.93),
            mean: Some(0.953),
            spread: Some(0.006),
            samples: Some(1319),
            ..Calibrated::default()
        };
        let floor = |count| scaled(&calibrated, 0.93, count).map(|(.., floor)| floor);
        assert!((floor(1319.0).expect("a floor") - 0.93).abs() < 1e-12);
        // 0.953 - 0.023 x sqrt(1319 / 125)
        assert!((floor(125.0).expect("a floor") - 0.878_288).abs() < 1e-6);
        assert!((floor(4.0 * 1319.0).expect("a floor") - 0.9415).abs() < 1e-12);
        // Nothing is below 0, and no run without samples has a floor.
        assert_eq!(floor(0.5), Some(0.0));
        assert_eq!(floor(0.0), None);
    }
}
