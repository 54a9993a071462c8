//! What sourcing does, and what the functions return that need no server.

use super::Checkout;

/// A script, the variables that it gets, its exit code, and what it must and must not print.
struct Case {
    variables: &'static [(&'static str, &'static str)],
    script: &'static str,
    code: i32,
    says: &'static [&'static str],
    silent: &'static [&'static str],
}

const fn case(
    variables: &'static [(&'static str, &'static str)],
    script: &'static str,
    code: i32,
    says: &'static [&'static str],
    silent: &'static [&'static str],
) -> Case {
    Case {
        variables,
        script,
        code,
        says,
        silent,
    }
}

fn check(cases: &[Case]) {
    let checkout = Checkout::new();
    for case in cases {
        let ran = checkout.run(case.variables, case.script);
        let all = ran.all();
        assert_eq!(ran.code, Some(case.code), "{}: {all}", case.script);
        for part in case.says {
            assert!(all.contains(part), "{}: `{part}` is missing: {all}", case.script);
        }
        for part in case.silent {
            assert!(!all.contains(part), "{}: `{part}` is there: {all}", case.script);
        }
    }
}

#[test]
fn sourcing_exports_and_keeps() {
    let exported = "bash -c 'echo $PYTHONDONTWRITEBYTECODE $PORT $GPU_METRICS_CSV; [ -d $PYTHONPYCACHEPREFIX ]'";
    check(&[
        case(&[], exported, 0, &["1 8888 gpu_metrics.csv"], &[]),
        case(&[("PORT", "9"), ("GPU_METRICS_CSV", "x")], exported, 0, &["1 9 x"], &[]),
        case(
            &[],
            "echo \"[$GPU_MONITOR_PID$GPU_MONITOR_VENDOR] $GPU_MONITOR_INTERVAL $AIPERF_DEPS_READY $AGENTIC_DIR \
             $AIPERF_DIR $AIPERF_FAILED_REQUEST_THRESHOLD $AIPERF_TRACE_IDLE_GAP_CAP_SECONDS\"",
            0,
            &["[] 1 0 /workspace/utils/agentic-benchmark /workspace/utils/aiperf 0.10 300"],
            &[],
        ),
        case(
            &[("AIPERF_VENV", "/v"), ("AIPERF_FAILED_REQUEST_THRESHOLD", "0.2")],
            "echo $AIPERF_PYTHON $AIPERF_CLI $AIPERF_HF_CLI $AIPERF_LIVE_FAILED_REQUEST_THRESHOLD",
            0,
            &["/v/bin/python /v/bin/aiperf /v/bin/hf 0.2"],
            &[],
        ),
        case(
            &[],
            "set -o | grep -E 'errexit|nounset|pipefail|xtrace'; trap -p | sed \"/^trap -- '' /d\"",
            0,
            &["errexit        \toff"],
            &["\ton", "trap"],
        ),
        case(&[("MAX_MODEL_LEN", "5")], "echo $MAX_MODEL_LEN", 0, &["5"], &[]),
        // Scripts of all kinds source it.
        case(
            &[],
            "set -euo pipefail; source benchmarks/benchmark_lib.sh; echo fine",
            0,
            &["fine"],
            &[],
        ),
    ]);
}

#[test]
fn replays_are_refused_where_their_offloading_makes_no_sense() {
    let checkout = Checkout::new();
    let replay: &[(&str, &str)] = &[("IS_AGENTIC", "1")];
    for (more, says) in [
        (&[][..], "KV_OFFLOADING must be set"),
        (&[("KV_OFFLOADING", "disk")], "neither none nor dram"),
        (
            &[("KV_OFFLOADING", "none"), ("KV_OFFLOAD_BACKEND", "x")],
            "must be empty",
        ),
        (&[("KV_OFFLOADING", "dram")], "KV_OFFLOAD_BACKEND is required"),
        (
            &[("KV_OFFLOADING", "dram"), ("KV_OFFLOAD_BACKEND", "none")],
            "KV_OFFLOAD_BACKEND is required",
        ),
        (
            &[
                ("KV_OFFLOADING", "dram"),
                ("KV_OFFLOAD_BACKEND", "x"),
                ("TOTAL_CPU_DRAM_GB", "0"),
            ],
            "positive",
        ),
        (
            &[
                ("KV_OFFLOADING", "dram"),
                ("KV_OFFLOAD_BACKEND", "x"),
                ("TOTAL_CPU_DRAM_GB", "1.5"),
            ],
            "positive",
        ),
    ] {
        let ran = checkout.run(&[replay, more].concat(), "echo after");
        ran.has(1, &[says]);
        assert!(!ran.stdout.contains("after"), "{}", ran.all());
    }
    let good = [("KV_OFFLOADING", "none"), ("MAX_MODEL_LEN", "5")];
    let script = "echo \"[${MAX_MODEL_LEN-unset}]\"";
    for (name, variables, says) in [
        ("benchmarks/single_node/agentic/a.sh", &[][..], "[unset]"),
        ("benchmarks/multi_node/agentic_srt.sh", &[], "[unset]"),
        ("agentic_here.sh", &[], "[unset]"),
        ("benchmarks/plain.sh", &[("SCENARIO_TYPE", "agentic-coding")], "[unset]"),
        ("benchmarks/plain.sh", &[("IS_AGENTIC", "0")], "[5]"),
        ("benchmarks/my_agentic_script.sh", &[], "[5]"),
    ] {
        checkout
            .run_as(name, &[&good[..], variables].concat(), script)
            .has(0, &[says]);
    }
}

