//! Whether an eval left whole results behind.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::step::stage;

/// Checks that a folder holds a result file with a task's scores, and the samples behind them.
///
/// # Errors
/// What is missing, as the end of a sentence.
pub(crate) fn check(folder: &Path, task: &str) -> Result<(), String> {
    holding(folder, task)?;
    let samples = stage::find(folder, &["sample*.jsonl"], true).files;
    if samples.is_empty() {
        return Err("left no sample*.jsonl".to_owned());
    }
    // A sample file that a full disk cut off does not end with its line.
    match samples
        .iter()
        .find(|file| !std::fs::read(file).is_ok_and(|bytes| bytes.ends_with(b"\n")))
    {
        Some(cut) => Err(format!("`{}` is cut off", cut.display())),
        None => Ok(()),
    }
}

/// Checks that a folder holds a whole result of a suite that has a client of its own: its report, and no samples, stands
/// behind it.
///
/// # Errors
/// What is missing, as the end of a sentence, and why the client's run is no measurement.
pub(crate) fn check_suite(folder: &Path, suite: &str) -> Result<(), String> {
    let results = holding(folder, suite)?;
    let is_whole = |result: &Value| result["integration_error"].is_null();
    match results.iter().find(|result| !is_whole(result)) {
        Some(failed) if !results.iter().any(is_whole) => {
            let why = failed["integration_error"]["message"].as_str();
            Err(format!("failed: {}", why.unwrap_or("its result gives no reason")))
        }
        _ => Ok(()),
    }
}

/// The result files of a folder that hold a task; at least one.
fn holding(folder: &Path, task: &str) -> Result<Vec<Value>, String> {
    let files: Vec<PathBuf> = stage::find(folder, &["results*.json"], true).files;
    if files.is_empty() {
        return Err("left no results*.json".to_owned());
    }
    let all = files.iter().filter_map(|file| read(file));
    let results: Vec<Value> = all.filter(|value| value["results"][task].is_object()).collect();
    match results.is_empty() {
        true => Err(format!("none of its result files can be read and holds `{task}`")),
        false => Ok(results),
    }
}

fn read(file: &Path) -> Option<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    serde_json::from_str(&without_bare_numbers(&text)).ok()
}

/// JSON whose bare `NaN` and `Infinity`, as Python writes them, are null.
fn without_bare_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['"', 'N', 'I', '-']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let bare = ["NaN", "Infinity", "-Infinity"]
            .iter()
            .find(|word| rest.starts_with(**word));
        let taken = match bare {
            Some(word) => {
                out.push_str("null");
                rest = &rest[word.len()..];
                continue;
            }
            None if rest.starts_with('"') => string_length(rest),
            None => 1,
        };
        out.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    out + rest
}

/// The bytes of the string that a text starts with, quotes included.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bare_words_become_null() {
        let text = r#"{"a": NaN, "NaN": "-Infinity \" NaN", "b": [-Infinity, Infinity, -1.5]}"#;
        let expected = r#"{"a": null, "NaN": "-Infinity \" NaN", "b": [null, null, -1.5]}"#;
        assert_eq!(without_bare_numbers(text), expected);
    }

    #[test]
    fn a_suite_leaves_no_samples_and_says_what_failed() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
        write(
            "results_1.json",
            r#"{"results": {"t": {}}, "integration_error": {"message": "no check"}}"#,
        );
        assert_eq!(check_suite(folder.path(), "t"), Err("failed: no check".to_owned()));
        write("results_2.json", r#"{"results": {"t": {"exact_match,none": 0.5}}}"#);
        assert_eq!(check_suite(folder.path(), "t"), Ok(()));
        assert!(
            check_suite(folder.path(), "u")
                .expect_err("no suite")
                .contains("holds `u`")
        );
    }

    #[test]
    fn what_is_missing_is_said() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
        assert_eq!(check(folder.path(), "t"), Err("left no results*.json".to_owned()));
        write("results_1.json", r#"{"results": {"other": {}}}"#);
        assert!(check(folder.path(), "t").expect_err("no task").contains("holds `t`"));
        write("results_1.json", r#"{"results": {"t": {"exact_match,none": NaN}}}"#);
        assert_eq!(check(folder.path(), "t"), Err("left no sample*.jsonl".to_owned()));
        write("results_2.json", "{");
        write("samples_t_1.jsonl", "{}\n{\"doc");
        assert!(check(folder.path(), "t").expect_err("cut").contains("cut off"));
        write("samples_t_1.jsonl", "{}\n");
        assert_eq!(check(folder.path(), "t"), Ok(()));
    }
}
