//! Waiting for servers, and measuring them.

use serde_json::Value;

use super::{Checkout, Ran};
use crate::eval::support::read_json;

/// Starts the mock server in the script, as scripts start theirs, and sets PORT and SERVER_PID.
pub const SERVER: &str = r#"
sweepctl mock-server --port-file port $SERVER_OPTIONS > server.log 2>&1 &
SERVER_PID=$!
trap 'kill $SERVER_PID 2>/dev/null' EXIT
while [ ! -s port ]; do sleep 0.02; done
PORT=$(cat port)
"#;

const BENCH: &str = r#"run_benchmark_serving --model "$MODEL" --port "$PORT" --backend vllm --input-len 64 --output-len 16 \
    --random-range-ratio 0.8 --num-prompts 20 --max-concurrency 2 --result-filename "$RESULT_FILENAME" --result-dir "#;

fn run(checkout: &Checkout, more: &[(&str, &str)], script: &str) -> Ran {
    let _ = std::fs::remove_file(checkout.file("port"));
    let standard = [
        ("MODEL", "org/m"),
        ("RESULT_FILENAME", "r_1"),
        ("SERVER_OPTIONS", "--model org/m --tokens-per-second 5000"),
    ];
    let variables: Vec<(&str, &str)> = standard.iter().chain(more).copied().collect();
    checkout.run(&variables, &format!("{SERVER}{script}"))
}

fn saved(checkout: &Checkout, name: &str) -> Value {
    read_json(&checkout.file(name))
}

#[test]
fn a_server_is_waited_for_with_its_log() {
    let checkout = Checkout::new();
    let wait = "wait_for_server_ready --port $PORT --server-log server.log --server-pid $SERVER_PID --sleep-interval 1";
    let slow = [("SERVER_OPTIONS", "--startup-delay 1")];
    let ran = run(
        &checkout,
        &slow,
        &format!("set -x\n{wait}\necho \"is $?\"; set -o | grep xtrace"),
    );
    ran.has(0, &["listening on http://", "is 0", "xtrace         \toff"]);
    let ready =
        "wait_for_ready --endpoint http://0.0.0.0:$PORT/v1/models --log server.log --pid $SERVER_PID; echo \"is $?\"";
    run(&checkout, &[], ready).has(0, &["is 0"]);
    let late = "wait_for_ready --endpoint http://0.0.0.0:$PORT/none --log server.log --pid $SERVER_PID --timeout 1 \
                --sleep-interval 1; echo after";
    let ran = run(&checkout, &[], late);
    ran.has(1, &["s passed before it"]);
    assert!(!ran.stdout.contains("after"), "{}", ran.all());
}

#[test]
fn a_server_that_dies_ends_the_script() {
    let checkout = Checkout::new();
    for (server, says) in [
        ("{ echo 'CUDA error' > dead.log; exit 3; } &", "CUDA error"),
        ("rm -f dead.log; { sleep 0.3; exit 3; } &", "left no log"),
        (
            "{ echo 'one' > dead.log; sleep 0.5; printf 'last words' >> dead.log; } &",
            "last words",
        ),
    ] {
        let script = format!(
            "{server} pid=$!; wait_for_server_ready --port 9 --server-log dead.log --server-pid $pid --sleep-interval 1; echo after"
        );
        let ran = checkout.run(&[], &script);
        ran.has(1, &[says, "died before it"]);
        assert!(!ran.stdout.contains("after"), "{}", ran.all());
    }
}

#[test]
fn wrong_usage_returns_to_the_script() {
    let checkout = Checkout::new();
    for call in [
        "wait_for_server_ready --port 1 --server-log x",
        "wait_for_server_ready --port 1 --server-log x --server-pid ''",
        "wait_for_server_ready --port 1 --server-log x --server-pid 1 --what",
        "wait_for_ready --log x --pid 1",
        "wait_for_ready --endpoint http://h --log x --pid 1 --sleep-interval 0",
        "wait_for_ready --endpoint http://h --log x --pid 1 --timeout soon",
        "run_benchmark_serving --model m --port 1",
        "run_benchmark_serving --what",
    ] {
        let ran = checkout.run(&[], &format!("{call}; echo \"is $?\""));
        assert!(
            ran.code == Some(0) && ran.stdout.contains("is 1"),
            "{call}: {}",
            ran.all()
        );
    }
}

