//! The size of the servers' caches, as their logs say it when they start.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use indexmap::IndexMap;
use regex::{Captures, Regex};

use super::server::Engine;
use crate::step::results::file;

/// How much of a log is read, in bytes (64 MiB): a server says it before its first request.
const MAX_LOG: u64 = 64 << 20;

/// vLLM's line: `GPU KV cache size: 1,234 tokens`.
static VLLM: LazyLock<Regex> = LazyLock::new(|| pattern(r"GPU KV cache size: ([0-9,]+) tokens"));
/// The process that says it, where there are several.
static ENGINE_CORE: LazyLock<Regex> = LazyLock::new(|| pattern(r"\(EngineCore(?:_DP[0-9]+)? pid=[0-9]+\)"));
/// SGLang's line.
static SGLANG: LazyLock<Regex> = LazyLock::new(|| pattern(r"\bmax_total_num_tokens=([0-9]+)"));
/// The ranks that say it.
static RANKS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\bDP[0-9]+ TP[0-9]+ EP[0-9]+\b"));
/// How many replicas there are.
static REPLICAS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\bdp_size=([0-9]+)"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern of this file, which the tests use")
}

/// The sizes that logs give, added up; `None` where none gives one, and for engines whose logs say nothing. With it what
/// could not be read.
pub(super) fn tokens(logs: &[PathBuf], engine: Option<Engine>) -> (Option<u64>, Vec<String>) {
    let of = match engine {
        Some(Engine::Vllm | Engine::Dynamo) => vllm,
        Some(Engine::Sglang) => sglang,
        Some(Engine::Atom) | None => return (None, Vec::new()),
    };
    let (mut total, mut unread) = (None, Vec::new());
    for log in logs {
        match text(log) {
            Ok(text) => total = add(total, of(&text)),
            Err(error) => unread.push(format!("{} cannot be read: {error}", file::shown(log))),
        }
    }
    (total, unread)
}

/// The start of a log, without NUL bytes; a line that the limit cuts is left out.
fn text(path: &Path) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    file::open(path)?.take(MAX_LOG + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_LOG {
        bytes.pop();
        let end = memchr::memrchr2(b'\n', b'\r', &bytes).unwrap_or(0);
        bytes.truncate(end);
    }
    bytes.retain(|byte| *byte != 0);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split(['\n', '\r'])
}

fn vllm(text: &str) -> Option<u64> {
    let (mut untagged, mut tagged) = (Vec::new(), IndexMap::new());
    for line in lines(text) {
        for size in VLLM.captures_iter(line).filter_map(|found| number(&found)) {
            match ENGINE_CORE.find(line) {
                Some(tag) => drop(tagged.insert(tag.as_str(), size)),
                None => untagged.push(size),
            }
        }
    }
    match tagged.is_empty() {
        true => total(untagged),
        false => total(tagged.into_values()),
    }
}

fn sglang(text: &str) -> Option<u64> {
    let (mut unranked, mut ranked) = (Vec::new(), IndexMap::new());
    for line in lines(text) {
        for size in SGLANG.captures_iter(line).filter_map(|found| number(&found)) {
            match RANKS.find(line) {
                Some(ranks) => drop(ranked.insert(ranks.as_str(), size)),
                None => unranked.push(size),
            }
        }
    }
    let sizes = if ranked.is_empty() {
        unranked
    } else {
        ranked.into_values().collect()
    };
    let replicas = REPLICAS.captures(text).and_then(|found| number(&found)).unwrap_or(1);
    match sizes.as_slice() {
        [alone] => Some(alone.saturating_mul(replicas.max(1))),
        _ => total(sizes),
    }
}

/// A size above 0, written with or without commas.
fn number(found: &Captures<'_>) -> Option<u64> {
    let size = found[1].replace(',', "").parse().ok()?;
    (size > 0).then_some(size)
}

fn total(sizes: impl IntoIterator<Item = u64>) -> Option<u64> {
    sizes.into_iter().reduce(u64::saturating_add)
}

fn add(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    total([a, b].into_iter().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vllms_last_size_of_each_process_counts_and_all_where_no_process_is_named() {
        let cases = [
            (
                "GPU KV cache size: 1,000 tokens\nGPU KV cache size: 500 tokens",
                Some(1500),
            ),
            (
                "(EngineCore_DP0 pid=1) GPU KV cache size: 7 tokens\r\n(EngineCore_DP1 pid=2) GPU KV cache size: 2 tokens\n\
                 (EngineCore_DP0 pid=1) GPU KV cache size: 5 tokens\nGPU KV cache size: 100 tokens",
                Some(7),
            ),
            (
                "(EngineCore pid=1) GPU KV cache size: 7 tokens\n(EngineCore pid=1) GPU KV cache size: 0 tokens",
                Some(7),
            ),
            (
                "(EngineCore pid=1) GPU KV cache size: 0 tokens\nGPU KV cache size: 3 tokens",
                Some(3),
            ),
            ("GPU KV cache size: 12", None),
        ];
        for (log, wanted) in cases {
            assert_eq!(vllm(log), wanted, "{log}");
        }
    }

    #[test]
    fn sglangs_ranks_add_up_and_one_alone_stands_for_all_replicas() {
        let cases = [
            (
                "dp_size=4, attn_dp_size=9\n[DP0 TP0 EP0] max_total_num_tokens=10",
                Some(40),
            ),
            ("moe_dp_size=9 dp_size=1\ndp_size=8\nmax_total_num_tokens=10", Some(10)),
            ("dp_size=3\nmax_total_num_tokens=10", Some(30)),
            ("dp_size=3\nmax_total_num_tokens=10\nmax_total_num_tokens=10", Some(20)),
            (
                "dp_size=3\n[DP0 TP0 EP0] max_total_num_tokens=1\n[DP0 TP0 EP0] max_total_num_tokens=2\n\
                 [DP1 TP1 EP1] max_total_num_tokens=5 max_total_num_tokens=6\nmax_total_num_tokens=100",
                Some(8),
            ),
            ("swa_max_total_num_tokens=10\nmax_total_num_tokens=0", None),
        ];
        for (log, wanted) in cases {
            assert_eq!(sglang(log), wanted, "{log}");
        }
    }
}
