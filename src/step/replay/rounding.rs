//! The last step: numbers as they are published.

use serde_json::{Number, Value};

/// Places behind the point.
const PLACES: usize = 5;
/// 2^53: beyond it a double skips whole numbers.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Rounds every number that is not whole to five places, as a correctly rounded decimal of its binary value.
pub(super) fn round(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(rounded) = number.as_f64().filter(|_| number.is_f64()).and_then(rounded) {
                *number = rounded;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(round),
        Value::Object(fields) => fields.values_mut().for_each(round),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

fn rounded(value: f64) -> Option<Number> {
    // Formatting rounds the exact binary value; multiplying and dividing by powers of ten would round three times.
    let value: f64 = if value.fract() == 0.0 {
        value
    } else {
        format!("{value:.PLACES$}").parse().ok()?
    };
    if value.fract() == 0.0 && value.abs() < EXACT {
        #[allow(clippy::cast_possible_truncation, reason = "whole and in range")]
        return Some(Number::from(value as i64));
    }
    Number::from_f64(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_rounded_once_and_whole_ones_stay() {
        // 1.000005 is a little above its tie in binary, 2.000015 a little below: products with 1e5 lose that.
        let mut value = json!({"a": [1.000_005, 2.000_015, 0.1, 3.0, -0.000_001, 1e300, 7], "b": "x", "c": null});
        round(&mut value);
        assert_eq!(
            value,
            json!({"a": [1.00001, 2.00001, 0.1, 3, 0, 1e300, 7], "b": "x", "c": null})
        );
    }
}
