#!/usr/bin/env bash
# Prefill and decode workers behind one port, with each concurrency's result under a name of the launcher's own.

source "$(dirname "$0")/../benchmark_lib.sh"
source "$(dirname "$0")/../serve.sh"

check_env_vars CONC_LIST ISL OSL IMAGE FRAMEWORK SPEC_DECODING RANDOM_RANGE_RATIO RESULT_FILENAME \
    PREFILL_NUM_WORKERS PREFILL_TP PREFILL_EP PREFILL_DP_ATTN PREFILL_NODES \
    DECODE_NUM_WORKERS DECODE_TP DECODE_EP DECODE_DP_ATTN DECODE_NODES

SERVER_LOG=$PWD/server.log
export MODEL_NAME=many-fp8
serve "$MODEL_NAME"
wait_for_server_ready --port "$PORT" --server-log "$SERVER_LOG" --server-pid "$SERVER_PID"
context=$((PREFILL_NUM_WORKERS * PREFILL_TP)) generation=$((DECODE_NUM_WORKERS * DECODE_TP))
for point in $CONC_LIST; do
    run_benchmark_serving \
        --model "$MODEL" --port "$PORT" --backend openai --input-len "$ISL" --output-len "$OSL" \
        --random-range-ratio "$RANDOM_RANGE_RATIO" --num-prompts $((point * 2)) --max-concurrency "$point" \
        --result-filename "${RESULT_FILENAME}_c${point}_gpus_$((context + generation))_ctx_${context}_gen_${generation}" \
        --result-dir "$PWD/"
done
if [ "${RUN_EVAL}" = "true" ]; then
    # What its workers write lies beside their logs, and the launcher brings it.
    mkdir -p on_node eval_results
    (
        cd on_node
        export EVAL_CONCURRENT_REQUESTS="${EVAL_CONC:-$CONC_LIST}"
        run_eval --framework lm-eval --port "$PORT"
        append_lm_eval_summary
    )
    mv on_node/*.json* eval_results/
    rmdir on_node
fi
kill $SERVER_PID
tar czf multinode_server_logs.tar.gz server.log
