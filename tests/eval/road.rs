//! The whole road of an eval against the mock server: run, upload, validate, collect.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use super::support::{envelope, read_json, root, sweepctl, write_json};
use super::tools;
use crate::mock_server::client::Server;

/// What a job's steps leave.
struct Road {
    folder: tempfile::TempDir,
    run: Output,
    gate: Output,
    rows: Value,
}

impl Road {
    /// Walks it: a server with options, a task, and the thresholds of the gate.
    fn walk(task: &Path, answers: &Path, options: &[&str], thresholds: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut serve = vec!["--port", "0", "--model", "org/stub-7b", "--answers"];
        serve.push(answers.to_str().expect("a path"));
        serve.extend(options);
        let server = Server::start(&serve);
        let job = envelope("0123456789ab", json!({}));
        let file = write_json(folder.path(), "envelope.json", &job);
        std::fs::write(folder.path().join("thresholds.yaml"), thresholds).expect("a file");
        let step = |args: &[&str]| {
            let mut command = sweepctl();
            command
                .current_dir(folder.path())
                .args(args)
                .env("SWEEPCTL_TOOLS", tools::folder())
                .env("GITHUB_STEP_SUMMARY", folder.path().join("summary.md"))
                .env("HF_HUB_OFFLINE", "1");
            command.output().expect("the binary runs")
        };
        let (envelope, task) = (file.to_str().expect("a path"), task.to_str().expect("a path"));
        let endpoint = format!("http://{}", server.address);
        let run = step(&[
            "eval",
            "run",
            "--endpoint",
            &endpoint,
            "--concurrency",
            "4",
            "--task",
            task,
            "--envelope",
            envelope,
            "--stage-to",
            ".",
        ]);
        let upload = step(&["upload", "--kind", "eval", "--envelope", envelope, "--to", "artifacts"]);
        assert!(upload.status.success(), "{}", String::from_utf8_lossy(&upload.stderr));
        let gate = step(&[
            "eval",
            "validate",
            "--thresholds",
            "thresholds.yaml",
            "--envelope",
            envelope,
        ]);
        let collected = step(&["collect", "evals", "artifacts"]);
        assert!(
            collected.status.success(),
            "{}",
            String::from_utf8_lossy(&collected.stderr)
        );
        let rows = read_json(&folder.path().join("agg_eval_all.json"));
        Self {
            folder,
            run,
            gate,
            rows,
        }
    }

