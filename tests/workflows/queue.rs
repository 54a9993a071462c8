//! What the scores of jobs are for: the order of matrices, and what a scheduler reads from the labels of `runs-on`.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use super::settings::starter;
use crate::support::{json as read, project, run, stderr, sweepctl, write};

const WORKFLOWS: &str = "configs/workflows.yaml";
const POLICY: &str = "configs/ci-priority.yaml";
const SECRETS: &str = "launch-secrets: [HF_TOKEN]\n";

/// Merged changes first, then what speculates; the eval of a point before its throughput.
const SCORES: &str = "\
version: 1
base-score: 1
adjustments:
  event: { push: 3, pull_request: 0.5 }
  eval-only: 0.2505
  spec-decoding: { mtp: 2 }
labels:
  skip-queue: { name: skip-queue }
";

fn labelled(policy: Option<&str>) -> tempfile::TempDir {
    let folder = starter(&[(WORKFLOWS, SECRETS, &format!("{SECRETS}priority: labels\n"))]);
    if let Some(policy) = policy {
        write(folder.path(), POLICY, policy);
    }
    assert!(run(folder.path(), ["render"]).status.success());
    folder
}

/// Emits the plan of the newest entries as a step of a run does.
fn emitted(root: &Path, name: &str, event: (&str, &Value), run_id: &str) -> Vec<Value> {
    write(root, "event.json", event.1.to_string());
    let output = sweepctl(root)
        .args(["plan", "--latest", "--emit", name])
        .env("GITHUB_EVENT_NAME", event.0)
        .env("GITHUB_EVENT_PATH", root.join("event.json"))
        .env("GITHUB_RUN_ID", run_id)
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let shard = |bucket| read(root, ["shard", "--plan", name, "--bucket", bucket, "--index", "0"]);
    let shards = ["single_node_8k1k", "evals"].map(shard);
    shards
        .iter()
        .flat_map(|shard| shard.as_array().expect("jobs").clone())
        .collect()
}

fn push() -> Value {
    json!({ "ref": "refs/heads/main", "before": "1".repeat(40), "after": "2".repeat(40), "forced": false,
        "repository": { "full_name": "acme/bench", "default_branch": "main" } })
}

fn labeled() -> Value {
    let text = std::fs::read_to_string(project().join("tests/fixtures/events/labeled.json")).expect("an event");
    let mut event: Value = serde_json::from_str(&text).expect("JSON");
    event["pull_request"]["labels"] = json!([{ "name": "full-sweep-enabled" }, { "name": "skip-queue" }]);
    event
}

#[test]
fn envelopes_carry_scores_and_tokens_and_keep_their_ids() {
    let folder = labelled(Some(SCORES));
    let root = folder.path();
    let pushed = emitted(root, "pushed", ("push", &push()), "7");
    let asked = emitted(root, "asked", ("pull_request", &labeled()), "7");
    let later = emitted(root, "later", ("push", &push()), "8");
    let score = |jobs: &[Value], evals: bool| -> BTreeSet<String> {
        let of_kind = jobs.iter().filter(|job| (job["row"]["eval-only"] == true) == evals);
        of_kind.map(|job| job["priority"]["score"].to_string()).collect()
    };
    let one = |text: &str| BTreeSet::from([format!("\"{text}\"")]);
    assert_eq!(score(&pushed, false), one("4.000"));
    assert_eq!(score(&pushed, true), one("4.251"));
    assert_eq!(score(&asked, false), one("1.500"));
    assert!(pushed.iter().all(|job| job["priority"].get("skip-queue-pr").is_none()));
    assert!(asked.iter().all(|job| job["priority"]["skip-queue-pr"] == 12));
    let ids = |jobs: &[Value]| jobs.iter().map(|job| job["id"].to_string()).collect::<Vec<_>>();
    assert_eq!(ids(&pushed), ids(&asked));
    let tokens = |jobs: &[Value]| -> BTreeSet<String> {
        let token = |job: &Value| job["priority"]["token"].as_str().expect("a token").to_owned();
        jobs.iter().map(token).collect()
    };
    let all = [&pushed, &later].into_iter().flat_map(|jobs| tokens(jobs));
    let all: BTreeSet<String> = all.collect();
    assert_eq!(all.len(), pushed.len() * 2, "each job of each run has its own");
    assert!(
        all.iter()
            .all(|token| token.len() == 32 && token.bytes().all(|b| b.is_ascii_hexdigit()))
    );
    // A run that is started again plans no second time; where it does, its jobs keep their tokens.
    assert_eq!(tokens(&pushed), tokens(&emitted(root, "again", ("push", &push()), "7")));
}

/// The labels that every job on a GPU asks for, as GitHub evaluates them.
fn runs_on(root: &Path, event: &Value) -> BTreeSet<String> {
    write(root, "event.json", event.to_string());
    let simulation = read(root, ["workflow", "simulate", "--event", "event.json", "--latest"]);
    let mut all = BTreeSet::new();
    collect(&simulation["jobs"], &mut all);
    assert!(!all.is_empty(), "{simulation:#}");
    all
}

