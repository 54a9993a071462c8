//! Dynamo: totals of its frontend and rates of its router, and of the workers what vLLM's names say. Under other
//! engines those names are missing, and the engines' own are not read.

use super::{ServerMetrics, vllm, whole};
use crate::step::replay::series::{Server, fraction, ratio};

const INPUT: &str = "dynamo_frontend_input_sequence_tokens";

/// Reads them.
pub(super) fn read(server: &Server, found: &mut ServerMetrics) {
    vllm::read(server, found);
    let tokens = &mut found.tokens;
    tokens.prompt_total = whole(server.sum(&[INPUT])).or(tokens.prompt_total);
    tokens.generation_total = whole(server.sum(&["dynamo_frontend_output_tokens"])).or(tokens.generation_total);
    let usage = || server.max(&["dynamo_component_gpu_cache_usage_percent"]).map(fraction);
    found.kv_cache.gpu_usage_pct = found.kv_cache.gpu_usage_pct.or_else(usage);
    let cache = &mut found.cache;
    cache.frontend_cached_tokens = server.sum(&["dynamo_frontend_cached_tokens"]);
    cache.frontend_input_tokens = server.sum(&[INPUT]);
    cache.frontend_cache_hit_rate = ratio(cache.frontend_cached_tokens, cache.frontend_input_tokens);
    let rate = |name: &str| server.mean_rate(name).map(fraction);
    cache.router_kv_hit_rate = rate("dynamo_component_router_kv_hit_rate");
    cache.router_shared_cache_hit_rate = rate("dynamo_component_router_shared_cache_hit_rate");
}
