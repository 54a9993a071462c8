//! `sweepctl provenance`: what a run's results come from, in one record.

use base64::Engine;
use serde_json::{Value, json};

use super::run_jobs::{RUN, ago, attempt, job, jobs, on_gpu};
use super::server::{GitHub, Reply, pull, run, sha};
use crate::fixture::envelope;
use crate::support::{project, stderr, write};

const EVENTS: &str = "GET /repos/acme/bench/issues/12/events";

fn event(what: &str, label: &str, at: &str) -> Value {
    json!({ "id": 1, "event": what, "created_at": at, "label": { "name": label, "color": "fff" }, "actor": { "login": "bob" } })
}

fn settings_path() -> String {
    format!("GET /repos/acme/bench/contents/configs/workflows.yaml?ref={}", sha('b'))
}

/// Run 77: a pull request's, in two attempts.
fn github() -> GitHub {
    let github = GitHub::new();
    let mut swept = run(77, "success");
    swept["run_attempt"] = json!(2);
    swept["pull_requests"] = json!([{ "number": 12, "id": 1, "head": {}, "base": {} }]);
    swept["referenced_workflows"] = json!([{ "path": "acme/bench/.github/workflows/sweep-shard.yml@refs/pull/12/merge", "sha": sha('c'), "ref": "x" }]);
    let failed = job(5, &on_gpu("Evals", "m1 c8"), "failure", "h200");
    let mut passed = job(6, &on_gpu("Evals", "m1 c8"), "success", "h200");
    passed["started_at"] = json!(ago(500));
    let decided = job(4, "Decide", "success", "ubuntu-24.04");
    let text = std::fs::read_to_string(project().join("configs/workflows.yaml")).expect("a file");
    let mut content = base64::engine::general_purpose::STANDARD.encode(text);
    content.insert(60, '\n');
    github
        .on(RUN, swept)
        .on(&attempt(1), jobs(&[decided.clone(), failed]))
        .on(&attempt(2), jobs(&[decided, passed]))
        .on(
            EVENTS,
            json!([
                event("labeled", "sweep-enabled", "2026-10-01T08:00:00Z"),
                event("labeled", "bug", "2026-10-01T08:10:00Z"),
                event("unlabeled", "sweep-enabled", "2026-10-01T08:20:00Z"),
                { "id": 2, "event": "renamed", "created_at": "2026-10-01T08:30:00Z" },
                event("labeled", "full-sweep-enabled", "2026-10-01T08:59:59Z"),
                event("labeled", "evals-only", "2026-10-01T09:30:00Z"),
            ]),
        )
        .on(&settings_path(), json!({ "type": "file", "encoding": "base64", "content": content, "path": "configs/workflows.yaml" }))
        .on(
            "GET /repos/acme/bench/actions/runs/77/artifacts",
            json!({ "total_count": 2, "artifacts": [
                { "id": 9, "name": "results_bmk", "size_in_bytes": 731, "expired": false, "digest": "sha256:12", "created_at": "2026-10-01T19:00:00Z" },
                { "id": 3, "name": "sweepctl", "size_in_bytes": 99, "expired": true, "digest": "sha256:34", "created_at": "2026-10-01T09:01:00Z" },
            ]}),
        );
    github
}

