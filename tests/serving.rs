//! `sweepctl throughput` against the mock server.

use std::process::{Command, Output};

use serde_json::Value;

use crate::eval::support::read_json;
use crate::mock_server::client::Server;
use crate::support::stderr;

struct Client {
    folder: tempfile::TempDir,
    server: Server,
}

impl Client {
    fn of(server: &[&str]) -> Self {
        let standard = ["--port", "0", "--model", "org/m", "--tokens-per-second", "2000"];
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            server: Server::start(&[&standard, server].concat()),
        }
    }

    fn command(&self, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sweepctl"));
        let endpoint = format!("http://{}", self.server.address);
        command
            .current_dir(self.folder.path())
            .args(["throughput", "--endpoint", &endpoint]);
        command.args(["--model", "org/m", "--save", "result.json"]).args(more);
        command
    }

    fn run(&self, more: &[&str]) -> Output {
        self.command(more).output().expect("it runs")
    }

    fn saved(&self) -> Value {
        read_json(&self.folder.path().join("result.json"))
    }
}

fn numbers(saved: &Value, name: &str) -> Vec<u64> {
    let list = saved[name].as_array().expect("a list");
    list.iter().map(|number| number.as_u64().expect("a number")).collect()
}

#[test]
fn lengths_are_exact_on_the_completions_route() {
    let client = Client::of(&[]);
    let lengths = [
        "--isl",
        "100",
        "--osl",
        "20",
        "--concurrency",
        "4",
        "--requests-per-concurrency",
        "3",
    ];
    let done = client.run(&[&lengths[..], &["--warmups", "2", "--backend", "vllm"]].concat());
    assert!(done.status.success(), "{}", stderr(&done));
    let saved = client.saved();
    assert_eq!(numbers(&saved, "input_lens"), [100; 12]);
    assert_eq!(numbers(&saved, "output_lens"), [20; 12]);
    for (name, wanted) in [
        ("num_prompts", 12),
        ("completed", 12),
        ("failed", 0),
        ("max_concurrency", 4),
        ("total_input_tokens", 1200),
        ("total_output_tokens", 240),
    ] {
        assert_eq!(saved[name], wanted, "{name}");
    }
    assert_eq!(
        (&saved["model_id"], &saved["backend"]),
        (&"org/m".into(), &"vllm".into())
    );
    let of = |name: &str| saved[name].as_f64().expect(name);
    // 2000 tokens a second for each request: half a millisecond a token.
    assert!((0.2..20.0).contains(&of("mean_tpot_ms")), "{}", of("mean_tpot_ms"));
    assert!(of("mean_e2el_ms") > of("mean_ttft_ms"));
    assert!((of("benchmark_end_time_unix") - of("benchmark_start_time_unix") - of("duration")).abs() < 1e-3);
    assert_eq!(
        client.server.metric("requests_total"),
        14,
        "the warm-ups are asked, and not measured"
    );
}

#[test]
fn lengths_of_a_range_differ_and_repeat_with_their_seed() {
    let client = Client::of(&[]);
    let args = [
        "--isl",
        "200",
        "--osl",
        "10",
        "--concurrency",
        "8",
        "--random-range-ratio",
        "0.5",
    ];
    assert!(client.run(&args).status.success());
    let first = numbers(&client.saved(), "input_lens");
    assert!(first.iter().all(|length| (100..=200).contains(length)), "{first:?}");
    assert!(
        first.iter().min() < Some(&130) && first.iter().max() > Some(&170),
        "{first:?}"
    );
    assert!(client.run(&args).status.success());
    assert_eq!(numbers(&client.saved(), "input_lens"), first);
    assert!(client.run(&[&args[..], &["--seed", "7"]].concat()).status.success());
    assert_ne!(numbers(&client.saved(), "input_lens"), first);
}

#[test]
fn prompts_of_the_chat_route_come_out_as_long_as_asked() {
    let client = Client::of(&[]);
    let done = client.run(&["--route", "chat", "--isl", "300", "--osl", "5", "--concurrency", "4"]);
    assert!(done.status.success(), "{}", stderr(&done));
    for length in numbers(&client.saved(), "input_lens") {
        assert!(length.abs_diff(300) <= 3, "{length}");
    }
}

#[test]
fn failed_requests_are_saved_and_fail_the_measurement() {
    let client = Client::of(&["--fail-rate", "0.5", "--seed", "3"]);
    let done = client.run(&["--isl", "10", "--osl", "5", "--concurrency", "10"]);
    assert_eq!(done.status.code(), Some(1));
    let saved = client.saved();
    let (completed, failed) = (saved["completed"].as_u64(), saved["failed"].as_u64());
    assert_eq!(completed.zip(failed).map(|(a, b)| a + b), Some(100));
    assert!(failed > Some(10), "{failed:?}");
    assert!(stderr(&done).contains("requests failed"), "{}", stderr(&done));
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    for (endpoint, wanted) in [
        ("http://127.0.0.1:1", "refused"),
        ("https://127.0.0.1:1", "plain HTTP"),
        ("127.0.0.1:1", "http://HOST:PORT"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sweepctl"));
        command.current_dir(folder.path());
        command.args([
            "throughput",
            "--model",
            "m",
            "--isl",
            "4",
            "--osl",
            "4",
            "--concurrency",
            "1",
        ]);
        let done = command
            .args(["--requests", "1", "--save", "r.json", "--endpoint", endpoint])
            .output();
        let done = done.expect("it runs");
        assert_eq!(done.status.code(), Some(1), "{endpoint}");
        assert!(stderr(&done).contains(wanted), "{endpoint}: {}", stderr(&done));
    }
}
