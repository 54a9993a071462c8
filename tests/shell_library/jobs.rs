//! Scripts of the kind that public fleets have, launched on a `script` cluster.

use serde_json::json;

use super::names;
use crate::eval::support::{envelope, multi_node, read_json};
use crate::eval::tools;
use crate::launch::support::{Done, Host, throughput};

/// A launcher that passes few variables on, as those that start containers do, to a script of one node that serves by
/// path and names the model anew.
const LAUNCHER: &str = r#"
exec env -i PATH="$PATH" HOME="$HOME" HF_HUB_OFFLINE=1 SWEEPCTL_TOOLS="$SWEEPCTL_TOOLS" TMPDIR="$HOST" PYTHONPATH="$PYTHONPATH" \
    MODEL="$MODEL" TP="$TP" CONC="$CONC" ISL="$ISL" OSL="$OSL" RUN_EVAL="$RUN_EVAL" EVAL_ONLY="$EVAL_ONLY" \
    RESULT_FILENAME="$RESULT_FILENAME" RANDOM_RANGE_RATIO=0.8 EXTRA="$EXTRA" ANOTHER="$ANOTHER" \
    bash benchmarks/single_node/fixed_seq_len/stub_fp8_h200.sh
"#;

const SCRIPT: &str = r#"
source "$(dirname "$0")/../../benchmark_lib.sh"
check_env_vars MODEL TP CONC ISL OSL RANDOM_RANGE_RATIO RESULT_FILENAME EP_SIZE FRAMEWORK
SERVER_LOG=$PWD/server.log
if [ "${EVAL_ONLY}" = "true" ]; then setup_eval_context; echo "context $EVAL_MAX_MODEL_LEN" > context; fi
start_gpu_monitor
set -x
rm -f port; .sweepctl/bin/sweepctl mock-server --port 0 --port-file port --model /models/stub --tokens-per-second 100000 \
    --answers "$ANSWERS" $EXTRA > "$SERVER_LOG" 2>&1 &
SERVER_PID=$!
while [ ! -s port ]; do sleep 0.02; done
PORT=$(cat port)
wait_for_server_ready --port "$PORT" --server-log "$SERVER_LOG" --server-pid "$SERVER_PID"
run_benchmark_serving --model "$MODEL" --port "$PORT" --backend vllm --input-len "$ISL" --output-len "$OSL" \
    --random-range-ratio "$RANDOM_RANGE_RATIO" --num-prompts "$((CONC * 10))" --max-concurrency "$CONC" \
    --result-filename "$RESULT_FILENAME" --result-dir "$PWD/"
if [ "${RUN_EVAL}" = "true" ]; then
    [ -z "$ANOTHER" ] || export MODEL="$ANOTHER"
    export MODEL_NAME=/models/stub
    run_eval --framework lm-eval --port "$PORT"
    append_lm_eval_summary
fi
stop_gpu_monitor
kill $SERVER_PID
"#;

fn host() -> Host {
    tools::lm_eval();
    let host = Host::with_script(LAUNCHER);
    let folder = host.file("benchmarks/single_node/fixed_seq_len");
    std::fs::create_dir_all(&folder).expect("folders");
    let root = crate::eval::support::root();
    let answers = root.join("configs/evals/data/gsm8k_smoke.jsonl");
    let script = SCRIPT.replace("$ANSWERS", &answers.display().to_string());
    std::fs::write(folder.join("stub_fp8_h200.sh"), script).expect("a script");
    let written = host
        .sweepctl(&["shell-library", "--output", "benchmarks/benchmark_lib.sh"])
        .status();
    assert!(written.expect("it runs").success());
    host
}

fn launch(host: &Host, job: &serde_json::Value, extra: &str, another: &str) -> Done {
    let mut command = host.launch(job, &[]);
    let task = crate::eval::support::root().join("configs/evals/gsm8k_smoke.yaml");
    command.env("EXTRA", extra).env("SWEEPCTL_TOOLS", tools::folder());
    command.env("PYTHONPATH", tools::no_waits()).env("ANOTHER", another);
    crate::launch::support::run(command.env("EVAL_TASKS_DIR", task).env("EVAL_LIMIT", "4"))
}

