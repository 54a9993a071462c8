//! `sweepctl watch`: a run by bucket and state, what waits, what failed, and who is there.

use std::process::Command;

use serde_json::{Value, json};

use super::run_jobs::{RUN, ago, attempt, github, job, jobs, on_gpu, step};
use super::server::{GitHub, Reply, TOKEN, keeps_the_token, run};
use crate::fixture::envelope;
use crate::support::{stderr, terminal, write};

const LOG: &str = "GET /repos/acme/bench/actions/jobs/103/logs";

/// A job of the throughput bucket that failed at its launch.
fn failed() -> Value {
    let mut failed = job(103, &on_gpu("One node, 8k1k", "m1 c64"), "failure", "h200");
    failed["steps"] = json!([
        step("Set up job", "success", "2026-10-01T08:00:00Z", "2026-10-01T08:00:01Z"),
        step("Launch", "failure", "2026-10-01T08:00:02Z", "2026-10-01T08:00:04Z"),
        step(
            "Release the node",
            "success",
            "2026-10-01T08:00:05Z",
            "2026-10-01T08:00:09Z"
        ),
    ]);
    failed
}

fn log() -> String {
    let wide = "a line that is longer than any terminal of these tests is wide, so that it must be cut ".repeat(3);
    [
        "2026-10-01T08:00:01.0000000Z set up",
        "2026-10-01T08:00:02.5000000Z loading weights of m1",
        &format!("2026-10-01T08:00:03.0000000Z {wide}"),
        "2026-10-01T08:00:03.1000000Z \u{1b}[31mCUDA error: out of memory\u{1b}[0m",
        "2026-10-01T08:00:04.9990000Z ##[error]Process completed with exit code 72.",
        "2026-10-01T08:00:09.0000000Z released",
    ]
    .join("\n")
}

/// A run that goes on: its canary is done, one job failed, and others run and wait.
fn going_on() -> GitHub {
    let mut waits = job(105, &on_gpu("Evals", "m1 c16 eval"), "queued", "b200");
    waits["created_at"] = json!(ago(19 * 3600 + 90));
    let github = github(
        "in_progress",
        "",
        &[
            job(101, "Decide", "success", "ubuntu-24.04"),
            job(102, "Canary / m1 c4 / Benchmark", "success", "h200"),
            failed(),
            job(104, &on_gpu("One node, 8k1k", "m1 c8"), "in_progress", "h200"),
            waits,
            job(106, &on_gpu("One node, 8k1k", "m1 c16"), "queued", "h200"),
            job(107, "One node, 1k1k", "skipped", "h200"),
        ],
    );
    github.on(LOG, Reply::text(200, log()));
    github
}

fn watch(github: &GitHub, more: &[&str]) -> Value {
    let output = github.run(&[&["watch", "77"], more].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn line<'v>(snapshot: &'v Value, bucket: &str) -> &'v Value {
    let lines = snapshot["buckets"].as_array().expect("a list");
    lines
        .iter()
        .find(|line| line["bucket"] == bucket)
        .unwrap_or(&Value::Null)
}

