//! A program's own report as a result file in the form of lm-eval's, which gate and collector read.

use std::io;
use std::path::Path;

use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use crate::config::frameworks::{ReportMap, Suite};
use crate::step::results::{file, json};
use crate::step::stage;

/// The metric of every suite: the share of its checks that passed.
const METRIC: &str = "exact_match";

/// Whose results they are.
#[derive(Debug)]
pub(super) struct Names<'a> {
    /// The framework.
    pub framework: &'a str,
    /// The suite.
    pub suite: &'a str,
    /// The model that was asked; empty where none was.
    pub model: &'a str,
    /// The filter of its score.
    pub filter: &'a str,
    /// The limit on samples, where one was asked for and the suite takes one.
    pub limit: Option<u64>,
}

/// What a report says, and what is wrong with the run.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Findings {
    /// Checks that a whole report holds.
    pub expected: u64,
    /// Checks that were answered.
    pub answered: u64,
    /// The score, with what it is a share of.
    pub score: Option<(f64, u64)>,
    /// More shares.
    pub shares: Vec<(String, f64)>,
    /// Why the run is no measurement, whatever its score.
    pub errors: Vec<String>,
}

impl Findings {
    /// A run that left no report.
    #[must_use]
    pub(super) fn failed(why: String) -> Self {
        Self {
            errors: vec![why],
            ..Self::default()
        }
    }

    /// Reads the report in a folder.
    #[must_use]
    pub(super) fn read(map: &ReportMap, suite: &Suite, limit: Option<u64>, path: &Path) -> Self {
        let report: Result<Value, String> = match path.symlink_metadata() {
            Err(_) => Err("was not written".to_owned()),
            Ok(_) => file::read(path)
                .map_err(|error| format!("cannot be read: {error}"))
                .and_then(|bytes| json::parse(&bytes)),
        };
        match report {
            Ok(report) if report.is_object() => Self::of(map, suite, limit, &report),
            Ok(_) => Self::failed(format!("the report {} is no JSON object", map.file)),
            Err(why) => Self::failed(format!("the report {} {why}", map.file)),
        }
    }

    fn of(map: &ReportMap, suite: &Suite, limit: Option<u64>, report: &Value) -> Self {
        let wanted = suite.checks.min(limit.unwrap_or(suite.checks));
        let mut found = Self {
            expected: suite.checks,
            ..Self::default()
        };
        let mut sum = |places: &[String]| {
            sum(report, places).unwrap_or_else(|why| {
                found.errors.push(format!("the report {}: {why}", map.file));
                0
            })
        };
        let (checks, passed, unserved) = (sum(&map.checks), sum(&map.passed), sum(&map.unserved));
        let is_scored = map
            .unscored
            .as_ref()
            .is_none_or(|place| sum(std::slice::from_ref(place)) == 0);
        let of = if map.of.is_empty() { checks } else { sum(&map.of) };
        let shares: Vec<_> = map
            .shares
            .iter()
            .map(|(name, share)| (name.clone(), sum(&share.passed), sum(&share.of)))
            .collect();
        let rows = map.unserved_rows.as_ref().map(|rows| {
            let all = report.pointer(&rows.rows).and_then(Value::as_array).map(Vec::as_slice);
            let texts = all
                .unwrap_or_default()
                .iter()
                .filter_map(|row| row.pointer(&rows.text)?.as_str());
            texts.filter(|text| rows.is_one(text)).count() as u64
        });
        let unserved = unserved + rows.unwrap_or(0);
        found.shares = shares
            .into_iter()
            .filter_map(|(name, part, whole)| Some((name, share(part, whole)?)))
            .collect();
        found.answered = checks.saturating_sub(unserved).min(wanted);
        if checks != wanted {
            let what = if checks < wanted { "missing" } else { "unexpected" };
            found.errors.push(format!("checks are {what}: {checks} of {wanted}"));
        }
        if unserved > 0 {
            found
                .errors
                .push(format!("{unserved} of {checks} requests were not served"));
        }
        if passed > of {
            found
                .errors
                .push(format!("{passed} of {of} checks passed, which cannot be"));
        }
        // Where nothing is what the passed ones are a share of, nothing passed.
        found.score = (is_scored && checks > 0 && passed <= of).then(|| (share(passed, of).unwrap_or(0.0), of));
        found
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0 && part <= whole).then(|| part as f64 / whole as f64)
}

/// Whole numbers at several places, added up; a place that is not there counts as 0.
fn sum(report: &Value, places: &[String]) -> Result<u64, String> {
    places.iter().try_fold(0u64, |all, place| {
        let number = match report.pointer(place) {
            None | Some(Value::Null) => 0,
            Some(value) => value
                .as_u64()
                .ok_or_else(|| format!("`{place}` is {value}, no count"))?,
        };
        all.checked_add(number).ok_or_else(|| format!("`{place}` is too large"))
    })
}

