"""What stands for a job of srt-slurm: its stages, on one node, against the mock server.

    srt_job.py RECIPE LOGS

Which stage runs, when an eval's end is the job's, what scripts are told, and where they write follow srt-slurm v1.0.68
(src/srtctl/cli/do_sweep.py, cli/mixins/benchmark_stage.py, benchmarks/scripts/*/bench.sh). SGLang's `run_eval` is
replaced by a client that asks the questions of `data.jsonl` in the checkout. `fault` in the checkout names one:

    dies       the client ends early
    no-file    the client leaves no result file
    nan        the client's score is no number
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

RECIPE, LOGS = json.load(open(sys.argv[1])), pathlib.Path(sys.argv[2])
CHECKOUT = pathlib.Path.cwd()
TMP = CHECKOUT / "tmp"
BENCHMARK = RECIPE.get("benchmark") or {}


def fault():
    file = CHECKOUT / "fault"
    return file.read_text().strip() if file.exists() else ""


def is_set(name):
    return os.environ.get(name, "false").lower() == "true"


def fetch(url, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request, timeout=30))


def serve():
    """The frontend, under the last part of the model's path, as srt-slurm serves it."""
    port = TMP / "port"
    model = RECIPE["model"]["path"].rstrip("/").split("/")[-1]
    command = [os.environ["SWEEPCTL"], "mock-server", "--model", model, "--port-file", str(port), "--accuracy", "0.7",
               "--answers", "data.jsonl"]
    server = subprocess.Popen(command, stdout=open(LOGS / "frontend.out", "w"), stderr=subprocess.STDOUT)
    for _ in range(200):
        if port.exists():
            return server, f"http://127.0.0.1:{port.read_text().strip()}"
        time.sleep(0.05)
    server.kill()
    sys.exit("the server did not become healthy")


def graded(endpoint, model, question):
    messages = [{"role": "user", "content": question["question"]}]
    answer = fetch(f"{endpoint}/v1/chat/completions", {"model": model, "messages": messages})
    return f"({question['answer']})" in answer["choices"][0]["message"]["content"]


def run_eval(endpoint, model, name, examples, repeat, threads, say):
    """The client: each repeat asks every example; the file holds the last one."""
    questions = [json.loads(line) for line in open("data.jsonl")][:examples]
    scores = []
    for turn in range(repeat):
        with ThreadPoolExecutor(threads) as pool:
            rights = list(pool.map(lambda question: graded(endpoint, model, question), questions))
        scores.append(statistics.mean(rights))
        if fault() == "dies" and turn == 1:
            say("Traceback (most recent call last):")
            return 1
    metrics = {"chars": 20.5, "chars:std": 1.5, "score:std": statistics.pstdev(map(float, rights)), "score": scores[-1]}
    if fault() == "nan":
        metrics["score"] = float("nan")
    say(f"{'=' * 20}\nRepeat: {repeat}, mean: {statistics.mean(scores):.3f}")
    say(f"Scores: {[f'{score:.3f}' for score in scores]}\n{'=' * 20}")
    file = TMP / f"{name}_{model.replace('/', '_')}.json"
    say(f"{metrics}")
    if fault() != "no-file":
        say(f"Writing results to {file}")
        file.write_text(json.dumps(metrics))
    say(f"Total latency: 1.000 s\nScore: {metrics['score']:.3f}")
    return 0


def gpqa(endpoint, say):
    """`gpqa/bench.sh`: the model is the first that the endpoint names."""
    model = fetch(f"{endpoint}/v1/models")["data"][0]["id"]
    examples, tokens = BENCHMARK.get("num_examples") or 198, BENCHMARK.get("max_tokens") or 32768
    repeat, threads = BENCHMARK.get("repeat") or 8, BENCHMARK.get("num_threads") or 128
    say(f"GPQA Config: endpoint={endpoint}; model={model}; num_examples={examples}; max_tokens={tokens}; "
        f"repeat={repeat}; num_threads={threads}")
    folder = LOGS / "accuracy"
    folder.mkdir(exist_ok=True)
    say("Running GPQA evaluation...")
    if code := run_eval(endpoint, model, "gpqa", examples, repeat, threads, say):
        return code
    files = sorted(TMP.glob("gpqa_*.json"), key=lambda file: file.stat().st_mtime)
    if files:
        (folder / files[-1].name).write_text(files[-1].read_text())
        say(f"Results saved to: /logs/accuracy/{files[-1].name}")
    else:
        say("Warning: Could not find result file in /tmp")
    say("GPQA evaluation complete")
    return 0


