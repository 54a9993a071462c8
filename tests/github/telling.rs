//! How a run ended, told to others: the comment, the statistics, and the event for another repository.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use super::server::{GitHub, Reply, comment, keeps_the_token, sha};
use crate::support::{stderr, write};

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

/// A comparison as `sweepctl compare --output` writes it, of two folders of results.
fn compared(folder: &Path, before: &[(u64, f64, f64)], after: &[(u64, f64, f64)]) {
    let row = |(conc, throughput, ttft): &(u64, f64, f64)| {
        json!({
            "hw": "h200", "conc": conc, "image": "img:1", "model": "org/model", "infmax_model_prefix": "m1",
            "framework": "vllm", "precision": "fp8", "spec_decoding": "none", "disagg": false, "isl": 8192, "osl": 1024,
            "is_multinode": false, "tp": 8, "tput_per_gpu": throughput, "median_ttft": ttft,
        })
    };
    for (side, rows) in [("before", before), ("after", after)] {
        let rows: Vec<Value> = rows.iter().map(row).collect();
        write(folder, &format!("{side}/agg_bmk.json"), json!(rows).to_string());
    }
    let output = crate::support::run(folder, ["compare", "before", "after", "--output", "comparison.json"]);
    assert!(output.status.success(), "{}", stderr(&output));
}

fn commented_with_changes(github: &GitHub, folder: &Path) -> Output {
    write(folder, "verdict.json", verdict(&[]).to_string());
    let commit = sha('b');
    let args = [
        "comment",
        "--pr",
        "12",
        "--commit",
        &commit,
        "--verdict",
        "verdict.json",
        "--comparison",
        "comparison.json",
    ];
    let output = github
        .command(folder)
        .args(args)
        .env("GITHUB_RUN_ID", "77")
        .output()
        .expect("the binary runs");
    keeps_the_token(&output);
    output
}

#[test]
fn what_changed_most_stands_first_in_the_comment() {
    let (github, folder) = (github(), tempfile::tempdir().expect("a folder"));
    let before = [
        (4, 100.0, 1.0),
        (8, 200.0, 1.0),
        (16, 300.0, 1.0),
        (32, 400.0, 1.0),
        (64, 500.0, 1.0),
    ];
    let after = [
        (4, 100.2, 1.0),
        (8, 190.0, 1.0),
        (16, 300.0, 1.4),
        (32, 520.0, 1.02),
        (128, 600.0, 1.0),
    ];
    compared(folder.path(), &before, &after);
    let output = commented_with_changes(&github, folder.path());
    assert!(output.status.success(), "{}", stderr(&output));
    let (_, body) = written(&github).remove(0);
    let lines: Vec<&str> = body.lines().filter(|line| line.contains("h200")).collect();
    let wanted = [
        ("c16 ", "median\u{5f}ttft", "+40.0 %), worse"),
        ("c32 ", "tput", "+30.0 %)"),
        ("c8 ", "tput", "-5.0 %), worse"),
    ];
    assert_eq!(lines.len(), 3, "{body}");
    for (line, (point, metric, change)) in lines.iter().zip(wanted) {
        assert!(
            line.contains(point) && line.contains(metric) && line.contains(change),
            "{point}: {line}"
        );
    }
    assert!(!lines[1].contains("worse"), "{body}");
    assert!(
        body.contains("1 measurement did not change beyond noise; 1 new, 1 gone."),
        "{body}"
    );
    // Nothing to compare with is said, and no failure; a file of something else is one.
    compared(folder.path(), &[], &after);
    assert!(commented_with_changes(&github, folder.path()).status.success());
    assert!(
        written(&github)[1]
            .1
            .contains("nothing that both this sweep and the earlier results have")
    );
    write(folder.path(), "comparison.json", "[]");
    let output = commented_with_changes(&github, folder.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("is no comparison"), "{}", stderr(&output));
}

#[test]
fn a_comment_lists_the_ten_largest_changes() {
    let (github, folder) = (github(), tempfile::tempdir().expect("a folder"));
    let point = |n: u64, by: f64| (n, 100.0 * by, 1.0);
    let before: Vec<_> = (1..=300).map(|n| point(n, 1.0)).collect();
    let after: Vec<_> = (1..=300)
        .map(|n| point(n, 1.0 + f64::from(u32::try_from(n).expect("small")) / 100.0))
        .collect();
    compared(folder.path(), &before, &after);
    assert!(commented_with_changes(&github, folder.path()).status.success());
    let (_, body) = written(&github).remove(0);
    assert!(
        body.contains(" c300 ") && body.contains(" c291 ") && !body.contains(" c290 "),
        "{body}"
    );
    assert!(body.contains("290 more changed less.") && body.len() < 65_536, "{body}");
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
