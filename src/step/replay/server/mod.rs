//! `server_metrics`: what is known of the server, whichever engine it is.

mod atom;
mod dynamo;
mod sglang;
mod vllm;

use indexmap::IndexMap;
use serde::Serialize;

use super::series::Server;

/// An engine, by how its metrics are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Engine {
    /// Dynamo over any engine.
    Dynamo,
    /// ATOM.
    Atom,
    /// SGLang.
    Sglang,
    /// vLLM.
    Vllm,
}

/// What is known of a server; null where nothing is.
#[derive(Debug, Default, Serialize)]
pub(super) struct ServerMetrics {
    present: bool,
    adapter: &'static str,
    metric_count: usize,
    cache: Cache,
    pub kv_cache: KvCache,
    kv_offload: KvOffload,
    tokens: Tokens,
    sources: Vec<Source>,
}

#[derive(Debug, Default, Serialize)]
struct Cache {
    gpu_cache_hit_rate: Option<f64>,
    cpu_cache_hit_rate: Option<f64>,
    external_cache_hit_rate: Option<f64>,
    overall_cache_hit_rate: Option<f64>,
    prefix_cache_hits: Option<f64>,
    prefix_cache_queries: Option<f64>,
    external_prefix_cache_hits: Option<f64>,
    external_prefix_cache_queries: Option<f64>,
    cached_tokens_by_source: IndexMap<String, f64>,
    frontend_cache_hit_rate: Option<f64>,
    router_kv_hit_rate: Option<f64>,
    router_shared_cache_hit_rate: Option<f64>,
    frontend_cached_tokens: Option<f64>,
    frontend_input_tokens: Option<f64>,
}

/// The cache of keys and values.
#[derive(Debug, Default, Serialize)]
pub(super) struct KvCache {
    gpu_usage_pct: Option<f64>,
    /// The pool of all servers.
    pub gpu_total_tokens: Option<f64>,
    cpu_usage_pct: Option<f64>,
    cpu_used_tokens: Option<f64>,
    cpu_total_tokens: Option<f64>,
}

#[derive(Debug, Default, Serialize)]
struct KvOffload {
    bytes_gpu_to_cpu: Option<f64>,
    bytes_cpu_to_gpu: Option<f64>,
    time_gpu_to_cpu: Option<f64>,
    time_cpu_to_gpu: Option<f64>,
    bandwidth_gpu_to_cpu_bytes_per_second: Option<f64>,
    bandwidth_cpu_to_gpu_bytes_per_second: Option<f64>,
}

#[derive(Debug, Default, Serialize)]
struct Tokens {
    prompt_total: Option<f64>,
    generation_total: Option<f64>,
    requests_completed: u64,
    prompt_by_source: PromptBySource,
}

#[derive(Debug, Default, Serialize)]
struct PromptBySource {
    gpu_cache_hit: Option<f64>,
    cpu_or_external_cache_hit: Option<f64>,
    computed: Option<f64>,
    raw: IndexMap<String, f64>,
}

/// One server among several.
#[derive(Debug, Serialize)]
struct Source {
    id: String,
    role: &'static str,
    prompt_tokens: Option<f64>,
    generation_tokens: Option<f64>,
    prefix_cache_hit_rate: Option<f64>,
    gpu_kv_cache_usage_pct: Option<f64>,
}

impl Engine {
    /// The engine of a framework and, where there are any, of metrics.
    pub(super) fn of(framework: &str, server: Option<&Server>) -> Option<Self> {
        let named = |starts: &[&str]| {
            let of_engine = |name: &str| starts.iter().any(|start| name.starts_with(start));
            server.map(|server| server.names().any(of_engine))
        };
        let is = |framework_of: &str, starts: &[&str]| named(starts).unwrap_or(framework == framework_of);
        if framework.starts_with("dynamo") || named(&["dynamo_"]) == Some(true) {
            Some(Self::Dynamo)
        } else if is("atom", &["atom:", "atom_"]) {
            Some(Self::Atom)
        } else if is("sglang", &["sglang:"]) {
            Some(Self::Sglang)
        } else if is("vllm", &["vllm:"]) {
            Some(Self::Vllm)
        } else {
            None
        }
    }

    fn adapter(self) -> &'static str {
        match self {
            Self::Dynamo => "dynamo-vllm",
            Self::Atom => "atom",
            Self::Sglang => "sglang",
            Self::Vllm => "vllm",
        }
    }
}

impl ServerMetrics {
    /// Reads an engine's metrics.
    pub(super) fn of(engine: Engine, server: &Server) -> Self {
        let mut found = Self {
            present: true,
            adapter: engine.adapter(),
            metric_count: server.count(),
            ..Self::default()
        };
        match engine {
            Engine::Dynamo => dynamo::read(server, &mut found),
            Engine::Atom => atom::read(server, &mut found),
            Engine::Sglang => sglang::read(server, &mut found),
            Engine::Vllm => vllm::read(server, &mut found),
        }
        found
    }

    /// What is written where there are no metrics.
    pub(super) fn none() -> Self {
        Self {
            adapter: "none",
            ..Self::default()
        }
    }

    /// Takes what the records and the logs say: of tokens where the server says nothing, of the pool before any gauge.
    pub(super) fn complete(&mut self, requests: u64, tokens: (Option<f64>, Option<f64>), pool: Option<u64>) {
        self.tokens.requests_completed = requests;
        self.tokens.prompt_total = self.tokens.prompt_total.or(tokens.0);
        self.tokens.generation_total = self.tokens.generation_total.or(tokens.1);
        #[allow(clippy::cast_precision_loss, reason = "no cache holds 2^53 tokens")]
        let pool = pool.map(|pool| pool as f64);
        self.kv_cache.gpu_total_tokens = pool.or(self.kv_cache.gpu_total_tokens);
    }
}

/// To the nearest whole number.
fn whole(value: Option<f64>) -> Option<f64> {
    value.map(f64::round_ties_even)
}
