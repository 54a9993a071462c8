# ---- Replays -------------------------------------------------------------------------------------------------------

# agentic_kv_offload_enabled: whether the replay offloads.
agentic_kv_offload_enabled() {
    [[ -n "${KV_OFFLOADING:-}" ]] || _agentic_refuse "KV_OFFLOADING must be set for agentic benchmarks"
    [[ "$KV_OFFLOADING" != none ]]
}

# require_agentic_kv_offload_none: ends the shell where it does.
require_agentic_kv_offload_none() {
    if agentic_kv_offload_enabled; then
        _agentic_refuse "expected KV_OFFLOADING=none, got '$KV_OFFLOADING'"
    fi
    _agentic_check_offload
}

# require_agentic_kv_offload_backend NAME: 0 if it offloads there, 1 if it does not offload.
require_agentic_kv_offload_backend() {
    if [[ "${KV_OFFLOADING:-}" == dram && "${KV_OFFLOAD_BACKEND:-}" != "$1" ]]; then
        _agentic_refuse "expected KV_OFFLOAD_BACKEND=$1, got '${KV_OFFLOAD_BACKEND:-}'"
    fi
    _agentic_check_offload
    [[ "$KV_OFFLOADING" == dram ]]
}

# agentic_pip_install ARGUMENT...: pip, also where the system keeps its Python to itself.
agentic_pip_install() {
    local -a override=()
    if python3 -m pip install --help 2>/dev/null | grep -q -- --break-system-packages; then
        override=(--break-system-packages)
    fi
    python3 -m pip install "${override[@]}" "$@"
}

ensure_agentic_uv() {
    AIPERF_UV_BIN="$(command -v uv || echo "$AIPERF_UV_INSTALL_DIR/uv")"
    [[ ! -x "$AIPERF_UV_BIN" ]] || return 0
    python3 -m pip install -q --target "$(dirname "$AIPERF_UV_INSTALL_DIR")" uv || true
    [[ ! -x "$AIPERF_UV_BIN" ]] || return 0
    echo "ERROR: there is no uv, and it could not be installed as $AIPERF_UV_BIN" >&2
    return 1
}

# install_agentic_deps: the replay client in an environment of its own, once a shell. It is that of `sweepctl agentic run`,
# unless the checkout brings a client as a submodule, or requirements of its own.
install_agentic_deps() {
    [[ "$AIPERF_DEPS_READY" != 1 ]] || return 0
    ensure_agentic_uv || return 1
    if [[ -f "$AIPERF_DIR/pyproject.toml" || -f "$AIPERF_DIR/setup.py" || -f "$AGENTIC_DIR/requirements.txt" ]]; then
        _install_own_agentic_client || return 1
    else
        AIPERF_VENV="$(PATH="$(dirname "$AIPERF_UV_BIN"):$PATH" _sweepctl library replay-client)" || return 1
        AIPERF_PYTHON="$AIPERF_VENV/bin/python"
        AIPERF_CLI="$AIPERF_VENV/bin/aiperf"
        AIPERF_HF_CLI="$AIPERF_VENV/bin/hf"
    fi
    if [[ ! -x "$AIPERF_CLI" || ! -x "$AIPERF_HF_CLI" ]]; then
        echo "ERROR: the replay client's environment is not whole: $AIPERF_VENV" >&2
        return 1
    fi
    AIPERF_DEPS_READY=1
}

_install_own_agentic_client() {
    local -a wanted=()
    if [[ -f "$AIPERF_DIR/pyproject.toml" || -f "$AIPERF_DIR/setup.py" ]]; then
        wanted=(-e "$AIPERF_DIR")
        command -v git >/dev/null 2>&1 || { apt-get update && apt-get install -y git; } || return 1
    else
        wanted=("$(_sweepctl library replay-requirement)") || return 1
    fi
    [[ ! -f "$AGENTIC_DIR/requirements.txt" ]] || wanted+=(-r "$AGENTIC_DIR/requirements.txt")
    rm -rf "$AIPERF_VENV"
    mkdir -p "$AIPERF_UV_CACHE_DIR"
    UV_CACHE_DIR="$AIPERF_UV_CACHE_DIR" "$AIPERF_UV_BIN" venv --python "${AIPERF_PYTHON_VERSION:-3.11}" "$AIPERF_VENV" &&
        UV_CACHE_DIR="$AIPERF_UV_CACHE_DIR" "$AIPERF_UV_BIN" pip install --python "$AIPERF_PYTHON" \
            "${wanted[@]}" "datasets>=4.7.0" "huggingface_hub[cli]>=0.25.0" urllib3 requests
}

ensure_hf_cli() {
    install_agentic_deps
}

# resolve_trace_source: which recorded conversations are replayed; sets TRACE_SOURCE_FLAG and downloads them.
resolve_trace_source() {
    local found
    found="$(_sweepctl library trace-source)" || exit 1
    # shellcheck disable=SC2034
    TRACE_SOURCE_FLAG="--public-dataset ${found%% *}"
    echo "traces: ${found%% *} (${found##* })"
    install_agentic_deps || return 1
    "$AIPERF_HF_CLI" download --repo-type dataset "${found##* }"
}