/// Writes the result file into a folder.
///
/// # Errors
/// A folder that cannot be written.
pub(super) fn write(folder: &Path, names: &Names<'_>, findings: &Findings) -> io::Result<()> {
    let now = TimeZone::UTC.to_datetime(jiff::Timestamp::now());
    let file = now.strftime("results_%Y-%m-%dT%H-%M-%S.%6f.json").to_string();
    let text = result(names, findings).to_string();
    stage::write_into(folder, &file, |file| io::Write::write_all(file, text.as_bytes())).map(drop)
}

fn result(names: &Names<'_>, findings: &Findings) -> Value {
    let Names {
        framework,
        suite,
        model,
        filter,
        limit,
    } = names;
    let mut metrics = Map::new();
    metrics.insert("alias".to_owned(), json!(suite));
    if let Some((score, of)) = findings.score {
        metrics.insert(format!("{METRIC},{filter}"), json!(score));
        let stderr = match of {
            0 | 1 => json!("N/A"),
            of => json!((score * (1.0 - score) / (of - 1) as f64).sqrt()),
        };
        metrics.insert(format!("{METRIC}_stderr,{filter}"), stderr);
    }
    for (name, share) in &findings.shares {
        metrics.insert(format!("{name},none"), json!(share));
    }
    let mut result = json!({
        "results": {*suite: metrics},
        "configs": {*suite: {"task": suite, "metric_list": [{"metric": METRIC, "higher_is_better": true}]}},
        "n-samples": {*suite: {"original": findings.expected, "effective": findings.answered}},
        "eval_framework": framework,
        "eval_suite": suite,
        "model_name": model,
    });
    if let Some(limit) = limit {
        result["config"] = json!({"limit": limit});
    }
    if !findings.errors.is_empty() {
        result["integration_error"] = json!({"type": framework, "message": findings.errors.join("; ")});
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::frameworks::{EvalFrameworks, Framework};

    fn framework(name: &str) -> Framework {
        let (all, _) = EvalFrameworks::of(&[]).expect("the built-in file");
        all.frameworks[name].clone()
    }

    fn of(name: &str, suite: &str, report: &Value) -> Findings {
        let framework = framework(name);
        Findings::of(&framework.report, &framework.suites[suite], None, report)
    }

    #[test]
    fn a_whole_report_is_a_score() {
        let report = json!({"summary": {"total": 408, "by_status": {"passed": 306, "failed": 102}}, "results": []});
        let found = of("kimi-vendor", "kimi_tool_call_schema_full", &report);
        assert_eq!((found.score, found.answered), (Some((0.75, 408)), 408));
        assert_eq!(found.errors, [] as [&str; 0]);
        let none_called = json!({"success_count": 102, "failure_count": 0});
        let found = of("minimax-vendor", "minimax_m3_full", &none_called);
        assert_eq!((found.score, found.errors.len()), (Some((0.0, 0)), 0));
        assert_eq!(found.shares, [("tool_calls".to_owned(), 0.0)]);
    }

    #[test]
    fn what_is_no_measurement_is_said() {
        let row =
            |text: &str| json!({"message": format!("E AssertionError: a:1 [stream] (x) tool schema rejected: {text}")});
        let report = json!({"summary": {"total": 407, "by_status": {"passed": 1}}, "results": [
            row("Error code: 400 - no"), row("Error code: 500 - a fault"), row("Connection error."), {"message": ""}, 3]});
        let found = of("kimi-vendor", "kimi_tool_call_schema_full", &report);
        assert_eq!(
            found.errors,
            ["checks are missing: 407 of 408", "2 of 407 requests were not served"]
        );
        assert_eq!(found.answered, 405);
        let unserved = json!({"success_count": 0, "failure_count": 102});
        let found = of("minimax-vendor", "minimax_m3_full", &unserved);
        assert_eq!(found.errors, ["102 of 102 requests were not served"]);
        for (report, error) in [
            (
                json!({"total": 4, "correct": 5}),
                "5 of 4 checks passed, which cannot be",
            ),
            (json!({"total": 5, "correct": 4}), "checks are unexpected: 5 of 4"),
            (
                json!({"total": "4"}),
                "the report bfcl_report.json: `/total` is \"4\", no count",
            ),
            (json!({}), "checks are missing: 0 of 4"),
        ] {
            assert_eq!(of("bfcl", "bfcl_smoke", &report).errors[0], error);
        }
    }
}
