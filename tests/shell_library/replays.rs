//! Replays with stand-ins for their client and its installer.

use super::{Checkout, Ran};

const REPLAY: [(&str, &str); 8] = [
    ("IS_AGENTIC", "1"),
    ("KV_OFFLOADING", "none"),
    ("MODEL", "org/m"),
    ("MODEL_PREFIX", "dsv4"),
    ("CONC", "4"),
    ("DURATION", "3600"),
    ("RESULT_FILENAME", "r"),
    ("FRAMEWORK", "dynamo-vllm"),
];

/// Makes an environment whose programs note how they are called.
const UV: &str = r#"
echo "uv $*" >> "$HOME/calls"
case $1 in
venv) mkdir -p "${@: -1}/bin" ;;
pip)
    bin=$(dirname "$4")
    [ -z "$INCOMPLETE" ] || exit 0
    printf '#!/bin/bash\necho "aiperf $*" >> "$HOME/calls"\n. "$HOME/replay.sh"\n' > "$bin/aiperf"
    printf '#!/bin/bash\necho "hf $*" >> "$HOME/calls"\nexit ${HF_CODE:-0}\n' > "$bin/hf"
    printf '#!/bin/bash\necho "python $*" >> "$HOME/calls"\n. "$HOME/python.sh"\n' > "$bin/python"
    chmod +x "$bin"/*
    ;;
esac
"#;

/// What the client leaves: nine good requests and a bad one.
const CLIENT: &str = r#"
while [ $# -gt 0 ]; do [ "$1" = --output-artifact-dir ] && out=$2; shift; done
mkdir -p "$out"
for n in 1 2 3 4 5 6 7 8 9; do echo '{"metrics": {}}'; done > "$out/profile_export.jsonl"
echo '{"error": {"code": 500}}' >> "$out/profile_export.jsonl"
echo '{"request_count": {"avg": 9}, "error_request_count": {"avg": 1}}' > "$out/profile_export_aiperf.json"
echo '{"sglang:x": 1}' > "$out/server_metrics_export.json"
echo 'a,b' > "$out/server_metrics_export.csv"
echo replayed
exit ${CLIENT_CODE:-0}
"#;

fn checkout() -> Checkout {
    let checkout = Checkout::new();
    checkout.tool("uv", UV);
    checkout.tool(
        "nvidia-smi",
        "echo 'timestamp, index'; case \"$*\" in *-l*) exec sleep 60 ;; esac",
    );
    checkout.write("home/replay.sh", CLIENT);
    checkout.write("home/python.sh", "exit ${PYTHON_CODE:-0}");
    // The checkout's own aggregation, which the python that stands in pretends to run.
    checkout.write("utils/agentic/aggregation/process_agentic_result.py", "");
    lay_pinned(&checkout);
    checkout
}

fn run(checkout: &Checkout, more: &[(&str, &str)], script: &str) -> Ran {
    let here = checkout.file("").display().to_string();
    let tools = checkout.file("tools").display().to_string();
    let here = [
        ("INFMAX_CONTAINER_WORKSPACE", here.trim_end_matches('/')),
        ("SWEEPCTL_TOOLS", &tools),
    ];
    let variables = [&REPLAY[..], &here, more].concat();
    checkout.run_as("benchmarks/single_node/agentic/a.sh", &variables, script)
}

/// Lays the pinned client's environment where `sweepctl` looks for it, with programs that stand in.
fn lay_pinned(checkout: &Checkout) {
    let tools = checkout.file("tools");
    let requirement = sweepctl::step::agentic::client::REQUIREMENT;
    let name = format!("agentx-harness-{}", sweepctl::step::agentic::client::VERSION);
    let venv = sweepctl::step::tools::Venv::new(&tools, &name, &[requirement]).expect("python3 runs");
    let folder = venv
        .folder()
        .strip_prefix(checkout.file(""))
        .expect("below")
        .display()
        .to_string();
    for program in ["aiperf", "hf", "python"] {
        let text = format!("echo \"{program} $*\" >> \"$HOME/calls\"\n");
        let own = match program {
            "aiperf" => ". \"$HOME/replay.sh\"",
            "python" => ". \"$HOME/python.sh\"",
            _ => "exit ${HF_CODE:-0}",
        };
        checkout.tool_at(&format!("{folder}/bin/{program}"), &format!("{text}{own}\n"));
    }
    checkout.write(&format!("{folder}/sweepctl-complete"), &format!("{requirement}\n"));
}

#[test]
fn the_pinned_client_is_that_of_sweepctl_and_asked_for_once() {
    let checkout = checkout();
    let tools = checkout.file("tools").display().to_string();
    let script =
        "resolve_trace_source; echo \"is $?\"; install_agentic_deps; echo \"$TRACE_SOURCE_FLAG $AIPERF_DEPS_READY\"
        build_replay_cmd out; echo \"$REPLAY_CMD\"";
    let ran = run(&checkout, &[], script);
    ran.has(0, &["is 0", "--public-dataset semianalysis_cc_traces_weka_062126 1"]);
    ran.has(
        0,
        &[
            &format!("{tools}/agentx-harness-"),
            "/bin/aiperf profile --scenario agentx --url ",
        ],
    );
    let calls = checkout.read("home/calls");
    assert!(!calls.contains("uv pip"), "{calls}");
    assert!(
        calls.contains("hf download --repo-type dataset semianalysisai/cc-traces-weka-062126\n"),
        "{calls}"
    );
}

#[test]
fn requirements_of_the_checkout_come_beside_the_pinned_client() {
    let checkout = checkout();
    checkout.write("utils/agentic-benchmark/requirements.txt", "");
    run(&checkout, &[], "install_agentic_deps; echo \"is $?\"").has(0, &["is 0"]);
    let calls = checkout.read("home/calls");
    assert!(calls.contains(" agentx-harness==1.0.12 -r "), "{calls}");
    run(
        &checkout,
        &[("INCOMPLETE", "1")],
        "install_agentic_deps; echo \"is $?\"",
    )
    .has(0, &["is 1", "not whole"]);
}

#[test]
fn a_client_that_the_checkout_brings_wins() {
    let checkout = checkout();
    checkout.write("utils/aiperf/pyproject.toml", "");
    checkout.write("utils/agentic-benchmark/requirements.txt", "");
    run(
        &checkout,
        &[("AIPERF_PYTHON_VERSION", "3.12")],
        "install_agentic_deps; echo \"is $?\"",
    )
    .has(0, &["is 0"]);
    let calls = checkout.read("home/calls");
    assert!(
        calls.contains("/utils/aiperf -r ") && calls.contains("/utils/agentic-benchmark/requirements.txt"),
        "{calls}"
    );
    assert!(
        calls.contains("--python 3.12") && !calls.contains("agentx-harness"),
        "{calls}"
    );
    let built = "build_replay_cmd out; echo \"$REPLAY_CMD\"";
    run(&checkout, &[], built).has(
        0,
        &["--use-dynamo-conv-aware-routing --dynamo-session-timeout-seconds 3600"],
    );
}

#[test]
fn what_cannot_be_replayed_is_refused() {
    let checkout = checkout();
    let after = |call: &str| format!("{call}; echo \"is $?\"");
    run(&checkout, &[("HF_CODE", "5")], &after("resolve_trace_source")).has(0, &["is 5"]);
    let ran = run(
        &checkout,
        &[("WEKA_LOADER_OVERRIDE", "semianalysis_cc_traces_weka_06212")],
        &after("resolve_trace_source"),
    );
    ran.has(1, &["is no loader", "semianalysis_cc_traces_weka_062126"]);
    assert!(!ran.stdout.contains("is "), "{}", ran.all());
    run(
        &checkout,
        &[("AIPERF_SERVER_METRICS_URLS", "http://a,,http://b")],
        &after("build_replay_cmd out"),
    )
    .has(0, &["is 1"]);
}

#[test]
fn the_command_and_its_variables() {
    let checkout = checkout();
    // As scripts set them: without exporting.
    let script = "SERVED_MODEL_NAME=alias; AIPERF_EXTRA_INPUTS='a:1 b:2'; resolve_trace_source >/dev/null
        build_replay_cmd /out; echo \"is $?\"; echo \"$REPLAY_CMD\"; env | grep ^AIPERF_ | sort";
    let ran = run(
        &checkout,
        &[("AIPERF_UNSAFE_OVERRIDE", "true"), ("MAX_MODEL_LEN", "99")],
        script,
    );
    ran.has(
        0,
        &[
            "is 0",
            "/bin/aiperf profile --scenario agentx --url http://localhost:8888 ",
            " --model alias --tokenizer org/m --concurrency 4 --benchmark-duration 3600 ",
            " --output-artifact-dir /out/aiperf_artifacts ",
            " --extra-inputs a:1 b:2 ",
            " --public-dataset semianalysis_cc_traces_weka_062126 --unsafe-override\n",
            "AIPERF_DATASET_CONFIGURATION_TIMEOUT=1800\n",
            "AIPERF_DATASET_WEKA_LIVE_ASSISTANT_RESPONSES=0\n",
            "AIPERF_SERVICE_PROFILE_CONFIGURE_TIMEOUT=1800\n",
            "AIPERF_UI_REALTIME_METRICS_ENABLED=true\n",
            "AIPERF_HTTP_X_DYNAMO_SESSION_ID_FROM_CORRELATION_ID=true\n",
        ],
    );
    assert!(
        !ran.stdout.contains("--max-context-length"),
        "replays run at the model's own length: {}",
        ran.all()
    );
}

const WHOLE: &str = "set -e; mkdir -p results; resolve_trace_source; build_replay_cmd \"$PWD/results\"
    trap 'echo own trap' EXIT; set +e
    run_agentic_replay_and_write_outputs \"$PWD/results\"; echo \"is $?\"";

#[test]
fn a_replay_leaves_everything_and_says_what_failed_first() {
    let checkout = checkout();
    run(&checkout, &[], WHOLE).has(0, &["is 0", "replayed", "1 of 10 requests failed", "own trap"]);
    let left = crate::eval::support::names(&checkout.file("results"));
    let expected = [
        "agentic_power_timezone_offset.txt",
        "aiperf_artifacts",
        "benchmark.log",
        "benchmark_command.txt",
        "gpu_metrics.csv",
    ];
    assert_eq!(left, expected);
    assert!(
        checkout
            .read("results/benchmark_command.txt")
            .contains("aiperf profile --scenario")
    );
    assert_eq!(checkout.read("results/benchmark.log"), "replayed\n");
    assert!(
        checkout
            .read("home/calls")
            .contains("python -m utils.agentic.aggregation.process_agentic_result")
    );
    for (more, says) in [
        (&[("CLIENT_CODE", "9")][..], "is 9"),
        (
            &[("CLIENT_CODE", "9"), ("AIPERF_FAILED_REQUEST_THRESHOLD", "0.05")],
            "is 9",
        ),
        (&[("AIPERF_FAILED_REQUEST_THRESHOLD", "0.05")], "is 1"),
        (&[("PYTHON_CODE", "4")], "is 4"),
        (&[("REQUIRE_POWER", "1")], "power is required"),
        (&[("REQUIRE_POWER", "1"), ("ENABLE_AGENTX_POWER", "0")], "is 0"),
        (&[("REQUIRE_POWER", "1"), ("IS_MULTINODE", "true")], "is 0"),
        (&[("AIPERF_REQUIRED_SERVER_METRIC_PREFIX", "sglang:")], "is 0"),
        (
            &[("AIPERF_REQUIRED_SERVER_METRIC_PREFIX", "vllm:")],
            "holds no metric that starts with vllm:",
        ),
    ] {
        run(&checkout, more, WHOLE).has(0, &[says]);
    }
}

#[test]
fn without_a_job_a_replay_has_no_aggregate() {
    let checkout = checkout();
    std::fs::remove_dir_all(checkout.file("utils")).expect("it goes");
    run(&checkout, &[], "write_agentic_result_json results; echo \"is $?\"").has(0, &["is 1", "there is no envelope"]);
}
