//! The rules of records, statistics and counts.

use serde_json::{Value, json};

use super::{Job, agentic, doubles, good, record, summary};
use crate::support::project;

#[test]
fn statistics_are_of_the_good_records_and_rounded_last() {
    let job = Job::with_replay();
    let found = job.aggregate();
    let metrics = &doubles(&found["request_metrics"]);
    let spread = |mean: f64, p50: f64, p75: f64, p90: f64, p95: f64, std: f64| json!({"mean": mean, "p50": p50, "p75": p75, "p90": p90, "p95": p95, "std": std});
    assert_eq!(metrics["latency"]["ttft"], spread(0.2, 0.2, 0.25, 0.28, 0.29, 0.1));
    assert_eq!(metrics["latency"]["e2el"], spread(2.5, 2.5, 2.75, 2.9, 2.95, 0.5));
    assert_eq!(metrics["latency"]["tpot"], metrics["latency"]["itl"]);
    // 1 / 0.015, 1 / 0.0175 ...: five places, as decimals.
    assert_eq!(
        metrics["latency"]["intvty"],
        spread(66.66667, 66.66667, 57.14286, 52.63158, 51.28205, 25.0)
    );
    assert_eq!(
        metrics["latency"]["e2e_norm_intvty"],
        spread(25.0, 25.0, 25.0, 25.0, 25.0, 0.0)
    );
    assert_eq!(metrics["latency"]["full_response_itl"], json!({}));
    assert_eq!(
        metrics["tokens"]["input"]["mean"], 150.0,
        "counts are cut to whole numbers"
    );
    assert_eq!(metrics["tokens"]["output_actual"]["p95"], 50.0);
    assert_eq!(metrics["tokens"]["output_expected"], json!({}));
    assert_eq!(
        metrics["throughput"],
        json!({"duration_seconds": 4.0, "input": {"tokens_per_second": 75.0}, "output": {"tokens_per_second": 12.5},
               "total": {"tokens_per_second": 87.5},
               "per_gpu": {"total_tput_tps": 10.9375, "output_tput_tps": 1.5625, "input_tput_tps": 9.375}})
    );
    assert_eq!(
        (&metrics["qps"]["samples"], &metrics["qps"]["mean"]),
        (&json!(2.0), &json!(0.5))
    );
    assert_eq!(found["server_metrics"]["tokens"]["prompt_total"], 300.0);
    assert_eq!(found["conc"], 64);
}

#[test]
fn records_of_the_warm_up_and_failed_ones_are_counted_apart() {
    let job = Job::new(&agentic("vllm"));
    let mut records = good();
    let mut more = |phase: Value, error: Value| {
        let mut record = record(9000, 90_000, &json!({"time_to_first_token": 9000}));
        record["metadata"]["benchmark_phase"] = phase;
        record["error"] = error;
        records.push(record.to_string());
    };
    more(json!("warmup"), json!(null));
    more(json!("warmup"), json!({"type": "Timeout"}));
    more(json!("profiling"), json!("Reset: by peer\nsecond line"));
    more(json!(null), json!({"message": "Reset: again"}));
    records.insert(1, String::from("  "));
    job.replay("replay/aiperf_artifacts", &records, &summary(20, 2));
    let found = job.aggregate();
    assert_eq!(
        found["request_accounting"],
        json!({"records_total": 6, "records_profiled": 2, "records_dropped_total": 4, "records_warmup_dropped": 2,
               "records_error_dropped": 3, "error_categories": {"Timeout": 1, "Reset": 2}})
    );
    assert_eq!(
        (&found["num_requests_total"], &found["num_requests_successful"]),
        (&json!(6), &json!(2))
    );
    assert_eq!(found["request_metrics"]["latency"]["ttft"]["mean"], 0.2);
    assert_eq!(found["request_metrics"]["throughput"]["duration_seconds"], 4.0);
}

#[test]
fn the_summarys_counts_decide() {
    let count = |good: Value, failed: Value, completed: Value| {
        json!({"request_count": {"avg": good}, "error_request_count": {"avg": failed},
               "completed_request_count": {"avg": completed}})
    };
    let null = Value::Null;
    for (summary, refused) in [
        (count(json!(9), json!(1), null.clone()), ""),
        (count(json!(9), null.clone(), null.clone()), ""),
        (json!({"request_count": {"avg": 9}}), ""),
        (count(json!(89), json!(11), null.clone()), "11 of 100 requests failed"),
        (count(json!(9), json!(1), json!(9)), "1 of 9 requests failed"),
        (
            count(null.clone(), json!(0), json!(5)),
            "`request_count.avg` is missing",
        ),
        (json!({}), "`request_count.avg` is missing"),
        (
            count(json!("9"), null.clone(), null.clone()),
            "`request_count.avg` is \"9\"",
        ),
        (
            count(json!(9), json!(true), null.clone()),
            "`error_request_count.avg` is true",
        ),
        (
            count(json!(9), json!(0), json!(-1)),
            "`completed_request_count.avg` is -1",
        ),
        (count(json!(0), json!(0), null.clone()), "no request completed"),
        (count(json!(9), json!(0), json!(0)), "no request completed"),
    ] {
        let job = Job::new(&agentic("vllm"));
        job.replay("replay/aiperf_artifacts", &good(), &summary);
        match refused {
            "" => drop(job.aggregate()),
            part => {
                job.refused(&["--replay", "replay"], part);
                assert!(!job.has("agg_r.json"), "{summary}");
            }
        }
    }
}

