//! The score of a task, for gate and collector, on the shapes that lm-eval's files have.

use std::path::Path;

use serde_json::Value;

use crate::fixture::{every_case, gate, read_json, run, sweepctl};

#[test]
fn gate_and_collector_take_the_same_score_of_every_shape() {
    every_case("evals/shapes", |folder| {
        let wrong: Vec<String> = [judged(folder), collector(folder)].into_iter().flatten().collect();
        (!wrong.is_empty()).then(|| wrong.join("\n"))
    });
}

/// What is wrong with the gate's answer.
fn judged(folder: &Path) -> Option<String> {
    let expected = read_json(&folder.join("expected.json"));
    let (code, stdout, stderr) = run(gate(folder).args(["--envelope", "envelope.json"]));
    let wanted = expected["gate_exit"].as_i64().unwrap_or(i64::from(code));
    if i64::from(code) != wanted {
        return Some(format!("the gate exits {code}, not {wanted}\n{stdout}{stderr}"));
    }
    unsaid(&expected["problems"], &format!("{stdout}{stderr}"))
        .map(|part| format!("the gate does not say {part}: {stderr}"))
}

/// What is wrong with the collector's answer.
fn collector(folder: &Path) -> Option<String> {
    let expected = read_json(&folder.join("expected.json"));
    let work = tempfile::tempdir().expect("a folder");
    let path = |name: &str| work.path().join(name);
    std::fs::create_dir_all(path("configs")).expect("created");
    std::fs::create_dir_all(path("sets")).expect("created");
    std::fs::copy(folder.join("thresholds.yaml"), path("configs/thresholds.yaml")).expect("copied");
    for entry in std::fs::read_dir(folder).expect("a case") {
        let entry = entry.expect("an entry");
        std::fs::copy(entry.path(), path("sets").join(entry.file_name())).expect("copied");
    }
    let mut command = sweepctl(work.path());
    let (code, stdout, stderr) = run(command.args(["collect", "evals", "sets", "--out", "out", "--name", "all"]));
    let rows = read_json(&path("out/agg_eval_all.json"));
    let rows = rows.as_array().expect("a list");
    let of = |task: &Value| rows.iter().filter(|row| row["task"] == *task).collect::<Vec<_>>();
    for wanted in expected["rows"].as_array().into_iter().flatten() {
        let found = of(&wanted["task"]);
        let fits = |row: &Value| {
            wanted
                .as_object()
                .expect("a row")
                .iter()
                .all(|(name, value)| row.get(name) == Some(value))
        };
        if found.len() != 1 || !fits(found[0]) {
            return Some(format!("exit {code}, the rows are {found:#?}, not {wanted}\n{stderr}"));
        }
    }
    for task in expected["no_rows"].as_array().into_iter().flatten() {
        if !of(task).is_empty() {
            return Some(format!("there is a row of {task}"));
        }
    }
    unsaid(&expected["collect_says"], &format!("{stdout}{stderr}"))
        .map(|part| format!("the collector does not say {part}: {stderr}"))
}

/// The first of some texts that is not said.
fn unsaid(wanted: &Value, said: &str) -> Option<String> {
    let mut parts = wanted.as_array().into_iter().flatten().filter_map(Value::as_str);
    parts.find(|part| !said.contains(part)).map(str::to_owned)
}
