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