#[test]
fn files_that_are_missing_or_cut_off_are_refused() {
    let job = Job::new(&agentic("vllm"));
    job.refused(&["--replay", "replay"], "no folder `aiperf_artifacts`");
    job.file(
        "replay/aiperf_artifacts/profile_export_aiperf.json",
        &summary(1, 0).to_string(),
    );
    job.refused(&["--replay", "replay"], "no `profile_export.jsonl`");
    let records = good().join("\n");
    job.file(
        "replay/aiperf_artifacts/profile_export.jsonl",
        &records[..records.len() - 1],
    );
    job.refused(&["--replay", "replay"], "line 2, is cut off");
    job.file("replay/aiperf_artifacts/profile_export.jsonl", "[1]\n");
    job.refused(&["--replay", "replay"], "line 1, is no JSON object");
    let job = Job::with_replay();
    std::fs::remove_file(job.path().join("replay/aiperf_artifacts/profile_export_aiperf.json")).expect("removed");
    job.refused(&["--replay", "replay"], "no `profile_export_aiperf.json`");
    let job = Job::with_replay();
    job.file(
        "envelope.json",
        &crate::fixture::envelope("0123456789ab", 64).to_string(),
    );
    job.refused(&["--replay", "replay"], "it replays nothing");
}

#[test]
fn of_several_runs_the_first_by_name_is_read() {
    let job = Job::new(&agentic("vllm"));
    job.replay("replay/aiperf_artifacts/run_b", &good(), &summary(90, 10));
    job.replay("replay/aiperf_artifacts/run_a", &good()[..1], &summary(2, 0));
    job.file("replay/aiperf_artifacts/a_none/notes.txt", "");
    assert_eq!(job.aggregate()["num_requests_total"], 1);
    job.replay("replay/aiperf_artifacts", &good(), &summary(2, 0));
    assert_eq!(job.aggregate()["num_requests_total"], 2);
}

#[test]
fn expected_lengths_are_those_of_the_newest_traces() {
    let job = Job::with_replay();
    let snapshots = "hub/datasets--semianalysisai--cc-traces-weka-x/snapshots";
    let turns =
        json!([{"type": "s", "out": 7}, {"type": "tool", "out": 9}, {"type": "n", "output_length": 8, "out": 1}]);
    job.file(
        &format!("{snapshots}/a/t.jsonl"),
        &format!("no JSON\n{}\n", json!({"id": "c", "requests": turns})),
    );
    assert_eq!(
        job.aggregate()["request_metrics"]["tokens"]["output_expected"]["mean"],
        7.0
    );
    let found = job.aggregate()["request_metrics"]["tokens"]["output_expected"].clone();
    assert_eq!(found.as_object().map(serde_json::Map::len), Some(6));
}

#[test]
fn plots_are_drawn_the_same_each_time() {
    let job = Job::new(&agentic("vllm"));
    let mut named = agentic("vllm");
    named["row"]["model-prefix"] = json!("m<1>&");
    job.file("envelope.json", &named.to_string());
    let mut records = good();
    for at in 1..60 {
        let metrics = json!({"time_to_first_token": 100 + at * at, "request_latency": 2000 + 40 * at,
                             "inter_token_latency": 10, "input_sequence_length": 1000 * at,
                             "output_sequence_length": 50 + at % 7});
        records.push(record(at, 3000 + at, &metrics).to_string());
    }
    job.replay("replay/aiperf_artifacts", &records, &summary(61, 0));
    let (code, stderr) = job.process(&["--replay", "replay", "--plots", "plots"]);
    assert_eq!(code, 0, "{stderr}");
    let text = |name: &str| std::fs::read_to_string(job.path().join("plots").join(name)).expect("a picture");
    let drawn = [text("r_latency.svg"), text("r_tokens.svg")];
    for svg in &drawn {
        assert!(svg.contains("m&lt;1&gt;&amp; on h200, concurrency 64"), "{svg}");
        assert!(!svg.contains("NaN"), "{svg}");
    }
    insta::with_settings!({ snapshot_path => project().join("snapshots"), prepend_module_to_snapshot => false,
        omit_expression => true }, {
        insta::assert_snapshot!("replay_tokens", drawn[1]);
    });
}
