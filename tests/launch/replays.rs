//! Replays without a launch script: an engine's server, and its own client, whose raw files become what is published.

use serde_json::{Value, json};

use super::backends::agentic;
use super::engines::with_engine;
use super::support::{Done, Host, run};
use crate::eval::support::{names, read_json, root, write_json};
use crate::eval::tools;

/// A client called as the engine says: it takes what the real one takes, replays against the server, and leaves the files
/// that the real one leaves. GOOD and BAD requests are profiled, after one of a warm-up.
const AGENTX: &str = r#"
[ "$1" = profile ] || exit 2
shift
printf '%s\n' "$@" > "$HOST/client.arguments"
for argument; do
    value=${argument#*=}
    case $argument in
    --url=*) url=$value ;;
    --model=*) model=$value ;;
    --output-artifact-dir=*) out=$value ;;
    --scenario=agentx | --endpoint=/v1/chat/completions | --endpoint-type=chat | --streaming) ;;
    --tokenizer=* | --concurrency=* | --benchmark-duration=* | --random-seed=*) ;;
    *) echo "no option $argument" >&2; exit 2 ;;
    esac
done
"$SWEEPCTL" throughput --endpoint "$url" --model "$model" --isl 16 --osl 4 --concurrency 1 --requests-per-concurrency 1 \
    --save "$HOST/asked.json" || exit 3
mkdir -p "$out"
record() {
    echo "{\"metadata\": {\"session_num\": $1, \"conversation_id\": \"trace0\", \"turn_index\": $1,
 \"request_start_ns\": $((1796050152000000000 + $1 * 1000000000)), \"request_end_ns\": $((1796050152500000000 + $1 * 1000000000)),
 \"benchmark_phase\": \"$2\", \"was_cancelled\": false}, \"metrics\": {\"input_sequence_length\": {\"value\": 1000, \"unit\": \"tokens\"},
 \"output_sequence_length\": {\"value\": 50, \"unit\": \"tokens\"}, \"time_to_first_token\": {\"value\": 100.0, \"unit\": \"ms\"},
 \"inter_token_latency\": {\"value\": 10.0, \"unit\": \"ms\"}, \"request_latency\": {\"value\": 500.0, \"unit\": \"ms\"}},
 \"error\": $3}" | tr -d '\n' >> "$out/profile_export.jsonl"
    echo >> "$out/profile_export.jsonl"
}
record 0 warmup null
for ((n = 1; n <= {GOOD}; n++)); do record "$n" profiling null; done
for ((n = 1; n <= {BAD}; n++)); do record "$n" profiling '{"code": 500, "type": "ServerError", "message": "no"}'; done
echo "{\"schema_version\": \"1.4\", \"request_count\": {\"unit\": \"requests\", \"avg\": {GOOD}.0},
 \"error_request_count\": {\"unit\": \"requests\", \"avg\": {BAD}.0}}" > "$out/profile_export_aiperf.json"
echo '{"summary": {"endpoints_configured": ["e"], "endpoints_successful": ["e"]}, "metrics": {"sglang:prompt_tokens":
 {"type": "counter", "series": [{"endpoint_url": "e", "stats": {"total": 20000.0, "rate": 100.0}}]}}}' \
    > "$out/server_metrics_export.json"
echo raw > "$out/profile_export_raw.jsonl"
"#;

fn host(good: u32, bad: u32) -> Host {
    let host = with_engine("{ backend: local }");
    let client = AGENTX
        .replace("{GOOD}", &good.to_string())
        .replace("{BAD}", &bad.to_string());
    host.tool("agentx", &client);
    let engines = include_str!("../../configs/engines.yaml");
    let own = format!("  sglang:\n    replay: {}\n", json!(REPLAY));
    let engines = engines.replacen("  sglang:\n", &own, 1);
    std::fs::write(host.file("configs/engines.yaml"), engines).expect("a file");
    host
}

/// A client of an engine's own, in place of `sweepctl agentic run`.
const REPLAY: [&str; 13] = [
    "agentx",
    "profile",
    "--scenario=agentx",
    "--url=http://127.0.0.1:{port}",
    "--endpoint=/v1/chat/completions",
    "--endpoint-type=chat",
    "--streaming",
    "--model={model-name}",
    "--tokenizer={model}",
    "--concurrency={conc}",
    "--benchmark-duration={duration}",
    "--random-seed=42",
    "--output-artifact-dir={workspace}/results/aiperf_artifacts",
];

fn job() -> Value {
    let mut job = agentic(false);
    let row = job["row"].as_object_mut().expect("a row");
    row.insert("kv-offloading".to_owned(), "none".into());
    row.insert("total-cpu-dram-gb".to_owned(), 0.into());
    row.remove("kv-offload-backend");
    job["name"] = "stub agentic c4".into();
    job
}

