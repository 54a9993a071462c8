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

