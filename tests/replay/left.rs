//! Aggregates that a job's script wrote, and what others make of aggregates.

use serde_json::{Value, json};

use super::{ID, Job, agentic, agentic_on_many};
use crate::fixture::{read_json, run, sweepctl, write};

fn left(conc: u64) -> Value {
    json!({
        "hw": "h200", "conc": conc, "image": "img:1", "model": "hub/Model", "infmax_model_prefix": "m1",
        "framework": "vLLM", "precision": "fp8", "spec_decoding": "none", "disagg": false, "recipe_fingerprint": "",
        "scenario_type": "agentic-coding", "is_multinode": false, "tp": 8, "ep": 1, "dp_attention": "false",
        "kv_offloading": "none", "kv_offload_backend": null, "num_requests_total": 20, "num_requests_successful": 18,
        "request_accounting": {"records_total": 20, "records_profiled": 18, "records_dropped_total": 2,
                               "records_warmup_dropped": 1},
        "request_metrics": {"throughput": {"per_gpu": {"total_tput_tps": 100.5, "output_tput_tps": 10.0}},
                            "latency": {"ttft": {"p50": 0.5, "mean": 0.6}}},
        "server_metrics": {"present": false}, "mine": [1, {"kept": 2.50}],
    })
}

#[test]
fn an_aggregate_of_the_script_is_taken_as_it_is() {
    let job = Job::new(&agentic("vllm"));
    let text = serde_json::to_string_pretty(&left(64))
        .expect("JSON")
        .replace("2.5", "2.50")
        + "\n\n";
    job.file("r.json", &text);
    for args in [&[][..], &["r.json"]] {
        let mut command = sweepctl(job.path());
        command.args(["result", "process"]).args(args);
        if args.is_empty() {
            command.env("RESULT_FILENAME", "r");
        }
        let (code, printed, stderr) = run(&mut command);
        assert_eq!(code, 0, "{stderr}");
        let printed: Value = serde_json::from_str(&printed).expect("JSON");
        assert_eq!(printed[0]["conc"], 64);
        let written = std::fs::read_to_string(job.path().join("agg_r.json")).expect("the aggregate");
        assert_eq!(written, text, "byte for byte");
        std::fs::remove_file(job.path().join("agg_r.json")).expect("removed");
    }
}

#[test]
fn an_aggregate_of_another_job_or_of_a_replay_that_does_not_count_is_refused() {
    let with = |path: &str, value: Value| {
        let mut aggregate = left(64);
        *aggregate.pointer_mut(path).expect("a field") = value;
        aggregate.to_string()
    };
    for (text, part) in [
        (with("/conc", json!(32)), "`conc` is 32, the job's is 64"),
        (with("/model", json!("org/other")), "`model` is \"org/other\""),
        (with("/framework", json!("sglang")), "`framework` is"),
        (with("/precision", json!("fp4")), "`precision` is"),
        (with("/recipe_fingerprint", json!("beef")), "`recipe_fingerprint` is"),
        (with("/request_metrics", json!(null)), "`request_metrics` is missing"),
        (
            with("/request_accounting", json!([])),
            "`request_accounting` is no object",
        ),
        (with("/num_requests_successful", json!(17)), "contradict each other"),
        (
            with("/request_accounting/records_total", json!("20")),
            "must be a count",
        ),
        (left(64).to_string().replace("2.5", "NaN"), "no strict JSON"),
    ] {
        let mut named = agentic("vllm");
        named["row"]["recipe-fingerprint"] = json!("f".repeat(64));
        let job = Job::new(&named);
        job.file("r.json", &text);
        job.refused(&[], part);
        assert!(!job.has("agg_r.json"), "{part}");
    }
    let job = Job::new(&agentic("vllm"));
    let mut failed = left(64);
    failed["num_requests_successful"] = json!(15);
    failed["request_accounting"]["records_profiled"] = json!(15);
    failed["request_accounting"]["records_dropped_total"] = json!(5);
    job.file("r.json", &failed.to_string());
    job.refused(&[], "4 of 19 requests failed");
}

#[test]
fn of_many_nodes_every_concurrency_has_its_own() {
    let job = Job::new(&agentic_on_many(&[8, 16]));
    job.file("r_conc8.json", &left(8).to_string());
    job.refused(
        &[],
        "r_conc16.json: there is neither the aggregate nor the raw replay at 16",
    );
    job.file("r_conc16.json", &left(16).to_string());
    let (code, stderr) = job.process(&[]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(
        (
            job.read("agg_r_conc8.json")["conc"].as_u64(),
            job.read("agg_r_conc16.json")["conc"].as_u64()
        ),
        (Some(8), Some(16))
    );
}

#[test]
fn replays_are_collected_once_and_compared_by_their_nested_metrics() {
    let job = Job::new(&agentic("vllm"));
    let artifact = format!("bmk_agentic_m1_{ID}");
    let sides = [("before", 100.5), ("after", 50.25)];
    for (side, tput) in sides {
        let mut aggregate = left(64);
        aggregate["request_metrics"]["throughput"]["per_gpu"]["total_tput_tps"] = json!(tput);
        job.file(&format!("{side}_raw/{artifact}/r.json"), &aggregate.to_string());
        if side == "before" {
            job.file(&format!("{side}_raw/{artifact}/agg_r.json"), &aggregate.to_string());
        }
        let mut command = sweepctl(job.path());
        command.args(["collect", "results", &format!("{side}_raw"), "--strict", "--json"]);
        let (code, printed, stderr) = run(&mut command);
        assert_eq!((code, stderr.as_str()), (0, ""));
        let printed: Value = serde_json::from_str(&printed).expect("JSON");
        assert_eq!(printed["rows"], json!([aggregate]));
        let rows = read_json(&job.path().join("agg_bmk.json"));
        write(job.path().join(side).join("results_bmk/agg_bmk.json"), rows.to_string());
    }
    let mut command = sweepctl(job.path());
    let (code, printed, stderr) = run(command.args(["compare", "before", "after", "--json"]));
    assert_eq!(code, 0, "{stderr}");
    assert!(printed.contains("100.5") && printed.contains("50.25"), "{printed}");
}
