//! Replays with right answers, where they stand beside the project.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::corpus::corpus;
use crate::support::{assert_none, misses, stderr, sweepctl};

/// Numbers agree within this share of their size.
const TOLERANCE: f64 = 1e-6;
/// Objects that hold nothing but what is expected: statistics, and maps by name.
const CLOSED: [&str; 19] = [
    "error_categories",
    "cached_tokens_by_source",
    "raw",
    "qps",
    "ttft",
    "e2el",
    "itl",
    "tpot",
    "intvty",
    "e2e_norm_intvty",
    "full_response_itl",
    "full_response_intvty",
    "input",
    "output_actual",
    "output_expected",
    "throughput",
    "kv_offload_backend",
    "dataset",
    "per_gpu",
];

#[test]
fn every_case_of_the_corpus_is_answered_right() {
    let Some(corpus) = corpus() else { return };
    let entries = std::fs::read_dir(corpus.join("agentic")).expect("the set");
    let folders = entries.map(|entry| entry.expect("an entry").path());
    let mut cases: Vec<PathBuf> = folders.filter(|path| path.is_dir()).collect();
    cases.sort();
    let found = misses(&cases, |case| {
        let missed = miss(case)?;
        Some(format!("{}: {missed}", case.file_name()?.display()))
    });
    assert_none("replays", cases.len(), &found);
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON")
}

fn miss(case: &Path) -> Option<String> {
    let out = tempfile::tempdir().expect("a folder");
    let mut command = sweepctl(case);
    for name in ["RESULT_FILENAME", "RUNNER_NAME", "HF_HUB_CACHE"] {
        command.env(name, read(&case.join("env.json"))[name].as_str().expect("a text"));
    }
    command.args([
        "result",
        "process",
        "--envelope",
        "envelope.json",
        "--replay",
        "replay",
        "--out",
    ]);
    let output = command.arg(out.path()).output().expect("the binary runs");
    let result = out.path().join("agg_result.json");
    if case.join("refused.txt").exists() {
        let refused = output.status.code() == Some(1) && !result.exists() && stderr(&output).contains("error");
        return (!refused).then(|| format!("not refused: {:?}, {}", output.status, stderr(&output)));
    }
    if !output.status.success() {
        return Some(stderr(&output));
    }
    let found = read(&result);
    if found["server_metrics"]["present"] == Value::Bool(false) && found["warnings"][0].as_str().is_none() {
        return Some("no warning".to_owned());
    }
    let differences = differences(&read(&case.join("expected.json")), &found, "", false);
    (!differences.is_empty()).then(|| differences.join("\n"))
}

fn differences(wanted: &Value, found: &Value, place: &str, closed: bool) -> Vec<String> {
    let differ = || vec![format!("{place}: wanted {wanted}, found {found}")];
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => {
            let unwanted = found.keys().filter(|name| closed && !wanted.contains_key(*name));
            let mut list: Vec<String> = unwanted.map(|name| format!("{place}.{name}: unwanted")).collect();
            for (name, value) in wanted {
                let place = format!("{place}.{name}");
                match found.get(name) {
                    None => list.push(format!("{place}: missing")),
                    Some(found) => {
                        list.extend(differences(value, found, &place, CLOSED.contains(&name.as_str())));
                    }
                }
            }
            list
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let pairs = a.iter().zip(b).enumerate();
            pairs
                .flat_map(|(at, (a, b))| differences(a, b, &format!("{place}[{at}]"), false))
                .collect()
        }
        (Value::Number(a), Value::Number(b)) => match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) if (a - b).abs() <= TOLERANCE * a.abs().max(b.abs()) => Vec::new(),
            _ => differ(),
        },
        (a, b) if a == b => Vec::new(),
        _ => differ(),
    }
}
