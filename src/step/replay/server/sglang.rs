//! SGLang's names.

use super::{PromptBySource, ServerMetrics, whole};
use crate::step::replay::series::{Kind, Server, fraction, ratio, sum};

/// Reads them.
pub(super) fn read(server: &Server, found: &mut ServerMetrics) {
    let prompt = server.sum(&["sglang:prompt_tokens"]);
    found.tokens.prompt_total = whole(prompt);
    found.tokens.generation_total = whole(server.sum(&["sglang:generation_tokens"]));
    let cached = server.by_label("sglang:cached_tokens", "cache_source");
    let (device, host) = (cached.get("device").copied(), cached.get("host").copied());
    let cache = &mut found.cache;
    cache.gpu_cache_hit_rate = ratio(device, prompt);
    cache.cpu_cache_hit_rate = ratio(host, prompt);
    cache.external_cache_hit_rate = cache.cpu_cache_hit_rate;
    let rate = || server.mean_rate("sglang:cache_hit_rate").map(fraction);
    cache.overall_cache_hit_rate = ratio(sum(cached.values().copied()), prompt).or_else(rate);
    cache.cached_tokens_by_source = cached.clone();
    let kv = &mut found.kv_cache;
    kv.gpu_usage_pct = server.max(&["sglang:token_usage"]).map(fraction);
    kv.gpu_total_tokens = whole(sum(server.values("sglang:max_total_num_tokens", Kind::Capacity)));
    kv.cpu_used_tokens = server.max(&["sglang:hicache_host_used_tokens"]);
    kv.cpu_total_tokens = server.max(&["sglang:hicache_host_total_tokens"]);
    kv.cpu_usage_pct = ratio(kv.cpu_used_tokens, kv.cpu_total_tokens);
    found.tokens.prompt_by_source = PromptBySource {
        gpu_cache_hit: device,
        cpu_or_external_cache_hit: host,
        computed: server
            .by_label("sglang:realtime_tokens", "mode")
            .get("prefill_compute")
            .copied(),
        raw: cached,
    };
}
