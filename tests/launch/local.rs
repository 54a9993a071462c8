//! The backend that starts a server on the host.

use std::time::{Duration, Instant};

use serde_json::json;

use super::support::{Host, Live, benchmark, run, throughput};
use crate::eval::support::{envelope, names, read_json, root};
use crate::eval::tools;

const MOCK: &str = r#"exec "$SWEEPCTL" mock-server --port "$0" --model "$MODEL" --answers "$ROOT/configs/evals/data/gsm8k_smoke.jsonl""#;
const SAVES: &str = r#"cp saved.json "$INFMAX_WORKSPACE/$RESULT_FILENAME.json""#;

#[test]
fn a_server_that_dies_while_it_loads_is_seen_at_once_with_the_end_of_its_log() {
    let host = Host::with_server("seq 1 100; echo 'ValueError: no such model' >&2; exit 3", SAVES, "");
    let started = Instant::now();
    let done = host.run(&throughput());
    assert_eq!(done.code, Some(72), "{}", done.stderr);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    for part in [
        "the server exited with code 3",
        "\n  | 100\n  | ValueError: no such model",
        "server.log",
    ] {
        assert!(done.stderr.contains(part), "{part} in {}", done.stderr);
    }
    assert!(!done.stderr.contains("\n  | 70\n"), "only the end: {}", done.stderr);
    assert!(host.read("server.log").starts_with("1\n2\n"), "the whole log is kept");
}

#[test]
fn a_servers_log_is_shown_while_it_loads_and_is_harmless() {
    let server = r#"
echo 'loading weights'
echo '::add-mask::x'
echo '##[error]' token $HF_TOKEN >&2
until [ -e go ]; do sleep 0.05; done
exec "$SWEEPCTL" mock-server --port "$0""#;
    let host = Host::with_server(server, SAVES, "");
    std::fs::write(host.file("saved.json"), benchmark(json!({})).to_string()).expect("a file");
    let mut command = host.launch(&throughput(), &[]);
    command
        .env("GITHUB_ACTIONS", "true")
        .env("HF_TOKEN", "hf_aVerySecretToken");
    let mut launch = Live::start(&mut command);
    for line in [
        "server | loading weights",
        "server | : :add-mask::x",
        "server | # #[error] token ***",
    ] {
        launch.wait_for(line);
    }
    std::fs::write(host.file("go"), "").expect("a file");
    launch.wait_for("the server is healthy");
    let done = launch.finish();
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let log = host.read("server.log");
    assert!(
        log.starts_with("loading weights\n::add-mask::x\n##[error] token ***\n"),
        "{log}"
    );
}

#[test]
fn a_healthy_server_that_dies_is_the_reason_of_what_fails_after_it() {
    let dies = r#""$SWEEPCTL" mock-server --port "$0" & sleep 1.5; echo 'CUDA error: device lost'; exit 134"#;
    let host = Host::with_server(dies, "sleep 60", "");
    let started = Instant::now();
    let done = host.run(&throughput());
    assert_eq!(done.code, Some(72), "{}", done.stderr);
    assert!(started.elapsed() < Duration::from_secs(12), "{:?}", started.elapsed());
    for part in [
        "the server is healthy",
        "the server exited with code 134",
        "CUDA error: device lost",
    ] {
        assert!(done.stderr.contains(part), "{part} in {}", done.stderr);
    }
}

#[test]
fn a_server_that_never_gets_healthy_is_an_engine_failure() {
    let host = Host::with_server("echo loading; sleep 60", SAVES, ", ready-timeout-seconds: 2");
    let done = host.run(&throughput());
    assert_eq!(done.code, Some(72), "{}", done.stderr);
    for part in ["is not ready after 2 s", "\n  | loading"] {
        assert!(done.stderr.contains(part), "{part} in {}", done.stderr);
    }
}

