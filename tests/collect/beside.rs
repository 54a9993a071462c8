//! One table of a sweep whose evals are of every framework, with replays beside them.

use serde_json::{Value, json};

use super::{Sweep, column};
use crate::fixture::{as_replay, envelope, meta, multinode_envelope, read_json, result, run, sweepctl, write};

/// The floor of every task of [`evals`].
const THRESHOLDS: &str = "\
default:
  gsm8k: 0.9
  kimi_tool_call_schema_full: 0.5
  minimax_m3_full: 0.5
  bfcl_smoke: 0.5
  swebench_lite: 0.4
  aime25: 0.8
  mmlu: 0.7
  mmlu_stem: 0.6
  mmlu_other: 0.6
  gpqa: 0.6
  longbenchv2: 0.5
  longbenchv2_synthetic: 0.5
models: {}
";

/// What a suite with a command and a report leaves: a result under a filter of its own.
fn suite(framework: &str, suite: &str, filter: &str, score: f64, cases: u64) -> Value {
    json!({
        "results": {suite: {"alias": suite, (format!("exact_match,{filter}")): score, "streamed,none": 0.5}},
        "configs": {suite: {"task": suite, "metric_list": [{"metric": "exact_match", "higher_is_better": true}]}},
        "n-samples": {suite: {"original": cases, "effective": cases}},
        "eval_framework": framework, "eval_suite": suite, "model_name": "org/model",
    })
}

/// AIME by NeMo Skills, in percent.
fn aime() -> Value {
    let mode = |value: f64| json!({"num_entries": 30, "symbolic_correct": value});
    json!({"aime25": {"pass@1[avg-of-2]": mode(85.0), "pass@2": mode(95.0), "majority@2": mode(90.0)}})
}

