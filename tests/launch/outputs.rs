//! What a job must leave, and what is said where it left something else.

use serde_json::{Value, json};

use super::support::{Done, Host, benchmark, throughput};
use crate::eval::support::{envelope, multi_node};

/// Runs a script job that leaves files, named after the result where they start with `R`.
fn leaves(envelope: &Value, files: &[(&str, Value)]) -> (Host, Done) {
    let mut script = String::new();
    let host = Host::with_script("");
    for (at, (name, content)) in files.iter().enumerate() {
        std::fs::write(host.file(&format!("saved{at}")), content.to_string()).expect("a file");
        let name = name.replacen('R', "${RESULT_FILENAME}", 1);
        script.push_str(&format!(
            "mkdir -p \"$(dirname \"{name}\")\"; cp saved{at} \"{name}\"\n"
        ));
    }
    host.script(&script);
    let done = host.run(envelope);
    (host, done)
}

fn refused(envelope: &Value, files: &[(&str, Value)], code: i32, parts: &[&str]) {
    let (_host, done) = leaves(envelope, files);
    assert_eq!(done.code, Some(code), "{}", done.stderr);
    for part in parts {
        assert!(done.stderr.contains(part), "{part} in {}", done.stderr);
    }
}

fn many(agentic: bool, concs: &[u64]) -> Value {
    let mut envelope = multi_node("0123456789ab", concs);
    let row = envelope["row"].as_object_mut().expect("a row");
    for name in ["eval-framework", "eval-suite", "eval-all-concs"] {
        row.remove(name);
    }
    row.insert("run-eval".to_owned(), false.into());
    row.insert("eval-only".to_owned(), false.into());
    if agentic {
        for name in ["isl", "osl", "max-model-len"] {
            row.remove(name);
        }
        for (name, value) in json!({"scenario-type": "agentic-coding", "kv-offloading": "none",
            "total-cpu-dram-gb": 0, "duration": 3600})
        .as_object()
        .expect("an object")
        {
            row.insert(name.clone(), value.clone());
        }
    }
    envelope
}

