//! `sweepctl evidence`: a complete folder, and one for each thing that can be missing or wrong.

mod benchmark;
mod watch;

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixture::{batch, envelope, meta, multinode_envelope, read_json, result, run, sweepctl, write};
use crate::support::terminal;

const SINGLE: &str = "0000000000a1";
const BATCH: &str = "0000000000b2";
const REPLAY: &str = "0000000000c3";
const RUN: u64 = 4242;
const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const RECIPE: &str = "feedfacefeedface";
const ENDPOINT: &str = "http://node-a:8000/metrics";

/// The artifacts of a run: an eval at one concurrency, a batch on several nodes, and a replay.
struct Downloaded(TempDir);

fn replay_envelope() -> Value {
    let mut envelope = envelope(REPLAY, 4);
    let row = envelope["row"].as_object_mut().expect("a row");
    for name in ["isl", "osl", "max-model-len", "disagg", "run-eval", "eval-only"] {
        row.remove(name);
    }
    let own = json!({"scenario-type": "agentic-coding", "kv-offloading": "none", "total-cpu-dram-gb": 0,
                     "duration": 3600, "exp-name": "m1_agentic"});
    row.extend(own.as_object().expect("fields").clone());
    envelope
}

fn with_recipe(mut envelope: Value) -> Value {
    envelope["row"]["recipe-fingerprint"] = RECIPE.into();
    envelope
}

fn of_run(mut meta: Value, id: &str) -> Value {
    meta["job_id"] = id.into();
    meta["run_id"] = RUN.to_string().into();
    meta["run_attempt"] = "1".into();
    meta["recipe_fingerprint"] = RECIPE.into();
    meta
}

fn record(successful: u64) -> String {
    let start = 1_796_050_152_000_000_000_u64;
    let one = |n: u64| {
        json!({"metadata": {"benchmark_phase": "profiling", "conversation_id": format!("t{n}::0"), "turn_index": 0,
                             "request_start_ns": start + n * 1_000_000_000, "request_end_ns": start + (n + 1) * 1_000_000_000},
               "metrics": {"time_to_first_token": {"value": 100.0}, "request_latency": {"value": 900.0},
                           "inter_token_latency": {"value": 10.0}, "input_sequence_length": {"value": 100},
                           "output_sequence_length": {"value": 50}}})
        .to_string()
    };
    (0..successful).map(one).collect::<Vec<_>>().join("\n")
}

