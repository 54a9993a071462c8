#!/usr/bin/env bash
# The functions that launch scripts call, as written by `sweepctl shell-library`; docs/shell-library.md lists them.
#
# Source it from a script: it sets no shell option and no trap. What can happen outside the shell happens in `sweepctl`,
# which is found in the checkout's .sweepctl/, where a launch lays it, else on PATH. Variables that no launcher passed on
# are filled from there.

_SWEEPCTL_ROOT="$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)"

# The part of the environment that scripts may set without exporting it.
_SWEEPCTL_READS="MODEL MODEL_NAME MODEL_PATH MODEL_PREFIX SERVED_MODEL_NAME FRAMEWORK PRECISION SPEC_DECODING IMAGE
    RUNNER_TYPE RECIPE_FINGERPRINT RESULT_FILENAME ISL OSL MAX_MODEL_LEN EVAL_MAX_MODEL_LEN PORT CONC CONC_LIST
    IS_MULTINODE IS_AGENTIC SCENARIO_TYPE RUN_EVAL EVAL_ONLY EVAL_CONC EVAL_CONCURRENT_REQUESTS BENCH_MAX_CONCURRENCY
    EVAL_TASKS EVAL_TASKS_DIR EVAL_SUITE EVAL_LIMIT EVAL_FRAMEWORK EVAL_RESULT_DIR EVAL_INCLUDE_PATH
    TP PP_SIZE DCP_SIZE PCP_SIZE EP_SIZE DP_ATTENTION
    PREFILL_TP PREFILL_PP_SIZE PREFILL_DCP_SIZE PREFILL_PCP_SIZE PREFILL_EP PREFILL_DP_ATTENTION PREFILL_DP_ATTN
    PREFILL_NUM_WORKERS DECODE_TP DECODE_PP_SIZE DECODE_DCP_SIZE DECODE_PCP_SIZE DECODE_EP DECODE_DP_ATTENTION
    DECODE_DP_ATTN DECODE_NUM_WORKERS DURATION HF_HOME HF_HUB_CACHE OPENAI_API_KEY PROFILE
    TRACE_SOURCE_FLAG WEKA_LOADER_OVERRIDE INFMAX_CONTAINER_WORKSPACE AGENTIC_OUTPUT_DIR AGENTIC_WARMUP_GRACE_PERIOD
    AIPERF_CLI AIPERF_DIR AIPERF_SERVER_URL AIPERF_SERVER_METRICS_URLS AIPERF_EXTRA_INPUTS AIPERF_EXPERIMENTAL_FAST
    AIPERF_WARMUP_REQUESTS_PER_LANE AIPERF_UNSAFE_OVERRIDE AIPERF_TRACE_IDLE_GAP_CAP_SECONDS
    AIPERF_FAILED_REQUEST_THRESHOLD AIPERF_LIVE_FAILED_REQUEST_THRESHOLD AIPERF_REQUIRED_SERVER_METRIC_PREFIX
    AIPERF_USE_DYNAMO_CONV_AWARE_ROUTING AIPERF_HTTP_X_DYNAMO_SESSION_ID_FROM_CORRELATION_ID
    AIPERF_DYNAMO_SESSION_TIMEOUT_SECONDS AIPERF_MAX_CONTEXT_LENGTH AIPERF_EXTRA_WHEELS
    SRT_FRONTEND_HOST SRT_FRONTEND_PORT SRTCTL_FRONTEND_TYPE SRT_AGG_ENDPOINTS SRT_PREFILL_ENDPOINTS
    SRT_DECODE_ENDPOINTS"

_sweepctl() (
    _sweepctl_exec "$@"
)

# Becomes sweepctl. In the background, `$!` is then its process id; in the foreground it needs a subshell.
_sweepctl_exec() {
    local _sweepctl_binary _sweepctl_name
    _sweepctl_binary="$_SWEEPCTL_ROOT/.sweepctl/bin/sweepctl"
    if [[ ! -x "$_sweepctl_binary" ]] && ! _sweepctl_binary="$(command -v sweepctl)"; then
        echo "ERROR: sweepctl is neither in $_SWEEPCTL_ROOT/.sweepctl/bin nor on PATH" >&2
        exit 127
    fi
    for _sweepctl_name in $_SWEEPCTL_READS; do
        if [[ -n "${!_sweepctl_name+set}" ]]; then
            # shellcheck disable=SC2163
            export "$_sweepctl_name"
        fi
    done
    export SWEEPCTL_CHECKOUT="$_SWEEPCTL_ROOT"
    if [[ ! -f "${SWEEPCTL_ENVELOPE:-}" && -f "$_SWEEPCTL_ROOT/.sweepctl/envelope.json" ]]; then
        export SWEEPCTL_ENVELOPE="$_SWEEPCTL_ROOT/.sweepctl/envelope.json"
    fi
    exec "$_sweepctl_binary" "$@"
}

