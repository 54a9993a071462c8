//! vLLM's own names.

use std::collections::BTreeMap;

use super::{KvOffload, PromptBySource, ServerMetrics, Source, whole};
use crate::step::replay::series::{Kind, Series, Server, fraction, ratio, sum};

const PROMPT: &str = "vllm:prompt_tokens";
const GENERATION: &str = "vllm:generation_tokens";
const HITS: &str = "vllm:prefix_cache_hits";
const QUERIES: &str = "vllm:prefix_cache_queries";
const BY_SOURCE: &str = "vllm:prompt_tokens_by_source";
/// The name of today, and that of older versions.
const USAGE: [&str; 2] = ["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"];
/// The metrics whose series make up the list of sources.
const OF_SOURCES: [&str; 6] = [PROMPT, GENERATION, HITS, QUERIES, USAGE[0], BY_SOURCE];
/// The labels that tell servers at one address apart.
const INSTANCE: [&str; 3] = ["worker_id", "dp_rank", "engine"];

/// Reads them.
pub(super) fn read(server: &Server, found: &mut ServerMetrics) {
    found.tokens.prompt_total = whole(server.sum(&[PROMPT]));
    found.tokens.generation_total = whole(server.sum(&[GENERATION]));
    let cache = &mut found.cache;
    cache.prefix_cache_hits = server.sum(&[HITS]);
    cache.prefix_cache_queries = server.sum(&[QUERIES]);
    cache.external_prefix_cache_hits = server.sum(&["vllm:external_prefix_cache_hits"]);
    cache.external_prefix_cache_queries = server.sum(&["vllm:external_prefix_cache_queries"]);
    cache.gpu_cache_hit_rate = ratio(cache.prefix_cache_hits, cache.prefix_cache_queries);
    cache.overall_cache_hit_rate = cache.gpu_cache_hit_rate;
    let external = ratio(cache.external_prefix_cache_hits, cache.external_prefix_cache_queries);
    (cache.external_cache_hit_rate, cache.cpu_cache_hit_rate) = (external, external);
    by_source(server, found);
    found.kv_cache.gpu_usage_pct = server.max(&USAGE).map(fraction);
    found.kv_cache.cpu_usage_pct = server.max(&["vllm:cpu_kv_cache_usage_perc"]).map(fraction);
    found.kv_offload = offload(server);
    found.sources = sources(server);
}

/// Where prompt tokens came from, which is exact where hits and queries are per block.
fn by_source(server: &Server, found: &mut ServerMetrics) {
    let raw = server.by_label(BY_SOURCE, "source");
    if raw.is_empty() {
        return;
    }
    let tokens = |source: &str| raw.get(source).copied();
    let (local, external) = (tokens("local_cache_hit"), tokens("external_kv_transfer"));
    let total = raw.values().sum::<f64>();
    let cache = &mut found.cache;
    cache.overall_cache_hit_rate = None;
    if total > 0.0 {
        let share = |tokens: f64| tokens / total;
        cache.gpu_cache_hit_rate = local.map(share).or(cache.gpu_cache_hit_rate);
        cache.cpu_cache_hit_rate = external.map(share).or(cache.cpu_cache_hit_rate);
        cache.external_cache_hit_rate = external.map(share).or(cache.external_cache_hit_rate);
        cache.overall_cache_hit_rate = Some(share(local.unwrap_or(0.0) + external.unwrap_or(0.0)));
    }
    found.tokens.prompt_by_source = PromptBySource {
        gpu_cache_hit: local,
        cpu_or_external_cache_hit: external,
        computed: tokens("local_compute"),
        raw,
    };
}

fn offload(server: &Server) -> KvOffload {
    let sum = |what: &str| server.sum(&[&format!("vllm:kv_offload_{what}")]);
    let (bytes_out, bytes_in) = (sum("bytes_gpu_to_cpu"), sum("bytes_cpu_to_gpu"));
    let (time_out, time_in) = (sum("time_gpu_to_cpu"), sum("time_cpu_to_gpu"));
    KvOffload {
        bytes_gpu_to_cpu: bytes_out,
        bytes_cpu_to_gpu: bytes_in,
        time_gpu_to_cpu: time_out,
        time_cpu_to_gpu: time_in,
        bandwidth_gpu_to_cpu_bytes_per_second: ratio(bytes_out, time_out),
        bandwidth_cpu_to_gpu_bytes_per_second: ratio(bytes_in, time_in),
    }
}

fn sources(server: &Server) -> Vec<Source> {
    let mut ids: BTreeMap<String, &'static str> = BTreeMap::new();
    for series in OF_SOURCES.iter().flat_map(|name| server.series(name)) {
        ids.insert(id(series), role(series));
    }
    let source = |(name, role): (String, &'static str)| {
        let values = |metric: &str, kind: Kind| -> Vec<f64> {
            let own = server.series(metric).filter(|series| id(series) == name);
            own.filter_map(|series| series.value(kind)).collect()
        };
        let total = |metric: &str| sum(values(metric, Kind::Counter).into_iter());
        let usage = USAGE
            .iter()
            .flat_map(|metric| values(metric, Kind::Gauge))
            .reduce(f64::max);
        Source {
            role,
            prompt_tokens: total(PROMPT),
            generation_tokens: total(GENERATION),
            prefix_cache_hit_rate: ratio(total(HITS), total(QUERIES)),
            gpu_kv_cache_usage_pct: usage.map(fraction),
            id: name,
        }
    };
    ids.into_iter().map(source).collect()
}

/// What tells a server from the others: its role, its address, its instance.
fn id(series: &Series) -> String {
    let mut parts = vec![role(series).to_owned()];
    parts.extend(series.endpoint().map(str::to_owned));
    parts.extend(
        INSTANCE
            .iter()
            .filter_map(|label| Some(format!("{label}={}", series.label(label)?))),
    );
    parts.join("|")
}

fn role(series: &Series) -> &'static str {
    let label = |name: &str| series.label(name).filter(|component| !component.is_empty());
    match label("dynamo_component").or_else(|| label("component")).as_deref() {
        Some("prefill") => "prefill",
        Some("backend" | "decode") => "decode",
        Some("frontend" | "router") => "router",
        _ => "combined",
    }
}