/// A job whose requests are short.
fn short(flags: serde_json::Value) -> serde_json::Value {
    let mut job = envelope(
        "0123456789ab",
        json!({"isl": 64, "osl": 16, "max-model-len": 336, "conc": 2, "ep": 8}),
    );
    for (name, value) in flags.as_object().expect("an object") {
        job["row"][name] = value.clone();
    }
    job["overrides"] = json!({"eval-limit": "4"});
    job
}

#[test]
fn throughput_and_then_an_eval() {
    let host = host();
    let done = launch(&host, &short(json!({"run-eval": true, "eval-only": false})), "", "");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let result = &names(host.at(), "stub_8k1k_fp8")[0];
    let saved = read_json(&host.file(result));
    assert_eq!(
        (&saved["model_id"], &saved["completed"]),
        (&json!("org/stub-7b"), &json!(20))
    );
    let meta = read_json(&host.file("meta_env.json"));
    // The launcher passed neither on.
    assert_eq!(
        (&meta["job_id"], &meta["ep"], &meta["conc"]),
        (&json!("0123456789ab"), &json!(8), &json!(2))
    );
    assert_eq!(names(host.at(), "results_").len(), 1, "{}", done.stderr);
}

#[test]
fn an_eval_alone_and_a_failed_one() {
    let host = host();
    let job = short(json!({"isl": 8192, "osl": 1024, "max-model-len": 9472}));
    let done = launch(&host, &job, "", "");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(host.read("context"), "context 9472\n");
    assert!(names(host.at(), "stub_8k1k").is_empty(), "no throughput");
    let done = launch(&host, &job, "--fail-from 1", "");
    assert_eq!(done.code, Some(74), "{}", done.stderr);
    assert!(host.file("meta_env.json").exists());
}

#[test]
fn a_script_that_exports_another_model_is_still_its_job() {
    let host = host();
    let job = short(json!({"isl": 8192, "osl": 1024, "max-model-len": 9472}));
    let done = launch(&host, &job, "", "/weights/alias-of-the-stub");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(read_json(&host.file("meta_env.json"))["model"], "org/stub-7b");
    let task = crate::eval::support::root().join("configs/evals/gsm8k_smoke.yaml");
    for step in [&["upload", "--kind", "eval", "--to", "up"][..], &["eval", "validate"]] {
        let mut command = host.sweepctl(step);
        command
            .args(["--envelope", "envelope.json"])
            .env("RESULT_FILENAME", "r");
        let done = crate::launch::support::run(command.env("EVAL_TASKS_DIR", &task));
        assert_eq!(done.code, Some(0), "{step:?}: {}", done.stderr);
    }
}

#[test]
fn throughput_alone() {
    let host = host();
    let mut job = throughput();
    for (name, value) in [("isl", 64), ("osl", 16), ("max-model-len", 336), ("conc", 2)] {
        job["row"][name] = json!(value);
    }
    let done = launch(&host, &job, "", "");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(!host.file("meta_env.json").exists());
}

#[test]
fn a_batch_with_a_failing_point_is_known_to_the_launch() {
    let host = host();
    host.script(
        "source benchmarks/benchmark_lib.sh
        # The first point asks four questions; every answer after them is an error.
        sweepctl_options='--fail-from 5'
        rm -f port; .sweepctl/bin/sweepctl mock-server --port 0 --port-file port --model served $sweepctl_options > server.log 2>&1 &
        while [ ! -s port ]; do sleep 0.02; done
        run_eval --framework lm-eval --port $(cat port); echo \"eval $?\"; append_lm_eval_summary; kill %1",
    );
    let mut job = multi_node("0123456789ab", &[1, 4]);
    job["row"]["eval-only"] = json!(true);
    job["overrides"] = json!({"eval-limit": "4"});
    let done = launch(&host, &job, "", "");
    assert!(done.stderr.contains("eval 0"), "{}", done.stderr);
    let meta = read_json(&host.file("meta_env.json"));
    assert_eq!(
        (&meta["completed_eval_concs"], &meta["failed_eval_concs"]),
        (&json!([1]), &json!([4])),
        "{}",
        done.stderr
    );
}