#[test]
fn a_client_that_fails_is_a_failure_of_the_benchmark() {
    let host = Host::with_server(MOCK, "echo 'no tokenizer'; exit 4", "");
    let done = run(host.launch(&throughput(), &[]).env("ROOT", root()));
    assert_eq!(done.code, Some(73), "{}", done.stderr);
    assert!(
        done.stderr.contains("the throughput client exited with code 4"),
        "{}",
        done.stderr
    );
    assert!(done.stderr.contains("no tokenizer"), "{}", done.stderr);
}

#[test]
fn placeholders_that_the_job_has_no_value_for_are_named() {
    let host =
        Host::new("{ backend: local, server-command: [bash, '{model-path}'], throughput-command: [bash, '{isl}'] }");
    let done = host.run(&throughput());
    assert_eq!(done.code, Some(71), "{}", done.stderr);
    assert!(
        done.stderr
            .contains("the server of the runner's cluster cannot be filled"),
        "{}",
        done.stderr
    );
    assert!(done.stderr.contains("`{model-path}`"), "{}", done.stderr);
}

fn smoke_host(server: &str) -> Host {
    tools::lm_eval();
    let task = root().join("configs/evals/gsm8k_smoke.yaml");
    let host = Host::with_server(server, SAVES, &format!(", eval-task: {}", task.display()));
    std::fs::write(host.file("saved.json"), benchmark(json!({})).to_string()).expect("a file");
    host
}

fn evaluate(host: &Host, envelope: &serde_json::Value) -> super::support::Done {
    let mut command = host.launch(envelope, &[]);
    run(command
        .env("ROOT", root())
        .env("SWEEPCTL_TOOLS", tools::folder())
        .env("HF_HUB_OFFLINE", "1"))
}

#[test]
fn an_eval_only_job_evaluates_with_the_clusters_task_and_its_own_context() {
    let host = smoke_host(MOCK);
    let done = evaluate(&host, &envelope("0123456789ab", json!({})));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let meta = read_json(&host.file("meta_env.json"));
    assert_eq!((&meta["conc"], &meta["job_id"]), (&json!(4), &json!("0123456789ab")));
    let all = names(host.at());
    let results: Vec<_> = all.iter().filter(|name| name.starts_with("results")).collect();
    assert_eq!(results.len(), 1, "{all:?}");
    let results = read_json(&host.file(results[0]));
    assert_eq!(
        results["results"]["gsm8k_smoke"]["exact_match,strict-match"],
        json!(1.0)
    );
    assert!(
        !all.iter().any(|name| name.starts_with("stub_8k1k")),
        "no throughput: {all:?}"
    );
}

#[test]
fn a_combined_job_measures_and_its_failed_eval_is_reported_alone() {
    // Its server answers the eval with errors only.
    let host = smoke_host(r#"exec "$SWEEPCTL" mock-server --port "$0" --model "$MODEL" --hang-rate 0 --fail-rate 1"#);
    let mut envelope = envelope("0123456789ab", json!({"eval-only": false}));
    envelope["overrides"] = json!({"eval-limit": "1"});
    // An eval that cannot even start, so that nothing is tried for long.
    std::fs::write(host.file("broken.yaml"), "dataset_path: json\n").expect("a file");
    let mut command = host.launch(&envelope, &[]);
    let done = run(command
        .env("EVAL_TASKS", "./broken.yaml")
        .env("SWEEPCTL_TOOLS", tools::folder()));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(done.stderr.contains("the file names no task"), "{}", done.stderr);
    assert!(
        done.stderr.contains("the job goes on with its throughput"),
        "{}",
        done.stderr
    );
    // Alone, the same is the job's failure.
    envelope["row"]["eval-only"] = true.into();
    let mut command = host.launch(&envelope, &[]);
    let done = run(command
        .env("EVAL_TASKS", "./broken.yaml")
        .env("SWEEPCTL_TOOLS", tools::folder()));
    assert_eq!(done.code, Some(74), "{}", done.stderr);
    assert!(host.file("meta_env.json").exists(), "what is there is staged");
}
