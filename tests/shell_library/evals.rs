//! Evals that scripts run: their codes, exports and files, with the real harness against small servers.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::{Checkout, Ran, names};
use crate::eval::server::{Mode, Server};
use crate::eval::support::{envelope, multi_node, read_json, write_json};
use crate::eval::{support, tools};

const EVAL: &str = "run_eval --framework lm-eval --port $PORT --task $TASK; echo \"is $? [$EVAL_RESULT_DIR]\"";

fn task() -> String {
    support::root()
        .join("configs/evals/gsm8k_smoke.yaml")
        .display()
        .to_string()
}

fn run(checkout: &Checkout, server: &Server, more: &[(&str, &str)], script: &str) -> Ran {
    tools::lm_eval();
    let (port, task) = (server.port().to_string(), task());
    let standard = [
        ("PORT", &*port),
        ("TASK", &task),
        ("EVAL_LIMIT", "4"),
        ("MODEL", "org/stub-7b"),
        ("HF_HUB_OFFLINE", "1"),
        ("RUNNER_TYPE", "h200"),
        ("EVAL_ENDPOINT_READY_TIMEOUT_SECONDS", "5"),
    ];
    checkout.run(&[&standard, more].concat(), script)
}

fn meta(checkout: &Checkout) -> Value {
    read_json(&checkout.file("meta_env.json"))
}

