//! The made-up fleet under `tests/fixtures/fleet`, in folders and repositories of a test's own.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{commit, git, project, write};

/// The changelog, from a repository's root.
pub const CHANGELOG: &str = "perf-changelog.yaml";
/// The changelog that the fleet starts with.
pub const FIRST_CHANGELOG: &str = include_str!("../fixtures/fleet/perf-changelog.yaml");

/// A file of the fixtures.
pub fn fixture(path: &str) -> PathBuf {
    project().join("tests/fixtures").join(path)
}

/// The fleet in a folder of its own, which is no repository.
pub fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["amd-master.yaml", "nvidia-master.yaml", "runners.yaml"] {
        let path = format!("configs/{name}");
        let text = std::fs::read(fixture(&format!("fleet/{path}"))).expect("a fixture");
        write(folder.path(), &path, text);
    }
    write(folder.path(), CHANGELOG, FIRST_CHANGELOG);
    folder
}

/// The fleet as a repository with one commit.
pub fn repository() -> tempfile::TempDir {
    let folder = folder();
    git(folder.path(), &["init", "-q"]);
    commit(folder.path(), "The fleet");
    folder
}

/// Replaces text in a file, which must hold it exactly once.
pub fn edit(folder: &Path, path: &str, old: &str, new: &str) {
    let text = std::fs::read_to_string(folder.join(path)).expect("a file");
    assert_eq!(text.matches(old).count(), 1, "`{old}` in {path}");
    write(folder, path, text.replace(old, new));
}

/// Appends to the changelog and commits.
pub fn log(folder: &Path, entries: &str) -> String {
    let text = std::fs::read_to_string(folder.join(CHANGELOG)).expect("a changelog");
    write(folder, CHANGELOG, text + entries);
    commit(folder, "More entries")
}

/// An entry for config keys, with more fields on lines of their own.
pub fn entry(keys: &str, more: &str) -> String {
    format!("- config-keys: [{keys}]\n  description: [A change.]\n  pr-link: https://example.com/2\n{more}")
}

/// Rows on one line each: the experiment's name, the split, the concurrency, and what the eval is.
///
/// `run` is `run-eval: true`, `no` is `false` and nothing is neither; `only`, `all` and `@N` are `eval-only`,
/// `eval-all-concs` and `eval-conc`; then the evaluator and its suite.
pub fn lines(rows: &Value) -> Vec<String> {
    rows.as_array().expect("a list of rows").iter().map(line).collect()
}

fn line(row: &Value) -> String {
    let split = match row.get("tp") {
        Some(tp) => format!("tp{tp}"),
        None => {
            let side = |side: &str| format!("{}x{}", row[side]["num-worker"], row[side]["tp"]);
            format!("{}/{}", side("prefill"), side("decode"))
        }
    };
    let mut line = format!("{} {split} {}", text(&row["exp-name"]), row["conc"]);
    match row.get("run-eval") {
        Some(Value::Bool(true)) => line.push_str(" run"),
        Some(Value::Bool(false)) => line.push_str(" no"),
        _ => {}
    }
    for (field, word) in [("eval-only", "only"), ("eval-all-concs", "all")] {
        if row.get(field) == Some(&Value::Bool(true)) {
            line.push_str(&format!(" {word}"));
        }
    }
    if let Some(conc) = row.get("eval-conc") {
        line.push_str(&format!(" @{conc}"));
    }
    if let Some(framework) = row.get("eval-framework") {
        line.push_str(&format!(" {}", text(framework)));
        if row["eval-suite"] != "" {
            line.push_str(&format!(":{}", text(&row["eval-suite"])));
        }
    }
    line
}

/// The text of a JSON string.
pub fn text(value: &Value) -> &str {
    value.as_str().expect("a string")
}

/// The lines, in order, of lines that are wanted.
pub fn wanted(text: &str) -> Vec<String> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}
