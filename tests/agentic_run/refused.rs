//! What is refused before a client is installed or an hour is spent.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::Value;

use super::support::{Desk, run, serve};

/// The address of metrics that answer once, and are gone then.
pub fn vanishing_metrics() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/metrics", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a request");
        let _ = stream.read(&mut [0; 4096]);
        let body = "up 1\n";
        let head = format!(
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let _ = stream.write_all(format!("{head}{body}").as_bytes());
    });
    url
}

#[test]
fn servers_and_metrics_that_do_not_answer_are_named_and_nothing_is_written() {
    let desk = Desk::new();
    let nobody = "http://127.0.0.1:9";
    let standard = [
        "agentic",
        "run",
        "--ready-timeout",
        "0",
        "--envelope",
        "envelope.json",
        "--traces",
        "traces",
    ];
    let refused = |more: &[&str]| {
        let done = run(&mut desk.command(&[&standard[..], more].concat()));
        assert_eq!(done.code, Some(1), "{}", done.stderr);
        assert!(!desk.file("agentic_results").exists(), "{}", done.stderr);
        done.stderr
    };
    let said = refused(&["--endpoint", nobody]);
    assert!(said.contains("http://127.0.0.1:9"), "{said}");
    let server = serve(&[]);
    let endpoint = format!("http://{}", server.address);
    let health = format!("{endpoint}/health/metrics");
    let said = refused(&["--endpoint", &endpoint, "--metrics", nobody, "--metrics", &health]);
    for part in [
        "there are no server metrics at http://127.0.0.1:9/metrics (--metrics)",
        "/health/metrics (--metrics): it answers 404",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// What a dry run prints.
fn dry(desk: &Desk, variables: &[(&str, &str)], more: &[&str]) -> Value {
    let mut command = desk.command(&[&["agentic", "run", "--dry-run", "--envelope", "envelope.json"], more].concat());
    let done = run(command.envs(variables.iter().copied()));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    serde_json::from_str(&done.stdout).expect("JSON")
}

fn command(said: &Value) -> String {
    let words = said["command"].as_array().expect("words");
    words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_dry_run_shows_what_the_job_and_its_variables_make_of_a_replay() {
    let desk = Desk::new();
    let said = dry(&desk, &[("MODEL_PREFIX", "kimik3"), ("PORT", "8000")], &[]);
    let full = command(&said);
    for part in [
        "agentx profile --scenario agentx --url http://localhost:8000 ",
        " --model org/tiny --tokenizer org/tiny --concurrency 2 --benchmark-duration 3600 ",
        " --warmup-requests-per-lane 10 ",
        " --public-dataset semianalysis_cc_traces_weka_062126",
    ] {
        assert!(full.contains(part), "{part}: {full}");
    }
    assert!(
        !full.contains("--unsafe-override") && !full.contains("--max-context-length"),
        "{full}"
    );
    assert_eq!(said["metrics"][0]["url"], "http://localhost:8000/metrics");
    let workers = [
        ("SRT_FRONTEND_HOST", "head"),
        ("SRT_FRONTEND_PORT", "8000"),
        ("SRT_PREFILL_ENDPOINTS", "p:1"),
        ("SRT_DECODE_ENDPOINTS", "d:1,d:2"),
        ("MAX_MODEL_LEN", "4096"),
    ];
    let said = dry(&desk, &workers, &["--fast"]);
    let fast = command(&said);
    for part in [
        "--url http://head:8000 ",
        " --benchmark-duration 1200 ",
        " --warmup-requests-per-lane 1 ",
        " --server-metrics http://p:1/metrics http://d:1/metrics http://d:2/metrics ",
    ] {
        assert!(fast.contains(part), "{part}: {fast}");
    }
    assert!(
        !fast.contains("--max-context-length"),
        "a served length is no limit of the replay: {fast}"
    );
    assert_eq!(
        (said["fast"].as_bool(), said["diagnostic"].as_array().map(Vec::len)),
        (Some(true), Some(0))
    );
}

#[test]
fn several_concurrencies_are_refused() {
    let desk = Desk::new();
    let mut command = desk.command(&["agentic", "run", "--dry-run", "--envelope", "envelope.json"]);
    let done = run(command.env("CONC_LIST", "2 4"));
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert!(
        done.stderr.contains("a replay measures one concurrency, here 2"),
        "{}",
        done.stderr
    );
}
