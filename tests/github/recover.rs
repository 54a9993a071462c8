//! `sweepctl recover`: what is missing of a run, and how it is done.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use super::artifacts::zips::zip;
use super::run_jobs::{RUN, attempt, job, jobs};
use super::server::{GitHub, Reply, keeps_the_token, pull, run, runs, sha};
use crate::fixture::envelope;
use crate::support::{assert_none, lines_of_table, misses, project, stderr, write};

/// The envelopes of a plan: `t`, `a` and `e`, counted by letter.
fn plan(letters: &str) -> Vec<Value> {
    let mut counts = std::collections::HashMap::new();
    letters
        .split_whitespace()
        .map(|letter| {
            let count = counts.entry(letter).or_insert(0);
            *count += 1;
            let mut planned = envelope(
                &format!("{}0000000000{count}", if letter == "t" { 'b' } else { 'c' }),
                8 * *count,
            );
            planned["name"] = json!(format!("{letter}{count}"));
            let row = planned["row"].as_object_mut().expect("a row");
            match letter {
                "e" => {}
                "t" => {
                    row.insert("run-eval".into(), json!(false));
                    row.remove("eval-only");
                }
                "a" => {
                    planned["id"] = json!(format!("d0000000000{count}"));
                    planned["row"] = agentic(8 * *count);
                }
                other => panic!("{other}"),
            }
            planned
        })
        .collect()
}

fn agentic(conc: u64) -> Value {
    json!({
        "image": "img:1", "model": "org/model", "model-prefix": "m1", "precision": "fp8", "framework": "vllm",
        "runner": "h200", "tp": 8, "pp": 1, "dcp-size": 1, "pcp-size": 1, "ep": 1, "dp-attn": false,
        "spec-decoding": "none", "conc": conc, "kv-offloading": "none", "total-cpu-dram-gb": 0, "duration": 3600,
        "exp-name": format!("m1_tp8_conc{conc}_kvnone"), "scenario-type": "agentic-coding",
    })
}

/// The artifact of a planned job: `t1` is the first of throughput.
fn name_of(word: &str, plan: &[Value]) -> String {
    let kind = match &word[..1] {
        "t" => "bmk",
        "a" => "bmk_agentic",
        _ => "eval",
    };
    match plan.iter().find(|planned| planned["name"] == word) {
        Some(planned) => {
            let (exp, id) = (
                planned["row"]["exp-name"].as_str().expect("text"),
                planned["id"].as_str().expect("text"),
            );
            format!("{kind}_{exp}_{id}")
        }
        None => word.to_owned(),
    }
}

fn artifacts(words: &str, plan: &[Value]) -> Value {
    let artifact = |(index, word): (usize, &str)| {
        let (word, expired) = match word.strip_prefix('!') {
            Some(word) => (word, true),
            None => (word, false),
        };
        json!({ "id": 10 + index, "name": name_of(word, plan), "size_in_bytes": 5, "expired": expired,
                "digest": format!("sha256:{}", "0".repeat(64)), "created_at": "2026-10-01T19:00:00Z" })
    };
    let list: Vec<Value> = words.split_whitespace().enumerate().map(artifact).collect();
    json!({ "total_count": list.len(), "artifacts": list })
}

struct Situation {
    github: GitHub,
    folder: tempfile::TempDir,
    has_plan: bool,
}

impl Situation {
    fn of(columns: &[&str]) -> Self {
        let (event, ended) = columns[0].split_once(' ').expect("an event and an end");
        let (github, folder) = (GitHub::new(), tempfile::tempdir().expect("a folder"));
        let mut swept = run(77, ended);
        swept["event"] = json!(event);
        if event == "workflow_dispatch" {
            swept["path"] = json!(".github/workflows/e2e-tests.yml");
        }
        if ended == "goes on" {
            (swept["status"], swept["conclusion"]) = (json!("in_progress"), Value::Null);
        }
        let has_plan = !matches!(columns[1], "none" | "expired");
        let plan = match columns[1] {
            "none" | "expired" | "nothing" => Vec::new(),
            letters => plan(letters),
        };
        write(folder.path(), "plan.json", json!(plan).to_string());
        let mut left = columns[2].to_owned();
        if columns[1] == "expired" {
            left.push_str(" !plan");
        }
        let mut done = vec![job(1, "Decide", "success", "ubuntu-24.04")];
        if columns[3].contains("told") {
            done.push(job(2, "Announce the results", "success", "ubuntu-24.04"));
        } else {
            done.push(job(2, "Announce the results", "skipped", "ubuntu-24.04"));
        }
        if columns[3].contains("ingest") {
            settings(folder.path());
        }
        github.on(RUN, swept).on(&attempt(1), jobs(&done)).on(
            "GET /repos/acme/bench/actions/runs/77/artifacts",
            artifacts(&left, &plan),
        );
        Self {
            github,
            folder,
            has_plan,
        }
    }