#[test]
fn one_concurrency() {
    let checkout = Checkout::new();
    // Scripts serve by path and set MODEL_NAME anew, without exporting it.
    let server = Server::start(Mode::Right, &["other", "/models/stub"]);
    let script = format!(
        "MODEL_NAME=/models/stub/; {EVAL}\nappend_lm_eval_summary; echo \"append $?\"; append_lm_eval_summary; echo \"again $?\""
    );
    checkout.write("results_2020-01-01T00-00-00.json", "old");
    let ran = run(
        &checkout,
        &server,
        &[("CONC", "3"), ("TP", "2"), ("EP_SIZE", "2"), ("DP_ATTENTION", "true")],
        &script,
    );
    ran.has(0, &["is 0 [", "append 0", "again 1"]);
    assert_eq!(server.seen()[0]["model"], "/models/stub");
    let meta = meta(&checkout);
    assert_eq!(
        (&meta["conc"], &meta["tp"], &meta["ep"]),
        (&json!(3), &json!(2), &json!(2))
    );
    assert_eq!(
        (&meta["dp_attention"], &meta["is_multinode"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(names(&checkout.file(""), "samples_gsm8k_smoke").len(), 1);
    assert_eq!(names(&checkout.file(""), "results_2").len(), 2);
    assert_eq!(names(&checkout.file("tmp"), "eval_out"), [""; 0], "its folder is gone");
}

#[test]
fn a_failed_eval_has_its_own_code_and_is_described() {
    let checkout = Checkout::new();
    let server = Server::start(Mode::Broken, &["org/stub-7b"]);
    let script = format!("{EVAL}\nappend_lm_eval_summary; echo \"append $?\"");
    run(&checkout, &server, &[], &script).has(0, &["is 74 [", "run_eval failed with exit code 74", "append 0"]);
    assert_eq!(meta(&checkout)["conc"], 64);
    // Where throughput came first it is said, and decides nothing.
    let combined = [("RUN_EVAL", "true"), ("EVAL_ONLY", "false")];
    run(&checkout, &server, &combined, &script).has(0, &["is 0 [", "the job goes on with its throughput"]);
    // Replays have no step of their own that stages.
    std::fs::remove_file(checkout.file("meta_env.json")).expect("it is there");
    let replay = [
        ("RUN_EVAL", "true"),
        ("EVAL_ONLY", "true"),
        ("IS_AGENTIC", "1"),
        ("KV_OFFLOADING", "none"),
    ];
    run(&checkout, &server, &replay, EVAL).has(0, &["is 74 ["]);
    assert_eq!(meta(&checkout)["conc"], 64);
}

#[test]
fn a_batch_names_its_failed_points_and_returns_0() {
    let checkout = Checkout::new();
    let server = Server::start(Mode::Right, &["org/stub-7b"]);
    let mut job = multi_node("00000000000b", &[2, 3]);
    job["row"]["conc"] = json!([2, 3]);
    write_json(&checkout.file(""), "e.json", &job);
    // The second point fails: its server breaks once the first has staged its files.
    let broken = AtomicBool::new(false);
    let file = checkout.file("e.json").display().to_string();
    let script = format!(
        "export EVAL_CONCURRENT_REQUESTS='2 3' TP=9 DP_ATTENTION=junk MODEL=/some/path; {EVAL}
        bash -c 'echo \"all $EVAL_BATCHED_CONCS done $EVAL_BATCHED_COMPLETED_CONCS bad $EVAL_BATCHED_FAILED_CONCS; $CONC [$EVAL_RESULT_DIR]\"'
        append_lm_eval_summary; echo \"append $?\"; ls"
    );
    let ran = std::thread::scope(|scope| {
        let watched = scope.spawn(|| {
            while !broken.load(Ordering::SeqCst) {
                if server.seen().len() >= 4 {
                    server.set(Mode::Broken);
                    return;
                }
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        });
        let ran = run(&checkout, &server, &[("SWEEPCTL_ENVELOPE", &file)], &script);
        broken.store(true, Ordering::SeqCst);
        watched.join().expect("it ends");
        ran
    });
    ran.has(
        0,
        &[
            "is 0 []",
            "all 2 3 done 2 bad 3; 3 []",
            "append 0",
            "_conc2.json",
            "failed at concurrency 3",
        ],
    );
    let meta = meta(&checkout);
    assert_eq!(meta["eval_concs"], json!([2, 3]));
    assert_eq!(
        (&meta["completed_eval_concs"], &meta["failed_eval_concs"]),
        (&json!([2]), &json!([3]))
    );
    // What a launcher made of the variables is not what was planned.
    assert_eq!(
        (&meta["job_id"], &meta["model"]),
        (&json!("00000000000b"), &json!("org/stub-7b"))
    );
    assert_eq!(
        (&meta["tp"], &meta["dp_attention"], &meta["conc"]),
        (&json!(4), &json!(true), &json!(2))
    );
}

#[test]
fn what_cannot_be_evaluated() {
    let checkout = Checkout::new();
    for (variables, call, says) in [
        (&[][..], "run_eval --framework", "is 2"),
        (&[], "run_eval --port --task x", "is 2"),
        (&[], "run_eval --what x", "is 2"),
        (&[("EVAL_CONCURRENT_REQUESTS", "4 x")], "run_eval --port 9", "is 1"),
        (
            &[("EVAL_CONCURRENT_REQUESTS", "4 8"), ("EVAL_FRAMEWORK", "swebench")],
            "run_eval --framework lm-eval",
            "is 1",
        ),
        // A vendor's suite is the eval's to know, and no word of the library's.
        (
            &[("EVAL_FRAMEWORK", "nosuch"), ("MODEL", "m")],
            "run_eval --framework lm-eval",
            "no eval framework is named `nosuch`",
        ),
        (&[], "append_lm_eval_summary", "is 1"),
        (&[("EVAL_RESULT_DIR", "/nowhere")], "append_lm_eval_summary", "is 1"),
        (&[("EVAL_BATCHED_CONCS", "2 x")], "append_lm_eval_summary", "is 1"),
    ] {
        checkout
            .run(variables, &format!("{call}; echo \"is $?\""))
            .has(0, &[says]);
    }
    assert!(!checkout.file("meta_env.json").exists());
}

#[test]
fn metadata_that_scripts_ask_for() {
    let checkout = Checkout::new();
    let file = write_json(
        &checkout.file(""),
        "e.json",
        &envelope("0123456789ab", json!({"ep": 8, "dp-attn": true})),
    );
    let file = file.display().to_string();
    let job = [
        ("SWEEPCTL_ENVELOPE", &*file),
        ("CONC", "8"),
        ("FRAMEWORK", "another"),
        ("RUNNER_TYPE", "x"),
    ];
    checkout.run(&job, "rewrite_lm_eval_meta_env").has(0, &[]);
    let found = meta(&checkout);
    assert_eq!(
        (&found["ep"], &found["framework"], &found["conc"]),
        (&json!(8), &json!("sglang"), &json!(8))
    );
    assert_eq!(
        (&found["decode_ep"], &found["prefill_dp_attention"]),
        (&json!(8), &json!(true))
    );
    // As a launcher writes it over that of a batch: several concurrencies stay JSON, and the batch stays known.
    let keys = r#"_write_lm_eval_meta_json m.json '  "eval_concs": [4, 8],
  "completed_eval_concs": [4],
  "failed_eval_concs": [8],
' '4 8'; _write_lm_eval_meta_json m.json '' '4 8'"#;
    checkout.run(&job, keys).has(0, &[]);
    let found = read_json(&checkout.file("m.json"));
    assert_eq!((&found["conc"], &found["failed_eval_concs"]), (&json!(4), &json!([8])));
    checkout
        .run(&job, "CONC=2; _write_lm_eval_meta_json m.json")
        .has(0, &[]);
    let found = read_json(&checkout.file("m.json"));
    assert_eq!((&found["conc"], found.get("eval_concs")), (&json!(2), None));
    // Without an envelope the script's own variables say it, with the names that launchers give to them.
    let own = [
        ("PREFILL_TP_SIZE", "4"),
        ("IS_MULTINODE", "true"),
        ("xP", "2"),
        ("MODEL", "m"),
        ("FRAMEWORK", "f"),
    ];
    checkout.run(&own, "_write_lm_eval_meta_json own.json '' 5").has(0, &[]);
    let found = read_json(&checkout.file("own.json"));
    assert_eq!(
        (&found["tp"], &found["prefill_num_workers"], &found["conc"]),
        (&json!(4), &json!(2), &json!(5))
    );
}

/// A runner of the kind that srt-slurm has: it enters the mounted checkout, names the concurrency, and copies what the
/// library left in the checkout's root.
const RUNNER: &str = r#"
set -e
ENDPOINT=$1 WORKSPACE=$2
PORT=${ENDPOINT##*:}
cd "$WORKSPACE"
source "$WORKSPACE/benchmarks/benchmark_lib.sh"
export EVAL_CONCURRENT_REQUESTS="${EVAL_CONC:-${EVAL_CONCURRENT_REQUESTS:-256}}"
code=0
run_eval --framework lm-eval --port "$PORT" || code=$?
export IS_MULTINODE="${IS_MULTINODE:-true}" TP="${TP:-${PREFILL_TP:-1}}"
export CONC="${CONC:-${EVAL_CONC:-1}}" EP_SIZE="${EP_SIZE:-${PREFILL_EP:-1}}" DP_ATTENTION="${DP_ATTENTION:-${PREFILL_DP_ATTN:-false}}"
append_lm_eval_summary || true
mkdir -p "$LOGS/eval_results"
cp meta_env.json results*.json sample*.jsonl "$LOGS/eval_results/" 2>/dev/null || true
exit "$code"
"#;

#[test]
fn a_runner_of_srt_slurms_kind() {
    tools::lm_eval();
    for (mode, points, code) in [
        (Mode::Right, "2", 0),
        (Mode::Right, "2 4", 0),
        (Mode::Broken, "2", 74),
        (Mode::Broken, "2 4", 0),
    ] {
        let checkout = Checkout::new();
        // The checkout as a launch leaves it, mounted elsewhere; the runner passes little on.
        std::fs::create_dir_all(checkout.file(".sweepctl/bin")).expect("a folder");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_sweepctl"), checkout.file(".sweepctl/bin/sweepctl"))
            .expect("a link");
        std::fs::remove_file(checkout.file("bin/sweepctl")).expect("it goes");
        write_json(
            &checkout.file(".sweepctl"),
            "envelope.json",
            &multi_node("00000000000b", &[2, 4]),
        );
        checkout.write(
            ".sweepctl/variables",
            &format!(
                "EVAL_TASKS_DIR={}\0EVAL_LIMIT=4\0EVAL_ONLY=true\0RUN_EVAL=true\0",
                task()
            ),
        );
        let server = Server::start(mode, &["served-name"]);
        let folder = checkout.file("").display().to_string();
        let logs = checkout.file("logs").display().to_string();
        checkout.write("runner.sh", RUNNER);
        let variables = [
            ("LOGS", &*logs),
            ("EVAL_CONC", points),
            ("MODEL_NAME", "served-name"),
            ("INFMAX_WORKSPACE", "/path/of/the/host"),
            ("PREFILL_DP_ATTN", "true"),
            ("CONC", "777"),
            ("HF_HUB_OFFLINE", "1"),
        ];
        let output = checkout
            .command("bash", &variables)
            .args(["runner.sh", &server.url(), folder.trim_end_matches('/')])
            .output();
        let ran = Ran::from(output.expect("bash runs"));
        ran.has(code, &[]);
        let results = checkout.file("logs/eval_results");
        let found = read_json(&results.join("meta_env.json"));
        assert_eq!(
            (&found["job_id"], &found["conc"]),
            (&json!("00000000000b"), &json!(2)),
            "{}",
            ran.all()
        );
        assert_eq!(
            (&found["model"], &found["prefill_tp"]),
            (&json!("org/stub-7b"), &json!(4))
        );
        let right = mode == Mode::Right;
        let batch = points.contains(' ');
        assert_eq!(
            names(&results, "results").len(),
            if !right {
                0
            } else if batch {
                2
            } else {
                1
            },
            "{}",
            ran.all()
        );
        if batch {
            let (good, bad) = if right {
                (json!([2, 4]), json!([]))
            } else {
                (json!([]), json!([2, 4]))
            };
            assert_eq!(
                (&found["completed_eval_concs"], &found["failed_eval_concs"]),
                (&good, &bad)
            );
        }
        assert!(server.seen().iter().all(|body| body["model"] == "served-name"));
    }
}
