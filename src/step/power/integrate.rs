//! Energy from samples of power, by trapezoids.

use super::telemetry::Sample;

/// The longest time between two samples that still says what was drawn between them, in seconds.
const MAX_GAP: f64 = 3.0;

/// What the samples of one GPU give.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Found {
    /// What is wrong with them.
    pub issue: Option<&'static str>,
    /// The longest gap over the window in seconds, and the energy in joules.
    pub measured: Option<(f64, f64)>,
}

/// Samples by time; those of one time are one, the mean of their powers.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "no file has 2^53 lines")]
#[allow(clippy::float_cmp, reason = "the same text is the same time")]
pub(super) fn merged(mut samples: Vec<Sample>) -> Vec<Sample> {
    sort(&mut samples);
    let same_time = samples.chunk_by(|a, b| a.0 == b.0);
    let mean = |group: &[Sample]| group.iter().map(|(_, power)| power).sum::<f64>() / group.len() as f64;
    same_time.map(|group| (group[0].0, mean(group))).collect()
}

/// By time, then power.
pub(super) fn sort(samples: &mut [Sample]) {
    samples.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
}

/// The area under sorted samples, in joules.
#[must_use]
pub(super) fn trapezoids(samples: &[Sample]) -> f64 {
    let areas = samples
        .windows(2)
        .map(|pair| (pair[1].0 - pair[0].0) * f64::midpoint(pair[0].1, pair[1].1));
    areas.sum()
}

/// The energy from start to end, of sorted samples at different times.
#[must_use]
pub(super) fn over(samples: &[Sample], start: f64, end: f64) -> Found {
    if samples.len() < 2 {
        return Found {
            issue: Some("insufficient_power_samples"),
            measured: None,
        };
    }
    let before = samples.iter().rposition(|(time, _)| *time <= start);
    let after = samples.iter().position(|(time, _)| *time >= end);
    let (Some(before), Some(after)) = (before, after) else {
        return Found {
            issue: Some("benchmark_window_not_bracketed"),
            measured: None,
        };
    };
    let bracket = &samples[before..=after];
    let gap = bracket.windows(2).map(|pair| pair[1].0 - pair[0].0).fold(0.0, f64::max);
    let inside = bracket.iter().copied().filter(|(time, _)| *time > start && *time < end);
    let mut curve = vec![(start, at(bracket, start))];
    curve.extend(inside);
    curve.push((end, at(bracket, end)));
    Found {
        issue: (gap > MAX_GAP).then_some("sampling_gap_exceeded"),
        measured: Some((gap, trapezoids(&curve))),
    }
}

/// The power at a time between the first sample and the last.
fn at(samples: &[Sample], time: f64) -> f64 {
    let next = samples.partition_point(|(t, _)| *t < time);
    let (Some(&(after, high)), Some(&(before, low))) = (samples.get(next), samples.get(next.saturating_sub(1))) else {
        return samples.last().map_or(0.0, |(_, power)| *power);
    };
    if after <= before {
        return high;
    }
    low + (high - low) * (time - before) / (after - before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders_are_interpolated() {
        let samples = [(0.0, 100.0), (2.0, 300.0), (4.0, 100.0)];
        let found = over(&samples, 1.0, 3.0);
        assert_eq!(
            found,
            Found {
                issue: None,
                measured: Some((2.0, 500.0))
            }
        );
        assert_eq!(over(&samples, 0.0, 4.0).measured, Some((2.0, 800.0)));
    }

    #[test]
    fn exactly_the_longest_gap_passes() {
        let found = |gap: f64| over(&[(0.0, 1.0), (gap, 1.0), (gap + 1.0, 1.0)], 0.5, gap + 0.5).issue;
        assert_eq!(found(3.0), None);
        assert_eq!(found(3.001), Some("sampling_gap_exceeded"));
    }

    #[test]
    fn a_window_that_is_not_covered_has_no_energy() {
        let samples = [(1.0, 1.0), (2.0, 1.0)];
        for (start, end) in [(0.5, 1.5), (1.5, 2.5)] {
            assert_eq!(over(&samples, start, end).issue, Some("benchmark_window_not_bracketed"));
            assert_eq!(over(&samples, start, end).measured, None);
        }
        assert_eq!(over(&samples[..1], 1.0, 1.0).issue, Some("insufficient_power_samples"));
    }

    #[test]
    fn samples_of_one_time_are_one() {
        let samples = vec![(2.0, 4.0), (1.0, 10.0), (2.0, 6.0)];
        assert_eq!(merged(samples), [(1.0, 10.0), (2.0, 5.0)]);
    }
}