/// A framework, its suite, and the files of its artifact beside the metadata.
type Eval = (&'static str, &'static str, Vec<(&'static str, Value)>);

/// One eval of each kind.
fn evals() -> Vec<Eval> {
    let longbench =
        json!({"model": "fixed/Name", "scores": {"synthetic": 0.9}, "overall_score": 0.9, "total_examples": 503});
    let results = |value: Value| vec![("results_2026-11-30T00-00-00.json", value)];
    vec![
        ("lm-eval", "", results(result("gsm8k", 0.95))),
        (
            "kimi-vendor",
            "kimi_tool_call_schema_full",
            results(suite(
                "kimi-vendor",
                "kimi_tool_call_schema_full",
                "create_test",
                0.75,
                408,
            )),
        ),
        (
            "minimax-vendor",
            "minimax_m3_full",
            results(suite("minimax-vendor", "minimax_m3_full", "none", 0.8, 102)),
        ),
        (
            "bfcl",
            "bfcl_smoke",
            results(suite("bfcl", "bfcl_smoke", "none", 1.0, 4)),
        ),
        (
            "swebench",
            "swebench_lite",
            results(suite("swebench", "swebench_lite", "resolved", 0.5, 300)),
        ),
        (
            "benchmark",
            "aime",
            vec![("accuracy/aime25/eval-results/aime25/metrics.json", aime())],
        ),
        (
            "benchmark",
            "mmlu",
            vec![(
                "accuracy/mmlu_deepseek-ai_DeepSeek-R1.json",
                json!({"stem": 0.7, "other": 0.9, "scores": [0.78, 0.82], "mean_score": 0.8}),
            )],
        ),
        (
            "benchmark",
            "gpqa",
            vec![(
                "accuracy/gpqa_model.json",
                json!({"chars": 9.5, "score:std": 0.4, "score": 0.7}),
            )],
        ),
        (
            "benchmark",
            "longbenchv2",
            vec![("accuracy/longbenchv2_fixed_Name.json", longbench)],
        ),
    ]
}

/// The folder of all artifacts, and the plan that asked for them.
fn sweep() -> Sweep {
    let sweep = Sweep::new();
    let mut plan = Vec::new();
    for (at, (framework, suite, files)) in evals().into_iter().enumerate() {
        let id = format!("00000000000{at}");
        let mut job = multinode_envelope(&id, &[16]);
        job["name"] = json!(format!("{framework} {suite}"));
        let row = job["row"].as_object_mut().expect("a row");
        row.remove("eval-all-concs");
        row.insert("eval-conc".to_owned(), json!(16));
        row.insert("eval-framework".to_owned(), json!(framework));
        row.insert("eval-suite".to_owned(), json!(suite));
        let mut described = meta(16);
        for (name, value) in [
            ("is_multinode", json!(true)),
            ("eval_suite", json!(suite)),
            ("job_id", json!(id)),
        ] {
            described[name] = value;
        }
        for (side, workers, tp) in [("prefill", 2, 4), ("decode", 1, 8)] {
            described[format!("{side}_tp")] = json!(tp);
            described[format!("{side}_num_workers")] = json!(workers);
        }
        described["tp"] = json!(4);
        sweep.file(&format!("eval_m1_8k1k_{id}/meta_env.json"), &described);
        for (name, value) in files {
            sweep.file(&format!("eval_m1_8k1k_{id}/{name}"), &value);
        }
        plan.push(job);
    }
    for (id, conc, tput) in [("0000000000a1", 8, 3.5), ("0000000000a2", 16, 4.5)] {
        let mut job = envelope(id, conc);
        let row = job["row"].as_object_mut().expect("a row");
        as_replay(row);
        row.insert("recipe-fingerprint".to_owned(), json!("a".repeat(64)));
        plan.push(job);
        sweep.file(
            &format!("bmk_agentic_m1_{id}/agg_replay.json"),
            &json!({"hw": "h200", "conc": conc, "infmax_model_prefix": "m1", "framework": "vllm", "precision": "fp8",
                "is_multinode": false, "tp": 8, "scenario_type": "agentic-coding", "tput_per_gpu": tput,
                "recipe_fingerprint": "a".repeat(64)}),
        );
    }
    sweep.plan(&json!(plan));
    write(sweep.path().join("thresholds.yaml"), THRESHOLDS);
    sweep
}

fn collected(sweep: &Sweep) -> Value {
    let mut command = sweepctl(sweep.path());
    command.args([
        "collect",
        "sweep",
        "artifacts",
        "--plan",
        "plan.json",
        "--thresholds",
        "thresholds.yaml",
        "--json",
    ]);
    let (code, stdout, stderr) = run(command.env("GITHUB_STEP_SUMMARY", sweep.path().join("summary.md")));
    assert_eq!(code, 0, "{stderr}");
    serde_json::from_str(&stdout).expect("JSON")
}

#[test]
fn one_table_holds_evals_of_every_framework_and_replays() {
    let sweep = sweep();
    let printed = collected(&sweep);
    let states = column(&printed, "jobs", "state");
    assert_eq!(states, vec![json!("done"); 11], "{printed}");
    assert_eq!((&printed["problems"], &printed["unplanned"]), (&json!([]), &json!([])));
    let rows = read_json(&sweep.path().join("eval_results_all/agg_eval_all.json"));
    let mut found: Vec<(&str, f64)> = rows
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| {
            (
                row["task"].as_str().expect("a task"),
                row["score"].as_f64().expect("a score"),
            )
        })
        .collect();
    found.sort_by(|a, b| a.0.cmp(b.0));
    let wanted = [
        ("aime25", 0.85),
        ("bfcl_smoke", 1.0),
        ("gpqa", 0.7),
        ("gsm8k", 0.95),
        ("kimi_tool_call_schema_full", 0.75),
        ("longbenchv2", 0.9),
        ("longbenchv2_synthetic", 0.9),
        ("minimax_m3_full", 0.8),
        ("mmlu", 0.8),
        ("mmlu_other", 0.9),
        ("mmlu_stem", 0.7),
        ("swebench_lite", 0.5),
    ];
    assert_eq!(found, wanted);
    // Each row says whose it is by the job's own metadata, in the same words.
    for row in rows.as_array().expect("rows") {
        let whose = ["model", "model_prefix", "hw", "prefill_tp", "decode_tp", "conc"].map(|name| &row[name]);
        let wanted = [
            json!("org/model"),
            json!("m1"),
            json!("H200"),
            json!(4),
            json!(8),
            json!(16),
        ];
        assert_eq!(whose, wanted.each_ref(), "{row}");
    }
    let replays = read_json(&sweep.path().join("results_bmk/agg_bmk.json"));
    let replays = replays.as_array().expect("replays").iter();
    assert_eq!(
        replays.map(|row| row["tput_per_gpu"].as_f64()).collect::<Vec<_>>(),
        [Some(3.5), Some(4.5)]
    );
    let summary = std::fs::read_to_string(sweep.path().join("summary.md")).expect("a summary");
    for (task, _) in wanted {
        assert!(summary.contains(task), "{task} in {summary}");
    }
}

#[test]
fn an_output_that_cannot_be_read_costs_its_own_job_alone() {
    let sweep = sweep();
    write(
        sweep
            .path()
            .join("artifacts/eval_m1_8k1k_000000000006/accuracy/mmlu_deepseek-ai_DeepSeek-R1.json"),
        "{\"score\": NaN}",
    );
    let printed = collected(&sweep);
    let states = column(&printed, "jobs", "state");
    assert_eq!(states.iter().filter(|state| *state == "done").count(), 10, "{printed}");
    let failed = printed["jobs"]
        .as_array()
        .expect("jobs")
        .iter()
        .find(|job| job["state"] != "done")
        .expect("one");
    assert_eq!(failed["id"], "000000000006", "{failed}");
}
