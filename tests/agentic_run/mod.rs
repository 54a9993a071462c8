//! `sweepctl agentic run`, with the real client against the mock server.

mod refused;
mod road;
pub mod support;

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use support::{Desk, run, serve};

#[test]
fn a_replay_that_counts_leaves_its_command_its_record_and_an_aggregate() {
    let desk = Desk::new();
    let server = serve(&[]);
    // What another replay left can pass for nothing of this one.
    desk.write("agentic_results/aiperf_artifacts/profile_export.jsonl", "{}");
    let done = run(&mut desk.replay(&server, &[]));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    for part in [
        "for diagnosis only: shorter than 900 s",
        "an earlier replay is set aside",
    ] {
        assert!(done.stderr.contains(part), "{part}: {}", done.stderr);
    }
    let aggregate = desk.json("r.json");
    assert_eq!(
        (&aggregate["conc"], &aggregate["scenario_type"]),
        (&json!(2), &json!("agentic-coding"))
    );
    assert!(aggregate["num_requests_successful"].as_u64() > Some(4), "{aggregate}");
    assert_eq!(aggregate["request_accounting"]["records_error_dropped"], 0);
    assert_eq!(aggregate["request_metrics"]["tokens"]["output_actual"]["p50"], 8.0);

    let record = desk.json("agentic_results/replay.json");
    assert_eq!(record["ended"]["counts"], true, "{record}");
    assert_eq!(record["ended"]["submission_valid"], false);
    assert_eq!(
        record["ended"]["submission_invalid_reasons"],
        json!(["unsafe_override"])
    );
    assert_eq!(
        (&record["corpus"]["source"], &record["corpus"]["files"]),
        (&json!("local"), &json!(3))
    );
    assert_eq!(
        record["overrides"],
        json!(["DURATION", "AIPERF_WARMUP_REQUESTS_PER_LANE"])
    );
    assert_eq!(record["job"]["job_id"], support::ID);
    let url = format!("http://{}/metrics", server.address);
    let metrics = json!([{"url": url, "from": "--endpoint", "required": true, "read": true}]);
    assert_eq!(record["metrics"], metrics);

    let read = |name: &str| std::fs::read_to_string(desk.file(name)).expect("a file");
    let command = read("agentic_results/benchmark_command.txt");
    let words: Vec<&str> = record["command"]
        .as_array()
        .expect("words")
        .iter()
        .filter_map(|w| w.as_str())
        .collect();
    assert_eq!(command.trim(), words.join(" "));
    assert!(
        command.contains("/bin/agentx profile --scenario agentx --url "),
        "{command}"
    );
    assert!(read("agentic_results/benchmark.log").contains("Request Count"));
    let pictures = crate::eval::support::names(&desk.file("agentic_results"));
    assert!(
        pictures.iter().filter(|name| name.ends_with(".svg")).count() > 0,
        "{pictures:?}"
    );
}

#[test]
fn a_failed_warmup_leaves_no_result() {
    let desk = Desk::new();
    let done = run(&mut desk.replay(&serve(&["--fail-from", "1"]), &[]));
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert!(
        done.stderr.contains("a failed warmup request ends it too"),
        "{}",
        done.stderr
    );
    let record = desk.json("agentic_results/replay.json");
    assert_eq!(record["ended"]["counts"], false, "{record}");
    assert!(!desk.file("r.json").exists());
    assert!(desk.file("agentic_results/benchmark.log").exists());
}

#[test]
fn more_than_a_tenth_of_failures_is_no_measurement_whatever_the_client_bears() {
    let desk = Desk::new();
    let server = serve(&["--fail-from", "8"]);
    let mut command = desk.replay(&server, &[]);
    let done = run(command.env("AIPERF_LIVE_FAILED_REQUEST_THRESHOLD", "1.0"));
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert!(done.stderr.contains("at most 10 % may"), "{}", done.stderr);
    assert!(!desk.file("r.json").exists());

    // The same replay's counts, at a tenth: the share that just passes, and the next one.
    let summary = "agentic_results/aiperf_artifacts/profile_export_aiperf.json";
    let mut counts = desk.json(summary);
    let mut process = |errors: u64| {
        counts["request_count"] = json!({"avg": 100 - errors});
        counts["error_request_count"] = json!({"avg": errors});
        counts["completed_request_count"] = json!({"avg": 100});
        desk.write(summary, &counts.to_string());
        let args = [
            "result",
            "process",
            "--envelope",
            "envelope.json",
            "--replay",
            "agentic_results",
        ];
        run(&mut desk.command(&args))
    };
    let passes = process(10);
    assert_eq!(passes.code, Some(0), "{}", passes.stderr);
    assert_eq!(process(11).code, Some(1));
}

#[test]
fn metrics_that_vanish_are_seen_in_what_the_client_read() {
    let desk = Desk::new();
    let metrics = refused::vanishing_metrics();
    let server = serve(&[]);
    let done = run(&mut desk.replay(&server, &["--metrics", &metrics]));
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    let says = format!("the server metrics at {metrics} (--metrics) are missing: the client could not read it");
    assert!(done.stderr.contains(&says), "{}", done.stderr);
    let record = desk.json("agentic_results/replay.json");
    assert_eq!(record["metrics"][0]["read"], false, "{record}");
    assert!(!desk.file("r.json").exists());
}

#[test]
fn a_replay_that_is_cut_short_ends_its_client_and_is_no_measurement() {
    let desk = Desk::new();
    let server = serve(&[]);
    let mut command = desk.replay(&server, &[]);
    command
        .args(["--result-dir", "cut"])
        .stderr(Stdio::piped())
        .stdout(Stdio::null());
    let mut child = command.spawn().expect("it starts");
    let lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let id = Pid::from_raw(i32::try_from(child.id()).expect("an id"));
    let mut said = Vec::new();
    for line in lines.map_while(Result::ok) {
        if line.contains("Phase profiling") {
            let _ = kill(id, Signal::SIGTERM);
        }
        said.push(line);
    }
    let said = said.join("\n");
    assert_eq!(child.wait().expect("an end").code(), Some(1), "{said}");
    assert!(said.contains("the replay client was ended by SIGTERM"), "{said}");
    let record = desk.json("cut/replay.json");
    assert_eq!(record["ended"]["counts"], false, "{record}");
    assert!(!desk.file("r.json").exists());
}
