//! How a run ended, told to others: the comment, the statistics, and the event for another repository.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use super::server::{GitHub, Reply, comment, keeps_the_token, run, sha};
use crate::fixture::envelope;
use crate::support::{stderr, stdout, terminal, write};

const COMMENTS: &str = "GET /repos/acme/bench/issues/12/comments";
const ADD: &str = "POST /repos/acme/bench/issues/12/comments";
const MARKER: &str = "<!-- sweepctl: how the sweep ended -->";

fn verdict(problems: &[String]) -> Value {
    json!({
        "ok": problems.is_empty(), "reason": "Something happened.", "problems": problems,
        "buckets": [
            { "bucket": "canary", "job": "canary", "result": "success", "planned": 1, "done": 1, "failed": 0, "missing": 0 },
            { "bucket": "evals", "job": "sweep-evals", "result": "failure", "planned": 3, "done": null, "failed": null, "missing": null },
        ],
    })
}

fn commented(github: &GitHub, folder: &Path, verdict: &Value) -> Output {
    write(folder, "verdict.json", verdict.to_string());
    let mut command = github.command(folder);
    command
        .args([
            "comment",
            "--pr",
            "12",
            "--commit",
            &sha('b'),
            "--verdict",
            "verdict.json",
        ])
        .env("GITHUB_RUN_ID", "77");
    let output = command.output().expect("the binary runs");
    keeps_the_token(&output);
    output
}

/// What was written: each request with the comment's text.
fn written(github: &GitHub) -> Vec<(String, String)> {
    let writes = github
        .asked()
        .into_iter()
        .filter(|asked| !asked.what.starts_with("GET"));
    writes
        .map(|asked| {
            (
                asked.what.clone(),
                asked.json()["body"].as_str().expect("a text").to_owned(),
            )
        })
        .collect()
}

fn github() -> GitHub {
    let github = GitHub::new();
    github
        .on(COMMENTS, json!([comment(1, "bob", "MEMBER", "Nice")]))
        .on(ADD, Reply::json(201, &json!({ "id": 9 })))
        .on("PATCH /repos/acme/bench/issues/comments/5", json!({ "id": 5 }));
    github
}

#[test]
fn one_comment_is_written_and_then_changed() {
    let (github, folder) = (github(), tempfile::tempdir().expect("a folder"));
    let output = commented(&github, folder.path(), &verdict(&[]));
    assert!(output.status.success(), "{}", stderr(&output));
    let (what, body) = written(&github).remove(0);
    assert_eq!(what, ADD);
    assert_eq!(
        body,
        format!(
            "{MARKER}\n### Sweep of bbbbbbbbb succeeded\n\nSomething happened.\n\n\
             | Bucket | Planned | Done | Failed | Missing |\n| --- | --- | --- | --- | --- |\n\
             | canary | 1 | 1 | 0 | 0 |\n| evals | 3 | ? | ? | ? |\n\n\
             [Jobs, results and reasons](https://github.com/acme/bench/actions/runs/77)\n"
        )
    );
    // Somebody else's comment with the marker stays theirs.
    let others = comment(4, "mallory", "NONE", &format!("{MARKER}\nHello"));
    let own = |body: &str| comment(5, "github-actions[bot]", "NONE", body);
    github.on(
        COMMENTS,
        json!([others, own("Welcome!"), own(&format!("{MARKER}\nOld"))]),
    );
    let failed = verdict(&["`sweep-evals` failed, with 3 jobs planned".to_owned()]);
    assert!(commented(&github, folder.path(), &failed).status.success());
    let (what, body) = written(&github).remove(1);
    assert_eq!(what, "PATCH /repos/acme/bench/issues/comments/5");
    assert!(body.contains("### Sweep of bbbbbbbbb failed"), "{body}");
    // The same once more needs no change.
    github.on(COMMENTS, json!([others, own(&body)]));
    assert!(commented(&github, folder.path(), &failed).status.success());
    assert_eq!(written(&github).len(), 2);
}