#[test]
fn questions_about_offloading() {
    let dram: &[(&str, &str)] = &[
        ("KV_OFFLOADING", "dram"),
        ("KV_OFFLOAD_BACKEND", "hicache"),
        ("TOTAL_CPU_DRAM_GB", "9"),
    ];
    let none: &[(&str, &str)] = &[("KV_OFFLOADING", "none")];
    let both: &[(&str, &str)] = &[("KV_OFFLOADING", "none"), ("KV_OFFLOAD_BACKEND", "x")];
    check(&[
        case(dram, "agentic_kv_offload_enabled; echo \"is $?\"", 0, &["is 0"], &[]),
        case(none, "agentic_kv_offload_enabled; echo \"is $?\"", 0, &["is 1"], &[]),
        case(
            &[],
            "agentic_kv_offload_enabled; echo after",
            1,
            &["must be set"],
            &["after"],
        ),
        case(
            none,
            "require_agentic_kv_offload_none; echo \"is $?\"",
            0,
            &["is 0"],
            &[],
        ),
        case(
            dram,
            "require_agentic_kv_offload_none; echo after",
            1,
            &["expected KV_OFFLOADING=none"],
            &["after"],
        ),
        case(
            both,
            "require_agentic_kv_offload_none; echo after",
            1,
            &["must be empty"],
            &["after"],
        ),
        case(
            dram,
            "require_agentic_kv_offload_backend hicache; echo \"is $?\"",
            0,
            &["is 0"],
            &[],
        ),
        case(
            none,
            "require_agentic_kv_offload_backend hicache; echo \"is $?\"",
            0,
            &["is 1"],
            &[],
        ),
        case(
            both,
            "require_agentic_kv_offload_backend hicache; echo after",
            1,
            &["must be empty"],
            &["after"],
        ),
        case(
            dram,
            "require_agentic_kv_offload_backend lmcache; echo after",
            1,
            &["expected", "lmcache"],
            &["after"],
        ),
        case(
            &[("KV_OFFLOADING", "dram"), ("KV_OFFLOAD_BACKEND", "x")],
            "require_agentic_kv_offload_backend x; echo after",
            1,
            &["TOTAL_CPU_DRAM_GB"],
            &["after"],
        ),
        case(
            &[],
            "require_agentic_kv_offload_backend x; echo after",
            1,
            &["must be set"],
            &["after"],
        ),
    ]);
}

#[test]
fn small_helpers() {
    check(&[
        case(
            &[("A", "1"), ("B", "")],
            "check_env_vars A B C; echo after",
            1,
            &["  - B", "  - C"],
            &["  - A", "after"],
        ),
        case(&[("A", "1")], "check_env_vars A; echo \"is $?\"", 0, &["is 0"], &[]),
        case(
            &[],
            "write_command c.txt a 'b c' '$d'; append_command c.txt e; cat c.txt | tail -n 1; bash -c \"printf '<%s>' $(head -n 1 c.txt)\"",
            0,
            &["a b\\ c \\$d", "e ", "<a><b c><$d>"],
            &[],
        ),
        case(
            &[
                ("PREFILL_TP_SIZE", "4"),
                ("PREFILL_ENABLE_EP", "true"),
                ("xP", "2"),
                ("yD", "3"),
                ("TP", "9"),
                ("PREFILL_DP_ATTN", "True"),
                ("DECODE_ENABLE_DP", "0"),
            ],
            "bridge_disagg_eval_metadata; bash -c 'echo $TP $EP_SIZE $DP_ATTENTION $PREFILL_TP $PREFILL_EP \
             $PREFILL_NUM_WORKERS $PREFILL_DP_ATTENTION $DECODE_TP $DECODE_EP $DECODE_NUM_WORKERS $DECODE_DP_ATTENTION'",
            0,
            &["4 4 true 4 4 2 true 9 1 3 false"],
            &[],
        ),
        // One node has no sides, and keeps its own sizes.
        case(
            &[("TP", "8"), ("EP_SIZE", "8"), ("DP_ATTENTION", "true")],
            "bridge_disagg_eval_metadata; echo $TP $EP_SIZE $DP_ATTENTION",
            0,
            &["8 8 true"],
            &[],
        ),
    ]);
}

