#!/usr/bin/env bash
# One concurrency after another, each in a folder of its own below LOGS/agentic.
set -euo pipefail

source "$(dirname "$0")/../../benchmark_lib.sh"
source "$(dirname "$0")/../../serve.sh"

check_env_vars MODEL MODEL_PREFIX FRAMEWORK PRECISION CONC RESULT_FILENAME DURATION CONC_LIST
PATH="$PWD/tools:$PATH"
SERVER_LOG=$PWD/server.log
export MODEL_NAME=crew-fp8
serve "$MODEL_NAME"
wait_for_server_ready --port "$PORT" --server-log "$SERVER_LOG" --server-pid "$SERVER_PID"
if [ "${EVAL_ONLY}" = "true" ]; then
    run_eval --port "$PORT"
else
    resolve_trace_source
    install_agentic_deps
    export SERVED_MODEL_NAME=crew-fp8
    name=$RESULT_FILENAME
    for point in $CONC_LIST; do
        export CONC="$point" RESULT_FILENAME="${name}_conc$point"
        mkdir -p "LOGS/agentic/conc_$point"
        build_replay_cmd "LOGS/agentic/conc_$point"
        run_agentic_replay_and_write_outputs "LOGS/agentic/conc_$point"
    done
fi
kill $SERVER_PID