#[test]
fn throughput_is_measured_by_this_tool() {
    let checkout = Checkout::new();
    let ran = run(
        &checkout,
        &[],
        &format!("{BENCH} \"$PWD/\" --server-pid $SERVER_PID --trust-remote-code --trust-remote-code; echo \"is $?\""),
    );
    ran.has(0, &["is 0"]);
    let result = saved(&checkout, "r_1.json");
    for (name, value) in [("num_prompts", 20), ("max_concurrency", 2), ("completed", 20)] {
        assert_eq!(result[name], value, "{name}");
    }
    assert_eq!(
        (&result["model_id"], &result["backend"]),
        (&"org/m".into(), &"vllm".into())
    );
    let inputs: Vec<u64> = serde_json::from_value(result["input_lens"].clone()).expect("numbers");
    assert!(inputs.iter().all(|tokens| (51..=64).contains(tokens)), "{inputs:?}");

    // Served under another name, with a template; the result says what the script asked for.
    let other = [("SERVER_OPTIONS", "--model alias"), ("RESULT_FILENAME", "r_2")];
    run(
        &checkout,
        &other,
        &format!("{BENCH} . --use-chat-template; echo \"is $?\""),
    )
    .has(0, &["is 0", "serves `alias`"]);
    assert_eq!(saved(&checkout, "r_2.json")["model_id"], "org/m");
    // A path of its own wins over the folder.
    let path = checkout.file("r_3").display().to_string();
    run(&checkout, &[("RESULT_FILENAME", &path)], &format!("{BENCH} /nowhere")).has(0, &[]);
    assert_eq!(saved(&checkout, "r_3.json")["completed"], 20);
}

#[test]
fn failed_requests_fail_it_with_the_result_written() {
    let checkout = Checkout::new();
    let broken = [("SERVER_OPTIONS", "--model org/m --fail-from 10")];
    run(&checkout, &broken, &format!("{BENCH} .; echo \"is $?\"")).has(0, &["is 1"]);
    assert!(saved(&checkout, "r_1.json")["completed"].as_u64() < Some(19));
}

#[test]
fn a_server_that_dies_ends_the_measurement() {
    let checkout = Checkout::new();
    let hangs = [("SERVER_OPTIONS", "--model org/m --hang-after 3")];
    let script = format!("{{ sleep 1; kill -KILL $SERVER_PID; }} & {BENCH} . --server-pid $SERVER_PID; echo \"is $?\"");
    run(&checkout, &hangs, &script).has(0, &["is 1", "died while throughput was measured"]);
}

#[test]
fn evals_alone_measure_nothing() {
    let checkout = Checkout::new();
    let ran = checkout.run(
        &[("EVAL_ONLY", "true")],
        "run_benchmark_serving --nonsense; echo \"is $?\"",
    );
    ran.has(0, &["EVAL_ONLY mode", "is 0"]);
    assert_eq!(ran.stdout.lines().count(), 2);
}

#[test]
fn the_client_of_a_checkout_wins() {
    let checkout = Checkout::new();
    let client = "import os, sys\nopen('arguments', 'w').write('\\n'.join(sys.argv[1:]))\nsys.exit(int(os.environ.get('CODE', 0)))\n";
    checkout.write("utils/bench_serving/benchmark_serving.py", client);
    let more = "--result-dir /w/ --dsv4 --tokenizer t --tokenizer-mode slow --endpoint /v1/completions --server-pid $$";
    let bench = BENCH.trim_end().trim_end_matches("--result-dir");
    let variables = [("MODEL", "org/m m"), ("RESULT_FILENAME", "r_1"), ("PORT", "7")];
    checkout
        .run(&variables, &format!("{bench} {more}; echo \"is $?\""))
        .has(0, &["is 0"]);
    let given = checkout.read("arguments");
    let given: Vec<&str> = given.lines().collect();
    let pairs = [
        ("--model", "org/m m"),
        ("--backend", "vllm"),
        ("--base-url", "http://0.0.0.0:7"),
        ("--dataset-name", "random"),
        ("--random-input-len", "64"),
        ("--random-output-len", "16"),
        ("--random-range-ratio", "0.8"),
        ("--num-prompts", "20"),
        ("--max-concurrency", "2"),
        ("--request-rate", "inf"),
        ("--num-warmups", "4"),
        ("--percentile-metrics", "ttft,tpot,itl,e2el"),
        ("--result-dir", "/w/"),
        ("--result-filename", "r_1.json"),
        ("--endpoint", "/v1/completions"),
        ("--tokenizer", "t"),
        ("--tokenizer-mode", "slow"),
    ];
    for (name, value) in pairs {
        assert!(
            given.windows(2).any(|pair| pair == [name, value]),
            "{name} {value}: {given:?}"
        );
    }
    for flag in ["--ignore-eos", "--save-result", "--use-chat-template", "--dsv4"] {
        assert!(given.contains(&flag), "{flag}: {given:?}");
    }
    assert!(
        !given.contains(&"--trust-remote-code") && !given.contains(&"--profile"),
        "{given:?}"
    );
    let failing = [&variables[..], &[("CODE", "3"), ("PROFILE", "1")]].concat();
    checkout
        .run(&failing, &format!("{bench} --result-dir .; echo \"is $?\""))
        .has(0, &["is 1", "exited with code 3"]);
    let given = checkout.read("arguments");
    assert!(
        given.contains("--profile") && given.contains("--num-prompts\n2\n"),
        "{given}"
    );
}