impl Downloaded {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().expect("a folder"));
        folder.plan(&[
            with_recipe(envelope(SINGLE, 64)),
            with_recipe(multinode_envelope(BATCH, &[16, 32])),
            with_recipe(replay_envelope()),
        ]);
        folder.write("thresholds.yaml", "default:\n  plain: 0.9\n");
        folder.evals();
        folder.replay();
        folder.collected();
        folder.json(
            "run/run-provenance.json",
            &json!({"databaseId": RUN, "attempt": 1, "headSha": COMMIT, "status": "completed", "conclusion": "success",
                    "url": format!("https://github.com/o/r/actions/runs/{RUN}"), "jobs": []}),
        );
        folder
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, text: &str) {
        write(self.path().join(name), text);
    }

    fn json(&self, name: &str, value: &Value) {
        self.write(name, &value.to_string());
    }

    fn read(&self, name: &str) -> Value {
        read_json(&self.path().join(name))
    }

    /// Changes a JSON file.
    fn edit(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut value = self.read(name);
        change(&mut value);
        self.json(name, &value);
    }

    fn remove(&self, name: &str) {
        let path = self.path().join(name);
        let removed = match path.is_dir() {
            true => std::fs::remove_dir_all(&path),
            false => std::fs::remove_file(&path),
        };
        removed.unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    fn plan(&self, envelopes: &[Value]) {
        self.json("run/plan.json", &json!(envelopes));
    }

    fn evals(&self) {
        let single = format!("run/eval_m1_8k1k_{SINGLE}");
        self.json(&format!("{single}/meta_env.json"), &of_run(meta(64), SINGLE));
        self.json(&format!("{single}/results.json"), &result("plain", 0.95));
        let folder = format!("run/eval_m1_8k1k_{BATCH}");
        let mut meta = of_run(batch(&json!([16, 32]), &json!([16, 32]), &json!([])), BATCH);
        let own = json!({"is_multinode": true, "tp": 4, "prefill_tp": 4, "prefill_num_workers": 2, "decode_tp": 8,
                         "decode_num_workers": 1});
        let fields = meta.as_object_mut().expect("an object");
        fields.extend(own.as_object().expect("fields").clone());
        self.json(&format!("{folder}/meta_env.json"), &meta);
        for conc in [16, 32] {
            self.json(&format!("{folder}/results_conc{conc}.json"), &result("plain", 0.95));
        }
    }

    fn replay(&self) {
        let raw = format!("run/agentic_m1_agentic_{REPLAY}");
        let dataset = json!({"source_type": "public_dataset", "loader": "l", "hf_dataset_name": "example/traces",
                             "hf_split": "train", "num_dataset_entries": 3});
        self.write(&format!("{raw}/aiperf_artifacts/profile_export.jsonl"), &record(4));
        self.json(
            &format!("{raw}/aiperf_artifacts/profile_export_aiperf.json"),
            &json!({"request_count": {"avg": 4.0}, "metadata": {"submission_valid": true, "dataset": dataset}}),
        );
        self.json(
            &format!("{raw}/aiperf_artifacts/server_metrics_export.json"),
            &json!({"summary": {"endpoints_configured": [ENDPOINT], "endpoints_successful": [ENDPOINT]},
                    "metrics": {"vllm:prompt_tokens": {"series": [{"endpoint_url": ENDPOINT, "stats": {"total": 400.0}}]}}}),
        );
        self.write(
            &format!("{raw}/benchmark_command.txt"),
            &format!("aiperf profile --concurrency 4 --server-metrics {ENDPOINT} --streaming\n"),
        );
        self.write(
            &format!("run/server_logs_m1_agentic_{REPLAY}/server.log"),
            "INFO started\n",
        );
        self.json("envelope.json", &with_recipe(replay_envelope()));
        let mut process = sweepctl(self.path());
        process.env("HF_HUB_CACHE", self.path().join("hub"));
        process.args([
            "result",
            "process",
            "--envelope",
            "envelope.json",
            "--result-filename",
            "r",
            "--replay",
            &raw,
        ]);
        process.args(["--out", &format!("run/bmk_agentic_m1_agentic_{REPLAY}")]);
        std::fs::create_dir_all(self.path().join(format!("run/bmk_agentic_m1_agentic_{REPLAY}"))).expect("a folder");
        let (code, _, stderr) = run(&mut process);
        assert_eq!(code, 0, "{stderr}");
    }

    /// What the collectors make of it.
    fn collected(&self) {
        // What was collected before is no single result.
        for name in ["ledger", "results_bmk", "eval_results_all"] {
            let _ = std::fs::remove_dir_all(self.path().join("run").join(name));
        }
        let mut collect = sweepctl(self.path());
        collect.args(["collect", "sweep", "run", "--plan", "run/plan.json"]);
        collect.args(["--thresholds", "thresholds.yaml", "--out", "collected"]);
        let (code, _, stderr) = run(&mut collect);
        assert_eq!(code, 0, "{stderr}");
        // As the artifacts of a run are downloaded.
        let at = |name: &str| self.path().join(name);
        std::fs::create_dir_all(at("run/ledger")).expect("a folder");
        std::fs::rename(at("collected/ledger.json"), at("run/ledger/ledger.json")).expect("moved");
        for name in ["results_bmk", "eval_results_all"] {
            std::fs::rename(at("collected").join(name), at("run").join(name)).expect("moved");
        }
    }

    fn command(&self, args: &[&str]) -> (i32, String, String) {
        let mut command = sweepctl(self.path());
        command.args([
            "evidence",
            "run",
            "--plan",
            "run/plan.json",
            "--thresholds",
            "thresholds.yaml",
        ]);
        run(command.args(args))
    }

    /// The checks that fail, and all of them.
    fn look(&self) -> (Vec<String>, Value) {
        let (code, stdout, stderr) = self.command(&[]);
        let value: Value = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"));
        let checks = value["checks"].as_array().expect("checks");
        let failing = checks.iter().filter(|check| check["verdict"] == "fail");
        let failing: Vec<String> = failing
            .map(|check| check["check"].as_str().expect("text").to_owned())
            .collect();
        assert_eq!(code == 0, failing.is_empty(), "{stderr}");
        assert_eq!(value["complete"], failing.is_empty());
        (failing, value)
    }

    /// Exactly these checks fail, and a finding of the first says so.
    #[track_caller]
    fn fails(&self, checks: &[&str], part: &str) {
        let (failing, value) = self.look();
        assert_eq!(failing, checks, "{value:#}");
        let of_first = value["checks"]
            .as_array()
            .expect("checks")
            .iter()
            .find(|check| check["check"] == checks[0]);
        let findings = of_first.expect("the check")["findings"].to_string();
        assert!(findings.contains(part), "{part} in {findings}");
    }
}

