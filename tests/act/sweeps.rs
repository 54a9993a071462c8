//! Sweeps in which everything goes well, and the canary's.

use serde_json::json;

use super::events;
use super::harness::{Act, Repository, Run};

/// The jobs whose ends are compared.
const JOBS: [&str; 4] = ["decide", "canary", "collect", "verdict"];
const OK: &str = "success";
const NO: &str = "-";

/// Every config with evals.
const EVALUATED: &str = "plain-box-vllm-fp8, pair-box-sglang-fp8";

/// Asserts that the run ended well.
fn assert_green(run: &Run, ended: [&str; 4], benchmarks: &[&str]) {
    assert_eq!(run.ended(&JOBS), ended, "{run}");
    assert_eq!(run.benchmarks(), benchmarks, "{run}");
    assert!(run.ok, "{run}");
}

/// Asserts that the run has these artifacts, and no others of their kinds.
fn assert_artifacts(run: &Run, wanted: &[&str]) {
    let kind = |name: &str| name.split('_').next().unwrap_or_default().to_owned();
    let kinds: Vec<String> = wanted.iter().map(|name| kind(name)).collect();
    let mut found = run.artifacts();
    found.retain(|name| kinds.contains(&kind(name)));
    assert_eq!(found, wanted, "{run}");
}

#[test]
fn a_push_measures_three_buckets_and_evaluates_all_four() {
    let repository = Repository::new();
    let more = "plain-box-vllm-fp8, pair-box-sglang-fp8, agent-box-vllm-fp8";
    let evals_only = ("agents-box-sglang-fp8", "  evals-only: true\n");
    let run = repository.push(&[(more, ""), evals_only]).run();
    assert_green(
        &run,
        [OK, NO, OK, OK],
        &[
            "sweep-agentic-evals-0 success",
            "sweep-evals-0 success",
            "sweep-multi-node-8k1k-0 success",
            "sweep-multi-node-agentic-evals-0 success",
            "sweep-multi-node-evals-0 success",
            "sweep-single-node-8k1k-0 success",
            "sweep-single-node-8k1k-0 success",
            "sweep-single-node-agentic-0 success",
        ],
    );
    assert_artifacts(
        &run,
        &[
            "agentic_agent_tp1_conc4_kvnone",
            "bmk_agentic_agent_tp1_conc4_kvnone",
            "bmk_pair_8k1k",
            "bmk_plain_8k1k",
            "bmk_plain_8k1k",
            "changelog-metadata",
            "eval_agent_tp1_conc4_kvnone",
            "eval_agents_p1x1_d0x1_conc16",
            "eval_pair_8k1k",
            "eval_plain_8k1k",
            "eval_results_all",
            "eval_server_logs_agent_tp1_conc4_kvnone",
            "eval_server_logs_agents_p1x1_d0x1_conc16",
            "eval_server_logs_pair_8k1k",
            "eval_server_logs_plain_8k1k",
            "ledger",
            "plan",
            "results_bmk",
            "server_logs_agent_tp1_conc4_kvnone",
            "server_logs_pair_8k1k",
            "server_logs_plain_8k1k",
            "server_logs_plain_8k1k",
            "sweepctl",
        ],
    );

    // Two rows on one node, two concurrencies on many, one replay: 900 tokens a second over 1 or 2 GPUs.
    let results = run.json("results_bmk/agg_bmk.json");
    let mut points: Vec<String> = results.as_array().expect("rows").iter().map(point).collect();
    points.sort();
    assert_eq!(
        points,
        [
            "agent 4 900.0",
            "pair 16 450.0",
            "pair 32 450.0",
            "plain 16 900.0",
            "plain 32 900.0"
        ]
    );
    let evals = run.json("eval_results_all/agg_eval_all.json");
    let mut scores: Vec<String> = evals.as_array().expect("rows").iter().map(score).collect();
    scores.sort();
    assert_eq!(
        scores,
        [
            "agent gsm8k 4 1.0",
            "agents gsm8k 16 1.0",
            "pair gsm8k 32 1.0",
            "plain gsm8k 32 1.0"
        ]
    );
    let entries = &run.json("changelog-metadata/changelog_metadata.json")["entries"];
    assert_eq!(entries.as_array().map(Vec::len), Some(2), "{entries}");
    assert_eq!(entries[1]["evals-only"], json!(true));
    assert!(run.verdict().contains("All 8 planned jobs ran and succeeded."), "{run}");
}

fn point(row: &serde_json::Value) -> String {
    let prefix = row["infmax_model_prefix"].as_str().expect("text");
    format!("{prefix} {} {}", row["conc"], row["tput_per_gpu"])
}

fn score(row: &serde_json::Value) -> String {
    let text = |name: &str| row[name].as_str().expect("text").to_owned();
    format!(
        "{} {} {} {}",
        text("model_prefix"),
        text("task"),
        row["conc"],
        row["score"]
    )
}