# build_replay_cmd DIR: sets REPLAY_CMD, which is split at spaces.
build_replay_cmd() {
    export AIPERF_DATASET_WEKA_LIVE_ASSISTANT_RESPONSES="${AIPERF_DATASET_WEKA_LIVE_ASSISTANT_RESPONSES:-0}"
    # Loading the traces takes up to a quarter of an hour on a busy disk.
    export AIPERF_DATASET_CONFIGURATION_TIMEOUT=1800
    export AIPERF_SERVICE_PROFILE_CONFIGURE_TIMEOUT=1800
    export AIPERF_UI_REALTIME_METRICS_ENABLED=true
    REPLAY_CMD="$(_sweepctl library replay-command "$1")" || return 1
    if [[ "${FRAMEWORK:-}" == dynamo-* && "$REPLAY_CMD" != *--use-dynamo-conv-aware-routing* &&
        "${AIPERF_USE_DYNAMO_CONV_AWARE_ROUTING:-1}" != 0 ]]; then
        # The pinned client binds a conversation to its worker by this header.
        export AIPERF_HTTP_X_DYNAMO_SESSION_ID_FROM_CORRELATION_ID=true
    fi
}

# write_agentic_result_json DIR: the aggregate, as RESULT_FILENAME.json.
write_agentic_result_json() {
    local out="${AGENTIC_OUTPUT_DIR:-$INFMAX_CONTAINER_WORKSPACE}" code=0
    if [[ -f "$INFMAX_CONTAINER_WORKSPACE/utils/agentic/aggregation/process_agentic_result.py" ]]; then
        (
            cd "$INFMAX_CONTAINER_WORKSPACE" || exit 1
            RESULT_DIR="$1" AGENTIC_OUTPUT_DIR="$out" \
                "$AIPERF_PYTHON" -m utils.agentic.aggregation.process_agentic_result
        ) || code=$?
    else
        _sweepctl library replay-result "$1" --out "$out/$RESULT_FILENAME.json" || code=$?
    fi
    if [[ -f "$INFMAX_CONTAINER_WORKSPACE/utils/generate_aiperf_plots.py" ]]; then
        "$AIPERF_PYTHON" "$INFMAX_CONTAINER_WORKSPACE/utils/generate_aiperf_plots.py" "$1" 2>&1 || true
    fi
    return "$code"
}

# The checkout's own module, where it has it, else `sweepctl`'s command.
_agentic_step() {
    local module="$1" own="$2"
    shift 2
    if [[ -f "$INFMAX_CONTAINER_WORKSPACE/${module//.//}.py" ]]; then
        (cd "$INFMAX_CONTAINER_WORKSPACE" && "$AIPERF_PYTHON" -m "$module" "$@")
    elif [[ -n "$own" ]]; then
        _sweepctl library "$own" "$@"
    fi
}

# validate_required_agentic_server_metrics DIR: whether the servers' own metrics were recorded, where a recipe asks.
validate_required_agentic_server_metrics() {
    local prefix="${AIPERF_REQUIRED_SERVER_METRIC_PREFIX:-}" exported="$1/aiperf_artifacts/server_metrics_export"
    [[ -n "$prefix" ]] || return 0
    if [[ ! -s "$exported.json" || ! -s "$exported.csv" ]]; then
        echo "ERROR: $exported.json or .csv is missing or empty" >&2
        return 1
    fi
    grep -F -m 1 -q "\"$prefix" "$exported.json" && return 0
    echo "ERROR: $exported.json holds no metric that starts with $prefix" >&2
    return 1
}

# run_agentic_replay_and_write_outputs DIR: replays, and keeps all that is there before it says what failed.
run_agentic_replay_and_write_outputs() (
    set +ex
    result_dir="$1" replayed=0 validated=0 powered=0 aggregated=0 measures_power=0
    if _is_true "${ENABLE_AGENTX_POWER:-1}" && [[ "${IS_MULTINODE:-false}" != true ]]; then
        measures_power=1
        # The client writes local times without their zone.
        date +%z >"$result_dir/agentic_power_timezone_offset.txt"
        start_gpu_monitor --output "$result_dir/gpu_metrics.csv"
        trap stop_gpu_monitor EXIT
        trap 'exit 130' INT
        trap 'exit 143' TERM
    fi
    set -f
    # shellcheck disable=SC2086
    _sweepctl library replay "$result_dir" -- $REPLAY_CMD || replayed=$?
    set +f
    if [[ "$measures_power" == 1 ]]; then
        stop_gpu_monitor
        trap - EXIT INT TERM
    fi
    write_agentic_result_json "$result_dir" || aggregated=$?
    if [[ "$measures_power" == 1 ]]; then
        power=(--result-dir "$result_dir" --agg-result "${AGENTIC_OUTPUT_DIR:-$INFMAX_CONTAINER_WORKSPACE}/$RESULT_FILENAME.json"
            --expected-num-gpus "$((${TP:-1} * ${PP_SIZE:-1} * ${PCP_SIZE:-1}))")
        ! _is_true "${REQUIRE_POWER:-0}" || power+=(--require-power)
        _agentic_step utils.agentic.aggregation.power_adapter check-power "${power[@]}" || powered=$?
    fi
    if [[ -f "$AGENTIC_DIR/scripts/analyze_benchmark_distributions.py" ]]; then
        "$AIPERF_PYTHON" "$AGENTIC_DIR/scripts/analyze_benchmark_distributions.py" "$result_dir/aiperf_artifacts" \
            -o "$result_dir" 2>&1 || true
    fi
    _agentic_step utils.agentic.validation.validate_agentic_result check-replay "$result_dir/aiperf_artifacts" \
        --failed-request-threshold "$AIPERF_FAILED_REQUEST_THRESHOLD" || validated=$?
    for failed in "replay:$replayed" "aggregation:$aggregated" "validation:$validated" "power:$powered"; do
        if [[ "${failed#*:}" -ne 0 ]]; then
            echo "ERROR: the replay's ${failed%:*} failed with exit code ${failed#*:}; what is there is written" >&2
            return "${failed#*:}"
        fi
    done
    validate_required_agentic_server_metrics "$result_dir"
)