#[test]
fn a_complete_folder_passes_every_check() {
    let folder = Downloaded::new();
    let (failing, value) = folder.look();
    assert!(failing.is_empty(), "{value:#}");
    for check in value["checks"].as_array().expect("checks") {
        let name = check["check"].as_str().expect("text");
        let wanted = if name == "diagnostic" { "not-applicable" } else { "pass" };
        assert_eq!(check["verdict"], wanted, "{name}: {check}");
        assert!(
            name == "diagnostic" || !check["files"].as_array().expect("files").is_empty(),
            "{name} shows a file"
        );
    }
    let (code, badge, _) = folder.command(&["--badge"]);
    assert_eq!(code, 0);
    assert_eq!(
        badge,
        "**Evidence: complete** (11 of 11 checks), run 4242 attempt 1, commit `0123456789ab`\n"
    );
}

#[test]
fn a_plan_that_is_missing_and_jobs_that_are_or_are_not_planned() {
    let folder = Downloaded::new();
    folder.json(&format!("run/eval_m1_8k1k_{}/x.json", "0000000000d4"), &json!({}));
    folder.fails(&["matrix"], "is of no job of the plan");
    folder.remove("run/plan.json");
    let (failing, _) = folder.look();
    assert_eq!(failing[0], "matrix");
    let folder = Downloaded::new();
    folder.remove(&format!("run/eval_m1_8k1k_{SINGLE}"));
    let (failing, _) = folder.look();
    for check in ["matrix", "full-split", "batch-points", "gate", "agreement", "image"] {
        assert!(failing.iter().any(|failing| failing == check), "{check} in {failing:?}");
    }
}

#[test]
fn a_limit_on_samples_is_no_full_split() {
    let folder = Downloaded::new();
    folder.edit(&format!("run/eval_m1_8k1k_{SINGLE}/results.json"), |result| {
        result["n-samples"]["plain"]["effective"] = 10.into();
    });
    folder.fails(&["full-split", "gate", "agreement"], "10 of 100 samples");
    // A limit that was planned and labelled measures nothing either, but it says so.
    let mut limited = with_recipe(envelope(SINGLE, 64));
    limited["overrides"] = json!({"eval-limit": "10"});
    let others = [
        with_recipe(multinode_envelope(BATCH, &[16, 32])),
        with_recipe(replay_envelope()),
    ];
    folder.plan(&[limited, others[0].clone(), others[1].clone()]);
    folder.edit(&format!("run/eval_m1_8k1k_{SINGLE}/results.json"), |result| {
        result["config"]["limit"] = 10.into();
    });
    folder.fails(&["full-split", "agreement", "diagnostic"], "the limit 10");
    folder.collected();
    folder.fails(&["full-split"], "the limit 10");
    let (_, badge, _) = folder.command(&["--badge"]);
    assert!(
        badge.starts_with("**Evidence: incomplete** (11 of 12 checks; fails: full-split)"),
        "{badge}"
    );
}

#[test]
fn every_point_of_a_batch_has_its_result() {
    let folder = Downloaded::new();
    folder.remove(&format!("run/eval_m1_8k1k_{BATCH}/results_conc32.json"));
    folder.fails(
        &["batch-points", "gate", "agreement"],
        "concurrency 32 has no result of its own",
    );
    let folder = Downloaded::new();
    folder.edit(&format!("run/eval_m1_8k1k_{BATCH}/meta_env.json"), |meta| {
        meta["completed_eval_concs"] = json!([16]);
        meta["failed_eval_concs"] = json!([32]);
    });
    let (failing, value) = folder.look();
    assert_eq!(failing[0], "batch-points", "{value:#}");
    assert!(value.to_string().contains("concurrency 32 failed"));
}

