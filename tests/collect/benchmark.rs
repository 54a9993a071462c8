//! Planned accuracy benchmarks: done where their score is there and clears its floor, and shown with repeats and categories.

use serde_json::{Value, json};

use super::{JOB, Sweep, column};
use crate::fixture::{meta, multinode_envelope, result, run, sweepctl, write};

/// A planned MMLU job, and its metadata.
fn planned(sweep: &Sweep) {
    let mut envelope = multinode_envelope(JOB, &[16, 64]);
    let row = envelope["row"].as_object_mut().expect("a row");
    row.remove("eval-all-concs");
    for (name, value) in [
        ("eval-conc", json!(64)),
        ("eval-framework", json!("benchmark")),
        ("eval-suite", json!("mmlu")),
    ] {
        row.insert(name.to_owned(), value);
    }
    sweep.plan(&json!([envelope]));
    let mut meta = meta(64);
    let own = json!({ "job_id": JOB, "is_multinode": true, "tp": 4, "prefill_tp": 4, "prefill_num_workers": 2,
                      "decode_tp": 8, "decode_num_workers": 1, "eval_suite": "mmlu" });
    let fields = meta.as_object_mut().expect("an object");
    fields.extend(own.as_object().expect("fields").clone());
    sweep.file("eval_a/meta_env.json", &meta);
}

fn scores() -> Value {
    json!({ "stem": 0.2, "other": 0.95, "scores": [0.60, 0.62, 0.61, 0.65], "mean_score": 0.62, "total_examples": 200 })
}

/// What became of the job, and why.
fn outcome(sweep: &Sweep) -> (Value, String) {
    let printed = sweep.evals(&["--plan", "plan.json"]);
    let job = &printed["jobs"][0];
    (job["state"].clone(), job["reason"].to_string())
}

#[test]
fn one_row_a_benchmark_and_one_a_category_stand_in_the_table() {
    let sweep = Sweep::new();
    planned(&sweep);
    sweep.file("eval_a/accuracy/mmlu_any.json", &scores());
    let summary = sweep.path().join("summary.md");
    let mut command = sweepctl(sweep.path());
    command.args(["collect", "evals", "artifacts", "--plan", "plan.json", "--strict"]);
    let (code, stdout, stderr) = run(command.env("GITHUB_STEP_SUMMARY", &summary));
    assert_eq!(code, 0, "{stderr}");
    let printed: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(column(&printed, "rows", "task"), ["mmlu", "mmlu_other", "mmlu_stem"]);
    // The floor that is built in for MMLU is above the category, which nothing judges.
    assert_eq!(printed["jobs"][0]["state"], "done", "{printed}");
    let summary = std::fs::read_to_string(summary).expect("a summary");
    assert!(
        summary.contains("| 64 | mmlu | 0.6200 ± 0.0108 (accuracy, 4 repeats, spread 0.0216) | 200 |"),
        "{summary}"
    );
    assert!(
        summary.contains("| 64 | mmlu_stem | 0.2000 (accuracy) | - |"),
        "{summary}"
    );
}

#[test]
fn a_score_under_its_floor_and_one_that_is_not_there_are_not_done() {
    let sweep = Sweep::new();
    planned(&sweep);
    let (state, reason) = outcome(&sweep);
    assert_eq!(state, "failed", "{reason}");
    sweep.file("eval_a/accuracy/mmlu_any.json", &scores());
    write(
        sweep.path().join("configs/thresholds.yaml"),
        "default: { mmlu: 0.63 }\n",
    );
    let (state, reason) = outcome(&sweep);
    assert!(
        state == "failed" && reason.contains("`mmlu` at concurrency 64 has 0.62"),
        "{reason}"
    );
    write(
        sweep.path().join("configs/thresholds.yaml"),
        "default: { mmlu: 0.62, mmlu_stem: 0.21 }\n",
    );
    let (state, reason) = outcome(&sweep);
    assert!(state == "failed" && reason.contains("`mmlu_stem`"), "{reason}");
    write(
        sweep.path().join("configs/thresholds.yaml"),
        "default: { mmlu: 0.62 }\n",
    );
    assert_eq!(outcome(&sweep).0, "done");
}

#[test]
fn another_eval_is_not_the_benchmark_that_was_planned() {
    let sweep = Sweep::new();
    planned(&sweep);
    sweep.file("eval_a/results_1.json", &result("gsm8k", 0.97));
    let (state, reason) = outcome(&sweep);
    assert!(
        state == "failed" && reason.contains("asked for the benchmark `mmlu`"),
        "{reason}"
    );
    let sweep = Sweep::new();
    planned(&sweep);
    sweep.file("eval_a/accuracy/gpqa_any.json", &scores());
    let (state, reason) = outcome(&sweep);
    assert!(
        state == "failed" && reason.contains("asked for the benchmark `mmlu`"),
        "{reason}"
    );
}

#[test]
fn a_benchmark_that_ran_once_is_told_without_repeats() {
    let sweep = Sweep::new();
    planned(&sweep);
    sweep.file(
        "eval_a/accuracy/mmlu_any.json",
        &json!({ "score": 0.95, "score:std": 0.2, "total_examples": 100 }),
    );
    let summary = sweep.path().join("summary.md");
    let mut command = sweepctl(sweep.path());
    command.args(["collect", "evals", "artifacts"]);
    let (code, _, stderr) = run(command.env("GITHUB_STEP_SUMMARY", &summary));
    assert_eq!(code, 0, "{stderr}");
    let summary = std::fs::read_to_string(summary).expect("a summary");
    assert!(
        summary.contains("| 64 | mmlu | 0.9500 ± 0.0200 (accuracy) | 100 |"),
        "{summary}"
    );
}
