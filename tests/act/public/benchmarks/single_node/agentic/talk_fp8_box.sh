#!/usr/bin/env bash
set -euo pipefail
set -x

source "$(dirname "$0")/../../benchmark_lib.sh"
source "$(dirname "$0")/../../serve.sh"

check_env_vars MODEL TP CONC KV_OFFLOADING TOTAL_CPU_DRAM_GB RESULT_DIR DURATION EP_SIZE DP_ATTENTION
require_agentic_kv_offload_none
PATH="$PWD/tools:$PATH"
mkdir -p "$RESULT_DIR"
SERVER_LOG="$RESULT_DIR/server.log"
cleanup() {
    stop_background_process_tree "${SERVER_PID:-}" server 10
    { set +x; } 2>/dev/null
    echo 'the script is over'
}
trap cleanup EXIT
resolve_trace_source
install_agentic_deps
serve talk-fp8
wait_for_server_ready --port "$PORT" --server-log "$SERVER_LOG" --server-pid "$SERVER_PID"
if [ "${EVAL_ONLY}" = "true" ]; then
    export MODEL_NAME=talk-fp8
    run_eval --port "$PORT"
else
    SERVED_MODEL_NAME=talk-fp8
    build_replay_cmd "$RESULT_DIR"
    run_agentic_replay_and_write_outputs "$RESULT_DIR"
fi
