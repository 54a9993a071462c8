//! GitHub's REST API: pages with their tags, the hour's requests, and what is expired or gone.

use std::path::Path;
use std::process::Output;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::service::Artifact;
use super::{arrived, small, state};
use crate::github::server::{GitHub, Reply, TOKEN, keeps_the_token};
use crate::support::stderr;

const LIST: &str = "GET /repos/acme/bench/actions/runs/7/artifacts";

fn entry(artifact: &Artifact, expired: bool) -> Value {
    json!({
        "id": artifact.id, "node_id": "MDg6", "name": artifact.name, "size_in_bytes": artifact.content.len(),
        "url": format!("https://api.github.com/repos/acme/bench/actions/artifacts/{}", artifact.id),
        "expired": expired, "digest": artifact.digest(), "created_at": "2026-10-01T19:00:00Z",
        "expires_at": "2026-12-30T19:00:00Z", "workflow_run": { "id": 7, "head_branch": "topic" },
    })
}

fn page(artifacts: &[&Artifact]) -> Value {
    let entries: Vec<Value> = artifacts.iter().map(|artifact| entry(artifact, false)).collect();
    json!({ "total_count": entries.len(), "artifacts": entries })
}

fn zip_of(id: u64) -> String {
    format!("GET /repos/acme/bench/actions/artifacts/{id}/zip")
}

/// Lets an artifact be downloaded: a redirect to its content.
fn give(github: &GitHub, artifact: &Artifact) {
    let content = format!("/content/{}.zip", artifact.id);
    let address = format!("{}{content}?sig=aVerySecretSignature", github.url());
    github
        .on(&zip_of(artifact.id), Reply::text(302, "").header("location", address))
        .on(&format!("GET {content}"), Reply::text(200, artifact.content.clone()));
}

fn fetch(github: &GitHub, folder: &Path, args: &[&str]) -> Output {
    let mut command = github.command(folder);
    for name in ["ACTIONS_RESULTS_URL", "ACTIONS_RUNTIME_TOKEN"] {
        command.env_remove(name);
    }
    command.args(["fetch", "--run-id", "7", "--out", "o"]).args(args);
    let output = command.output().expect("it runs");
    keeps_the_token(&output);
    assert!(!stderr(&output).contains("aVerySecretSignature"), "{}", stderr(&output));
    output
}

fn count(github: &GitHub, what: &str) -> usize {
    github.requests().iter().filter(|asked| asked.starts_with(what)).count()
}

