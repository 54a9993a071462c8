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

