//! `sweepctl stats`: how long the jobs of a run waited and ran, in every attempt.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use super::run_jobs::{RUN, attempt, jobs, step};
use super::server::{GitHub, keeps_the_token, run};
use crate::fixture::envelope;
use crate::support::{stderr, stdout, terminal, write};

/// A time so many minutes and seconds after eight.
fn at(minutes: u64, seconds: u64) -> String {
    format!("2026-10-01T{:02}:{:02}:{seconds:02}Z", 8 + minutes / 60, minutes % 60)
}

/// A job with minutes in the queue and on a runner.
fn job(name: &str, label: &str, conclusion: &str, queued: u64, ran: u64) -> Value {
    let skipped = conclusion == "skipped";
    json!({
        "id": 1, "run_id": 77, "name": name, "status": "completed", "conclusion": conclusion, "labels": [label],
        "runner_name": if skipped { String::new() } else { format!("{label}_0") },
        "created_at": at(0, 0), "started_at": at(queued, 0), "completed_at": at(queued + ran, 0),
        "html_url": "https://github.com/acme/bench/actions/runs/77/job/1", "steps": [], "run_attempt": 2,
    })
}

/// A job on a GPU whose launch began so many seconds after it was taken, and ended so many before it ended.
fn launched(name: &str, label: &str, queued: u64, ran: u64, held: [u64; 2]) -> Value {
    let mut job = job(
        &format!("One node, 8k1k / {name} / Benchmark"),
        label,
        "success",
        queued,
        ran,
    );
    job["steps"] = json!([
        step("Set up job", "success", &at(queued, 0), &at(queued, held[0])),
        step(
            "Launch",
            "success",
            &at(queued, held[0]),
            &at(queued + ran - 1, 60 - held[1])
        ),
        step(
            "Release the node",
            "success",
            &at(queued + ran - 1, 60 - held[1]),
            &at(queued + ran, 0)
        ),
    ]);
    job
}

/// Run 77, started at eight.
fn started(attempts: u64) -> Value {
    let mut started = run(77, "success");
    started["created_at"] = json!(at(0, 0));
    started["run_attempt"] = json!(attempts);
    started
}

fn counted(github: &GitHub, folder: &Path, more: &[&str]) -> (Output, String) {
    let summary = folder.join("summary.md");
    let _ = std::fs::remove_file(&summary);
    let mut command = github.command(folder);
    command.arg("stats").args(more).env("GITHUB_STEP_SUMMARY", &summary);
    command.env("GITHUB_RUN_ID", "77").env("GITHUB_RUN_ATTEMPT", "2");
    let output = command.output().expect("the binary runs");
    keeps_the_token(&output);
    (output, std::fs::read_to_string(summary).unwrap_or_default())
}

#[test]
fn queues_and_gpu_hours_are_counted_by_label_and_hardware() {
    let (github, folder) = (GitHub::new(), tempfile::tempdir().expect("a folder"));
    let mut all = vec![
        job("Decide", "ubuntu-24.04", "success", 1, 3),
        launched("m1 c64", "h200", 90, 60, [20, 5]),
        launched("m1 c8", "h200", 10, 30, [40, 15]),
        job("One node, 8k1k / Bundle", "ubuntu-24.04", "success", 0, 1),
        job("Evals", "h200", "skipped", 0, 0),
    ];
    all[2]["conclusion"] = json!("failure");
    all.extend((0..97).map(|n| job(&format!("Fetch {n}"), "ubuntu-24.04", "success", 0, 1)));
    let page = |jobs: &[Value]| json!({ "total_count": 102, "jobs": jobs });
    let path = |number: u64, page: u64| format!("{}?per_page=100&page={page}", attempt(number));
    // Attempt 2 ran the one that failed again; GitHub lists the others as they were.
    let mut again = all.clone();
    again[2] = launched("m1 c8", "h200", 200, 15, [30, 10]);
    github
        .on(RUN, started(2))
        .on(&path(1, 1), page(&all[..100]))
        .on(&path(1, 2), page(&all[100..]))
        .on(&path(2, 1), page(&again[..100]))
        .on(&path(2, 2), page(&again[100..]));
    write(
        folder.path(),
        "plan",
        json!([envelope("00000000000a", 64), envelope("00000000000b", 8)]).to_string(),
    );
    let (output, summary) = counted(&github, folder.path(), &["--plan", "plan"]);
    assert!(output.status.success(), "{}", stderr(&output));
    // One request for a hundred jobs of an attempt, and the run.
    assert_eq!(github.requests().len(), 5);
    for line in [
        "| h200 | 3 | 1 | 1 | 1.75 | 14.00 | 200 | 30 | 10 |",
        "| ubuntu-24.04 | 99 | 0 | 0 | 1.68 | 0.00 | 1 | - | - |",
        "| all | 102 | 1 | 1 | 3.43 | 14.00 | 200 | 30 | 10 |",
        "Longest in the queue, 200 min: One node, 8k1k / m1 c8 / Benchmark",
        "queued after 0 s, and taken after 10 min",
    ] {
        assert!(summary.contains(line), "{line}: {summary}");
    }
    let printed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(printed["hardware"]["h200"]["gpu_hours"], 14.0);
    assert_eq!(
        printed["to-first-gpu-job"],
        json!({ "queued-seconds": 0, "taken-seconds": 600 })
    );
    let mut command = github.command(folder.path());
    command.env("GITHUB_RUN_ID", "77").env("GITHUB_RUN_ATTEMPT", "2");
    terminal::held("screen_stats", command.args(["stats", "--plan", "plan"]));
    let kept = std::fs::read(folder.path().join("run_stats.json")).expect("the file");
    let kept: Value = serde_json::from_slice(&kept).expect("JSON");
    // Two that no runner took, one in each attempt, and one that ran again.
    assert_eq!(kept.as_array().map(Vec::len), Some(104));
    let times = |index: usize| ["queue_seconds", "run_seconds", "gpus"].map(|name| kept[index][name].clone());
    assert_eq!(times(1), [json!(5400), json!(3600), json!(8)]);
    assert_eq!(times(4), [Value::Null, Value::Null, Value::Null]);
    let held = |index: usize| ["before_launch_seconds", "after_launch_seconds"].map(|name| kept[index][name].clone());
    assert_eq!((held(1), held(0)), ([json!(20), json!(5)], [Value::Null, Value::Null]));
    let again = kept
        .as_array()
        .and_then(|all| all.iter().find(|job| job["attempt"] == 2 && job["gpus"] == 8));
    assert_eq!(again.map(|job| &job["run_seconds"]), Some(&json!(900)));
}