#[test]
fn what_jobs_say_mentions_nobody_and_holds_no_markup() {
    let (github, folder) = (github(), tempfile::tempdir().expect("a folder"));
    let hostile = "m1 (0123456789ab) of `x` failed: @acme/everyone see #1 and GH-2, <img src=x onerror=y> \
                   [a](https://evil.example) www.evil.example --> | a | b |\n# Big\n::error::x /reuse-sweep-run";
    let output = commented(&github, folder.path(), &verdict(&[hostile.to_owned()]));
    assert!(output.status.success(), "{}", stderr(&output));
    let (_, body) = written(&github).remove(0);
    let line = body
        .lines()
        .find(|line| line.contains("0123456789ab"))
        .expect("the problem");
    for part in ["@a", "#1", "GH-2", "<img", "[a](", "://", "www.e", "-->"] {
        assert!(!line.contains(part), "{part}: {line}");
    }
    assert!(line.contains(r"\[a\](https"), "{line}");
    assert!(line.starts_with("| m1 ") && line.ends_with(" |"), "{line}");
    assert!(
        !body
            .lines()
            .any(|line| line.starts_with("# ") || line.starts_with("::") || line.starts_with('/')),
        "{body}"
    );
}

#[test]
fn a_comment_has_a_bound() {
    let (github, folder) = (github(), tempfile::tempdir().expect("a folder"));
    let problems: Vec<String> = (0..1000).map(|n| format!("{n} {}", "&|".repeat(4000))).collect();
    assert!(commented(&github, folder.path(), &verdict(&problems)).status.success());
    let (_, body) = written(&github).remove(0);
    assert!(
        body.len() < 65_536 && body.contains("And 970 more."),
        "{} bytes",
        body.len()
    );
    let output = commented(&github, folder.path(), &json!({ "ok": true }));
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("is no verdict"), "{}", stderr(&output));
}

#[test]
fn the_verdict_is_what_the_comment_reads() {
    let (github, folder) = (github(), tempfile::tempdir().expect("a folder"));
    let needs = json!({
        "decide": { "result": "failure", "outputs": {} },
    });
    write(folder.path(), "needs.json", needs.to_string());
    let mut command = github.command(folder.path());
    let output = command
        .args([
            "verdict",
            "--needs",
            "needs.json",
            "--plan",
            "plan",
            "--output",
            "told.json",
        ])
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    let told = std::fs::read_to_string(folder.path().join("told.json")).expect("a verdict");
    assert!(
        commented(&github, folder.path(), &serde_json::from_str(&told).expect("JSON"))
            .status
            .success()
    );
    assert!(
        written(&github)[0].1.contains("decide\\` failed"),
        "{}",
        written(&github)[0].1
    );
}