fn planned(host: &Host) -> Done {
    write_json(host.at(), "plan.json", &json!([job()]));
    run(&mut host.sweepctl(&["run", "--plan", "plan.json", "--out", "out"]))
}

#[test]
fn an_engines_own_client_is_launched_read_uploaded_and_collected() {
    let host = host(20, 1);
    let done = planned(&host);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let arguments = host.read("client.arguments");
    for part in [
        "--model=org/stub-7b\n",
        "--concurrency=4\n",
        "--benchmark-duration=3600\n",
        "/results/aiperf_artifacts\n",
    ] {
        assert!(arguments.contains(part), "{part}: {arguments}");
    }
    let collected = read_json(&host.file("out/agg_bmk.json"));
    let row = &collected[0];
    let found = (
        &row["scenario_type"],
        &row["conc"],
        &row["num_requests_successful"],
        &row["tp"],
    );
    assert_eq!(
        found,
        (&json!("agentic-coding"), &json!(4), &json!(20), &json!(8)),
        "{collected}"
    );
    let accounting = &row["request_accounting"];
    let dropped = (
        &accounting["records_total"],
        &accounting["records_warmup_dropped"],
        &accounting["records_error_dropped"],
    );
    assert_eq!(dropped, (&json!(22), &json!(1), &json!(1)));
    // Its times are in seconds.
    assert_eq!(
        row["request_metrics"]["latency"]["ttft"]["p50"].as_f64(),
        Some(0.1),
        "{row}"
    );

    let artifacts = host.file("out/artifacts");
    let id = "0123456789ab";
    let wanted = ["agentic", "bmk_agentic", "server_logs"].map(|kind| format!("{kind}_stub_agentic_{id}"));
    assert_eq!(names(&artifacts), wanted);
    let raw = names(&artifacts.join(&wanted[0]).join("aiperf_artifacts"));
    let left = [
        "profile_export.jsonl",
        "profile_export_aiperf.json",
        "server_metrics_export.json",
    ];
    assert_eq!(raw, left, "what is as large as the run is long stays");

    // The same aggregate, of the raw replay named by its folder.
    let workspace = format!("out/jobs/{id}/workspace");
    let mut command = host.sweepctl(&[
        "result",
        "process",
        "--envelope",
        &format!("out/jobs/{id}/envelope.json"),
    ]);
    command.args(["--result-filename", "again", "--out", "out", "--replay"]);
    let done = run(command.arg(format!("{workspace}/results")));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(&read_json(&host.file("out/agg_again.json")), row);
}

#[test]
fn a_replay_of_which_too_many_requests_failed_does_not_count() {
    let host = host(5, 2);
    let done = planned(&host);
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    for part in [
        "launch/refused]: benchmark: ",
        "(failed: stub agentic c4, 0123456789ab)",
    ] {
        assert!(done.stderr.contains(part), "{}", done.stderr);
    }
    // What there is of it is handed on all the same.
    let raw = host.file("out/artifacts/agentic_stub_agentic_0123456789ab/aiperf_artifacts");
    assert!(names(&raw).contains(&"profile_export.jsonl".to_owned()));
}

#[test]
fn an_eval_of_a_replays_server_runs_at_the_servers_own_length() {
    let host = host(20, 0);
    tools::lm_eval();
    // The eval's own Python is the real one.
    std::fs::remove_file(host.file("bin/python3")).expect("it goes");
    host.tool(
        "vllm",
        "for one; do case $one in --port=*) port=${one#*=} ;; esac; done
        exec \"$SWEEPCTL\" mock-server --port \"$port\" --model \"$2\"",
    );
    let mut job = job();
    job["row"]["framework"] = "vllm".into();
    for (name, value) in [
        ("run-eval", json!(true)),
        ("eval-only", json!(true)),
        ("eval-framework", json!("lm-eval")),
        ("eval-suite", json!("")),
    ] {
        job["row"][name] = value;
    }
    let task = root().join("configs/evals/gsm8k_smoke.yaml");
    let mut command = host.launch(&job, &[]);
    command
        .env("SWEEPCTL_TOOLS", tools::folder())
        .env("EVAL_TASKS_DIR", task);
    let done = run(command.env("HF_HUB_OFFLINE", "0"));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(read_json(&host.file("meta_env.json"))["conc"], 4);
    assert!(!host.file("client.arguments").exists(), "nothing is replayed");
}

#[test]
fn a_child_knows_its_jobs_envelope() {
    let host = host(1, 0);
    host.tool("agentx", "cp \"$SWEEPCTL_ENVELOPE\" \"$HOST/seen.json\"; exit 4");
    let done = run(&mut host.launch(&job(), &[]));
    assert_eq!(done.code, Some(73), "{}", done.stderr);
    let seen = read_json(&host.file("seen.json"));
    let given = read_json(&host.file("envelope.json"));
    assert_eq!(
        (&seen["id"], &seen["row"]["exp-name"]),
        (&given["id"], &given["row"]["exp-name"])
    );
}
