# What the jobs of the fleet leave, in milliseconds and by their model.
set -euo pipefail
cd "$GITHUB_WORKSPACE"
echo "serving $MODEL" >server.log

throughput() {
    # Agentic jobs have no lengths.
    cat >"$1" <<JSON
{"model_id": "$MODEL", "max_concurrency": $2, "num_prompts": 40, "completed": 40,
 "total_input_tokens": $((40 * ISL)), "total_output_tokens": $((OSL > 0 ? 40 * OSL : 4000)),
 "output_throughput": 100.0, "total_token_throughput": 900.0, "mean_ttft_ms": 20.0, "mean_tpot_ms": 10.0}
JSON
}

evaluation() {
    cat >"results_2026-01-01T00-00-00.000000$1.json" <<JSON
{"results": {"gsm8k": {"alias": "gsm8k", "exact_match,strict-match": $2, "exact_match_stderr,strict-match": 0.02}},
 "group_subtasks": {}, "configs": {"gsm8k": {"metric_list": [{"metric": "exact_match"}],
 "filter_list": [{"name": "strict-match"}]}}, "n-samples": {"gsm8k": {"original": 1, "effective": 1}},
 "config": {"limit": null}, "model_name": "$MODEL"}
JSON
    echo '{"resps": [["#### 4"]], "filtered_resps": ["4"]}' >"samples_gsm8k_2026-01-01T00-00-00.000000$1.jsonl"
}

evaluate() {
    local score=1.0 batch='' concs
    [ "$MODEL_PREFIX" != wrong ] || score=0.25
    # One node evaluates at the row's own concurrency.
    local asked=${EVAL_CONC:-$CONC}
    read -ra concs <<<"$asked"
    if [ "${#concs[@]}" -gt 1 ]; then
        batch="\"eval_concs\": [${asked// /, }], \"completed_eval_concs\": [${asked// /, }], \"failed_eval_concs\": [],"
        for conc in "${concs[@]}"; do evaluation "_conc$conc" "$score"; done
    else
        evaluation '' "$score"
    fi
    cat >meta_env.json <<JSON
{"is_multinode": $IS_MULTINODE, "framework": "$FRAMEWORK", "precision": "$PRECISION", "spec_decoding": "$SPEC_DECODING",
 "conc": ${concs[0]}, $batch "model": "$MODEL", "infmax_model_prefix": "$MODEL_PREFIX", "hw": "$RUNNER_TYPE",
 "isl": "${ISL:-0}", "osl": "${OSL:-0}", "tp": 1, "pp": 1, "dcp_size": 1, "pcp_size": 1, "ep": 1, "dp_attention": false,
 "prefill_tp": 1, "prefill_pp": 1, "prefill_dcp_size": 1, "prefill_pcp_size": 1, "prefill_ep": 1,
 "prefill_dp_attention": false, "prefill_num_workers": 1, "decode_tp": 1, "decode_pp": 1, "decode_dcp_size": 1,
 "decode_pcp_size": 1, "decode_ep": 1, "decode_dp_attention": false,
 "decode_num_workers": ${DECODE_NUM_WORKERS:-1}}
JSON
}

if [ "$MODEL_PREFIX" = broken ]; then
    rm server.log
    echo 'no such device' >&2
    exit 70
fi
if [ "$EVAL_ONLY" = true ]; then
    evaluate
    exit
fi
if [ "$IS_AGENTIC" = 1 ]; then
    mkdir -p agentic_results
    echo '{"turns": 3}' >agentic_results/profile_export.json
fi
if [ "$IS_MULTINODE" = true ]; then
    for conc in $CONC_LIST; do
        throughput "${RESULT_FILENAME}_conc$conc.json" "$conc"
        if [ "$MODEL_PREFIX" = endless ]; then
            sleep 600 &
            # The launch, this script and its child, for the test.
            printf '%s\n' "$PPID" $$ $! >"$ACT_PIDS.part"
            mv "$ACT_PIDS.part" "$ACT_PIDS"
            wait
        fi
    done
else
    throughput "$RESULT_FILENAME.json" "$CONC"
fi
