"""Drives infermark's benchmark once and writes its report."""

import dataclasses
import json
import sys

from infermark import runner
from infermark._types import BenchmarkConfig, compute_stats

with open(sys.argv[1], encoding="utf-8") as file:
    asked = json.load(file)

config = BenchmarkConfig(
    url=asked["endpoint"],
    model=asked["model"],
    # A word is a token to a server without a tokenizer, and close to one to others.
    prompt=" ".join(["word"] * asked["isl"]),
    max_tokens=asked["osl"],
    concurrency_levels=[asked["concurrency"]],
    n_requests=asked["requests"],
    timeout=asked["timeout"],
    warmup=1,
    extra_body={"ignore_eos": True, "temperature": 0},
)

# The report has the times between chunks, which say little where several arrive at once. The time per output token is
# an answer's own mean, so each answer is kept.
answers = []
send_request = runner.send_request


async def kept(**arguments):
    answer = await send_request(**arguments)
    answers.append(answer)
    return answer


runner.send_request = kept
report = dataclasses.asdict(runner.run_benchmark(config).results[0])
measured = [a for a in answers[config.warmup :] if a.success and a.ttft is not None and a.output_tokens > 1]
tpots = [(a.latency - a.ttft) / (a.output_tokens - 1) for a in measured]
report["tpot"] = dataclasses.asdict(compute_stats(tpots)) if tpots else None
with open(asked["report"], "w", encoding="utf-8") as file:
    json.dump(report, file)
