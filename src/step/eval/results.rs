//! Whether an eval left whole results behind.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::step::stage;

/// Checks that a folder holds a result file with a task's scores, and the samples behind them.
///
/// # Errors
/// What is missing, as the end of a sentence.
pub(crate) fn check(folder: &Path, task: &str) -> Result<(), String> {
    let found = |glob: &str| -> Vec<PathBuf> { stage::find(folder, &[glob], true).files };
    let results = found("results*.json");
    if results.is_empty() {
        return Err("left no results*.json".to_owned());
    }
    if !results.iter().any(|file| holds(file, task)) {
        return Err(format!("none of its result files can be read and holds `{task}`"));
    }
    let samples = found("sample*.jsonl");
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

fn holds(file: &Path, task: &str) -> bool {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let value: Option<Value> = serde_json::from_str(&without_bare_numbers(&text)).ok();
    value.is_some_and(|value| value["results"][task].is_object())
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