    fn recover(&self, more: &[&str]) -> Output {
        let mut command = self.github.command(self.folder.path());
        command.args(["recover", "77", "--out", "here"]).args(more);
        if self.has_plan {
            command.args(["--plan", "plan.json"]);
        }
        command.output().expect("it runs")
    }
}

/// Settings that name a repository that is told.
fn settings(folder: &Path) {
    let own = std::fs::read_to_string(project().join("configs/workflows.yaml")).expect("a file");
    let ingest = "\ningest:\n  repository: acme/results\n  event-type: swept\n  secret: INGEST_TOKEN\n";
    write(folder, "configs/workflows.yaml", own + ingest);
}

/// A step as the table says it.
fn said(step: &Value) -> String {
    match step["step"].as_str().expect("a step") {
        "fetch-results" => {
            let kinds = step["kinds"].as_array().expect("a list").iter();
            let kinds: Vec<&str> = kinds.map(|kind| kind.as_str().expect("text")).collect();
            format!("fetch {}", kinds.join(" "))
        }
        "fetch-collection" => format!("fetch {}", step["name"].as_str().expect("text")),
        "check" if step["partial"] == true => "check --partial".to_owned(),
        other => other.to_owned(),
    }
}

#[test]
fn every_situation_has_the_steps_that_the_table_says() {
    let rows: Vec<_> = lines_of_table(include_str!("recover.txt")).collect();
    assert!(rows.len() >= 30, "{} rows", rows.len());
    let missed = misses(&rows, |(line, text, columns)| {
        let situation = Situation::of(columns);
        let output = situation.recover(&["--dry-run"]);
        let (mut found, mut told) = ("refused".to_owned(), stderr(&output));
        if output.status.success() {
            let printed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            let steps: Vec<String> = printed["steps"].as_array().expect("a list").iter().map(said).collect();
            told = printed["nothing"].as_str().unwrap_or_default().to_owned();
            found = if steps.is_empty() {
                "nothing".to_owned()
            } else {
                steps.join("; ")
            };
        }
        let writes = situation.github.requests().iter().any(|what| !what.starts_with("GET"));
        let left = situation.folder.path().join("here").exists();
        let right = found == columns[4] && told.contains(columns.get(5).copied().unwrap_or_default());
        (!right || writes || left).then(|| format!("line {line}: {text}\n  found {found}: {told}"))
    });
    assert_none("situations", rows.len(), &missed);
}

#[test]
fn the_commands_of_a_dry_run_are_whole() {
    let situation = Situation::of(&["push cancelled", "t e", "t1 e1", "ingest"]);
    let printed: Value = serde_json::from_slice(&situation.recover(&["--dry-run"]).stdout).expect("JSON");
    let commands: Vec<&str> = printed["steps"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|step| step["command"].as_str().expect("text"))
        .collect();
    assert_eq!(
        commands,
        [
            "sweepctl fetch --plan plan.json --kind bmk --kind eval --out here/results --run-id 77 --repo acme/bench",
            "sweepctl collect sweep here/results --plan plan.json --out here",
            "sweepctl reuse check here --plan plan.json --partial",
            "sweepctl ingest --ledger here/ledger.json --to acme/results --event-type swept --repo acme/bench",
        ]
    );
    assert_eq!(printed["done"], false);
}