#[test]
fn a_score_under_its_threshold_and_a_replay_with_errors() {
    let folder = Downloaded::new();
    folder.write("thresholds.yaml", "default:\n  plain: 0.99\n");
    folder.fails(&["gate"], "0.95");
    let folder = Downloaded::new();
    let aggregate = format!("run/bmk_agentic_m1_agentic_{REPLAY}/agg_r.json");
    folder.edit(&aggregate, |value| {
        value["request_accounting"]["records_total"] = 5.into();
        value["request_accounting"]["records_dropped_total"] = 1.into();
        value["request_accounting"]["records_error_dropped"] = 1.into();
        value["num_requests_total"] = 5.into();
    });
    folder.fails(&["gate", "agreement"], "1 of 5 requests failed");
}

#[test]
fn collected_and_single_results_must_agree() {
    let folder = Downloaded::new();
    folder.edit("run/eval_results_all/agg_eval_all.json", |rows| {
        rows[0]["score"] = 0.99.into()
    });
    folder.fails(&["agreement"], "agg_eval_all.json");
    let folder = Downloaded::new();
    folder.remove("run/results_bmk");
    folder.fails(&["agreement"], "the collected throughput results are missing");
    let folder = Downloaded::new();
    let aggregate = format!("run/bmk_agentic_m1_agentic_{REPLAY}/agg_r.json");
    folder.edit(&aggregate, |value| {
        value["request_metrics"]["latency"]["ttft"]["mean"] = 0.05.into()
    });
    folder.collected();
    folder.fails(&["agreement"], "is not what the raw replay gives");
}

#[test]
fn a_replay_says_what_was_replayed_and_how() {
    let folder = Downloaded::new();
    folder.remove(&format!("run/agentic_m1_agentic_{REPLAY}/benchmark_command.txt"));
    folder.fails(&["replay-provenance"], "the exact command is missing");
    // The record of our own runner says it all, but it must.
    let record = format!("run/agentic_m1_agentic_{REPLAY}/replay.json");
    let whole = json!({"client": "c==1", "command": ["aiperf"], "corpus": {"source": "hub", "sha256": "ab"},
                       "replay_mode": "recorded-answers", "fast": false, "overrides": [], "started": "2026-11-30T00:00:00Z",
                       "diagnostic": [], "metrics": [{"url": ENDPOINT, "required": true, "read": true}],
                       "job": {"commit": COMMIT, "run_id": RUN.to_string(), "run_attempt": "1"}});
    folder.json(&record, &whole);
    assert_eq!(folder.look().0, [""; 0]);
    folder.edit(&record, |record| record["corpus"]["sha256"] = Value::Null);
    folder.fails(&["replay-provenance"], "no digest");
    folder.json(&record, &whole);
    folder.edit(&record, |record| record["metrics"][0]["read"] = false.into());
    folder.fails(&["backends"], "required and was never read");
}

#[test]
fn every_backend_is_represented() {
    let folder = Downloaded::new();
    let export = format!("run/agentic_m1_agentic_{REPLAY}/aiperf_artifacts/server_metrics_export.json");
    folder.edit(&export, |export| {
        export["summary"]["endpoints_configured"] = json!([ENDPOINT, "http://b/metrics"])
    });
    folder.fails(&["backends"], "http://b/metrics was configured and never read");
    folder.edit(&export, |export| export["summary"]["endpoints_configured"] = json!([]));
    let (failing, _) = folder.look();
    assert_eq!(failing, ["backends"]);
    let folder = Downloaded::new();
    folder.remove(&format!("run/server_logs_m1_agentic_{REPLAY}"));
    folder.fails(&["backends"], "the server logs of");
}