#[test]
fn a_snapshot_counts_jobs_by_bucket_and_state() {
    let github = going_on();
    let snapshot = watch(&github, &[]);
    let counts = |bucket: &str| {
        let names = ["waiting", "queued", "running", "done", "failed", "cancelled", "skipped"];
        names.map(|name| line(&snapshot, bucket)[name].as_u64().unwrap_or(99))
    };
    assert_eq!(counts("canary"), [0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(counts("single_node_8k1k"), [0, 1, 1, 0, 1, 0, 0]);
    assert_eq!(counts("evals"), [0, 1, 0, 0, 0, 0, 0]);
    assert_eq!(counts("hosted"), [0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(line(&snapshot, "single_node_1k1k"), &Value::Null);
    assert_eq!(
        (&snapshot["status"], &snapshot["conclusion"]),
        (&json!("in_progress"), &Value::Null)
    );
    let queued = &snapshot["oldest-queued"];
    assert_eq!(
        (&queued["name"], &queued["limit-seconds"]),
        (&json!("m1 c16 eval"), &json!(86_400))
    );
    assert!(
        (68_490..68_570).contains(&queued["seconds"].as_u64().expect("seconds")),
        "{queued}"
    );
    let notes = snapshot["notes"].to_string();
    assert!(notes.contains("24 hours") && notes.contains("4 h 5"), "{notes}");
    // One look: the run, its jobs, and the log of the one that failed.
    assert_eq!(github.requests().len(), 3, "{:?}", github.requests());
}

#[test]
fn a_failed_job_shows_the_last_lines_of_its_failed_step() {
    let snapshot = watch(&going_on(), &["--lines", "2"]);
    let failed = &snapshot["failed"][0];
    assert_eq!((&failed["name"], &failed["step"]), (&json!("m1 c64"), &json!("Launch")));
    assert_eq!(failed["bucket"], "single_node_8k1k");
    assert_eq!(
        failed["lines"],
        json!([
            "CUDA error: out of memory",
            "error: Process completed with exit code 72."
        ])
    );
    // A log that is gone takes nothing away.
    let github = going_on();
    github.on(LOG, Reply::message(410, "Gone"));
    let lines = watch(&github, &[])["failed"][0]["lines"].to_string();
    assert!(lines.contains("cannot be read") && lines.contains("410"), "{lines}");
    let none = watch(&github, &["--lines", "0"]);
    assert_eq!(none["failed"][0]["lines"], json!([]));
}

#[test]
fn a_log_elsewhere_is_read_without_the_token() {
    let (github, storage) = (going_on(), GitHub::new());
    storage.on("GET /logs/103.txt", Reply::text(200, log()));
    github.on(
        LOG,
        Reply::text(302, "").header("location", format!("{}/logs/103.txt?sig=x", storage.url())),
    );
    let snapshot = watch(&github, &[]);
    assert!(
        snapshot["failed"][0]["lines"].to_string().contains("out of memory"),
        "{snapshot}"
    );
    let asked = storage.asked();
    assert_eq!(asked.len(), 1);
    for (name, value) in &asked[0].headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        assert!(!value.contains(TOKEN) && name != "authorization", "{name}: {value}");
    }
}

#[test]
fn the_end_of_a_large_log_is_found() {
    let github = going_on();
    let mut large = "2026-10-01T08:00:02.5000000Z nothing to see\n".repeat(400_000);
    large.push_str(&log());
    github.on(LOG, Reply::text(200, large));
    let snapshot = watch(&github, &["--lines", "1"]);
    assert_eq!(
        snapshot["failed"][0]["lines"],
        json!(["error: Process completed with exit code 72."])
    );
}

#[test]
fn a_plan_says_what_github_has_not_made_yet() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan: Vec<Value> = (0..5)
        .map(|n| {
            let mut planned = envelope(&format!("00000000000{n}"), 8 << n);
            planned["name"] = json!(format!("job {n}"));
            planned
        })
        .collect();
    write(folder.path(), "plan", json!(plan).to_string());
    // The name of its envelope tells the bucket of a job whose workflow calls it otherwise.
    let all = [
        job(1, "Sweep / job 0 / Run", "in_progress", "h200"),
        job(2, "Evals (0) / job 1 / Benchmark", "success", "h200"),
    ];
    let look = |github: &GitHub| -> Value {
        let output = github
            .command(folder.path())
            .args(["watch", "77", "--plan", "plan"])
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let snapshot = look(&github("in_progress", "", &all));
    let evals = line(&snapshot, "evals");
    assert_eq!(
        [&evals["planned"], &evals["running"], &evals["done"], &evals["waiting"]],
        [&json!(5), &json!(1), &json!(1), &json!(3)]
    );
    // When the run is over they were never run.
    let snapshot = look(&github("completed", "failure", &all[1..]));
    let evals = line(&snapshot, "evals");
    assert_eq!(
        [&evals["done"], &evals["waiting"], &evals["skipped"]],
        [&json!(1), &json!(0), &json!(4)]
    );
}

fn runner(name: &str, status: &str, busy: bool, labels: &[&str]) -> Value {
    let labels: Vec<Value> = labels
        .iter()
        .map(|name| json!({ "id": 1, "name": name, "type": "custom" }))
        .collect();
    json!({ "id": 1, "name": name, "os": "linux", "status": status, "busy": busy, "ephemeral": true, "labels": labels })
}

#[test]
fn pools_hold_runners_against_jobs() {
    let github = going_on();
    let own = json!({ "total_count": 3, "runners": [
        runner("h200_0", "online", true, &["self-hosted", "H200"]),
        runner("h200_1", "offline", false, &["self-hosted", "h200"]),
        runner("cpu_0", "online", false, &["self-hosted"]),
    ]});
    github.on("GET /repos/acme/bench/actions/runners", own);
    let of_owner = json!({ "total_count": 1, "runners": [runner("h200_2", "online", false, &["h200"])] });
    github.on("GET /orgs/acme/actions/runners", of_owner);
    let pools = watch(&github, &["--pools"])["pools"].clone();
    assert_eq!(
        pools[0],
        json!({ "label": "h200", "runners": 3, "online": 2, "busy": 1, "running": 1, "queued": 1 })
    );
    assert_eq!(
        pools[1],
        json!({ "label": "b200", "runners": 0, "online": 0, "busy": 0, "running": 0, "queued": 1 })
    );
    // A token that may not see them is told what it needs, and the jobs are counted all the same.
    for path in [
        "GET /repos/acme/bench/actions/runners",
        "GET /orgs/acme/actions/runners",
    ] {
        github.on(path, Reply::message(403, "Resource not accessible by integration"));
    }
    let snapshot = watch(&github, &["--pools"]);
    assert_eq!(
        (&snapshot["pools"][0]["online"], &snapshot["pools"][0]["queued"]),
        (&Value::Null, &json!(1))
    );
    let notes = snapshot["notes"].to_string();
    assert!(notes.contains("runners of the repository are not counted"), "{notes}");
}

#[test]
fn a_run_is_shown_on_80_and_120_columns() {
    let github = going_on();
    let own = json!({ "total_count": 1, "runners": [runner("h200_0", "online", true, &["h200"])] });
    github.on("GET /repos/acme/bench/actions/runners", own);
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = github.command(folder.path());
    terminal::held("screen_watch", command.args(["watch", "77", "--once", "--pools"]));
}

#[test]
fn a_terminal_is_refreshed_until_the_run_ends() {
    let github = going_on();
    let (mut first, mut last) = (run(77, "failure"), run(77, "failure"));
    first["status"] = json!("in_progress");
    first["conclusion"] = Value::Null;
    last["run_started_at"] = json!(ago(60));
    let tagged = |reply: Value| Reply::from(reply).header("etag", "\"one\"");
    github.in_turn(RUN, vec![tagged(first), Reply::text(304, ""), last.into()]);
    github.in_turn(&attempt(1), vec![tagged(jobs(&[failed()])), Reply::text(304, "")]);
    let folder = tempfile::tempdir().expect("a folder");
    let mut command: Command = github.command(folder.path());
    let shown = terminal::shown(command.args(["watch", "77", "--interval", "1"]), 100);
    // Three looks, each but the first in the place of the one before.
    assert_eq!(shown.matches("Run 77 of acme/bench").count(), 3, "{shown}");
    assert_eq!(shown.matches("\u{1b}[J").count(), 2, "{shown:?}");
    assert!(shown.contains("ended as failure"), "{shown}");
    // What has not changed is asked for by its tag, and the log once.
    let asked = github.asked();
    let tags = asked
        .iter()
        .filter(|asked| asked.headers.contains_key("if-none-match"))
        .count();
    assert_eq!((tags, asked.len()), (4, 7), "{:?}", github.requests());
}

#[test]
fn a_run_is_named_by_its_address_too() {
    let github = going_on();
    let ask = |address: &str, more: &[&str]| {
        let output = github.run(&[&["watch", address], more].concat());
        keeps_the_token(&output);
        output
    };
    let page = "https://github.com/acme/bench/actions/runs/77/job/3?pr=12";
    assert!(ask(page, &[]).status.success());
    for (address, more, code, words) in [
        (
            "https://github.com/acme/bench/actions/runs/77",
            &["--repo", "acme/other"][..],
            1,
            "--repo names acme/other",
        ),
        (
            "https://evil.example/acme/bench/actions/runs/77",
            &[],
            1,
            "https://github.com is asked",
        ),
        (
            "http://github.com/acme/bench/actions/runs/77",
            &[],
            2,
            "the address of its page",
        ),
        ("seven", &[], 2, "the number of a run"),
        ("78", &[], 1, "`actions: read`"),
    ] {
        let output = ask(address, more);
        assert_eq!(output.status.code(), Some(code), "{address}: {}", stderr(&output));
        assert!(stderr(&output).contains(words), "{address}: {}", stderr(&output));
    }
}
