//! The little statistics that floors need.

/// How often a standard normal value is below `z`, 0 to 1.
///
/// Abramowitz and Stegun, 7.1.26; the error is below 1.5e-7.
#[must_use]
pub(crate) fn normal_below(z: f64) -> f64 {
    let x = z.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let terms = [
        0.254_829_592,
        -0.284_496_736,
        1.421_413_741,
        -1.453_152_027,
        1.061_405_429,
    ];
    let sum = terms.iter().rev().fold(0.0, |sum, term| (sum + term) * t);
    let tail = sum * (-x * x).exp() / 2.0;
    if z < 0.0 { tail } else { 1.0 - tail }
}

/// How often a value of Student's t with `freedom` degrees of freedom lies within `-t` and `t`, 0 to 1.
///
/// Abramowitz and Stegun, 26.7.3 and 26.7.4: exact for whole degrees.
fn student_within(t: f64, freedom: u64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "degrees of freedom are counts of runs")]
    let degrees = freedom as f64;
    let angle = (t / degrees.sqrt()).atan();
    let (sin, cos) = angle.sin_cos();
    let is_odd = freedom % 2 == 1;
    let (mut term, mut sum) = if is_odd { (cos, cos) } else { (1.0, 1.0) };
    let mut k = if is_odd { 3.0 } else { 2.0 };
    while k < degrees - 1.0 + 1e-9 {
        term *= (k - 1.0) / k * cos * cos;
        sum += term;
        k += 2.0;
    }
    match (is_odd, freedom) {
        (true, 1) => 2.0 * angle / std::f64::consts::PI,
        (true, _) => 2.0 * (angle + sin * sum) / std::f64::consts::PI,
        (false, _) => sin * sum,
    }
}

/// The `t` that Student's t with `freedom` degrees of freedom exceeds at a rate, above 0 and below one half.
#[must_use]
pub(crate) fn student_above(rate: f64, freedom: u64) -> f64 {
    let exceeds = |t: f64| (1.0 - student_within(t, freedom)) / 2.0 > rate;
    let mut high = 1.0;
    while exceeds(high) && high < 1e12 {
        high *= 2.0;
    }
    let mut low = 0.0;
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if exceeds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The mean of some values, and their standard deviation as a sample of more; `None` of fewer than two.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "values are counted far below 2^53")]
pub(crate) fn mean_and_spread(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < 2 {
        return None;
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((mean, (squares / (count - 1.0)).sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn near(found: f64, wanted: f64, by: f64) {
        assert!((found - wanted).abs() < by, "{found} is not {wanted}");
    }

    #[test]
    fn the_normal_and_students_t_are_those_of_the_tables() {
        for (z, below) in [
            (0.0, 0.5),
            (-1.0, 0.158_655),
            (-1.644_854, 0.05),
            (-2.0, 0.022_750),
            (1.959_964, 0.975),
        ] {
            near(normal_below(z), below, 1e-6);
        }
        for (rate, freedom, t) in [
            (0.05, 1, 6.3138),
            (0.05, 2, 2.9200),
            (0.05, 3, 2.3534),
            (0.01, 4, 3.7469),
            (0.01, 5, 3.3649),
            (0.01, 9, 2.8214),
            (0.01, 10, 2.7638),
            (0.001, 30, 3.3852),
            (0.025, 120, 1.9799),
        ] {
            near(student_above(rate, freedom), t, 6e-5);
        }
    }

    #[test]
    fn a_spread_is_that_of_a_sample() {
        let (mean, spread) = mean_and_spread(&[0.95, 0.96, 0.94]).expect("three values");
        near(mean, 0.95, 1e-12);
        near(spread, 0.01, 1e-12);
        assert_eq!(mean_and_spread(&[0.5]), None);
    }
}
