//! How many records there are, and why some of them do not count.

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::Value;

/// The longest category that is taken from a message, in characters.
const MAX_CATEGORY: usize = 120;
/// The category of an error that says nothing.
const UNKNOWN: &str = "unknown";

/// What became of the records.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[allow(clippy::struct_field_names, reason = "named as published")]
pub(super) struct Accounting {
    /// All of them.
    pub records_total: u64,
    /// Those that count.
    pub records_profiled: u64,
    /// Those that do not.
    pub records_dropped_total: u64,
    /// Those of the warm-up.
    pub records_warmup_dropped: u64,
    /// Those that failed; one of the warm-up counts in both.
    pub records_error_dropped: u64,
    /// How many failed in which way.
    pub error_categories: IndexMap<String, u64>,
}

impl Accounting {
    /// Counts a record; whether it is good.
    pub(super) fn count(&mut self, warm_up: bool, error: &Value) -> bool {
        let failed = is_failure(error);
        self.records_total += 1;
        self.records_warmup_dropped += u64::from(warm_up);
        if failed {
            self.records_error_dropped += 1;
            *self.error_categories.entry(category(error)).or_default() += 1;
        }
        let good = !warm_up && !failed;
        self.records_profiled += u64::from(good);
        self.records_dropped_total += u64::from(!good);
        good
    }
}

fn is_failure(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => false,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(true) | Value::Array(_) => true,
    }
}

/// What kind of error it is, in as few words as it says so itself.
fn category(error: &Value) -> String {
    let said = match error {
        Value::Object(fields) => {
            let first = |names: &[&str]| {
                let named = names.iter().filter_map(|name| fields.get(*name));
                named.filter(|value| !is_empty(value)).map(text).next()
            };
            if let Some(kind) = first(&["type", "error_type", "code", "class", "status"]) {
                return kind;
            }
            first(&["message", "error"]).unwrap_or_default()
        }
        other => text(other),
    };
    let line = said.trim().lines().next().unwrap_or_default();
    let start: String = line
        .split(':')
        .next()
        .unwrap_or_default()
        .chars()
        .take(MAX_CATEGORY)
        .collect();
    if start.is_empty() { UNKNOWN.to_owned() } else { start }
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_str() == Some("")
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_error_is_called_by_the_first_name_that_it_gives_itself() {
        let long = "x".repeat(200);
        let cases = [
            (
                json!({"type": null, "error_type": "", "code": 503, "class": "C"}),
                "503",
            ),
            (json!({"class": "Timeout", "status": 1}), "Timeout"),
            (json!({"status": "late: very"}), "late: very"),
            (json!({"message": " Reset: by peer\nmore", "error": "other"}), "Reset"),
            (json!({"message": null, "error": "Refused\nby: all"}), "Refused"),
            (json!({"message": "", "note": "n"}), "unknown"),
            (json!("  Broken pipe : x"), "Broken pipe "),
            (json!(": nothing before"), "unknown"),
            (json!("  "), "unknown"),
            (json!(true), "true"),
            (json!(7), "7"),
            (json!(long), &long[..120]),
        ];
        for (error, wanted) in cases {
            assert_eq!(category(&error), wanted, "{error}");
        }
    }

    #[test]
    fn what_is_empty_is_no_error() {
        for error in [json!(null), json!(false), json!(0), json!(0.0), json!(""), json!({})] {
            assert!(!is_failure(&error), "{error}");
        }
        for error in [json!(true), json!(1), json!(" "), json!({"a": null})] {
            assert!(is_failure(&error), "{error}");
        }
    }
}
