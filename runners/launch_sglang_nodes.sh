#!/usr/bin/env bash
# A multi-node SGLang deployment in a batch job of Slurm: its servers, its router where prefill and decode are apart,
# and what is measured of it. The variables are those of `sweepctl job env`.
#
# Flags: SGLang 0.5 (python/sglang/srt/server_args.py, and sgl-router's `sglang_router.launch_router`).
set -euo pipefail

PORT=${PORT:-8000}
GPUS=${SLURM_GPUS_ON_NODE:-8}
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")

# The GPUs of one worker of a side: PREFILL or DECODE.
gpus_of() {
    local tp="$1_TP" pp="$1_PP_SIZE" pcp="$1_PCP_SIZE"
    echo $((${!tp} * ${!pp} * ${!pcp}))
}

# The flags that a side's row asks for.
flags_of() {
    local tp="$1_TP" pp="$1_PP_SIZE" ep="$1_EP" dp="$1_DP_ATTN"
    flags=(--model-path="$MODEL" --trust-remote-code --host=0.0.0.0 --port="$PORT"
        --tensor-parallel-size="${!tp}" --pipeline-parallel-size="${!pp}" --expert-parallel-size="${!ep}"
        --disable-radix-cache)
    if [ "${!dp}" = true ]; then flags+=(--enable-dp-attention --data-parallel-size="${!tp}"); fi
    if [ "$SPEC_DECODING" = mtp ]; then
        flags+=(--speculative-algorithm=EAGLE --speculative-num-steps=3 --speculative-eagle-topk=1
            --speculative-num-draft-tokens=4)
    fi
    if [ "$DISAGG" = true ]; then
        flags+=(--disaggregation-mode="${1,,}" --disaggregation-transfer-backend="$KV_P2P_TRANSFER")
    fi
}

# Starts the workers of a side on the next nodes, each on as many as it fills, and keeps their addresses.
next=0
start() {
    local workers="$1_NUM_WORKERS" gpus count worker list
    gpus=$(gpus_of "$1")
    count=$(((gpus + GPUS - 1) / GPUS))
    for ((worker = 0; worker < ${!workers}; worker++)); do
        list=("${nodes[@]:next:count}")
        next=$((next + count))
        [ "${#list[@]}" -eq "$count" ] || {
            echo "the job has ${#nodes[@]} nodes, which are too few for its workers" >&2
            exit 71
        }
        flags_of "$1"
        # The rank is known on each node alone.
        # shellcheck disable=SC2016
        srun --overlap --nodes="$count" --ntasks-per-node=1 --nodelist="$(IFS=,; echo "${list[*]}")" \
            bash -c 'exec python3 -m sglang.launch_server "$@" --node-rank="$SLURM_PROCID"' server \
            "${flags[@]}" --nnodes="$count" --dist-init-addr="${list[0]}:$((PORT + 1000))" \
            >>server.log 2>&1 &
        addresses+=("$1=http://${list[0]}:$PORT")
    done
}

wait_for() {
    until curl --silent --fail --max-time 5 "$1/health" >/dev/null; do
        [ -n "$(jobs -rp)" ] || exit 72
        sleep 5
    done
}

addresses=()
start PREFILL
start DECODE
for address in "${addresses[@]}"; do wait_for "${address#*=}"; done

endpoint=${addresses[0]#*=}
if [ "${#addresses[@]}" -gt 1 ]; then
    endpoint=http://${nodes[0]}:$((PORT + 1))
    router=(--host=0.0.0.0 --port="$((PORT + 1))")
    if [ "$DISAGG" = true ]; then
        router+=(--pd-disaggregation)
        for address in "${addresses[@]}"; do
            side=${address%%=*}
            router+=("--${side,,}" "${address#*=}")
        done
    else
        router+=(--worker-urls)
        for address in "${addresses[@]}"; do router+=("${address#*=}"); done
    fi
    python3 -m sglang_router.launch_router "${router[@]}" >>router.log 2>&1 &
    wait_for "$endpoint"
fi

if [ "$EVAL_ONLY" != true ]; then
    for conc in $CONC_LIST; do
        sweepctl throughput --endpoint="$endpoint" --model="$MODEL" --isl="$ISL" --osl="$OSL" \
            --random-range-ratio="${RANDOM_RANGE_RATIO:-0.8}" --concurrency="$conc" --warmups="$((2 * conc))" \
            --backend="$FRAMEWORK" --save="${RESULT_FILENAME}_conc$conc.json"
    done
fi
if [ "$RUN_EVAL" = true ]; then
    sweepctl eval run --endpoint "$endpoint" --concurrency "${EVAL_CONC:-64}" --stage-to .
fi