def throughput(endpoint, say):
    """`sa-bench`: one file a concurrency, as `measures.sh` of the checkout writes them."""
    return subprocess.call(["bash", "measures.sh", str(LOGS)])


def benchmark(endpoint):
    kinds = {"gpqa": gpqa, "sa-bench": throughput}
    kind = BENCHMARK.get("type", "manual")
    if kind not in kinds:
        print(f"Unknown benchmark type: {kind}")
        return 1
    with open(LOGS / "benchmark.out", "w") as out:
        code = kinds[kind](endpoint, lambda text: print(text, file=out, flush=True))
    print(f"Benchmark failed with exit code {code}" if code else "Benchmark completed successfully")
    return code


# What `lm-eval/bench.sh` does, with the library of the checkout.
LM_EVAL = """
cd "$INFMAX_WORKSPACE" && source benchmarks/benchmark_lib.sh || exit
export EVAL_CONCURRENT_REQUESTS="${EVAL_CONC:-${EVAL_CONCURRENT_REQUESTS:-256}}"
failed=0
run_eval --framework lm-eval --port "$PORT" || failed=$?
export PREFILL_DP_ATTENTION="${PREFILL_DP_ATTENTION:-$PREFILL_DP_ATTN}"
export DECODE_DP_ATTENTION="${DECODE_DP_ATTENTION:-$DECODE_DP_ATTN}"
append_lm_eval_summary || true
mkdir -p "$LOGS/eval_results"
for file in meta_env.json results*.json sample*.jsonl; do
    [ ! -e "$file" ] || cp "$file" "$LOGS/eval_results/"
done
exit "$failed"
"""
PASSED = """
RUN_EVAL EVAL_ONLY IS_MULTINODE FRAMEWORK PRECISION MODEL_PREFIX RUNNER_TYPE RESULT_FILENAME SPEC_DECODING ISL OSL MODEL
MODEL_PATH MAX_MODEL_LEN EVAL_MAX_MODEL_LEN PREFILL_TP PREFILL_EP PREFILL_DP_ATTN PREFILL_NUM_WORKERS DECODE_TP DECODE_EP
DECODE_DP_ATTN DECODE_NUM_WORKERS
"""


def lm_eval(endpoint):
    told = {name: os.environ[name] for name in PASSED.split() if os.environ.get(name)}
    told["MODEL_NAME"] = RECIPE["model"]["path"].rstrip("/").split("/")[-1]
    told["EVAL_CONC"] = os.environ.get("EVAL_CONC") or str(max(BENCHMARK["concurrencies"]))
    with open(LOGS / "eval.out", "w") as out:
        environment = os.environ | told | {"PORT": endpoint.rsplit(":", 1)[1], "LOGS": str(LOGS)}
        return subprocess.call(["bash", "-c", LM_EVAL], env=environment, stdout=out, stderr=out)


def main():
    TMP.mkdir(exist_ok=True)
    server, endpoint = serve()
    try:
        if is_set("EVAL_ONLY"):
            print("EVAL_ONLY=true: Skipping benchmark stage and running lm-eval evaluation...")
            return lm_eval(endpoint)
        code = benchmark(endpoint)
        if is_set("RUN_EVAL") and code == 0 and (failed := lm_eval(endpoint)):
            print(f"Eval failed with exit code {failed} (benchmark result is still valid)")
        return code
    finally:
        server.kill()


sys.exit(main())