#[test]
fn a_run_of_something_else_is_refused() {
    let situation = Situation::of(&["push success", "t", "t1", ""]);
    let mut other = run(77, "success");
    other["path"] = json!(".github/workflows/ci.yml");
    situation.github.on(RUN, other);
    let output = situation.recover(&["--dry-run"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("which sweeps nothing"), "{}", stderr(&output));
}

#[test]
fn a_pull_request_stands_for_the_newest_sweep_of_its_newest_commit() {
    let situation = Situation::of(&["pull_request cancelled", "t", "t1", ""]);
    let github = &situation.github;
    let of_commit = format!(
        "GET /repos/acme/bench/actions/workflows/run-sweep.yml/runs?head_sha={}&per_page=100&page=1",
        sha('b')
    );
    github
        .on("GET /repos/acme/bench/pulls/12", pull(&[]))
        .on(&of_commit, runs(vec![run(99, "success"), run(77, "cancelled")]));
    let plan = |run: u64| format!("GET /repos/acme/bench/actions/runs/{run}/artifacts?name=plan&per_page=100&page=1");
    github
        .on(&plan(99), artifacts("", &[]))
        .on(&plan(77), artifacts("plan", &[]));
    let ask = || {
        let mut command = github.command(situation.folder.path());
        command
            .args(["recover", "--pr", "12", "--plan", "plan.json", "--dry-run"])
            .output()
            .expect("it runs")
    };
    // Run 99 was about a label: it planned nothing.
    let output = ask();
    assert!(output.status.success(), "{}", stderr(&output));
    let printed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        (&printed["run-id"], &printed["out"]),
        (&json!(77), &json!("recovered-77"))
    );
    for (found, words) in [
        (runs(vec![]), "there is no sweep of bbbbbbbbb"),
        (runs(vec![run(99, "success")]), "none of the 1 newest runs"),
    ] {
        github.on(&of_commit, found);
        let output = ask();
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
}

/// A throughput result of a planned job, as a job uploads it.
fn aggregate(conc: u64) -> Value {
    json!({
        "hw": "h200", "conc": conc, "image": "img:1", "model": "org/model", "infmax_model_prefix": "m1",
        "framework": "vllm", "precision": "fp8", "spec_decoding": "none", "disagg": false,
        "recipe_fingerprint": "a".repeat(64), "isl": 8192, "osl": 1024, "is_multinode": false, "tp": 8,
        "tput_per_gpu": 1234.5, "output_tput_per_gpu": 137.2, "median_ttft": 0.31,
    })
}

/// An artifact that can be fetched: its entry in lists, and its content behind a redirect.
fn give(github: &GitHub, id: u64, name: &str, files: &[(&str, String)]) -> Value {
    let content = zip(files);
    let digest = format!("sha256:{}", hex(&content));
    let place = format!("/content/{id}.zip");
    github
        .on(
            &format!("GET /repos/acme/bench/actions/artifacts/{id}/zip"),
            Reply::text(302, "").header("location", format!("{}{place}", github.url())),
        )
        .on(&format!("GET {place}"), Reply::text(200, content.clone()));
    json!({ "id": id, "name": name, "size_in_bytes": content.len(), "expired": false, "digest": digest,
            "created_at": "2026-10-01T19:00:00Z" })
}

fn hex(bytes: &[u8]) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[test]
fn a_cancelled_run_is_collected_and_checked() {
    let situation = Situation::of(&["pull_request cancelled", "t t", "", ""]);
    let github = &situation.github;
    let mut planned = plan("t t");
    // Of two recipes, so that one is whole.
    for (job, recipe) in planned.iter_mut().zip(["a", "b"]) {
        job["row"]["recipe-fingerprint"] = json!(recipe.repeat(64));
    }
    let index = json!({
        "jobs": 2, "throughput-jobs": 2, "eval-jobs": 0,
        "buckets": { "single_node_8k1k": { "jobs": 2, "shards": [{ "jobs": 2, "max-parallel": 1 }] } },
    });
    let files = [
        ("index.json", index.to_string()),
        ("single_node_8k1k/0.json", json!(planned).to_string()),
    ];
    let of_plan = give(github, 21, "plan", &files);
    // The second job was cancelled, and left nothing.
    let single = give(
        github,
        22,
        &name_of("t1", &planned),
        &[("agg_r.json", aggregate(8).to_string())],
    );
    let list = |artifacts: &[&Value]| json!({ "total_count": artifacts.len(), "artifacts": artifacts });
    let all = "GET /repos/acme/bench/actions/runs/77/artifacts";
    github.on(all, list(&[&of_plan, &single]));
    let named = |name: &str| format!("{all}?name={name}&per_page=100&page=1");
    github.on(&named("plan"), list(&[&of_plan]));
    github.on(&named(&name_of("t1", &planned)), list(&[&single]));
    github.on(&named(&name_of("t2", &planned)), list(&[]));
    let at = situation.folder.path();
    let recover = || {
        let mut command = github.command(at);
        for name in ["ACTIONS_RESULTS_URL", "ACTIONS_RUNTIME_TOKEN"] {
            command.env_remove(name);
        }
        let output = command
            .args(["recover", "77", "--out", "here"])
            .output()
            .expect("it runs");
        keeps_the_token(&output);
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    let printed = recover();
    let steps: Vec<String> = printed["steps"].as_array().expect("a list").iter().map(said).collect();
    assert_eq!(steps, ["fetch bmk", "collect", "check --partial"]);
    assert_eq!(
        (&printed["steps"][0]["there"], &printed["done"]),
        (&json!(1), &json!(true))
    );
    let collected = crate::fixture::read_json(&at.join("here/results_bmk/agg_bmk.json"));
    assert_eq!(
        (collected.as_array().map(Vec::len), &collected[0]["conc"]),
        (Some(1), &json!(8))
    );
    let ledger = crate::fixture::read_json(&at.join("here/ledger.json"));
    let states: Vec<&Value> = ledger["jobs"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|job| &job["state"])
        .collect();
    assert_eq!(states, ["done", "missing"]);
    // The same again fetches nothing twice.
    let zips = || github.requests().iter().filter(|what| what.ends_with("/zip")).count();
    let before = zips();
    recover();
    assert_eq!(zips(), before);
    // A dry run leaves nothing.
    let mut command = github.command(at);
    let output = command
        .args(["recover", "77", "--out", "elsewhere", "--dry-run"])
        .output()
        .expect("it runs");
    assert!(
        output.status.success() && !at.join("elsewhere").exists(),
        "{}",
        stderr(&output)
    );
}
