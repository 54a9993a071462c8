"""Refuses a recipe that srtctl would not load: fields that it does not know, and values of another kind than theirs.

The fields of schema 1 are those of srt-slurm v1.0.68 (src/srtctl/core/schema.py, src/srtctl/backends); those of
schema 2 are the ones that its documentation names.
"""

import json
import sys

BENCHMARK = """
type isl osl concurrencies req_rate client_placement client_dedicated_node colocate_with_frontend sweep num_examples
max_tokens repeat num_threads max_context_length categories num_shots temperature top_p top_k num_requests concurrency
prefix_ratios mooncake_workload ttft_threshold_ms itl_threshold_ms random_range_ratio num_prompts_mult num_warmup_mult
dataset_name dataset_path trace_file custom_tokenizer use_chat_template reuse_http_connections command container_image
env aiperf_package aiperf_args export_node_metrics slow_down_sleep_time slow_down_wait_time
"""
SHARED = """
name model resources slurm frontend dynamo benchmark profiling output health_check infra observability telemetry
environment container_mounts extra_mount srun_options sbatch_directives enable_config_dump setup_script identity
reporting
"""
BACKEND = """
type prefill_environment decode_environment aggregated_environment kv_events_config mooncake_kv_store gpu_type
sglang_config trtllm_config vllm_config connector container set_cuda_visible_devices allow_prefill_decode_colocation
allow_prefill_decode_colocation_across_nodes dp_launch_mode numa_memory_bind publish_events_and_metrics
sequential_node_start
"""
ONE = {
    "": SHARED + " backend",
    "model": "path container precision stage_dir",
    "resources": "gpu_type gpus_per_node prefill_nodes decode_nodes prefill_workers decode_workers agg_nodes agg_workers "
    "spread_workers het_jobs gpus_per_prefill gpus_per_decode gpus_per_agg",
    "benchmark": BENCHMARK,
    "backend": BACKEND,
    "health_check": "max_attempts interval_seconds",
    "slurm": "account partition time_limit",
}
TWO = {
    "": SHARED + " schema engine roles post_eval",
    "model": ONE["model"],
    "resources": "gpu_type gpus_per_node",
    "benchmark": BENCHMARK,
    "post_eval": "command passthrough_env",
    "roles": "prefill decode agg",
    "health_check": ONE["health_check"],
    "slurm": ONE["slurm"],
}

# Of another kind than a text. Marshmallow takes a text for the number that it spells.
WHOLE = """
isl osl num_examples max_tokens repeat num_threads max_context_length num_shots top_k num_requests concurrency
ttft_threshold_ms itl_threshold_ms num_prompts_mult num_warmup_mult gpus_per_node prefill_nodes decode_nodes
prefill_workers decode_workers agg_nodes agg_workers gpus_per_prefill gpus_per_decode gpus_per_agg max_attempts
interval_seconds
"""
LISTS = {"categories": str}
TEXTS = ("env", "sbatch_directives", "srun_options", "environment")
ENGINES = ("sglang", "trtllm", "vllm", "mocker")


def is_whole(value):
    try:
        return int(value) is not None
    except (TypeError, ValueError):
        return False


def kinds(place, fields):
    """What of a section is of the wrong kind."""
    for name, value in fields.items():
        at = f"{place}.{name}".lstrip(".")
        if value is None:
            continue
        if name in WHOLE.split() and not is_whole(value):
            yield f"{at}: Not a valid integer"
        if name in LISTS and not (isinstance(value, list) and all(isinstance(one, LISTS[name]) for one in value)):
            yield f"{at}: Not a valid list"
        if name in TEXTS:
            yield from (f"{at}.{key}: Not a valid string" for key, one in value.items() if not isinstance(one, str))


recipe = json.load(open(sys.argv[1]))
known = TWO if "schema" in recipe else ONE
wrong = [
    f"{place}.{name}".lstrip(".")
    for place, fields in known.items()
    for name in (recipe if place == "" else recipe.get(place) or {})
    if name not in fields.split()
]
wrong = [f"{field}: Unknown field" for field in wrong]
for place in known:
    wrong += kinds(place, recipe if place == "" else recipe.get(place) or {})
for place, needed in {"": "name model resources", "model": "path container precision", "resources": "gpu_type"}.items():
    section = recipe if place == "" else recipe.get(place) or {}
    wrong += [f"{place}.{name}: Missing".lstrip(".") for name in needed.split() if section.get(name) is None]
engine = (recipe.get("backend") or {}).get("type", "sglang")
if engine not in ENGINES:
    wrong.append(f"backend: Unknown backend type: {engine}")
if wrong:
    sys.exit(f"Invalid config: {', '.join(wrong)}.")