#[test]
fn fast_replays_are_labelled() {
    let folder = Downloaded::new();
    let mut fast = with_recipe(replay_envelope());
    fast["overrides"] = json!({"agentx-fast": true});
    folder.plan(&[
        with_recipe(envelope(SINGLE, 64)),
        with_recipe(multinode_envelope(BATCH, &[16, 32])),
        fast,
    ]);
    folder.fails(&["diagnostic"], "planned in the fast mode");
    let aggregate = format!("run/bmk_agentic_m1_agentic_{REPLAY}/agg_r.json");
    folder.edit(&aggregate, |value| value["diagnostic"] = true.into());
    folder.collected();
    let (failing, value) = folder.look();
    assert!(failing.is_empty(), "{value:#}");
    assert_eq!(value["diagnostic"], true);
    let (_, badge, _) = folder.command(&["--badge"]);
    assert!(
        badge.starts_with("**Evidence: diagnostic only** (12 of 12 checks)"),
        "{badge}"
    );
}

#[test]
fn image_commit_and_attempt_are_on_record() {
    let folder = Downloaded::new();
    folder.edit(&format!("run/bmk_agentic_m1_agentic_{REPLAY}/agg_r.json"), |value| {
        value["image"] = "img:2".into();
    });
    folder.collected();
    folder.fails(&["image"], "planned was img:1");
    let folder = Downloaded::new();
    let account = "run/run-provenance.json";
    folder.edit(account, |account| account["headSha"] = Value::Null);
    folder.fails(&["commit"], "nothing names the commit");
    let folder = Downloaded::new();
    folder.edit(account, |account| account["attempt"] = Value::Null);
    folder.fails(&["attempt"], "nothing names run and attempt");
    let folder = Downloaded::new();
    folder.edit(account, |account| account["databaseId"] = 7.into());
    let (failing, _) = folder.look();
    assert!(failing.contains(&"attempt".to_owned()), "{failing:?}");
    folder.remove(account);
    let (failing, _) = folder.look();
    assert_eq!(failing, ["commit", "attempt", "collection"]);
}

#[test]
fn the_run_and_its_collectors_ended_well() {
    let folder = Downloaded::new();
    folder.edit("run/run-provenance.json", |account| {
        account["conclusion"] = "failure".into()
    });
    folder.fails(&["collection"], "the run ended with failure");
    let folder = Downloaded::new();
    folder.remove("run/ledger");
    folder.fails(&["collection"], "the ledger of the collector is missing");
    let folder = Downloaded::new();
    folder.edit("run/ledger/ledger.json", |ledger| {
        ledger["jobs"][0]["state"] = "missing".into();
    });
    folder.fails(&["collection"], "is missing");
}

#[test]
fn a_run_is_the_folder_of_its_number_and_must_be_that_run() {
    let folder = Downloaded::new();
    let (code, _, stderr) = run(sweepctl(folder.path()).args(["evidence", "4242"]));
    assert_eq!(code, 1);
    assert!(
        stderr.contains("sweepctl fetch plan --out run-4242 --run-id 4242"),
        "{stderr}"
    );
    std::fs::rename(folder.path().join("run"), folder.path().join("run-4243")).expect("renamed");
    let mut command = sweepctl(folder.path());
    command.args([
        "evidence",
        "4243",
        "--plan",
        "run-4243/plan.json",
        "--thresholds",
        "thresholds.yaml",
    ]);
    let (code, stdout, _) = run(&mut command);
    assert_eq!(code, 1);
    assert!(stdout.contains("it is of the run 4242, asked for was 4243"), "{stdout}");
}

#[test]
fn links_are_not_followed() {
    let folder = Downloaded::new();
    let command = format!("run/agentic_m1_agentic_{REPLAY}/benchmark_command.txt");
    let outside = folder.path().join("outside.txt");
    std::fs::rename(folder.path().join(&command), &outside).expect("moved");
    std::os::unix::fs::symlink(&outside, folder.path().join(&command)).expect("a link");
    folder.fails(&["replay-provenance"], "the exact command is missing");
}

#[test]
fn on_a_terminal_it_is_a_table() {
    let folder = Downloaded::new();
    folder.edit("run/run-provenance.json", |account| {
        account["conclusion"] = "failure".into()
    });
    let mut command = crate::support::sweepctl(folder.path());
    command.args([
        "evidence",
        "run",
        "--plan",
        "run/plan.json",
        "--thresholds",
        "thresholds.yaml",
    ]);
    let text = terminal::shown(&command, 120);
    let line = text
        .lines()
        .find(|line| line.starts_with(" collection") || line.starts_with("collection"));
    assert!(line.is_some_and(|line| line.contains("fail")), "{text}");
    assert!(text.contains("not applicable"), "{text}");
}