#[test]
fn a_throughput_job_leaves_its_whole_result() {
    let (_host, done) = leaves(&throughput(), &[("R.json", benchmark(json!({})))]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    refused(
        &throughput(),
        &[],
        73,
        &["_h200-x_0.json` is missing", "found instead: `envelope.json`"],
    );
    refused(
        &throughput(),
        &[("other.json", json!({}))],
        73,
        &["is missing", "found instead: `envelope.json`, `other.json`"],
    );
    refused(
        &throughput(),
        &[("R.json", benchmark(json!({"completed": 38})))],
        73,
        &["`completed` is 38, 40 requests were planned"],
    );
    refused(
        &throughput(),
        &[("R.json", benchmark(json!({"total_output_tokens": 0})))],
        73,
        &["nothing was generated"],
    );
}

#[test]
fn many_nodes_leave_one_result_or_more() {
    let envelope = many(false, &[16, 32]);
    let (_host, done) = leaves(&envelope, &[("R_conc16.json", benchmark(json!({})))]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    refused(
        &envelope,
        &[("R.json", benchmark(json!({})))],
        73,
        &["_*.json` is missing"],
    );
    let bad = benchmark(json!({"completed": 0}));
    let files = [("R_conc16.json", benchmark(json!({}))), ("R_conc32.json", bad)];
    refused(&envelope, &files, 73, &["_conc32.json: `completed` is 0"]);
}

#[test]
fn an_agentic_replay_on_many_nodes_leaves_its_concurrency_and_few_errors() {
    let envelope = many(true, &[16]);
    let with = |fields: Value| [("R_conc16.json", benchmark(fields))];
    for fine in [
        json!({"error_rate": 0.1}),
        json!({"failed": 4}),
        json!({"completed": 38, "failed": 2}),
    ] {
        let (_host, done) = leaves(&envelope, &with(fine));
        assert_eq!(done.code, Some(0), "{}", done.stderr);
    }
    refused(
        &envelope,
        &with(json!({"error_rate": 0.11})),
        73,
        &["11.0 % of the requests failed, at most 10 %"],
    );
    refused(
        &envelope,
        &with(json!({"failed": 5})),
        73,
        &["11.1 % of the requests failed"],
    );
    refused(&envelope, &with(json!({"completed": 0})), 73, &["no request completed"]);
    let wrong = [("R_conc32.json", benchmark(json!({})))];
    refused(&envelope, &wrong, 73, &["_conc16.json` is missing", "_conc32.json`"]);
}

#[test]
fn a_raw_replay_or_an_aggregate_of_one_is_a_result_too() {
    let envelope = many(true, &[16]);
    let summary = |failed: u64| json!({"request_count": {"avg": 20 - failed}, "error_request_count": {"avg": failed}});
    let raw = |failed: u64| {
        let folder = "LOGS/agentic/conc_16/aiperf_artifacts";
        [
            (format!("{folder}/profile_export.jsonl"), json!({})),
            (format!("{folder}/profile_export_aiperf.json"), summary(failed)),
        ]
    };
    let files = raw(2);
    let files: Vec<(&str, Value)> = files.iter().map(|(name, text)| (name.as_str(), text.clone())).collect();
    let (_host, done) = leaves(&envelope, &files);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let failing = raw(3);
    let failing: Vec<(&str, Value)> = failing
        .iter()
        .map(|(name, text)| (name.as_str(), text.clone()))
        .collect();
    refused(&envelope, &failing, 73, &["3 of 20 requests failed"]);
    refused(&envelope, &files[..1], 73, &["no `profile_export_aiperf.json`"]);
    let aggregate = |conc: u64, failed: u64| {
        json!({"conc": conc, "num_requests_total": 20, "num_requests_successful": 20 - failed,
               "request_accounting": {"records_total": 20, "records_profiled": 20 - failed,
                                      "records_dropped_total": failed, "records_warmup_dropped": 0},
               "request_metrics": {}, "server_metrics": {}})
    };
    let (_host, done) = leaves(&envelope, &[("R_conc16.json", aggregate(16, 2))]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    refused(
        &envelope,
        &[("R_conc16.json", aggregate(16, 3))],
        73,
        &["3 of 20 requests failed"],
    );
    refused(
        &envelope,
        &[("R_conc16.json", aggregate(8, 0))],
        73,
        &["it is of another job: `conc` is 8"],
    );
}

#[test]
fn an_eval_only_job_leaves_its_task_and_no_throughput() {
    let envelope = envelope("0123456789ab", json!({}));
    let results = |task: &str| json!({"results": {task: {"exact_match,none": 0.9}}});
    let whole = [("results_1.json", results("gsm8k")), ("samples_gsm8k.jsonl", json!({}))];
    let host = Host::with_script("");
    host.script("echo '{\"results\": {\"gsm8k\": {}}}' > results_1.json; echo '{}' > samples_gsm8k_1.jsonl");
    assert_eq!(host.run(&envelope).code, Some(0));
    refused(&envelope, &[], 74, &["`results*.json` is missing"]);
    refused(
        &envelope,
        &[("results_1.json", results("other"))],
        74,
        &["the eval of `gsm8k` is not whole", "found instead: `results_1.json`"],
    );
    refused(
        &envelope,
        &[("R.json", benchmark(json!({})))],
        74,
        &["left the throughput result", "`results*.json` is missing"],
    );
    // A sample file without its last line's end is one that a full disk cut.
    refused(&envelope, &whole, 74, &["is cut off"]);
}

#[test]
fn what_an_earlier_job_left_counts_for_nothing() {
    let host = Host::with_script("true");
    let name = "results_old.json";
    std::fs::write(host.file(name), "{\"results\": {\"gsm8k\": {}}}").expect("a file");
    std::fs::write(host.file("samples_gsm8k_old.jsonl"), "{}\n").expect("a file");
    std::fs::create_dir(host.file("eval_results")).expect("a folder");
    std::fs::write(
        host.file("eval_results/results_old.json"),
        "{\"results\": {\"gsm8k\": {}}}",
    )
    .expect("a file");
    let past = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    let file = std::fs::File::options()
        .append(true)
        .open(host.file("eval_results/results_old.json"));
    file.expect("a file").set_modified(past).expect("a time");
    let done = host.run(&envelope("0123456789ab", json!({})));
    assert_eq!(done.code, Some(74), "{}", done.stderr);
    assert!(
        done.stderr.contains("removed") && done.stderr.contains(name),
        "{}",
        done.stderr
    );
    assert!(done.stderr.contains("`results*.json` is missing"), "{}", done.stderr);
}

#[test]
fn the_files_decide_and_not_the_code() {
    let host = Host::with_script("cp saved.json \"$RESULT_FILENAME.json\"; exit ${CODE:-3}");
    let launch = |host: &Host, saved: Value, envelope: &Value| {
        std::fs::write(host.file("saved.json"), saved.to_string()).expect("a file");
        host.run(envelope)
    };
    let done = launch(&host, benchmark(json!({})), &super::support::throughput());
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let told = done
        .stderr
        .lines()
        .find(|line| line.starts_with("notice[launch/exit-code]"));
    let is_told = told.is_some_and(|line| line.contains("the job exited with code 3"));
    assert!(is_told, "{}", done.stderr);
    // Both are wrong, and both are said.
    let done = launch(&host, benchmark(json!({"completed": 3})), &super::support::throughput());
    assert_eq!(done.code, Some(73), "{}", done.stderr);
    assert!(done.stderr.contains("exited with code 3"), "{}", done.stderr);
    assert!(done.stderr.contains("completed"), "{}", done.stderr);

    let evaluates = "echo '{\"results\": {\"gsm8k\": {}}}' > results_1.json; echo '{}' > samples_gsm8k_1.jsonl; ";
    for (code, wanted) in [(1, 0), (73, 0), (74, 74)] {
        let host = Host::with_script(&format!("{evaluates} exit {code}"));
        let done = host.run(&envelope("0123456789ab", json!({})));
        assert_eq!(done.code, Some(wanted), "{code}: {}", done.stderr);
    }
    // A script that was killed did not lose its code: it has none.
    let host = Host::with_script("cp saved.json \"$RESULT_FILENAME.json\"; kill -KILL $$");
    let done = launch(&host, benchmark(json!({})), &super::support::throughput());
    assert_eq!(done.code, Some(73), "{}", done.stderr);
}