#[test]
fn a_canary_goes_before_the_others() {
    let repository = Repository::new();
    let entries = [("short-box-vllm-fp8, plain-box-vllm-fp8", "")];
    let run = repository.pull_request(&["full-sweep-fail-fast"], &entries).run();
    assert_green(
        &run,
        [OK, OK, OK, OK],
        &[
            "canary-0 success",
            "sweep-evals-0 success",
            "sweep-single-node-1k1k-0 success",
            "sweep-single-node-8k1k-0 success",
            "sweep-single-node-8k1k-0 success",
        ],
    );
    // The lowest concurrency of both configs, and no other job has it.
    let canary = &run.json("plan/index.json")["canary"];
    assert_eq!(
        (&canary["row"]["exp-name"], &canary["row"]["conc"]),
        (&json!("short_1k1k"), &json!(4))
    );
    let results = run.json("results_bmk/agg_bmk.json");
    let points: Vec<String> = results.as_array().expect("rows").iter().map(point).collect();
    assert_eq!(
        points.iter().filter(|point| *point == "short 4 900.0").count(),
        1,
        "{points:?}"
    );
    assert_eq!(points.len(), 4, "{points:?}");
}

#[test]
fn a_failed_canary_stops_the_others() {
    let repository = Repository::new();
    let entries = [("broken-box-vllm-fp8, plain-box-vllm-fp8", "")];
    let run = repository.pull_request(&["full-sweep-enabled"], &entries).run();
    assert!(!run.ok, "{run}");
    let bad = "failure";
    assert_eq!(run.ended(&JOBS), [OK, bad, bad, bad], "{run}");
    assert_eq!(run.benchmarks(), ["canary-0 failure"], "{run}");
    assert!(
        run.verdict().contains("the canary failed: it stopped the fan-out"),
        "{run}"
    );
}

#[test]
fn evals_only_measures_no_throughput() {
    let repository = Repository::new();
    let labels = ["non-canary-full-sweep-enabled", "evals-only"];
    let run = repository.pull_request(&labels, &[(EVALUATED, "")]).run();
    let benchmarks = ["sweep-evals-0 success", "sweep-multi-node-evals-0 success"];
    assert_green(&run, [OK, NO, OK, OK], &benchmarks);
    assert_artifacts(
        &run,
        &[
            "eval_pair_8k1k",
            "eval_plain_8k1k",
            "eval_results_all",
            "eval_server_logs_pair_8k1k",
            "eval_server_logs_plain_8k1k",
        ],
    );
}

#[test]
fn all_evals_evaluates_every_concurrency() {
    let repository = Repository::new();
    let labels = ["non-canary-full-sweep-enabled", "all-evals"];
    let run = repository.pull_request(&labels, &[(EVALUATED, "")]).run();
    assert_green(
        &run,
        [OK, NO, OK, OK],
        &[
            "sweep-evals-0 success",
            "sweep-evals-0 success",
            "sweep-multi-node-8k1k-0 success",
            "sweep-multi-node-evals-0 success",
            "sweep-single-node-8k1k-0 success",
            "sweep-single-node-8k1k-0 success",
        ],
    );
    let evals = run.json("eval_results_all/agg_eval_all.json");
    let mut scores: Vec<String> = evals.as_array().expect("rows").iter().map(score).collect();
    scores.sort();
    // The pair's concurrencies are one job, which leaves a result each.
    assert_eq!(
        scores,
        [
            "pair gsm8k 16 1.0",
            "pair gsm8k 32 1.0",
            "plain gsm8k 16 1.0",
            "plain gsm8k 32 1.0"
        ]
    );
}

#[test]
fn a_plan_without_evals_is_green_without_their_collector() {
    let repository = Repository::new();
    let run = repository.push(&[("short-box-vllm-fp8", "")]).run();
    let benchmarks = ["sweep-single-node-1k1k-0 success"; 2];
    assert_green(&run, [OK, NO, OK, OK], &benchmarks);
    assert_artifacts(&run, &["bmk_short_1k1k", "bmk_short_1k1k"]);
    assert!(!run.artifacts().contains(&"eval_results_all".to_owned()), "{run}");
}

#[test]
fn a_plan_of_agentic_jobs_alone_is_green() {
    let repository = Repository::new();
    let run = repository
        .push(&[("agent-box-vllm-fp8, agents-box-sglang-fp8", "")])
        .run();
    assert_green(
        &run,
        [OK, NO, OK, OK],
        &[
            "sweep-agentic-evals-0 success",
            "sweep-multi-node-agentic-0 success",
            "sweep-multi-node-agentic-evals-0 success",
            "sweep-single-node-agentic-0 success",
        ],
    );
    assert_artifacts(
        &run,
        &[
            "agentic_agent_tp1_conc4_kvnone",
            "agentic_agents_p1x1_d0x1_conc16",
            "bmk_agentic_agent_tp1_conc4_kvnone",
            "bmk_agentic_agents_p1x1_d0x1_conc16",
        ],
    );
}

#[test]
fn a_dispatch_runs_what_its_command_generates() {
    let repository = Repository::new();
    let command = "test-config --config-files configs/act-master.yaml --config-keys plain-box-vllm-fp8 --evals-only";
    let inputs = json!({ "generate-cli-command": command, "ref": "main", "test-name": "By hand", "eval-limit": "8" });
    let event = events::dispatch("e2e-tests.yml", inputs);
    let run = Act::new(&repository, "e2e-tests.yml", ("workflow_dispatch", event)).run();
    assert_green(&run, [OK, NO, OK, OK], &["sweep-evals-0 success"]);
    let envelopes = run.json("plan/evals/0.json");
    assert_eq!(envelopes[0]["row"]["conc"], json!(32));
    assert_eq!(envelopes[0]["overrides"], json!({ "eval-limit": "8" }));
}
