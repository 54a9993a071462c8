//! What servers say of themselves, by engine, and what their logs say of the pool.

use serde_json::{Value, json};

use super::{Job, agentic, doubles, good, summary};

fn series(stats: &Value, labels: &Value) -> Value {
    json!({"stats": stats, "labels": labels, "endpoint_url": "http://a:1/metrics"})
}

/// A counter without labels.
fn counter(total: u64) -> Value {
    json!({"series": [series(&json!({"total": total, "max": 1}), &json!({}))]})
}

/// Counters of one name, told apart by a label.
fn labelled(label: &str, values: &[(&str, u64)]) -> Value {
    let list: Vec<Value> = values
        .iter()
        .map(|(value, total)| series(&json!({"total": total}), &json!({label: value})))
        .collect();
    json!({ "series": list })
}

fn gauge(max: f64) -> Value {
    json!({"series": [series(&json!({"avg": max / 2.0, "max": max}), &json!({}))]})
}

/// The aggregate's server metrics, of a framework with some metrics and logs.
fn server(framework: &str, metrics: &Value, logs: &[(&str, &str)]) -> Value {
    let job = Job::new(&agentic(framework));
    job.replay("replay/aiperf_artifacts", &good(), &summary(2, 0));
    job.file(
        "replay/aiperf_artifacts/server_metrics_export.json",
        &json!({ "metrics": metrics }).to_string(),
    );
    for (name, text) in logs {
        job.file(&format!("replay/{name}"), text);
    }
    let aggregate = job.aggregate();
    let pool = &aggregate["server_metrics"]["kv_cache"]["gpu_total_tokens"];
    assert_eq!(&aggregate["kv_cache_pool_tokens"], pool);
    doubles(&aggregate["server_metrics"])
}

fn vllm() -> Value {
    json!({
        "vllm:prompt_tokens": counter(1000), "vllm:generation_tokens": counter(10),
        "vllm:prefix_cache_hits": counter(30), "vllm:prefix_cache_queries": counter(40),
        "vllm:external_prefix_cache_hits": counter(1), "vllm:external_prefix_cache_queries": counter(4),
        "vllm:kv_cache_usage_perc": gauge(75.0), "vllm:kv_offload_bytes_gpu_to_cpu": counter(80),
        "vllm:kv_offload_time_gpu_to_cpu": counter(16), "vllm:kv_offload_bytes_cpu_to_gpu": counter(8),
    })
}

#[test]
fn vllm_says_hits_sources_and_offloads() {
    let log = "(EngineCore_DP0 pid=1) GPU KV cache size: 1,000 tokens\n(EngineCore_DP1 pid=2) GPU KV cache size: 500 \
               tokens\n(EngineCore_DP0 pid=1) GPU KV cache size: 2,000 tokens\nGPU KV cache size: 9 tokens\n";
    let found = server("vllm", &vllm(), &[("server.log", log)]);
    assert_eq!(
        (&found["adapter"], &found["metric_count"]),
        (&json!("vllm"), &json!(10.0))
    );
    let cache = &found["cache"];
    assert_eq!(
        (&cache["gpu_cache_hit_rate"], &cache["overall_cache_hit_rate"]),
        (&json!(0.75), &json!(0.75))
    );
    assert_eq!(cache["cpu_cache_hit_rate"], 0.25);
    assert_eq!(found["kv_cache"]["gpu_usage_pct"], 0.75);
    assert_eq!(found["kv_cache"]["gpu_total_tokens"], 2500.0, "the last of each tag");
    assert_eq!(found["kv_offload"]["bandwidth_gpu_to_cpu_bytes_per_second"], 5.0);
    assert_eq!(
        found["kv_offload"]["bandwidth_cpu_to_gpu_bytes_per_second"],
        Value::Null
    );
    assert_eq!(
        found["sources"],
        json!([{"id": "combined|http://a:1/metrics", "role": "combined", "prompt_tokens": 1000.0,
                "generation_tokens": 10.0, "prefix_cache_hit_rate": 0.75, "gpu_kv_cache_usage_pct": 0.75}])
    );
    let mut metrics = vllm();
    metrics["vllm:prompt_tokens_by_source"] = labelled("source", &[("local_cache_hit", 20), ("local_compute", 20)]);
    let found = server(
        "vllm",
        &metrics,
        &[("watchtower-a.out", "GPU KV cache size: 7 tokens"), ("b.out", log)],
    );
    assert_eq!(found["cache"]["overall_cache_hit_rate"], 0.5);
    assert_eq!(found["cache"]["cpu_cache_hit_rate"], 0.25, "no source says otherwise");
    assert_eq!(found["tokens"]["prompt_by_source"]["computed"], 20.0);
    assert_eq!(found["kv_cache"]["gpu_total_tokens"], 7.0);
}

#[test]
fn dynamo_says_what_its_frontend_and_router_saw() {
    let mut metrics = vllm();
    metrics["dynamo_frontend_input_sequence_tokens"] = counter(2000);
    metrics["dynamo_frontend_cached_tokens"] = counter(500);
    metrics["dynamo_component_router_kv_hit_rate"] = gauge(80.0);
    let found = server("vllm", &metrics, &[]);
    assert_eq!(found["adapter"], "dynamo-vllm", "a name says so");
    assert_eq!(
        (&found["tokens"]["prompt_total"], &found["tokens"]["generation_total"]),
        (&json!(2000.0), &json!(10.0))
    );
    assert_eq!(found["cache"]["frontend_cache_hit_rate"], 0.25);
    assert_eq!(found["cache"]["router_kv_hit_rate"], 0.4, "the average, as a fraction");
    let found = server("dynamo-sglang", &json!({"sglang:prompt_tokens": counter(5)}), &[]);
    assert_eq!(found["adapter"], "dynamo-vllm");
    assert_eq!(found["cache"]["overall_cache_hit_rate"], Value::Null);
    assert_eq!(found["tokens"]["prompt_total"], 300.0, "that of the records");
}

