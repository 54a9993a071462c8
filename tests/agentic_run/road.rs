//! An agentic job without a launch script, from its launch to the collected result.

use serde_json::{Value, json};

use super::support::{ID, MODEL, client, job, lay_tokenizer, lay_traces};
use crate::eval::tools;
use crate::launch::support::{Host, run};

/// An engine whose server is the mock server; its client is the built-in one, told of traces that are here.
fn engines(traces: &str) -> String {
    let replay = [
        "sweepctl",
        "agentic",
        "run",
        "--endpoint=http://127.0.0.1:{port}",
        "--model={model-name}",
        "--duration=6",
        "--result-dir={workspace}/agentic_results",
        "--out={workspace}/{result-filename}.json",
        &format!("--traces={traces}"),
    ];
    let server = [
        "sweepctl",
        "mock-server",
        "--port={port}",
        "--model={model}",
        "--max-model-len=100000",
    ];
    json!({"engines": {"sglang": {"server": server, "replay": replay}}}).to_string()
}

#[test]
fn an_agentic_row_goes_from_launch_through_upload_and_gate_to_the_collector() {
    client();
    let host = Host::new("{ backend: local }");
    lay_tokenizer(&host.file("hub"));
    lay_traces(&host.file("traces"));
    let traces = host.file("traces").display().to_string();
    std::fs::write(host.file("configs/engines.yaml"), engines(&traces)).expect("a file");
    let mut job = job();
    // The stand-in for the engine takes no sizes.
    job["row"]["tp"] = json!(1);
    let done = run(host
        .launch(&job, &[])
        .env("SWEEPCTL_TOOLS", tools::folder())
        .env("HF_HOME", host.file("home"))
        .env("HF_HUB_OFFLINE", "1")
        .env("AIPERF_WARMUP_REQUESTS_PER_LANE", "1"));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let said: Value = serde_json::from_str(&done.stdout).expect("JSON");
    let name = said["result-filename"].as_str().expect("a name");

    let step = |args: &[&str]| {
        let done = run(host
            .sweepctl(args)
            .env("RESULT_FILENAME", name)
            .env("GITHUB_WORKSPACE", host.at()));
        assert_eq!(done.code, Some(0), "{args:?}: {}", done.stderr);
        done.stdout
    };
    step(&["result", "process", "--envelope", "envelope.json"]);
    for kind in ["bmk_agentic", "agentic"] {
        step(&[
            "upload",
            "--kind",
            kind,
            "--envelope",
            "envelope.json",
            "--to",
            "artifacts",
        ]);
    }
    let raw = std::fs::read_dir(host.file("artifacts")).expect("artifacts");
    let raw: Vec<_> = raw.flatten().map(|entry| entry.path()).collect();
    let raw = raw
        .iter()
        .find(|path| path.join("replay.json").is_file())
        .expect("the raw replay");
    assert!(raw.display().to_string().ends_with(ID), "{}", raw.display());
    for file in [
        "benchmark_command.txt",
        "benchmark.log",
        "aiperf_artifacts/server_metrics_export.json",
    ] {
        assert!(raw.join(file).is_file(), "{file}");
    }
    let collected: Value = serde_json::from_str(&step(&["collect", "results", "artifacts", "--json"])).expect("JSON");
    let rows = collected["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 1, "{collected}");
    assert_eq!((&rows[0]["conc"], &rows[0]["model"]), (&json!(2), &json!(MODEL)));
    assert!(rows[0]["num_requests_successful"].as_u64() > Some(2), "{collected}");
}