#[test]
fn a_tree_of_processes_ends() {
    let stubborn = "bash -c 'trap \"\" TERM; bash -c \"trap \\\"\\\" TERM; echo \\$\\$ > grandchild; sleep 60; true\" & \
                    wait; sleep 60' & pid=$!; while [ ! -s grandchild ]; do sleep 0.05; done; ";
    let checkout = Checkout::new();
    let script = format!(
        "{stubborn} stop_background_process_tree $pid server 1; echo \"is $?\"; \
         for p in $pid $(cat grandchild); do grep -q \"^State:.[^Z]\" /proc/$p/status 2>/dev/null && echo alive; done; true"
    );
    let ran = checkout.run(&[], &script);
    ran.has(0, &["stopping server", "is 0"]);
    assert!(!ran.stdout.contains("alive"), "{}", ran.all());
    check(&[
        case(
            &[],
            "stop_background_process_tree '' x; echo \"is $?\"",
            0,
            &["is 0"],
            &["stopping"],
        ),
        case(
            &[],
            "stop_background_process_tree -1 x 1; echo \"is $?\"",
            0,
            &["is 0"],
            &["stopping"],
        ),
        case(
            &[],
            "stop_background_process_tree 999999999; echo \"is $?\"",
            0,
            &["is 0"],
            &["stopping"],
        ),
        case(
            &[],
            "sleep 60 & trap 'stop_background_process_tree $! s 5; echo ended' EXIT; exit 7",
            7,
            &["stopped s", "ended"],
            &["killing"],
        ),
    ]);
}

#[test]
fn without_the_binary_it_says_so() {
    let checkout = Checkout::new();
    std::fs::remove_file(checkout.file("bin/sweepctl")).expect("it goes");
    let ran = checkout.run(
        &[("PATH", "/usr/bin:/bin")],
        "wait_for_server_ready --port 1 --server-log x --server-pid 1",
    );
    ran.has(1, &["sweepctl is neither in", "/.sweepctl/bin nor on PATH"]);
}

#[test]
fn lengths_of_evals() {
    let checkout = Checkout::new();
    checkout.write(
        "model/config.json",
        r#"{"text_config": {"max_position_embeddings": 5000}}"#,
    );
    checkout.write("hub/models--org--m/snapshots/a/config.json", r#"{"n_positions": 700}"#);
    let model = checkout.file("model").display().to_string();
    for (variables, script, says) in [
        (&[][..], "get_native_max_context_length org/m".to_owned(), "700\n"),
        (&[], "get_native_max_context_length org/none".to_owned(), "0\n"),
        (
            &[("MODEL_PATH", &*model)],
            "get_native_max_context_length alias".to_owned(),
            "5000\n",
        ),
        (
            &[],
            "compute_eval_context_length org/m 600; echo \"set $EVAL_MAX_MODEL_LEN\"".to_owned(),
            "600\nset 600\n",
        ),
        (&[], "compute_eval_context_length org/m 800".to_owned(), "700\n"),
        (&[], "compute_eval_context_length org/m 0".to_owned(), "700\n"),
        (&[], "compute_eval_context_length org/none 800".to_owned(), "800\n"),
        (
            &[("MAX_MODEL_LEN", "1234")],
            "compute_eval_context_length org/none 0 2>/dev/null".to_owned(),
            "1234\n",
        ),
        (
            &[],
            "compute_eval_context_length org/none 2>/dev/null".to_owned(),
            "16384\n",
        ),
        (
            &[
                ("MODEL", &*model),
                ("ISL", "1024"),
                ("OSL", "1024"),
                ("EVAL_MAX_MODEL_LEN", "9"),
            ],
            "setup_eval_context; bash -c 'echo $EVAL_MAX_MODEL_LEN'".to_owned(),
            "2304\n",
        ),
        (
            &[("ISL", "8192"), ("OSL", "1024")],
            format!("MODEL={model}; setup_eval_context; env | grep EVAL_MAX"),
            "EVAL_MAX_MODEL_LEN=5000\n",
        ),
    ] {
        let ran = checkout.run(variables, &script);
        assert_eq!(ran.stdout, says, "{script}: {}", ran.all());
    }
}
