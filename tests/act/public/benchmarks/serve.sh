# Starts the engine, which is the mock server, under a name; sets SERVER_PID and PORT.
serve() {
    rm -f port
    .sweepctl/bin/sweepctl mock-server --port 0 --port-file port --model "$1" --max-model-len 40000 \
        --tokens-per-second 100000 --answers configs/evals/data/gsm8k_smoke.jsonl >"$SERVER_LOG" 2>&1 &
    SERVER_PID=$!
    while [ ! -s port ] && kill -0 $SERVER_PID; do sleep 0.05; done
    PORT=$(cat port)
}