/// A job with minutes in the queue and on a runner.
fn job(name: &str, label: &str, conclusion: &str, queued: u64, ran: u64) -> Value {
    let minute = |minute: u64| format!("2026-10-01T{:02}:{:02}:00Z", 8 + minute / 60, minute % 60);
    let skipped = conclusion == "skipped";
    json!({
        "id": 1, "run_id": 77, "name": name, "status": "completed", "conclusion": conclusion, "labels": [label],
        "runner_name": if skipped { "".to_owned() } else { format!("{label}_0") },
        "created_at": minute(0), "started_at": minute(queued), "completed_at": minute(queued + ran),
        "html_url": "https://github.com/acme/bench/actions/runs/77/job/1", "steps": [], "run_attempt": 2,
    })
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
fn queues_and_gpu_hours_are_counted_by_label() {
    let (github, folder) = (GitHub::new(), tempfile::tempdir().expect("a folder"));
    let mut jobs = vec![
        job("Decide", "ubuntu-24.04", "success", 1, 3),
        job("One node, 8k1k / m1 c64 / Benchmark", "h200", "success", 90, 60),
        job("One node, 8k1k / m1 c8 / Benchmark", "h200", "failure", 10, 30),
        job("Evals", "h200", "skipped", 0, 0),
    ];
    jobs.extend((0..98).map(|n| job(&format!("Fetch {n}"), "ubuntu-24.04", "success", 0, 1)));
    let page = |jobs: &[Value]| json!({ "total_count": 102, "jobs": jobs });
    let path = "GET /repos/acme/bench/actions/runs/77/attempts/2/jobs?per_page=100&page=";
    github
        .on(&format!("{path}1"), page(&jobs[..100]))
        .on(&format!("{path}2"), page(&jobs[100..]));
    write(
        folder.path(),
        "plan",
        json!([envelope("00000000000a", 64), envelope("00000000000b", 8)]).to_string(),
    );
    let (output, summary) = counted(&github, folder.path(), &["--plan", "plan"]);
    assert!(output.status.success(), "{}", stderr(&output));
    // One request for a hundred jobs.
    assert_eq!(github.requests().len(), 2);
    for line in [
        "| h200 | 2 | 1 | 1.50 | 12.00 | 90 |",
        "| ubuntu-24.04 | 99 | 0 | 1.68 | 0.00 | 1 |",
        "| all | 101 | 1 | 3.18 | 12.00 | 90 |",
        "Longest in the queue, 90 min: One node, 8k1k / m1 c64 / Benchmark",
    ] {
        assert!(summary.contains(line), "{line}: {summary}");
    }
    let mut command = github.command(folder.path());
    command
        .env("NO_COLOR", "1")
        .env("GITHUB_RUN_ID", "77")
        .env("GITHUB_RUN_ATTEMPT", "2");
    terminal::held("screen_stats", command.args(["stats", "--plan", "plan"]));
    let kept = std::fs::read(folder.path().join("run_stats.json")).expect("the file");
    let kept: Value = serde_json::from_slice(&kept).expect("JSON");
    assert_eq!(kept.as_array().map(Vec::len), Some(102));
    let times = |index: usize| ["queue_seconds", "run_seconds", "gpus"].map(|name| kept[index][name].clone());
    assert_eq!(times(1), [json!(5400), json!(3600), json!(8)]);
    assert_eq!(times(3), [Value::Null, Value::Null, Value::Null]);
    assert_eq!(kept[0]["conclusion"], "success");
}

#[test]
fn another_runs_jobs_are_those_of_its_latest_attempt() {
    let (github, folder) = (GitHub::new(), tempfile::tempdir().expect("a folder"));
    let mut other = run(55, "success");
    other["run_attempt"] = json!(3);
    github.on("GET /repos/acme/bench/actions/runs/55", other).on(
        "GET /repos/acme/bench/actions/runs/55/attempts/3/jobs",
        json!({ "total_count": 0, "jobs": [] }),
    );
    let (output, summary) = counted(&github, folder.path(), &["--run-id", "55"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(summary.contains("No job was taken by a runner."), "{summary}");
    let (output, _) = counted(&github, folder.path(), &["--run-id", "56"]);
    assert!(stderr(&output).contains("`actions: read`"), "{}", stderr(&output));
    assert_eq!(stdout(&output), "");
}

#[test]
fn another_repository_is_told_once() {
    let (github, folder) = (GitHub::new(), tempfile::tempdir().expect("a folder"));
    let what = "POST /repos/acme/results/dispatches";
    let tell = |more: &[&str]| {
        let mut command = github.command(folder.path());
        command
            .args(["ingest", "--to", "acme/results", "--event-type", "sweep-done"])
            .args(more);
        let output = command
            .env("GITHUB_RUN_ID", "77")
            .env("GITHUB_RUN_ATTEMPT", "2")
            .output()
            .expect("it runs");
        keeps_the_token(&output);
        output
    };
    github.on(what, Reply::text(204, ""));
    assert!(tell(&[]).status.success());
    assert!(tell(&["--reused-run", "55"]).status.success());
    let mut payload = json!({ "repository": "acme/bench", "run_id": "77", "run_attempt": "2" });
    let asked = github.asked();
    assert_eq!(
        asked[0].json(),
        json!({ "event_type": "sweep-done", "client_payload": payload })
    );
    payload["reused_run_id"] = json!("55");
    assert_eq!(asked[1].json()["client_payload"], payload);
    github.on(what, Reply::message(503, "busy"));
    let output = tell(&[]);
    assert_eq!((output.status.code(), github.requests().len()), (Some(1), 3));
    // Something that answers everything is not GitHub.
    github.on(what, Reply::text(200, "<html>"));
    let output = tell(&[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("the status is 200, where 204"),
        "{}",
        stderr(&output)
    );
    github.on(what, Reply::message(404, "Not Found"));
    let said = stderr(&tell(&[]));
    assert!(said.contains("`contents: write`"), "{said}");
}
