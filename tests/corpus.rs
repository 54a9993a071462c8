//! Real inputs with right answers, where they stand beside the project.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::support::{assert_none, difference, git, misses, run, stderr};

/// The corpus' folder; where it is absent that is said loudly.
pub fn corpus() -> Option<PathBuf> {
    let beside = crate::support::project().join("../shared/corpus");
    let folder = std::env::var_os("SWEEPCTL_CORPUS").map_or(beside, PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!(
        "\n*** THE CORPUS IS ABSENT: no folder at {}; this test checks nothing ***\n",
        folder.display()
    );
    None
}

fn clone(corpus: &Path, bundle: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let bundle = corpus.join(bundle);
    git(folder.path(), &["clone", "-q", bundle.to_str().expect("a path"), "."]);
    folder
}

fn lines<T: serde::de::DeserializeOwned>(path: &Path) -> Vec<T> {
    let text = std::fs::read_to_string(path).expect("a file of the corpus");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a case a line"))
        .collect()
}

#[derive(Deserialize)]
struct PlanCase {
    src: String,
    base: String,
    head: String,
    flags: Vec<String>,
    policy: String,
    plan: Option<Value>,
}

#[derive(Deserialize)]
struct GenerateCase {
    args: Vec<String>,
    policy: String,
    ok: Option<Value>,
    exit: Option<i32>,
    stderr: Option<String>,
}

#[derive(Deserialize)]
struct RefusedCase {
    src: String,
    base: String,
    head: String,
    class: String,
}

fn plan_args<'a>(base: &'a str, head: &'a str) -> Vec<&'a str> {
    vec![
        "plan",
        "--base-ref",
        base,
        "--head-ref",
        head,
        "--configs-from",
        "head",
        "--json",
    ]
}

fn plans(bundle: &str, file: &str) {
    let Some(corpus) = corpus() else { return };
    let folder = clone(&corpus, bundle);
    let cases: Vec<PlanCase> = lines(&corpus.join(file));
    let found = misses(&cases, |case| {
        let mut args = plan_args(&case.base, &case.head);
        args.extend(["--eval-policy", &case.policy]);
        args.extend(case.flags.iter().map(String::as_str));
        let output = run(folder.path(), args);
        let name = format!("{} under {} with {:?}", case.src, case.policy, case.flags);
        match &case.plan {
            None if output.status.code() == Some(1) && output.stdout.is_empty() => None,
            None => Some(format!("{name}: not refused")),
            Some(_) if !output.status.success() => Some(format!("{name}: refused\n{}", stderr(&output))),
            Some(plan) => {
                let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
                difference(&found, plan).map(|difference| format!("{name}\n{difference}"))
            }
        }
    });
    assert_none(file, cases.len(), &found);
}

fn generated(bundle: &str, file: &str) {
    let Some(corpus) = corpus() else { return };
    let folder = clone(&corpus, bundle);
    let cases: Vec<GenerateCase> = lines(&corpus.join(file));
    let found = misses(&cases, |case| {
        let mut args = vec!["generate"];
        args.extend(case.args.iter().map(String::as_str));
        args.extend(["--eval-policy", &case.policy, "--json"]);
        let output = run(folder.path(), args);
        let name = format!("{} under {}", case.args.join(" "), case.policy);
        let said = stderr(&output);
        match &case.ok {
            None => {
                let code = output.status.code();
                if code != case.exit || !output.stdout.is_empty() {
                    return Some(format!("{name}: exit {code:?}, wanted {:?}\n{said}", case.exit));
                }
                let value = offending(case.stderr.as_deref().unwrap_or_default());
                (!said.contains(&value)).then(|| format!("{name}: the message does not name `{value}`\n{said}"))
            }
            Some(_) if !output.status.success() => Some(format!("{name}: refused\n{said}")),
            Some(rows) => {
                let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
                difference(&found, rows).map(|difference| format!("{name}\n{difference}"))
            }
        }
    });
    assert_none(file, cases.len(), &found);
}

/// The value that a reference message names: a flag, a quoted word, or the word before a verb.
fn offending(message: &str) -> String {
    if let Some(flag) = message.split_whitespace().find(|word| word.starts_with("--")) {
        return flag.trim_end_matches([',', ':']).to_owned();
    }
    if let Some(quoted) = message.split('\'').nth(1) {
        return quoted.to_owned();
    }
    if let Some(keys) = message.split("not found: ").nth(1) {
        return keys.trim().trim_end_matches('.').to_owned();
    }
    let words = message.trim_start_matches("ValueError: ");
    words.split([' ', ',']).next().unwrap_or_default().to_owned()
}

#[test]
fn plans_of_the_history() {
    plans("history.bundle", "plans.jsonl");
}

#[test]
fn plans_of_the_fleet() {
    plans("fleet.bundle", "fleet-plans.jsonl");
}

#[test]
fn rows_of_the_history() {
    generated("history.bundle", "generate.jsonl");
}

#[test]
fn rows_of_the_fleet() {
    generated("fleet.bundle", "fleet-generate.jsonl");
}

#[test]
fn changes_that_yield_no_plan() {
    let Some(corpus) = corpus() else { return };
    let folder = clone(&corpus, "history.bundle");
    let text = std::fs::read_to_string(corpus.join("refused.json")).expect("a file of the corpus");
    let cases: Vec<RefusedCase> = serde_json::from_str(&text).expect("JSON");
    let found = misses(&cases, |case| {
        let output = run(folder.path(), plan_args(&case.base, &case.head));
        let said = stderr(&output);
        let name = format!("{} ({})", case.src, case.class);
        if output.status.code() != Some(1) || !output.stdout.is_empty() {
            return Some(format!("{name}: exit {:?}\n{said}", output.status.code()));
        }
        let changelog = "perf-changelog.yaml";
        let says = |what: &str| said.contains(what);
        let right = match case.class.as_str() {
            // Both may apply: a last line end alone alters no value.
            "entry-removed-or-altered" | "nothing-added" => {
                says("adds no entry") || says("is missing or altered at the head")
            }
            "changelog-not-readable" => says(changelog),
            // One entry was added, and only the configs of that day are wrong.
            "line-diff-artifact" => says("-master.yaml") && !says(changelog),
            "input-not-in-contract" => says("-master.yaml") || says(changelog),
            _ => false,
        };
        (!right).then(|| format!("{name}: refused for another reason\n{said}"))
    });
    assert_none("refused.json", cases.len(), &found);
}