fn provenance(github: &GitHub, folder: &std::path::Path, more: &[&str]) -> Value {
    let output = github
        .command(folder)
        .args([&["provenance", "77"], more].concat())
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn a_record_says_what_made_the_results() {
    let (github, folder) = (github(), tempfile::tempdir().expect("a folder"));
    let mut other = envelope("00000000000b", 8);
    other["row"]["image"] = json!("img:2");
    other["overrides"] = json!({ "eval-limit": "10" });
    let index = json!({
        "jobs": 2, "throughput-jobs": 0, "eval-jobs": 2, "asked": { "trim-conc": true },
        "buckets": { "evals": { "jobs": 2, "shards": [{ "jobs": 2, "max-parallel": 1 }] } },
    });
    write(folder.path(), "plan/index.json", index.to_string());
    write(
        folder.path(),
        "plan/evals/0.json",
        json!([envelope("00000000000a", 64), other]).to_string(),
    );
    let compared = json!({ "base_ref": sha('9'), "head_ref": sha('b'), "entries": [] });
    write(folder.path(), "plan/changelog_metadata.json", compared.to_string());
    let record = provenance(&github, folder.path(), &["--plan", "plan"]);
    assert_eq!(
        (&record["commit"], &record["base"]),
        (&json!(sha('b')), &json!(sha('9')))
    );
    assert_eq!(
        (&record["run"]["event"], &record["pull-request"]),
        (&json!("pull_request"), &json!(12))
    );
    // The labels of then, not of now.
    assert_eq!(record["labels"], json!(["bug", "full-sweep-enabled"]));
    let plan = &record["plan"];
    assert_eq!(
        (&plan["jobs"], &plan["asked"]),
        (&json!(2), &json!({ "trim-conc": true }))
    );
    assert_eq!(
        (&plan["images"], &plan["overrides"]),
        (&json!(["img:1", "img:2"]), &json!([{ "eval-limit": "10" }]))
    );
    assert_eq!(
        record["tool"],
        json!({ "from": "build", "repository": "", "version": sha('b'), "digest": "sha256:34" })
    );
    let checkout = &record["actions"]["actions/checkout"];
    assert_eq!(checkout["sha"].as_str().map(str::len), Some(40), "{record}");
    assert_eq!(record["workflows"][0]["sha"], sha('c'));
    // Deciding was done once, though GitHub lists it in both attempts.
    let attempts = json!([
        { "attempt": 1, "jobs": 2, "not-successful": 1 },
        { "attempt": 2, "jobs": 1, "not-successful": 0 },
    ]);
    assert_eq!(record["attempts"], attempts);
    let artifact = &record["artifacts"][1];
    assert_eq!(
        (&artifact["name"], &artifact["digest"], &artifact["bytes"]),
        (&json!("results_bmk"), &json!("sha256:12"), &json!(731))
    );
    assert_eq!((&record["reused-run"], &record["notes"]), (&Value::Null, &json!([])));
}

#[test]
fn two_plans_that_measure_the_same_have_one_digest() {
    let (github, folder) = (github(), tempfile::tempdir().expect("a folder"));
    let digest = |plan: Value| {
        write(folder.path(), "plan.json", plan.to_string());
        provenance(&github, folder.path(), &["--plan", "plan.json"])["plan"]["digest"].clone()
    };
    let (a, b) = (envelope("00000000000a", 64), envelope("00000000000b", 8));
    let mut fingerprinted = b.clone();
    fingerprinted["row"]["recipe-fingerprint"] = json!("1".repeat(64));
    let one = digest(json!([a, b]));
    assert!(
        one.as_str()
            .is_some_and(|digest| digest.len() == 71 && digest.starts_with("sha256:")),
        "{one}"
    );
    assert_eq!(digest(json!([b, a])), one);
    assert_ne!(digest(json!([a])), one);
    assert_ne!(digest(json!([a, fingerprinted])), one);
}

#[test]
fn what_is_not_known_is_noted() {
    let (github, folder) = (github(), tempfile::tempdir().expect("a folder"));
    github.on(EVENTS, Reply::message(403, "Resource not accessible by integration"));
    github.on(&settings_path(), Reply::message(404, "Not Found"));
    let record = provenance(&github, folder.path(), &[]);
    assert_eq!([&record["labels"], &record["plan"], &record["tool"]], [&Value::Null; 3]);
    let notes = record["notes"].to_string();
    for words in [
        "name a copy with --plan",
        "which labels its pull request had",
        "configs/workflows.yaml is not at its commit",
    ] {
        assert!(notes.contains(words), "{words}: {notes}");
    }
    // A file of another form is another tool's, or an older one's.
    let content = base64::engine::general_purpose::STANDARD.encode("workflows: [x]\n");
    github.on(&settings_path(), json!({ "encoding": "base64", "content": content }));
    let record = provenance(&github, folder.path(), &[]);
    assert!(record["notes"].to_string().contains("of another form"), "{record}");
}

#[test]
fn a_run_that_took_over_another_names_it() {
    let (github, folder) = (github(), tempfile::tempdir().expect("a folder"));
    let mut swept = run(77, "success");
    swept["event"] = json!("push");
    github
        .on(RUN, swept)
        .on(
            &format!("GET /repos/acme/bench/commits/{}/pulls", sha('b')),
            json!([pull(&[])]),
        )
        .on(
            &attempt(1),
            jobs(&[
                job(4, "Look for a sweep to reuse", "success", "ubuntu-24.04"),
                job(5, "Take over the results", "success", "ubuntu-24.04"),
            ]),
        );
    let log = "GET /repos/acme/bench/actions/jobs/4/logs";
    let line =
        "2026-10-01T08:00:03.0Z {\"reason\":\"Run 55 of bbbbbbbbb in pull request 12 stands in, as `alice` asked.\"}\n";
    github.on(
        log,
        Reply::text(200, format!("2026-10-01T08:00:02.0Z Run exec sweepctl reuse\n{line}")),
    );
    let record = provenance(&github, folder.path(), &[]);
    assert_eq!(
        (&record["reused-run"], &record["pull-request"]),
        (&json!(55), &json!(12))
    );
    github.on(log, Reply::text(200, "nothing"));
    let record = provenance(&github, folder.path(), &[]);
    assert_eq!(record["reused-run"], Value::Null);
    assert!(record["notes"].to_string().contains("no log says which"), "{record}");
}
