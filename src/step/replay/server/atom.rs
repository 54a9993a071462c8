//! ATOM's names, in any of their spellings.

use super::{ServerMetrics, whole};
use crate::step::replay::series::{Server, fraction, ratio};

/// Reads them.
pub(super) fn read(server: &Server, found: &mut ServerMetrics) {
    let sum = |name: &str| {
        let spellings = ["atom:", "atom_"].map(|start| ["", "_total"].map(|end| format!("{start}{name}{end}")));
        let spellings: Vec<&str> = spellings.iter().flatten().map(String::as_str).collect();
        server.sum(&spellings)
    };
    found.tokens.prompt_total = whole(sum("prompt_tokens"));
    found.tokens.generation_total = whole(sum("generation_tokens"));
    let cache = &mut found.cache;
    cache.prefix_cache_hits = sum("prefix_cache_cached_tokens");
    cache.prefix_cache_queries = sum("prefix_cache_full_tokens");
    cache.external_prefix_cache_hits = sum("lmcache_loaded_tokens");
    cache.external_prefix_cache_queries = cache.prefix_cache_queries;
    cache.gpu_cache_hit_rate = ratio(cache.prefix_cache_hits, cache.prefix_cache_queries);
    cache.overall_cache_hit_rate = cache.gpu_cache_hit_rate;
    cache.cpu_cache_hit_rate = ratio(cache.external_prefix_cache_hits, cache.external_prefix_cache_queries);
    cache.external_cache_hit_rate = cache.cpu_cache_hit_rate;
    let usage = server.max(&["atom:kv_cache_usage_ratio", "atom_kv_cache_usage_ratio"]);
    found.kv_cache.gpu_usage_pct = usage.map(fraction);
}
