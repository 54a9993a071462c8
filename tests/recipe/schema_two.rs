//! What is written into recipes of schema 2, held against the names and kinds of srt-slurm's published JSON Schema
//! (`docs/schema/recipe.schema.json` of NVIDIA/srt-slurm at 0794007): objects are closed there, and variables are texts.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use sweepctl::config::recipe::Benchmark;
use sweepctl::config::source::Source;
use sweepctl::config::tree::{self, Node, Value as Tree};

use super::{TWO, written};

/// Fields of `benchmark` that a recipe here can have, by their kinds; each may be null.
const BENCHMARK: [(&str, &str); 12] = [
    ("isl", "integer"),
    ("osl", "integer"),
    ("num_examples", "integer"),
    ("max_tokens", "integer"),
    ("repeat", "integer"),
    ("num_threads", "integer"),
    ("max_context_length", "integer"),
    ("num_shots", "integer"),
    ("temperature", "number"),
    ("top_p", "number"),
    ("command", "string"),
    ("container_image", "string"),
];

/// An object with these fields and no other.
fn closed(fields: Value) -> Value {
    json!({ "type": "object", "additionalProperties": false, "properties": fields })
}

fn schema() -> Value {
    let texts = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    let list = |kind: &str| json!({ "type": "array", "items": { "type": kind } });
    let size = json!({ "type": ["integer", "null"] });
    let mut benchmark: Map<String, Value> = BENCHMARK
        .iter()
        .map(|(name, kind)| ((*name).to_owned(), json!({ "type": [kind, "null"] })))
        .collect();
    benchmark.insert("type".to_owned(), json!({ "type": "string" }));
    benchmark.insert("categories".to_owned(), list("string"));
    benchmark.insert("concurrencies".to_owned(), list("integer"));
    benchmark.insert("env".to_owned(), texts.clone());
    let role =
        closed(json!({ "nodes": size, "workers": size, "gpus": size, "env": texts, "args": { "type": "object" } }));
    let text = json!({ "type": "string" });
    let mut recipe = closed(json!({
        "schema": { "enum": [2] },
        "name": text,
        "model": closed(json!({ "path": text, "container": text, "precision": text })),
        "resources": closed(json!({ "gpu_type": text, "gpus_per_node": { "type": "integer" } })),
        "engine": { "enum": ["atom", "sglang", "tilert", "trtllm", "vllm", "mocker"] },
        "roles": { "type": "object", "additionalProperties": role },
        "benchmark": closed(benchmark.into()),
        "health_check": closed(json!({ "max_attempts": { "type": "integer" } })),
        "post_eval": closed(json!({ "passthrough_env": list("string"), "command": list("string") })),
    }));
    recipe["required"] = json!(["name", "model", "resources", "schema"]);
    recipe["properties"]["model"]["required"] = json!(["path", "container", "precision"]);
    recipe
}

/// A YAML text as JSON, scalars by their kinds.
fn json_of(text: &str) -> Value {
    fn value(node: &Node<'_>) -> Value {
        match &node.value {
            Tree::Seq(items) => items.iter().map(value).collect(),
            Tree::Map(pairs) => Value::Object(
                pairs
                    .iter()
                    .map(|(key, of)| (key.text().to_owned(), value(of)))
                    .collect(),
            ),
            Tree::Scalar { .. } => match serde_json::from_str(node.text()) {
                Ok(plain @ (Value::Number(_) | Value::Bool(_))) if !is_quoted(node) => plain,
                _ => node.text().into(),
            },
        }
    }
    fn is_quoted(node: &Node<'_>) -> bool {
        matches!(node.scalar(), Some(sweepctl::config::scalar::Scalar::Str(_)))
    }
    let source = Arc::new(Source::new("recipe.yaml".to_owned(), text.to_owned()));
    value(&tree::parse(&source).expect("YAML"))
}

#[test]
fn every_benchmark_is_written_as_the_published_schema_wants_it() {
    let validator = jsonschema::validator_for(&schema()).expect("a schema");
    let recipe = TWO.replace("  precision: fp4", "  container: sglang\n  precision: fp4");
    let settings = |benchmark: Benchmark| match benchmark {
        Benchmark::LongBenchV2 => vec![
            "--set",
            "categories=single_document_qa,multi_document_qa",
            "--set",
            "num_examples=50",
        ],
        Benchmark::Aime => vec!["--set", "TEMPERATURE=0.6", "--set", "SGLANG_ENABLE_THINKING=1"],
        _ => Vec::new(),
    };
    for benchmark in Benchmark::ALL {
        let text = written(&recipe, &[vec![benchmark.name()], settings(benchmark)].concat());
        let found: Vec<String> = validator
            .iter_errors(&json_of(&text))
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert_eq!(found, [""; 0], "{}:\n{text}", benchmark.name());
    }
    // What the schema refuses is seen here too.
    for (from, to) in [("num_threads: 512", "num_theads: 512"), ("repeat: 8", "repeat: \"8\"")] {
        let text = written(&recipe, &["mmlu"]).replace(from, to);
        assert!(!validator.is_valid(&json_of(&text)), "{to}");
    }
    let command = written(&recipe, &["lm-eval"]).replace("post_eval:\n", "post_eval:\n  command: bash run.sh\n");
    assert!(!validator.is_valid(&json_of(&command)), "{command}");
}