# Sets the job's variables that nobody passed on. A path that is not here is not this machine's.
_sweepctl_fill() {
    local _sweepctl_entry _sweepctl_name
    [[ -r "$_SWEEPCTL_ROOT/.sweepctl/variables" ]] || return 0
    while IFS= read -r -d '' _sweepctl_entry; do
        _sweepctl_name="${_sweepctl_entry%%=*}"
        [[ "$_sweepctl_entry" == *=* && "$_sweepctl_name" =~ ^[A-Za-z_][A-Za-z0-9_]*$ ]] || continue
        [[ -z "${!_sweepctl_name+set}" ]] || continue
        [[ "$_sweepctl_name" != MODEL_PATH || -e "${_sweepctl_entry#*=}" ]] || continue
        # shellcheck disable=SC2163
        export "$_sweepctl_entry"
    done <"$_SWEEPCTL_ROOT/.sweepctl/variables"
}

_agentic_refuse() {
    echo "Error: $1" >&2
    exit 1
}

# Whether the offloading that a replay is asked for makes sense; ends the shell if not.
_agentic_check_offload() {
    case "${KV_OFFLOADING:-}" in
    '') _agentic_refuse "KV_OFFLOADING must be set for agentic benchmarks" ;;
    none)
        [[ -z "${KV_OFFLOAD_BACKEND:-}" ]] ||
            _agentic_refuse "KV_OFFLOAD_BACKEND must be empty when KV_OFFLOADING=none"
        ;;
    dram)
        [[ -n "${KV_OFFLOAD_BACKEND:-}" && "${KV_OFFLOAD_BACKEND:-}" != none ]] ||
            _agentic_refuse "KV_OFFLOAD_BACKEND is required when KV_OFFLOADING=dram"
        [[ "${TOTAL_CPU_DRAM_GB:-}" =~ ^[1-9][0-9]*$ ]] ||
            _agentic_refuse "KV_OFFLOADING=dram needs a positive TOTAL_CPU_DRAM_GB"
        ;;
    *) _agentic_refuse "KV_OFFLOADING is '$KV_OFFLOADING', neither none nor dram" ;;
    esac
}

# Replays run at the model's own context. Whether a script is one is decided before the job's variables are filled in: a
# script may have unset them to say that it is none.
_sweepctl_agentic=0
case "/${BASH_SOURCE[1]:-}" in
*/agentic/* | */agentic_*.sh) _sweepctl_agentic=1 ;;
esac
if [[ "${IS_AGENTIC:-0}" == 1 || "${SCENARIO_TYPE:-}" == agentic-coding ]]; then
    _sweepctl_agentic=1
fi
_sweepctl_fill
if [[ "$_sweepctl_agentic" == 1 ]]; then
    unset MAX_MODEL_LEN
    _agentic_check_offload
fi
unset _sweepctl_agentic

# What runs as root in a container must leave no folders that the next checkout cannot remove.
export PYTHONDONTWRITEBYTECODE=1
export PYTHONPYCACHEPREFIX="${PYTHONPYCACHEPREFIX:-/tmp/sweepctl-pycache}"
mkdir -p "$PYTHONPYCACHEPREFIX" 2>/dev/null || true
export PORT="${PORT:-8888}"
export GPU_METRICS_CSV="${GPU_METRICS_CSV:-gpu_metrics.csv}"

GPU_MONITOR_PID=""
GPU_MONITOR_VENDOR=""
GPU_MONITOR_INTERVAL=1

