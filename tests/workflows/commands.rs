//! What the steps of workflows call between a plan and a job.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::support::{project, stderr, stdout, sweepctl};

/// Runs the binary in the project as a step: what it said, and its outputs.
fn step(args: &[&str], stdin: &str) -> (Output, Vec<(String, String)>) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("output");
    let input = folder.path().join("input");
    std::fs::write(&input, stdin).expect("a file");
    let output = sweepctl(project())
        .args(args)
        .env("GITHUB_OUTPUT", &file)
        .stdin(std::fs::File::open(&input).expect("a file"))
        .output()
        .expect("the binary runs");
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let mut lines = text.lines();
    let mut outputs = Vec::new();
    while let Some(head) = lines.next() {
        let (name, delimiter) = head.split_once("<<").expect("the heredoc form");
        let value: Vec<&str> = lines.by_ref().take_while(|line| *line != delimiter).collect();
        outputs.push((name.to_owned(), value.join("\n")));
    }
    (output, outputs)
}

fn of<'o>(outputs: &'o [(String, String)], name: &str) -> &'o str {
    let found = outputs.iter().find(|(known, _)| known == name);
    found
        .map(|(_, value)| value.as_str())
        .unwrap_or_else(|| panic!("no output `{name}`: {outputs:?}"))
}

fn emitted(dir: &Path, args: &[&str]) -> Vec<(String, String)> {
    let dir = dir.to_str().expect("a path");
    let (output, outputs) = step(&[args, &["--emit", dir, "--github-output"]].concat(), "");
    assert!(output.status.success(), "{}", stderr(&output));
    outputs
}

fn shard(dir: &Path, bucket: &str, number: &str) -> Value {
    let text = std::fs::read_to_string(dir.join(bucket).join(format!("{number}.json"))).expect("a shard");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn a_canary_leaves_the_matrix() {
    let folder = tempfile::tempdir().expect("a folder");
    let (with, without) = (folder.path().join("with"), folder.path().join("without"));
    let args = ["generate", "full-sweep", "--runner-type", "h200", "--single-node"];
    let plain = emitted(&without, &args);
    let canary = emitted(&with, &[&args[..], &["--canary"]].concat());
    assert_eq!(of(&plain, "canary_jobs"), "0");
    assert_eq!(of(&canary, "canary_jobs"), "1");
    assert_eq!(of(&plain, "jobs"), of(&canary, "jobs"));
    assert_eq!(of(&plain, "canary"), "");
    let path = with.to_str().expect("a path");
    let (output, outputs) = step(
        &[
            "shard",
            "--plan",
            path,
            "--bucket",
            "canary",
            "--index",
            "0",
            "--github-output",
        ],
        "",
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let jobs: Vec<Value> = serde_json::from_str(of(&outputs, "envelopes")).expect("a list");
    let [job] = jobs.as_slice() else { panic!("{jobs:?}") };
    assert_eq!(job.to_string(), of(&canary, "canary"));
    assert_ne!(job["row"]["run-eval"], true);
    let conc = |envelope: &Value| envelope["row"]["conc"].as_u64().expect("one node has one");
    let buckets = ["single_node_1k1k", "single_node_8k1k", "single_node_other"];
    let jobs = |dir: &Path| -> Vec<Value> {
        let there = buckets.iter().filter(|bucket| dir.join(bucket).exists());
        there
            .flat_map(|bucket| shard(dir, bucket, "0").as_array().expect("a list").clone())
            .collect()
    };
    let (all, rest) = (jobs(&without), jobs(&with));
    assert_eq!(all.iter().map(conc).min(), Some(conc(job)));
    assert_eq!(all.len(), rest.len() + 1);
    assert!(all.contains(job) && !rest.contains(job), "{job}");
    for (plan, index) in [(&without, "0"), (&with, "1")] {
        let path = plan.to_str().expect("a path");
        let (output, _) = step(&["shard", "--plan", path, "--bucket", "canary", "--index", index], "");
        assert_eq!(output.status.code(), Some(1));
        assert!(
            stderr(&output).contains(&format!("no shard {index} of a canary")),
            "{}",
            stderr(&output)
        );
    }
}

#[test]
fn a_plan_without_throughput_has_no_canary() {
    let folder = tempfile::tempdir().expect("a folder");
    let args = ["generate", "full-sweep", "--evals-only", "--canary"];
    let outputs = emitted(&folder.path().join("plan"), &args);
    assert_eq!(
        (of(&outputs, "canary_jobs"), of(&outputs, "throughput_jobs")),
        ("0", "0")
    );
    assert_eq!(of(&outputs, "single_node_8k1k_inputs"), "[]");
    assert_ne!(of(&outputs, "evals_inputs"), "[]");
}

#[test]
fn a_shard_of_a_plan_is_what_its_call_is_given() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("plan");
    let args = ["generate", "test-config", "--config-keys", "*-gb200-*", "*mi355x-vllm*"];
    let outputs = emitted(&dir, &args);
    let mut shards = 0;
    for (name, inputs) in outputs.iter().filter(|(name, _)| name.ends_with("_inputs")) {
        let bucket = name.trim_end_matches("_inputs");
        let inputs: Vec<Value> = serde_json::from_str(inputs).expect("a list");
        for (number, inputs) in inputs.iter().enumerate() {
            shards += 1;
            let (path, number) = (dir.to_str().expect("a path"), number.to_string());
            let args = ["shard", "--plan", path, "--bucket", bucket, "--index", &number];
            let (output, outputs) = step(&[&args[..], &["--github-output"]].concat(), "");
            assert!(output.status.success(), "{}", stderr(&output));
            assert_eq!(inputs["envelopes"], of(&outputs, "envelopes"), "{bucket} {number}");
            let envelopes: Vec<Value> = serde_json::from_str(of(&outputs, "envelopes")).expect("a list");
            assert_eq!(json!(envelopes), shard(&dir, bucket, &number));
            assert!((1..=envelopes.len() as u64).contains(&inputs["max-parallel"].as_u64().expect("a limit")));
        }
    }
    assert!(shards >= 3, "{shards}");
}

#[test]
fn an_envelope_is_opened_with_its_callers_flags() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("plan");
    emitted(&dir, &["generate", "test-config", "--config-keys", "smoke-local-mock"]);
    let row = shard(&dir, "evals", "0")[0].clone();
    let file = folder.path().join("envelope.json");
    let path = file.to_str().expect("a path");
    let open = |flags: &[&str], text: &str| {
        step(
            &[&["envelope", "--output", path, "--github-output"], flags].concat(),
            text,
        )
    };
    let written = || -> Value { serde_json::from_slice(&std::fs::read(&file).expect("a file")).expect("JSON") };

    let (output, outputs) = open(&[], &row.to_string());
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!((of(&outputs, "run_eval"), of(&outputs, "eval_only")), ("true", "true"));
    assert_eq!(of(&outputs, "kinds"), r#"["server_logs","gpu_metrics","eval"]"#);
    assert_eq!(written(), row);

    let (output, outputs) = open(&["--eval-only=false"], &row.to_string());
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!((of(&outputs, "run_eval"), of(&outputs, "eval_only")), ("true", "false"));
    assert_eq!(of(&outputs, "kinds"), r#"["server_logs","gpu_metrics","eval","bmk"]"#);
    let changed = written();
    assert_eq!(changed["id"], row["id"]);
    assert_eq!(changed["row"]["eval-only"], false);
    assert_eq!(changed["overrides"], json!({ "eval-only": false }));

    let (output, _) = open(&["--run-eval=false"], &row.to_string());
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("is eval-only and runs no eval"),
        "{}",
        stderr(&output)
    );
    let (output, _) = open(&[], "{\"id\": 1}");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("this is no envelope"), "{}", stderr(&output));
    let (output, _) = open(&["--run-eval=maybe"], &row.to_string());
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
}

