//! Statistics of a list of numbers.

use serde::Serialize;

/// Mean, percentiles and spread; of an empty list nothing, which is written as `{}`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Statistics {
    #[serde(flatten)]
    pub values: Option<Values>,
}

/// The statistics of a list that holds something.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Values {
    pub mean: f64,
    pub p50: f64,
    pub p75: f64,
    pub p90: f64,
    pub p95: f64,
    /// The population's standard deviation.
    pub std: f64,
}

impl Statistics {
    /// The statistics of a list.
    pub(super) fn of(list: &[f64]) -> Self {
        Self::with_zeros(list, 0)
    }

    /// The statistics of a list of numbers that are not negative and so many zeros beside it; without zeros the list may
    /// hold any finite number.
    pub(super) fn with_zeros(list: &[f64], zeros: u64) -> Self {
        let mut sorted = list.to_vec();
        sorted.sort_by(f64::total_cmp);
        let count = float(sorted.len() as u64 + zeros);
        if count == 0.0 {
            return Self::default();
        }
        let at = |index: u64| {
            let behind = usize::try_from(index.saturating_sub(zeros)).unwrap_or(usize::MAX);
            if index < zeros {
                0.0
            } else {
                sorted[behind.min(sorted.len() - 1)]
            }
        };
        let percentile = |percent: f64| {
            let place = (count - 1.0) * percent / 100.0;
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a place in a list"
            )]
            let below = place.floor() as u64;
            let (low, share) = (at(below), place - place.floor());
            // The last value has no neighbour above.
            if share == 0.0 {
                low
            } else {
                low + (at(below + 1) - low) * share
            }
        };
        let mean = sorted.iter().sum::<f64>() / count;
        Self {
            values: Some(Values {
                mean,
                p50: percentile(50.0),
                p75: percentile(75.0),
                p90: percentile(90.0),
                p95: percentile(95.0),
                std: deviation(&sorted, zeros, mean),
            }),
        }
    }

    /// Rates from statistics of times: 1 / each statistic, so that p95 is the slow tail. The spread is that of 1 / each
    /// time.
    pub(super) fn inverse(times: &[f64]) -> Self {
        let rates: Vec<f64> = times.iter().map(|time| 1.0 / time).collect();
        let spread = Self::of(&rates);
        let inverted = Self::of(times)
            .values
            .zip(spread.values)
            .map(|(of_times, of_rates)| Values {
                mean: 1.0 / of_times.mean,
                p50: 1.0 / of_times.p50,
                p75: 1.0 / of_times.p75,
                p90: 1.0 / of_times.p90,
                p95: 1.0 / of_times.p95,
                std: of_rates.std,
            });
        Self { values: inverted }
    }
}

/// The population's deviation from a mean. One value has none, whatever the mean was rounded to.
fn deviation(list: &[f64], zeros: u64, mean: f64) -> f64 {
    let count = list.len() as u64 + zeros;
    if count < 2 {
        return 0.0;
    }
    let squares: f64 = list.iter().map(|value| (value - mean).powi(2)).sum();
    ((squares + float(zeros) * mean.powi(2)) / float(count)).sqrt()
}

#[allow(clippy::cast_precision_loss, reason = "no replay has 2^53 requests")]
fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_between_neighbours_and_the_spread_is_the_populations() {
        let found = Statistics::of(&[4.0, 1.0, 3.0, 2.0]).values.expect("some");
        assert_eq!((found.mean, found.p50, found.p75), (2.5, 2.5, 3.25));
        assert!(
            (found.p90 - 3.7).abs() < 1e-12 && (found.p95 - 3.85).abs() < 1e-12,
            "{found:?}"
        );
        assert!((found.std - 1.25_f64.sqrt()).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn zeros_beside_a_list_count_like_zeros_in_it() {
        let sparse = Statistics::with_zeros(&[2.0, 1.0, 5.0], 4);
        assert_eq!(sparse, Statistics::of(&[0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 5.0]));
        assert_eq!(
            Statistics::with_zeros(&[], 3).values.map(|v| (v.mean, v.p95, v.std)),
            Some((0.0, 0.0, 0.0))
        );
    }

    #[test]
    fn of_nothing_there_is_nothing_and_of_one_value_no_spread() {
        assert_eq!(serde_json::to_string(&Statistics::of(&[])).expect("JSON"), "{}");
        assert_eq!(Statistics::of(&[0.1]).values.map(|v| (v.p95, v.std)), Some((0.1, 0.0)));
    }

    #[test]
    fn the_inverse_keeps_the_slow_tail_at_p95() {
        let found = Statistics::inverse(&[0.01, 0.03]).values.expect("some");
        assert!(
            (found.mean - 50.0).abs() < 1e-9 && (found.p95 - 1.0 / 0.029).abs() < 1e-9,
            "{found:?}"
        );
        // The rates are 100 and 33.3: each is half of their difference from the middle.
        assert!((found.std - (100.0 - 100.0 / 3.0) / 2.0).abs() < 1e-9, "{found:?}");
    }
}