INFMAX_CONTAINER_WORKSPACE="${INFMAX_CONTAINER_WORKSPACE:-/workspace}"
AGENTIC_DIR="${AGENTIC_DIR:-$INFMAX_CONTAINER_WORKSPACE/utils/agentic-benchmark}"
AIPERF_DIR="${AIPERF_DIR:-$INFMAX_CONTAINER_WORKSPACE/utils/aiperf}"
AIPERF_RUNTIME_DIR="${AIPERF_RUNTIME_DIR:-${TMPDIR:-/tmp}/sweepctl-agentic-${SLURM_JOB_ID:-$$}}"
AIPERF_VENV="${AIPERF_VENV:-$AIPERF_RUNTIME_DIR/venv}"
AIPERF_UV_INSTALL_DIR="${AIPERF_UV_INSTALL_DIR:-$AIPERF_RUNTIME_DIR/uv/bin}"
AIPERF_UV_CACHE_DIR="${AIPERF_UV_CACHE_DIR:-$AIPERF_RUNTIME_DIR/uv-cache}"
AIPERF_PYTHON="$AIPERF_VENV/bin/python"
AIPERF_CLI="$AIPERF_VENV/bin/aiperf"
AIPERF_HF_CLI="$AIPERF_VENV/bin/hf"
AIPERF_DEPS_READY=0
AIPERF_FAILED_REQUEST_THRESHOLD="${AIPERF_FAILED_REQUEST_THRESHOLD:-0.10}"
AIPERF_LIVE_FAILED_REQUEST_THRESHOLD="${AIPERF_LIVE_FAILED_REQUEST_THRESHOLD:-$AIPERF_FAILED_REQUEST_THRESHOLD}"
AIPERF_TRACE_IDLE_GAP_CAP_SECONDS="${AIPERF_TRACE_IDLE_GAP_CAP_SECONDS:-300}"

# ---- Small helpers -------------------------------------------------------------------------------------------------

# check_env_vars NAME...: ends the shell unless every variable has a value.
check_env_vars() {
    local name
    local -a missing=()
    for name in "$@"; do
        [[ -n "${!name:-}" ]] || missing+=("$name")
    done
    [[ ${#missing[@]} -gt 0 ]] || return 0
    echo "Error: these required environment variables are not set:"
    printf '  - %s\n' "${missing[@]}"
    exit 1
}

# write_command FILE WORD...: keeps a command so that a shell can run it again, and shows it.
write_command() {
    { printf '%q ' "${@:2}" && printf '\n'; } | tee "$1"
}

# append_command FILE WORD...: the same at the end of a file, without showing it.
append_command() {
    { printf '%q ' "${@:2}" && printf '\n'; } >>"$1"
}

_is_true() {
    case "${1,,}" in
    1 | true | yes | on) return 0 ;;
    *) return 1 ;;
    esac
}

# stop_background_process_tree PID [LABEL] [SECONDS]: TERM to the process, then KILL to it and all that it had started.
stop_background_process_tree() {
    _sweepctl library stop-tree "${1:-}" "${2:-background process}" "${3:-30}" || true
    [[ "${1:-}" =~ ^[1-9][0-9]*$ ]] && wait "$1" 2>/dev/null
    return 0
}

# wait_for_amd_gpu_clean: waits until earlier jobs' memory is free; 1 after 15 minutes.
wait_for_amd_gpu_clean() {
    _sweepctl library wait-amd-clean || return 1
}

# ---- GPU monitor ---------------------------------------------------------------------------------------------------

# start_gpu_monitor [--output FILE] [--interval SECONDS]
start_gpu_monitor() {
    local output="$GPU_METRICS_CSV" interval=1
    while [[ $# -gt 0 ]]; do
        case "$1" in
        --output) output="${2:-$output}" && shift ;;
        --interval) interval="${2:-$interval}" && shift ;;
        esac
        [[ $# -eq 0 ]] || shift
    done
    export GPU_METRICS_CSV="$output"
    GPU_MONITOR_INTERVAL="$interval"
    GPU_MONITOR_VENDOR=""
    if command -v nvidia-smi >/dev/null 2>&1; then
        GPU_MONITOR_VENDOR=nvidia
    elif command -v amd-smi >/dev/null 2>&1; then
        GPU_MONITOR_VENDOR=amd
    else
        echo "[GPU Monitor] neither nvidia-smi nor amd-smi is here: nothing is monitored"
        return 0
    fi
    _sweepctl_exec library gpu-monitor --vendor "$GPU_MONITOR_VENDOR" --output "$output" --interval "$interval" \
        >/dev/null 2>&1 &
    GPU_MONITOR_PID=$!
    [[ "$GPU_MONITOR_VENDOR" != amd ]] || _sweepctl library gpu-snapshot --output "$output" --at start || true
    echo "[GPU Monitor] started $GPU_MONITOR_VENDOR (PID=$GPU_MONITOR_PID, interval=${interval}s, output=$output)"
}

# stop_gpu_monitor: ends it with a whole last line, and a sample after the benchmark's end.
stop_gpu_monitor() {
    if [[ -n "$GPU_MONITOR_PID" ]] && kill -0 "$GPU_MONITOR_PID" 2>/dev/null; then
        _sweepctl library gpu-finish --vendor "$GPU_MONITOR_VENDOR" --output "$GPU_METRICS_CSV" \
            --interval "$GPU_MONITOR_INTERVAL" --pid "$GPU_MONITOR_PID" || true
        wait "$GPU_MONITOR_PID" 2>/dev/null || true
        echo "[GPU Monitor] stopped (PID=$GPU_MONITOR_PID)"
    fi
    GPU_MONITOR_PID=""
    GPU_MONITOR_VENDOR=""
}

# ---- Server and throughput -----------------------------------------------------------------------------------------

# Wrong usage gives 1 to the caller; a server that died, or is late, ends the shell.
_wait_ready() {
    local code=0
    _sweepctl library wait-ready "$@" || code=$?
    case "$code" in
    0) return 0 ;;
    2) return 1 ;;
    *) exit 1 ;;
    esac
}