#[test]
fn a_form_is_read_by_no_shell() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = |name: &str, command: &str, more: &[&str]| {
        let dir = folder.path().join(name);
        let dir = dir.to_str().expect("a path").to_owned();
        let command = format!("--generate={command}");
        step(
            &[&["dispatch-plan", &command], more, &["--emit", &dir, "--github-output"]].concat(),
            "",
        )
    };
    let (output, outputs) = plan(
        "a",
        "test-config --config-keys 'smoke-*' \"r1-mi355x-atom-fp4\" --conc 16",
        &[],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    assert_ne!(of(&outputs, "jobs"), "0");
    let (output, evals) = plan("b", "test-config --config-keys smoke-local-mock", &["--evals-only"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!((of(&evals, "throughput_jobs"), of(&evals, "eval_jobs")), ("0", "1"));

    let canary = folder.path().join("pwned");
    let touch = format!("test-config --config-keys x; touch {}", canary.display());
    for hostile in [
        touch.as_str(),
        "test-config --config-keys $(id)",
        "test-config --config-keys x --emit /tmp/other",
        "test-config --config-keys x --emit=/tmp/other",
        "test-config --config-keys 'x",
        "no-such --config-keys x",
        "",
    ] {
        let (output, outputs) = plan("hostile", hostile, &[]);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{hostile}");
        assert!(stderr(&output).starts_with("error"), "{hostile}: {}", stderr(&output));
        assert_eq!((outputs.len(), stdout(&output).as_str()), (0, ""), "{hostile}");
        assert!(!folder.path().join("hostile").exists(), "{hostile}");
    }
    assert!(!canary.exists());
}

#[test]
fn a_form_names_a_command_or_a_comparison() {
    let (output, _) = step(
        &["dispatch-plan", "--generate=full-sweep", "--base-ref=a", "--head-ref=b"],
        "",
    );
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let (output, _) = step(&["dispatch-plan"], "");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let (output, _) = step(&["dispatch-plan", "--base-ref=a"], "");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let (output, _) = step(&["dispatch-plan", "--base-ref=no-such", "--head-ref=none"], "");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
}
