"""Drives infermark's benchmark once and writes its report."""

import dataclasses
import json
import sys

from infermark._types import BenchmarkConfig
from infermark.runner import run_benchmark

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
report = run_benchmark(config)
with open(asked["report"], "w", encoding="utf-8") as file:
    json.dump(dataclasses.asdict(report.results[0]), file)