# wait_for_ready --endpoint URL --log FILE --pid PID [--sleep-interval 5] [--timeout 0]
wait_for_ready() {
    set +x
    _wait_ready "$@"
}

# wait_for_server_ready --port PORT --server-log FILE --server-pid PID [--sleep-interval 5]
wait_for_server_ready() {
    set +x
    _wait_ready "$@"
}

# run_benchmark_serving --model M --port P --backend B --input-len N --output-len N --random-range-ratio R
#     --num-prompts N --max-concurrency N --result-filename NAME --result-dir DIR [--endpoint ROUTE]
#     [--bench-serving-dir DIR] [--use-chat-template] [--dsv4] [--trust-remote-code] [--server-pid PID]
#     [--tokenizer T] [--tokenizer-mode M]
run_benchmark_serving() {
    if [[ "${EVAL_ONLY:-}" == true ]]; then
        echo "EVAL_ONLY mode: skipping throughput benchmark"
        return 0
    fi
    set +x
    local code=0
    _sweepctl library serve-bench "$@" || code=$?
    [[ "$code" -ne 2 ]] || code=1
    [[ "${PROFILE:-}" != 1 ]] || move_profile_trace_for_relay || true
    return "$code"
}

# move_profile_trace_for_relay: keeps the newest trace of a profiled run where workflows look for it.
move_profile_trace_for_relay() {
    [[ "${PROFILE:-}" == 1 && -n "${RESULT_FILENAME:-}" ]] || return 0
    local folder newest="" trace target="$INFMAX_CONTAINER_WORKSPACE/profile_$RESULT_FILENAME.trace.json.gz"
    for folder in "${SGLANG_TORCH_PROFILER_DIR:-}" "${VLLM_TORCH_PROFILER_DIR:-}" "$INFMAX_CONTAINER_WORKSPACE"; do
        [[ -n "$folder" ]] || continue
        for trace in "$folder"/*trace*.json{,.gz} "$folder"/profiles/*trace*.json{,.gz}; do
            [[ -f "$trace" && ! -L "$trace" && "$(basename "$trace")" != profile_*.trace.json.gz ]] || continue
            [[ -n "$newest" && ! "$trace" -nt "$newest" ]] || newest="$trace"
        done
    done
    if [[ -z "$newest" ]]; then
        echo "[PROFILE] the run left no trace" >&2
    elif [[ "$newest" == *.gz ]]; then
        cp -f "$newest" "$target"
    else
        gzip -c "$newest" >"$target"
    fi
}

# ---- Evals ---------------------------------------------------------------------------------------------------------

# get_native_max_context_length MODEL: the model's own maximum in tokens; 0 where it is unknown.
get_native_max_context_length() {
    _sweepctl library native-context "$1" || echo 0
}

# compute_eval_context_length MODEL [CONTEXT]: prints an eval's context, and sets EVAL_MAX_MODEL_LEN to it.
compute_eval_context_length() {
    EVAL_MAX_MODEL_LEN="$(_sweepctl library eval-context "$1" "${2:-0}")" || return 1
    echo "$EVAL_MAX_MODEL_LEN"
}

# setup_eval_context: exports EVAL_MAX_MODEL_LEN for MODEL; run it before the server starts.
setup_eval_context() {
    EVAL_MAX_MODEL_LEN="$(compute_eval_context_length "$MODEL" "$((ISL + OSL + 256))")"
    export EVAL_MAX_MODEL_LEN
}

# run_eval [--framework F] [--port P] [--task T] [--results-dir DIR] [--gen-max-tokens N] [--temperature T] [--top-p P]
run_eval() {
    set +x
    local framework="" port="${PORT:-8888}" folder="${EVAL_RESULT_DIR:-}" context="" code=0
    local -a more=() points=()
    while [[ $# -gt 0 ]]; do
        case "$1" in
        --framework | --port | --task | --results-dir | --gen-max-tokens | --temperature | --top-p) ;;
        *)
            echo "Unknown parameter: $1" >&2
            return 2
            ;;
        esac
        if [[ -z "${2:-}" || "${2:-}" == --* ]]; then
            echo "ERROR: $1 requires a value" >&2
            return 2
        fi
        case "$1" in
        --framework) framework="$2" ;;
        --port) port="$2" ;;
        --results-dir) folder="$2" ;;
        --gen-max-tokens) context="$2" ;;
        *) more+=("$1" "$2") ;;
        esac
        shift 2
    done
    framework="${EVAL_FRAMEWORK:-${framework:-lm-eval}}"
    [[ "$framework" != lm_eval ]] || framework=lm-eval
    unset EVAL_BATCHED_CONCS EVAL_BATCHED_COMPLETED_CONCS EVAL_BATCHED_FAILED_CONCS
    if [[ -z "${EVAL_MAX_MODEL_LEN:-}" ]]; then
        compute_eval_context_length "${MODEL:-}" "${MAX_MODEL_LEN:-0}" >/dev/null || true
    fi
    local text
    text="$(_sweepctl library eval-points)" || return 1
    read -r -a points <<<"$text"
    if [[ ${#points[@]} -gt 1 && "$framework" != lm-eval ]]; then
        echo "ERROR: several concurrencies in one eval are only known of lm-eval" >&2
        return 1
    fi
    if [[ -z "$folder" || ${#points[@]} -gt 1 ]]; then
        folder="$(mktemp -d "${TMPDIR:-/tmp}/eval_out-XXXXXX")" || return 1
    fi
    export EVAL_RESULT_DIR="$folder"
    # Images may bring a Python without what virtual environments are made of.
    python3 -c 'import ensurepip, venv' 2>/dev/null || more+=(--system-python)
    EVAL_MAX_MODEL_LEN="${context:-${EVAL_MAX_MODEL_LEN:-}}" _sweepctl eval run --endpoint "http://127.0.0.1:$port" \
        --framework "$framework" --concurrency "${points[*]}" --stage-to "$folder" "${more[@]}" || code=$?
    [[ "$code" -ne 1 ]] || code=74
    if [[ ${#points[@]} -gt 1 ]]; then
        _finish_batch "$folder" "$code" "${points[@]}"
        return
    fi
    # Replays that only evaluate have no step of their own that stages.
    if [[ "${EVAL_ONLY:-}" == true ]] && [[ "${IS_AGENTIC:-0}" == 1 || "${SCENARIO_TYPE:-}" == agentic-coding ]]; then
        append_lm_eval_summary || true
    fi
    [[ "$code" -eq 0 ]] || echo "ERROR: run_eval failed with exit code $code" >&2
    return "$code"
}

# Hands a batch on: its files to the working directory, and which points succeeded to the caller. Failed points are named
# in the metadata, and judged after the upload.
_finish_batch() {
    local folder="$1" code="$2" completed failed
    shift 2
    completed="$(_sweepctl library batch completed --meta "$folder/meta_env.json")" || completed=""
    failed="$(_sweepctl library batch failed --meta "$folder/meta_env.json")" || failed="$*"
    _sweepctl library stage --from "$folder" --to . --remove || failed="$*"
    export EVAL_RESULT_DIR="" EVAL_BATCHED_CONCS="$*"
    export EVAL_BATCHED_COMPLETED_CONCS="$completed" EVAL_BATCHED_FAILED_CONCS="$failed"
    export CONC="${!#}"
    [[ -z "$failed" ]] || echo "ERROR: the eval failed at concurrency $failed; meta_env.json says so" >&2
    # Only an eval that was ended from outside ends its caller too.
    [[ "$code" -le 128 ]] || return "$code"
}

# append_lm_eval_summary: stages what the last eval left in the working directory.
append_lm_eval_summary() {
    if [[ -n "${EVAL_BATCHED_CONCS:-}" ]]; then
        _sweepctl library metadata --out meta_env.json --points "$EVAL_BATCHED_CONCS" \
            --completed "${EVAL_BATCHED_COMPLETED_CONCS:-}" --failed "${EVAL_BATCHED_FAILED_CONCS:-}" || return 1
        echo "the eval's files are in $PWD"
        return 0
    fi
    if [[ ! -d "${EVAL_RESULT_DIR:-}" ]]; then
        echo "WARN: EVAL_RESULT_DIR is '${EVAL_RESULT_DIR:-}', which is no folder: nothing is staged" >&2
        return 1
    fi
    _sweepctl library metadata --out "$EVAL_RESULT_DIR/meta_env.json" || return 1
    _sweepctl library stage --from "$EVAL_RESULT_DIR" --to . --remove || return 1
    echo "the eval's files are in $PWD"
}

# bridge_disagg_eval_metadata: exports the sizes that metadata is made of, from the names that launchers give them.
bridge_disagg_eval_metadata() {
    export PREFILL_TP="${PREFILL_TP:-${PREFILL_TP_SIZE:-${TP:-1}}}" DECODE_TP="${DECODE_TP:-${DECODE_TP_SIZE:-${TP:-1}}}"
    PREFILL_EP="${PREFILL_EP:-${EP_SIZE:-1}}" DECODE_EP="${DECODE_EP:-${EP_SIZE:-1}}"
    if [[ "$PREFILL_EP" == 1 ]] && _is_true "${PREFILL_ENABLE_EP:-}"; then
        PREFILL_EP="${PREFILL_TP_SIZE:-$PREFILL_TP}"
    fi
    if [[ "$DECODE_EP" == 1 ]] && _is_true "${DECODE_ENABLE_EP:-}"; then
        DECODE_EP="${DECODE_TP_SIZE:-$DECODE_TP}"
    fi
    PREFILL_DP_ATTENTION="${PREFILL_DP_ATTN:-${PREFILL_DP_ATTENTION:-${PREFILL_ENABLE_DP:-${DP_ATTENTION:-}}}}"
    DECODE_DP_ATTENTION="${DECODE_DP_ATTN:-${DECODE_DP_ATTENTION:-${DECODE_ENABLE_DP:-${DP_ATTENTION:-}}}}"
    if _is_true "$PREFILL_DP_ATTENTION"; then PREFILL_DP_ATTENTION=true; else PREFILL_DP_ATTENTION=false; fi
    if _is_true "$DECODE_DP_ATTENTION"; then DECODE_DP_ATTENTION=true; else DECODE_DP_ATTENTION=false; fi
    export PREFILL_EP DECODE_EP PREFILL_DP_ATTENTION DECODE_DP_ATTENTION
    export PREFILL_NUM_WORKERS="${PREFILL_NUM_WORKERS:-${xP:-1}}" DECODE_NUM_WORKERS="${DECODE_NUM_WORKERS:-${yD:-1}}"
    export TP="$PREFILL_TP" EP_SIZE="$PREFILL_EP" DP_ATTENTION="$PREFILL_DP_ATTENTION"
}

# rewrite_lm_eval_meta_env: writes meta_env.json for CONC, without the keys of a batch.
rewrite_lm_eval_meta_env() {
    bridge_disagg_eval_metadata
    _sweepctl library metadata --out meta_env.json --conc "${CONC:-1}"
}

# _write_lm_eval_meta_json FILE [KEYS] [CONC]: launchers call it on the host.
_write_lm_eval_meta_json() {
    bridge_disagg_eval_metadata
    _sweepctl library metadata --out "$1" --batch-keys "${2:-}" --conc "${3:-${CONC:-1}}"
}

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