#[test]
fn sglang_says_where_cached_tokens_lay() {
    let metrics = json!({
        "sglang:prompt_tokens": counter(100),
        "sglang:cached_tokens": labelled("cache_source", &[("device", 40), ("host", 10), ("device", 20)]),
        "sglang:realtime_tokens": labelled("mode", &[("prefill_compute", 30), ("decode", 5)]),
        "sglang:max_total_num_tokens": {"series": [series(&json!({"max": 64}), &json!({})), series(&json!({"max": 64}), &json!({}))]},
        "sglang:hicache_host_used_tokens": gauge(1.0), "sglang:hicache_host_total_tokens": gauge(4.0),
        "sglang:token_usage": gauge(1.0),
    });
    let found = server("vllm", &metrics, &[("server.log", "GPU KV cache size: 5 tokens")]);
    assert_eq!(found["adapter"], "sglang");
    let cache = &found["cache"];
    assert_eq!(cache["cached_tokens_by_source"], json!({"device": 60.0, "host": 10.0}));
    assert_eq!(
        (&cache["gpu_cache_hit_rate"], &cache["overall_cache_hit_rate"]),
        (&json!(0.6), &json!(0.7))
    );
    assert_eq!(found["kv_cache"]["gpu_total_tokens"], 128.0);
    assert_eq!(
        (&found["kv_cache"]["cpu_usage_pct"], &found["kv_cache"]["gpu_usage_pct"]),
        (&json!(0.25), &json!(1.0))
    );
    assert_eq!(found["tokens"]["prompt_by_source"]["computed"], 30.0);
    for (log, wanted) in [
        ("dp_size=4\n[DP0 TP0 EP0] max_total_num_tokens=10\n", 40.0),
        (
            "dp_size=4\n[DP0 TP0 EP0] max_total_num_tokens=10\n[DP1 TP1 EP1] max_total_num_tokens=12",
            22.0,
        ),
        ("max_total_num_tokens=10, dp_size=3, dp_size=1", 30.0),
        ("max_total_num_tokens=10, dp_size=1, dp_size=3", 10.0),
        ("xmax_total_num_tokens=10\nmax_total_num_tokens=0\n", 128.0),
        ("max_total_num_tokens=10\0\nmax_total_num_tokens=5\n", 15.0),
    ] {
        let found = server("sglang", &metrics, &[("server.log", log)]);
        assert_eq!(found["kv_cache"]["gpu_total_tokens"], wanted, "{log}");
    }
}

#[test]
fn atom_says_the_same_in_several_spellings() {
    let metrics = json!({
        "atom:prompt_tokens_total": counter(60), "atom_prompt_tokens": counter(40),
        "atom:prefix_cache_cached_tokens": counter(25), "atom_prefix_cache_full_tokens_total": counter(100),
        "atom:lmcache_loaded_tokens": counter(10), "atom:kv_cache_usage_ratio": gauge(0.5),
    });
    let found = server(
        "atom",
        &metrics,
        &[("server.log", "GPU KV cache size: 5 tokens max_total_num_tokens=5")],
    );
    assert_eq!(
        (&found["adapter"], &found["tokens"]["prompt_total"]),
        (&json!("atom"), &json!(100.0))
    );
    assert_eq!(
        (
            &found["cache"]["overall_cache_hit_rate"],
            &found["cache"]["cpu_cache_hit_rate"]
        ),
        (&json!(0.25), &json!(0.1))
    );
    assert_eq!(found["kv_cache"]["gpu_usage_pct"], 0.5);
    assert_eq!(
        found["kv_cache"]["gpu_total_tokens"],
        Value::Null,
        "no log of its is read"
    );
}

#[test]
fn metrics_that_cannot_be_read_or_are_nobodys_are_warnings() {
    let none = server("trt", &json!({}), &[]);
    assert_eq!(
        (&none["present"], &none["adapter"], &none["metric_count"]),
        (&json!(false), &json!("none"), &json!(0.0))
    );
    assert_eq!(none["sources"], json!([]));
    for (export, part) in [
        (None, "is missing"),
        (Some("{\"metrics\": {"), "is cut off"),
        (Some("{\"metrics\": [1]}"), "holds no metrics"),
        (
            Some("{\"metrics\": {\"trt:x\": {}, \"process_cpu\": {}}}"),
            "`trt:x`, `process_cpu`",
        ),
    ] {
        let job = Job::with_replay();
        if let Some(export) = export {
            job.file("replay/aiperf_artifacts/server_metrics_export.json", export);
        }
        job.file("replay/server.log", "GPU KV cache size: 1,234 tokens");
        let (code, stderr) = job.process(&["--replay", "replay"]);
        assert_eq!(code, 0, "{stderr}");
        assert!(
            stderr.contains("warning") && stderr.contains(part),
            "{part} in {stderr}"
        );
        let found = job.read("agg_r.json");
        assert!(
            found["warnings"][0].as_str().expect("a warning").contains(part),
            "{found}"
        );
        let server = &found["server_metrics"];
        assert_eq!(
            (&server["present"], &server["adapter"]),
            (&json!(false), &json!("none"))
        );
        // The framework says how logs are read.
        assert_eq!(server["kv_cache"]["gpu_total_tokens"], 1234.0);
    }
}