#[test]
fn artifacts_of_another_run_arrive_and_the_storage_gets_no_token() {
    let (folder, github) = (tempfile::tempdir().expect("a folder"), GitHub::new());
    let (older, newer) = (small(3, "results_bmk"), small(9, "results_bmk"));
    github.on(
        &format!("{LIST}?name=results_bmk&per_page=100&page=1"),
        page(&[&newer, &older]),
    );
    github.on(&format!("{LIST}?name=other&per_page=100&page=1"), page(&[]));
    give(&github, &newer);
    let output = fetch(&github, folder.path(), &["results_bmk", "--optional", "other"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        (&report["via"], &report["fetched"], &report["missing"]),
        (&json!("rest"), &json!(1), &json!(1))
    );
    assert_eq!(report["artifacts"][0]["id"], 9);
    for asked in github.asked() {
        let has_token = asked.headers.contains_key("authorization");
        assert_eq!(has_token, asked.what.starts_with("GET /repos/"), "{}", asked.what);
        if has_token {
            assert_eq!(asked.headers["authorization"], format!("Bearer {TOKEN}"));
            assert_eq!(asked.headers["x-github-api-version"], "2022-11-28");
        }
    }
    // What is here costs the list alone.
    assert!(fetch(&github, folder.path(), &["results_bmk"]).status.success());
    assert_eq!(count(&github, &zip_of(9)), 1);
}

#[test]
fn every_page_is_read_and_pages_that_have_not_changed_cost_nothing() {
    let (folder, github) = (tempfile::tempdir().expect("a folder"), GitHub::new());
    let all: Vec<Artifact> = (1..=230).map(|id| small(id, &format!("a{id}"))).collect();
    let all: Vec<&Artifact> = all.iter().collect();
    for (number, part) in (1..).zip(all.chunks(100)) {
        let tag = format!("\"page-{number}\"");
        let whole = Reply::from(page(part)).header("etag", &tag);
        let unchanged = Reply::text(304, "").header("etag", &tag);
        github.in_turn(&format!("{LIST}?per_page=100&page={number}"), vec![whole, unchanged]);
    }
    let names = ["a1", "a50", "a99", "a101", "a199", "a230"];
    for id in [1, 50, 99, 101, 199, 230] {
        give(&github, all[id - 1]);
    }
    assert!(fetch(&github, folder.path(), &names).status.success());
    assert_eq!(arrived(&folder.path().join("o")).len(), 6);
    // A second command, with what the first has kept.
    give(&github, all[149]);
    let output = fetch(&github, folder.path(), &[&names[..], &["a150"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let lists: Vec<_> = github
        .asked()
        .into_iter()
        .filter(|asked| asked.what.starts_with(LIST))
        .collect();
    let tags: Vec<Option<&str>> = lists
        .iter()
        .map(|asked| {
            asked
                .headers
                .get("if-none-match")
                .map(|tag| tag.to_str().expect("a tag"))
        })
        .collect();
    let wanted = [
        None,
        None,
        None,
        Some("\"page-1\""),
        Some("\"page-2\""),
        Some("\"page-3\""),
    ];
    assert_eq!(tags, wanted);
    assert_eq!(count(&github, "GET /content/"), 7);
}

#[test]
fn expired_gone_and_refused_are_told_apart() {
    let (folder, github) = (tempfile::tempdir().expect("a folder"), GitHub::new());
    let names = ["fine", "old", "older", "deleted", "secret", "busy"];
    let all: Vec<Artifact> = (1..).zip(names).map(|(id, name)| small(id, name)).collect();
    let entries: Vec<Value> = all
        .iter()
        .map(|artifact| entry(artifact, artifact.name == "old"))
        .collect();
    github.on(LIST, json!({ "total_count": 6, "artifacts": entries }));
    give(&github, &all[0]);
    give(&github, &all[5]);
    let redirect = Reply::text(302, "").header("location", format!("{}/content/6.zip", github.url()));
    github
        .on(&zip_of(3), Reply::message(410, "Artifact has expired"))
        .on(&zip_of(4), Reply::message(404, "Not Found"))
        .on(
            &zip_of(5),
            Reply::message(403, "Resource not accessible by integration"),
        )
        .in_turn(&zip_of(6), vec![Reply::message(502, "Server Error"), redirect]);
    let output = fetch(&github, folder.path(), &names);
    assert_eq!(output.status.code(), Some(1));
    let out = folder.path().join("o");
    let states: Vec<String> = names.iter().map(|name| state(&out, name).0).collect();
    assert_eq!(states, ["fetched", "expired", "expired", "failed", "failed", "fetched"]);
    assert!(
        state(&out, "deleted").1.contains("no longer"),
        "{:?}",
        state(&out, "deleted")
    );
    assert!(
        state(&out, "secret").1.contains("actions: read"),
        "{:?}",
        state(&out, "secret")
    );
    assert_eq!(
        count(&github, &zip_of(2)),
        0,
        "what the list calls expired is not asked for"
    );
    assert_eq!((count(&github, &zip_of(3)), count(&github, &zip_of(5))), (1, 1));
    assert_eq!(arrived(&out), ["busy/agg_r.json", "fine/agg_r.json"]);
}

#[test]
fn a_tenth_of_the_hours_requests_is_left_and_the_rest_arrives_later() {
    let (folder, github) = (tempfile::tempdir().expect("a folder"), GitHub::new());
    let names: Vec<String> = (1..=8).map(|id| format!("a{id}")).collect();
    let all: Vec<Artifact> = (1..).zip(&names).map(|(id, name)| small(id, name)).collect();
    github.on(LIST, page(&all.iter().collect::<Vec<_>>()));
    all.iter().for_each(|artifact| give(&github, artifact));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs();
    let low = Reply::text(302, "")
        .header("location", format!("{}/content/3.zip", github.url()))
        .header("x-ratelimit-limit", 1000)
        .header("x-ratelimit-remaining", 99)
        .header("x-ratelimit-reset", now + 1800);
    github.on(&zip_of(3), low);
    let mut args: Vec<&str> = names.iter().map(String::as_str).collect();
    args.extend(["--parallel", "1"]);
    let output = fetch(&github, folder.path(), &args);
    assert_eq!(output.status.code(), Some(1));
    let out = folder.path().join("o");
    assert_eq!(arrived(&out).len(), 3);
    assert!(
        state(&out, "a4").1.contains("99 requests are left for the next 30 min"),
        "{:?}",
        state(&out, "a4")
    );
    assert_eq!(count(&github, &zip_of(4)), 0);
    give(&github, &all[2]);
    let output = fetch(&github, folder.path(), &args);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!((arrived(&out).len(), count(&github, &zip_of(1))), (8, 1));
}

#[test]
fn which_run_is_said_or_asked_for() {
    let (folder, github) = (tempfile::tempdir().expect("a folder"), GitHub::new());
    github.on(LIST, page(&[]));
    let fetch = |run: Option<&str>| {
        let mut command = github.command(folder.path());
        command
            .args(["fetch", "--optional", "plan", "--out", "o"])
            .env_remove("ACTIONS_RESULTS_URL");
        if let Some(run) = run {
            command.env("GITHUB_RUN_ID", run);
        }
        command.output().expect("it runs")
    };
    assert!(fetch(Some("7")).status.success());
    assert_eq!(count(&github, LIST), 1);
    let unknown = fetch(None);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(stderr(&unknown).contains("--run-id"), "{}", stderr(&unknown));
}