fn collect(jobs: &Value, all: &mut BTreeSet<String>) {
    for job in jobs.as_array().into_iter().flatten() {
        for leg in job["legs"].as_array().into_iter().flatten() {
            if job["job"] == "benchmark" {
                all.insert(leg["runs-on"].to_string());
            }
            collect(&leg["jobs"], all);
        }
    }
}

#[test]
fn labels_tell_a_scheduler_score_token_and_attempt() {
    let folder = labelled(Some(SCORES));
    let root = folder.path();
    let shape = |labels: &str| {
        let labels: Vec<String> = serde_json::from_str(labels).expect("labels");
        let (score, token) = labels[2].rsplit_once('-').expect("a token");
        assert_eq!(token.len(), 32, "{labels:?}");
        let rest = [&labels[..2], &[score.to_owned()], &labels[3..]].concat();
        rest.join(" ")
    };
    let of = |event: &Value| {
        runs_on(root, event)
            .iter()
            .map(|labels| shape(labels))
            .collect::<BTreeSet<_>>()
    };
    let texts = |all: &[&str]| all.iter().map(|&text| text.to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(
        of(&push()),
        texts(&[
            "self-hosted local ci-job-4.000 ci-attempt-1",
            "self-hosted local ci-job-4.251 ci-attempt-1",
        ])
    );
    assert_eq!(
        of(&labeled()),
        texts(&[
            "self-hosted local ci-job-1.500 ci-attempt-1 ci-skip-queue-pr-12",
            "self-hosted local ci-job-1.751 ci-attempt-1 ci-skip-queue-pr-12",
        ])
    );
    let output = run(root, ["workflow", "check"]);
    assert!(output.status.success(), "{}", stderr(&output));
    // A commit that was planned by other settings has no scores: its jobs wait for the label alone.
    let settings = std::fs::read_to_string(root.join(WORKFLOWS)).expect("settings");
    write(root, WORKFLOWS, settings.replace("priority: labels", "priority: order"));
    assert_eq!(runs_on(root, &push()), texts(&[r#"["local"]"#]));
}

#[test]
fn scores_for_labels_need_a_policy() {
    let folder = labelled(None);
    let output = run(folder.path(), ["plan", "--latest", "--emit", "plan"]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(
        said.contains("needs `configs/ci-priority.yaml`, which does not exist"),
        "{said}"
    );
    assert!(said.contains("priority: order"), "{said}");
    let unknown = starter(&[(WORKFLOWS, SECRETS, &format!("{SECRETS}priority: scores\n"))]);
    let said = stderr(&run(unknown.path(), ["check"]));
    assert!(said.contains("priority") && said.contains("`labels`"), "{said}");
}

/// The fleet's jobs of one bucket, in the order of its matrices.
fn order_of(policy: Option<&str>, more: &[&str]) -> (Vec<String>, Value) {
    let folder = crate::support::fleet::folder();
    let root = folder.path();
    if let Some(policy) = policy {
        write(root, POLICY, policy);
    }
    let args = ["generate", "full-sweep", "--emit", "plan"];
    let output = run(root, args.iter().chain(more));
    assert!(output.status.success(), "{}", stderr(&output));
    let index = std::fs::read(root.join("plan/index.json")).expect("an index");
    let index: Value = serde_json::from_slice(&index).expect("JSON");
    let shards = index["buckets"]["single_node_agentic"]["shards"]
        .as_array()
        .expect("shards")
        .len();
    let jobs = (0..shards).flat_map(|number| {
        let number = number.to_string();
        let args = [
            "shard",
            "--plan",
            "plan",
            "--bucket",
            "single_node_agentic",
            "--index",
            &number,
        ];
        let jobs = read(root, args);
        jobs.as_array().expect("jobs").clone()
    });
    let line = |job: Value| {
        assert!(job.get("priority").is_none(), "{job}");
        format!("{} {}", job["row"]["spec-decoding"], job["id"])
    };
    (jobs.map(line).collect(), index["canary"]["id"].clone())
}

#[test]
fn without_a_scheduler_matrices_follow_the_score() {
    let (plain, canary) = order_of(None, &["--canary"]);
    let (scored, of_scored) = order_of(Some(SCORES), &["--canary"]);
    assert_ne!(plain, scored);
    assert_eq!(canary, of_scored, "the canary is that of the plan");
    assert!(canary.is_string());
    // The sort is stable: what has one score stays in the order of the plan.
    let (first, others): (Vec<String>, Vec<String>) = plain.into_iter().partition(|line| line.contains("mtp"));
    assert!(!first.is_empty() && !others.is_empty());
    assert_eq!(scored, [first, others].concat());
}
