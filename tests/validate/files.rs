//! Files that cannot be read, samples, and what is said of many problems.

use serde_json::{Value, json};

use super::work::Work;
use crate::fixture::{gate, result, run};

#[test]
fn unreadable_files_are_named_and_do_not_hide_others() {
    let work = Work::batch();
    work.text("results_conc16.json", "");
    work.text("results_conc32.json", b"{\"results\": {\"\xff\": 1}}");
    work.fails(
        &[],
        &[
            "results_conc16.json is empty",
            "results_conc32.json is not UTF-8 at byte 14",
        ],
    );
    work.text("results_conc16.json", "{\"results\": {\"plain\": ");
    work.text("results_conc32.json", "[]");
    work.fails(
        &[],
        &[
            "results_conc16.json is cut off in line 1",
            "results_conc32.json is no JSON object",
        ],
    );
    work.file("results_conc16.json", &json!({}));
    work.remove("results_conc32.json");
    std::os::unix::fs::symlink("/etc/passwd", work.path().join("results_conc32.json")).expect("linked");
    let stderr = work.fails(
        &[],
        &[
            "`results` holds no task",
            "results_conc32.json cannot be read: it is a link",
        ],
    );
    assert!(!stderr.contains("root:"), "{stderr}");
}

#[test]
fn a_pipe_or_a_folder_is_no_result_and_does_not_block() {
    let work = Work::new();
    let path = work.path().join("results.json");
    std::fs::remove_file(&path).expect("removed");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    work.fails(&[], &["results.json cannot be read: it is no regular file"]);
    std::fs::remove_file(&path).expect("removed");
    std::fs::create_dir(&path).expect("a folder");
    work.fails(&[], &["there is no result file"]);
}

#[test]
fn an_unreadable_thresholds_file_is_an_error() {
    let work = Work::new();
    work.text("thresholds.yaml", "default: [");
    work.fails(&[], &["thresholds.yaml"]);
    work.remove("thresholds.yaml");
    work.fails(&[], &["`thresholds.yaml` does not exist"]);
}

#[test]
fn silence_is_said_apart_from_wrong_answers() {
    let work = Work::new();
    let lines = |empty: usize, all: usize| {
        let line = |at: usize| {
            format!(
                "{{\"resps\": [[\"{}\"]], \"exact_match\": NaN}}\n",
                if at < empty { "" } else { "x" }
            )
        };
        (0..all).map(line).collect::<String>()
    };
    work.text("samples_plain_2026-11-01T00-00-00.jsonl", lines(5, 100));
    let report = work.passes(&[]);
    assert_eq!(report["silence"][0]["empty"], 5);
    work.text("samples_plain_2026-11-01T00-00-00.jsonl", lines(6, 100));
    work.fails(
        &[],
        &["6 of 100 questions have an empty answer in `resps` (6.0%), at most 5.0% may"],
    );
    // A folder that is not there is no folder without samples.
    let gone = ["--results-glob", "none*.json", "--meta-env", "gone/meta_env.json"];
    work.fails(&gone, &["there is no result file", "gone cannot be listed"]);
    // Beside the metadata where there is no result.
    work.remove("results.json");
    work.fails(
        &[],
        &["there is no result file", "6 of 100 questions have an empty answer"],
    );
    let mut tuned = result("tuned", 0.1);
    tuned["results"]["tuned"]["f1,none"] = json!(0.9);
    work.file("results.json", &tuned);
    work.remove("samples_plain_2026-11-01T00-00-00.jsonl");
    work.text("samples_tuned_2026-11-01T00-00-00.jsonl", lines(50, 100));
    work.passes(&[]);
    work.text(
        "samples_tuned_2026-11-01T00-00-00.jsonl",
        format!("{}{{\"resps\": [[\"", lines(0, 2)),
    );
    work.fails(&[], &["samples_tuned_2026-11-01T00-00-00.jsonl is cut off in line 3"]);
}

#[test]
fn on_actions_problems_are_annotated_within_the_limit_and_summarized() {
    let work = Work::new();
    let mut many = result("plain", 0.1);
    for at in 0..30 {
        let task = format!("t{at}|`x`\n::set-env name=A::b");
        many["results"][&task] = json!({"exact_match,strict-match": 0.1});
        many["n-samples"][&task] = json!({"original": 5, "effective": 5});
    }
    work.file("results.json", &many);
    let summary = work.path().join("summary.md");
    let mut command = gate(work.path());
    command
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_STEP_SUMMARY", &summary);
    let (code, stdout, stderr) = run(&mut command);
    assert_eq!(code, 1);
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(report["problems"].as_array().map(Vec::len), Some(31));
    let annotations: Vec<&str> = stderr
        .lines()
        .filter(|line| line.trim_start().starts_with("::"))
        .collect();
    let (errors, notices): (Vec<&str>, Vec<&str>) = annotations.iter().partition(|line| line.starts_with("::error"));
    assert_eq!(errors.len(), 9, "{annotations:?}");
    assert_eq!(notices, ["::notice::22 more: see the log and the step summary"]);
    let summary = std::fs::read_to_string(summary).expect("a summary");
    assert!(summary.starts_with("### Eval scores: 31 problems\n"), "{summary}");
    assert!(summary.contains(r"t3\|\`x\` ::set-env"), "{summary}");
}

#[test]
fn thousands_of_tasks_are_judged_at_once() {
    let work = Work::new();
    let mut many = result("plain", 0.95);
    for at in 0..5000 {
        let task = format!("task_{at}");
        many["results"][&task] = json!({"exact_match,none": 0.9});
        many["n-samples"][&task] = json!({"original": 5, "effective": 5});
    }
    work.file("results.json", &many);
    assert_eq!(work.passes(&[])["checks"].as_array().map(Vec::len), Some(5001));
}