#[test]
fn the_first_job_on_a_gpu_is_that_of_the_first_attempt() {
    let (github, folder) = (GitHub::new(), tempfile::tempdir().expect("a folder"));
    let mut first = launched("m1 c64", "h200", 7, 60, [20, 5]);
    first["created_at"] = json!(at(2, 30));
    let mut canary = job("Canary / m1 c4 / Benchmark", "h200", "cancelled", 4, 1);
    canary["created_at"] = json!(at(2, 0));
    canary["runner_name"] = json!("");
    let hosted = job("Decide", "ubuntu-24.04", "success", 0, 2);
    github
        .on(RUN, started(1))
        .on(&attempt(1), jobs(&[hosted, canary, first]));
    let (output, summary) = counted(&github, folder.path(), &["--run-id", "77"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        summary.contains("queued after 2 min, and taken after 7 min"),
        "{summary}"
    );
}

#[test]
fn another_runs_jobs_are_those_of_all_its_attempts() {
    let (github, folder) = (GitHub::new(), tempfile::tempdir().expect("a folder"));
    let mut other = run(55, "success");
    other["run_attempt"] = json!(3);
    github.on("GET /repos/acme/bench/actions/runs/55", other);
    for number in 1..=3 {
        let path = format!("GET /repos/acme/bench/actions/runs/55/attempts/{number}/jobs");
        github.on(&path, json!({ "total_count": 0, "jobs": [] }));
    }
    let (output, summary) = counted(&github, folder.path(), &["--run-id", "55"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(summary.contains("No job was taken by a runner."), "{summary}");
    let asked = github.requests();
    assert!(
        (1..=3).all(|n| asked
            .iter()
            .any(|what| what.contains(&format!("/55/attempts/{n}/jobs")))),
        "{asked:?}"
    );
    let (output, _) = counted(&github, folder.path(), &["--run-id", "56"]);
    assert!(stderr(&output).contains("`actions: read`"), "{}", stderr(&output));
    assert_eq!(stdout(&output), "");
}

#[test]
fn without_a_plan_the_hours_of_gpus_are_not_known_and_a_run_is_named_by_its_page() {
    let (github, folder) = (GitHub::new(), tempfile::tempdir().expect("a folder"));
    let jobs = json!({ "total_count": 1, "jobs": [launched("m1 c64", "h200", 1, 60, [20, 5])] });
    let path = format!("{}?per_page=100&page=1", attempt(1));
    github.on(RUN, started(1)).on(&path, jobs);
    let mut command = github.command(folder.path());
    let address = format!("{}/acme/bench/actions/runs/77", "https://github.com");
    let output = command
        .args(["stats", "--json", "--run-id", &address])
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let printed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(printed["all"]["gpu_hours"], Value::Null);
    assert_eq!(printed["all"]["hours"], 1.0);
}
