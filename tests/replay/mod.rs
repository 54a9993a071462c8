//! `sweepctl result process` of agentic jobs.

mod corpus;
mod left;
mod places;
mod rules;
mod servers;

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixture::{envelope, multinode_envelope, read_json, run, sweepctl, without_lengths, write};

/// The id of the jobs.
const ID: &str = "0123456789ab";
/// The first second of the replays, in nanoseconds.
const START: u64 = 1_796_050_152_000_000_000;

/// An agentic job's folder.
struct Job(TempDir);

impl Job {
    fn new(envelope: &Value) -> Self {
        let job = Self(tempfile::tempdir().expect("a folder"));
        job.file("envelope.json", &envelope.to_string());
        job
    }

    /// A job on one node with a replay of two good records in `replay/`.
    fn with_replay() -> Self {
        let job = Self::new(&agentic("vllm"));
        job.replay("replay/aiperf_artifacts", &good(), &summary(2, 0));
        job
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn file(&self, name: &str, text: &str) {
        write(self.path().join(name), text);
    }

    /// What a client leaves in a folder.
    fn replay(&self, folder: &str, records: &[String], summary: &Value) {
        self.file(&format!("{folder}/profile_export.jsonl"), &records.join("\n"));
        self.file(&format!("{folder}/profile_export_aiperf.json"), &summary.to_string());
    }

    fn process(&self, args: &[&str]) -> (i32, String) {
        let mut command = sweepctl(self.path());
        command.env("HF_HUB_CACHE", self.path().join("hub"));
        command.args(["result", "process", "--result-filename", "r"]).args(args);
        let (code, _, stderr) = run(&mut command);
        (code, stderr)
    }

    /// The aggregate of the replay in `replay/`.
    #[track_caller]
    fn aggregate(&self) -> Value {
        let (code, stderr) = self.process(&["--replay", "replay"]);
        assert_eq!(code, 0, "{stderr}");
        self.read("agg_r.json")
    }

    #[track_caller]
    fn refused(&self, args: &[&str], part: &str) {
        let (code, stderr) = self.process(args);
        assert_eq!(code, 1, "{stderr}");
        assert!(stderr.contains(part), "{part} in {stderr}");
    }

    fn read(&self, name: &str) -> Value {
        read_json(&self.path().join(name))
    }

    fn has(&self, name: &str) -> bool {
        self.path().join(name).exists()
    }
}

fn of_agentic(mut envelope: Value, framework: &str) -> Value {
    let row = envelope["row"].as_object_mut().expect("a row");
    without_lengths(row);
    row.insert("framework".into(), framework.into());
    let own = json!({"scenario-type": "agentic-coding", "kv-offloading": "none", "total-cpu-dram-gb": 0,
                     "duration": 3600});
    row.extend(own.as_object().expect("fields").clone());
    envelope
}

/// A job on one node with 8 GPUs, at concurrency 64.
fn agentic(framework: &str) -> Value {
    of_agentic(envelope(ID, 64), framework)
}

/// A job on several nodes with 16 GPUs.
fn agentic_on_many(concs: &[u64]) -> Value {
    let mut envelope = of_agentic(multinode_envelope(ID, concs), "vllm");
    envelope["row"]["disagg"] = json!(true);
    envelope
}

/// A client's counts.
fn summary(good: u64, failed: u64) -> Value {
    json!({"request_count": {"avg": good}, "error_request_count": {"avg": failed}})
}

/// A record from one time to another, in milliseconds after [`START`], with some metrics.
fn record(from: u64, to: u64, metrics: &Value) -> Value {
    json!({
        "metadata": {"benchmark_phase": "profiling", "conversation_id": "c::1", "turn_index": 0,
                     "request_start_ns": START + from * 1_000_000, "request_end_ns": START + to * 1_000_000},
        "metrics": metrics, "error": null,
    })
}

/// Two records that count. The second has no output length, as bare NaN says.
fn good() -> Vec<String> {
    let first = record(
        0,
        2000,
        &json!({"time_to_first_token": {"value": 100, "unit": "ms"}, "request_latency": {"value": 2000},
                "inter_token_latency": 10.0, "input_sequence_length": {"value": 100.9},
                "output_sequence_length": {"value": "50"}}),
    );
    let second = record(
        1000,
        4000,
        &json!({"time_to_first_token": {"value": 300}, "request_latency": {"value": " 3000 "},
                "inter_token_latency": {"value": 20}, "input_sequence_length": {"value": 200},
                "output_sequence_length": {"value": "bare"}}),
    );
    vec![first.to_string(), second.to_string().replace("\"bare\"", "NaN")]
}

/// JSON in which every number is a double: whole ones are written without a point.
fn doubles(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.iter().map(doubles).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), doubles(value)))
            .collect(),
        other => other.clone(),
    }
}
