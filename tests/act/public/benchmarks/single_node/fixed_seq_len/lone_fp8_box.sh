#!/usr/bin/env bash

source "$(dirname "$0")/../../benchmark_lib.sh"
source "$(dirname "$0")/../../serve.sh"

check_env_vars MODEL TP CONC ISL OSL MAX_MODEL_LEN RANDOM_RANGE_RATIO RESULT_FILENAME EP_SIZE DP_ATTENTION

SERVER_LOG=$PWD/server.log
if [ "${EVAL_ONLY}" = "true" ]; then
    setup_eval_context
    MAX_MODEL_LEN=$EVAL_MAX_MODEL_LEN
fi
start_gpu_monitor
set -x
# The weights lie on the node.
export MODEL=/models/lone
serve "$MODEL"
wait_for_server_ready --port "$PORT" --server-log "$SERVER_LOG" --server-pid "$SERVER_PID"
run_benchmark_serving \
    --model "$MODEL" --port "$PORT" --backend vllm --input-len "$ISL" --output-len "$OSL" \
    --random-range-ratio "$RANDOM_RANGE_RATIO" --num-prompts $((CONC * 10)) --max-concurrency "$CONC" \
    --result-filename "$RESULT_FILENAME" --result-dir "$PWD/" --trust-remote-code
if [ "${RUN_EVAL}" = "true" ]; then
    export MODEL_NAME=/models/lone
    run_eval --framework lm-eval --port "$PORT"
    append_lm_eval_summary
fi
stop_gpu_monitor
kill $SERVER_PID
set +x
echo 'the script is over'