    fn said(output: &Output) -> String {
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

fn smoke(options: &[&str]) -> Road {
    let evals = root().join("configs/evals");
    let (task, answers) = (evals.join("gsm8k_smoke.yaml"), evals.join("data/gsm8k_smoke.jsonl"));
    Road::walk(&task, &answers, options, "default: { gsm8k_smoke: 0.9 }\n")
}

#[test]
fn a_good_model_passes_the_gate() {
    let road = smoke(&["--accuracy", "0.99"]);
    assert!(road.run.status.success(), "{}", Road::said(&road.run));
    assert!(road.gate.status.success(), "{}", Road::said(&road.gate));
    let row = &road.rows[0];
    // 0.99 of 40 problems, rounded, are all of them.
    assert_eq!(
        (&row["task"], &row["score"], &row["n_eff"], &row["conc"]),
        (&json!("gsm8k_smoke"), &json!(1.0), &json!(40), &json!(4))
    );
    let artifacts = super::support::names(&road.folder.path().join("artifacts"));
    assert_eq!(artifacts, ["eval_stub_8k1k_0123456789ab"]);
}

#[test]
fn a_bad_model_fails_the_gate_and_its_score_is_kept() {
    let road = smoke(&["--accuracy", "0.5"]);
    assert!(
        road.run.status.success(),
        "a low score is no failure of the eval: {}",
        Road::said(&road.run)
    );
    assert_eq!(road.gate.status.code(), Some(1));
    let said = Road::said(&road.gate);
    assert!(said.contains("0.5000") && said.contains("under 0.9"), "{said}");
    assert_eq!(road.rows[0]["score"], json!(0.5));
}

#[test]
fn a_silent_model_is_reported_as_silent() {
    let road = smoke(&["--empty-rate", "0.25"]);
    assert_eq!(road.gate.status.code(), Some(1));
    let said = Road::said(&road.gate);
    assert!(said.contains("silent"), "{said}");
}

/// What a server says of some questions, asked one by one: silent, thinking only, and cut answers.
fn kinds(questions: &Path, options: &[&str]) -> [u64; 3] {
    let server = Server::start(&[&["--answers", questions.to_str().expect("a path")], options].concat());
    let mut kinds = [0; 3];
    for line in std::fs::read_to_string(questions).expect("questions").lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let choice = server.ask(line["question"].as_str().expect("a text")).json()["choices"][0].take();
        let has = |part: &str| choice["message"][part].as_str().is_some_and(|text| !text.is_empty());
        let (content, thought) = (has("content"), has("reasoning_content"));
        kinds[0] += u64::from(!content && !thought);
        kinds[1] += u64::from(!content && thought);
        kinds[2] += u64::from(choice["finish_reason"] == "length");
    }
    kinds
}

#[test]
fn silence_thought_and_cuts_are_counted_and_said_beside_the_score() {
    let options = [
        "--empty-rate",
        "0.05",
        "--reasoning-only-rate",
        "0.2",
        "--cut-rate",
        "0.25",
    ];
    let questions = root().join("configs/evals/data/gsm8k_smoke.jsonl");
    let [empty, reasoning_only, cut] = kinds(&questions, &options);
    assert_eq!(empty, 2);
    assert!(
        (6..=8).contains(&reasoning_only) && (8..=10).contains(&cut),
        "{reasoning_only} {cut}"
    );
    let road = smoke(&options);
    let meta = read_json(&road.folder.path().join("meta_env.json"));
    assert_eq!(
        meta["answers"],
        json!({"asked": 40, "empty": empty, "reasoning_only": reasoning_only, "cut": cut})
    );
    let said = Road::said(&road.gate);
    let counts = format!(
        "of 40 answers {empty} were empty, {reasoning_only} came only as reasoning, {cut} were cut by the output budget"
    );
    assert_eq!(road.gate.status.code(), Some(1), "{said}");
    assert!(said.contains("under 0.9") && said.contains(&counts), "{said}");
    let table = std::fs::read_to_string(road.folder.path().join("summary.md")).expect("a summary");
    let cell = format!("| 40 ({empty} empty, {reasoning_only} reasoning only, {cut} cut) |");
    assert!(table.contains(&cell), "{table}");
}

/// What docs/evals.md shows: a graded eval is a task file and a threshold, and no code.
#[test]
fn a_graded_eval_is_one_file_and_one_threshold() {
    let own = tempfile::tempdir().expect("a folder");
    let guide = std::fs::read_to_string(root().join("docs/evals.md")).expect("the guide");
    let block = |start: &str| {
        let rest = guide.split_once(start).expect(start).1;
        rest.split_once("\n```")
            .expect("the end of a block")
            .0
            .trim_start()
            .to_owned()
            + "\n"
    };
    std::fs::write(own.path().join("distances.jsonl"), block("```jsonl\n")).expect("a file");
    let task = own.path().join("distances.yaml");
    std::fs::write(&task, block("```yaml task\n")).expect("a file");
    let thresholds = block("```yaml thresholds\n");
    let answers = own.path().join("distances.jsonl");
    let right = Road::walk(&task, &answers, &[], &thresholds);
    assert!(right.gate.status.success(), "{}", Road::said(&right.gate));
    assert_eq!(
        (&right.rows[0]["task"], &right.rows[0]["score"]),
        (&json!("distances"), &json!(1.0))
    );
    let wrong = Road::walk(&task, &answers, &["--accuracy", "0.5"], &thresholds);
    assert_eq!(wrong.gate.status.code(), Some(1), "{}", Road::said(&wrong.gate));
}
