//! `sweepctl result process`: the aggregate of a throughput job.

mod clients;

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixture::{envelope, multinode_envelope, read_json, run, sweepctl, write};

fn benchmark(conc: u64) -> Value {
    json!({
        "date": "20261101-000000", "backend": "vllm", "model_id": "org/model", "num_prompts": 640,
        "max_concurrency": conc, "duration": 100.5, "completed": 640, "total_input_tokens": 5_242_880,
        "total_output_tokens": 655_360, "request_throughput": 6.4, "output_throughput": 8000.0,
        "total_token_throughput": 16_000.0, "mean_ttft_ms": 250.0, "median_ttft_ms": 200.0, "std_ttft_ms": 0.0,
        "p99_ttft_ms": 900.0, "mean_tpot_ms": 20.0, "p99.9_tpot_ms": 40.0, "std_tpot_ms": 0, "mean_itl_ms": 19.5,
        "itls": [[1.0]],
    })
}

/// A throughput job's folder.
struct Job(TempDir);

impl Job {
    fn new(envelope: &Value) -> Self {
        let job = Self(tempfile::tempdir().expect("a folder"));
        job.file("envelope.json", envelope);
        job
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn file(&self, name: &str, value: &Value) {
        write(self.path().join(name), value.to_string());
    }

    fn process(&self, args: &[&str]) -> (i32, String) {
        let mut command = sweepctl(self.path());
        let (code, _, stderr) = run(command.args(["result", "process"]).args(args));
        (code, stderr)
    }
}

#[test]
fn a_single_node_result_is_divided_by_its_gpus() {
    let mut row = envelope("0123456789ab", 64);
    row["row"]["tp"] = json!(4);
    row["row"]["pcp-size"] = json!(2);
    row["row"]["recipe-fingerprint"] = json!("f".repeat(64));
    let job = Job::new(&row);
    job.file("r.json", &benchmark(64));
    assert_eq!(job.process(&["--result-filename", "r"]), (0, String::new()));
    let wanted = json!({
        "hw": "h200", "conc": 64, "image": "img:1", "model": "org/model", "infmax_model_prefix": "m1",
        "framework": "vllm", "precision": "fp8", "spec_decoding": "none", "disagg": false,
        "recipe_fingerprint": "f".repeat(64), "isl": 8192, "osl": 1024, "is_multinode": false, "tp": 4, "pp": 1,
        "dcp_size": 1, "pcp_size": 2, "ep": 1, "dp_attention": "false", "completed": 640,
        "tput_per_gpu": 2000.0, "output_tput_per_gpu": 1000.0, "input_tput_per_gpu": 1000.0,
        "mean_ttft": 0.25, "median_ttft": 0.2, "std_ttft": 0.0, "p99_ttft": 0.9, "mean_tpot": 0.02,
        "mean_intvty": 50.0, "p99.9_tpot": 0.04, "p99.9_intvty": 25.0, "std_tpot": 0.0, "mean_itl": 0.0195,
    });
    assert_eq!(read_json(&job.path().join("agg_r.json")), wanted);
}

#[test]
fn a_multi_node_result_is_divided_by_each_sides_gpus() {
    let mut row = multinode_envelope("0123456789ab", &[8, 16]);
    row["row"]["prefill"]["hardware"] = json!("h200-a");
    row["row"]["decode"]["hardware"] = json!("h200-b");
    let job = Job::new(&row);
    job.file("r_conc8.json", &benchmark(8));
    job.file("r_conc16.json", &benchmark(16));
    job.file("rest.json", &json!({}));
    assert_eq!(
        job.process(&["--result-filename", "r", "--out", "out"]),
        (0, String::new())
    );
    let aggregate = read_json(&job.path().join("out/agg_r_conc16.json"));
    assert_eq!(aggregate["conc"], 16);
    assert_eq!(
        (&aggregate["num_prefill_gpu"], &aggregate["num_decode_gpu"]),
        (&json!(8), &json!(8))
    );
    assert_eq!(
        (&aggregate["prefill_hw"], &aggregate["decode_hw"]),
        (&json!("h200-a"), &json!("h200-b"))
    );
    assert_eq!(
        (&aggregate["prefill_num_workers"], &aggregate["decode_dp_attention"]),
        (&json!(2), &json!("false"))
    );
    assert_eq!(aggregate["tput_per_gpu"], 1000.0);
    assert_eq!(aggregate["output_tput_per_gpu"], 1000.0);
    assert_eq!(aggregate["input_tput_per_gpu"], 1000.0);
    assert!(job.path().join("out/agg_r_conc8.json").is_file());
}

#[test]
fn an_agentic_result_says_what_was_offloaded() {
    let mut agentic = envelope("0123456789ab", 64);
    let row = agentic["row"].as_object_mut().expect("a row");
    for name in ["isl", "osl", "max-model-len", "disagg", "run-eval", "eval-only"] {
        row.remove(name);
    }
    let own = json!({"scenario-type": "agentic-coding", "kv-offloading": "dram", "total-cpu-dram-gb": 100,
                     "duration": 3600, "kv-offload-backend": {"name": "lmcache", "version": "1.2"}});
    row.extend(own.as_object().expect("fields").clone());
    let job = Job::new(&agentic);
    job.file("r.json", &benchmark(64));
    assert_eq!(job.process(&["r.json"]), (0, String::new()));
    let aggregate = read_json(&job.path().join("agg_r.json"));
    for (name, wanted) in [
        ("scenario_type", json!("agentic-coding")),
        ("kv_offloading", json!("dram")),
        ("kv_offload_backend", json!({"name": "lmcache", "version": "1.2"})),
        ("allocated_cpu_dram_gb", json!(100)),
        ("isl", Value::Null),
    ] {
        assert_eq!(aggregate[name], wanted, "{name}");
    }
}

#[test]
fn without_decode_gpus_output_is_divided_by_all() {
    let mut row = multinode_envelope("0123456789ab", &[8]);
    row["row"]["decode"]["num-worker"] = json!(0);
    let job = Job::new(&row);
    job.file("r_8.json", &benchmark(8));
    assert_eq!(job.process(&["r_8.json"]), (0, String::new()));
    let aggregate = read_json(&job.path().join("agg_r_8.json"));
    assert_eq!(aggregate["tput_per_gpu"], 2000.0);
    assert_eq!(aggregate["output_tput_per_gpu"], 1000.0);
    for size in ["tp", "pp", "dcp_size", "pcp_size", "ep", "num_workers"] {
        assert_eq!(aggregate[format!("decode_{size}")], 0, "{size}");
        assert_ne!(aggregate[format!("prefill_{size}")], 0, "{size}");
    }
    row["row"]["prefill"]["num-worker"] = json!(0);
    row["row"]["decode"]["num-worker"] = json!(1);
    job.file("envelope.json", &row);
    let (code, stderr) = job.process(&["r_8.json"]);
    assert_eq!(code, 1);
    assert!(stderr.contains("no prefill GPUs to divide by"), "{stderr}");
}

#[test]
fn zero_and_infinite_are_refused_by_name() {
    let job = Job::new(&envelope("0123456789ab", 64));
    for field in [
        "total_token_throughput",
        "output_throughput",
        "mean_ttft_ms",
        "p99.9_tpot_ms",
        "mean_itl_ms",
    ] {
        for value in [
            "0",
            "-0.5",
            "-1",
            "Infinity",
            "-Infinity",
            "NaN",
            "null",
            "\"5\"",
            "true",
        ] {
            let mut raw = benchmark(64);
            raw[field] = json!("HERE");
            write(job.path().join("r.json"), raw.to_string().replace("\"HERE\"", value));
            let (code, stderr) = job.process(&["r.json"]);
            assert_eq!(code, 1, "{field} {value}");
            assert!(
                stderr.contains(&format!("r.json: `{field}` is {value}, it must be")),
                "{stderr}"
            );
            assert!(!job.path().join("agg_r.json").exists());
        }
    }
}

#[test]
fn every_problem_of_every_file_is_said() {
    let job = Job::new(&multinode_envelope("0123456789ab", &[8, 16, 32]));
    let mut wrong = benchmark(64);
    wrong["model_id"] = json!(null);
    wrong["output_throughput"] = json!(16_000.0);
    wrong["mean_tpot_ms"] = json!(0);
    job.file("r_1.json", &wrong);
    write(job.path().join("r_2.json"), "");
    job.file("r_3.json", &benchmark(32));
    let (code, stderr) = job.process(&["--result-filename", "r"]);
    assert_eq!(code, 1);
    for wanted in [
        "`max_concurrency` is 64, the row is measured at 8, 16, 32",
        "`model_id` is null",
        "`output_throughput` is 16000, not below `total_token_throughput`",
        "`mean_tpot_ms` is 0",
        "r_2.json is empty",
        "5 problems",
    ] {
        assert!(stderr.contains(wanted), "no `{wanted}` in {stderr}");
    }
    assert!(job.path().join("agg_r_3.json").is_file());
}

#[test]
fn what_is_not_there_is_named() {
    let job = Job::new(&envelope("0123456789ab", 64));
    let (code, stderr) = job.process(&[]);
    assert_eq!(code, 1);
    assert!(stderr.contains("RESULT_FILENAME"), "{stderr}");
    let (code, stderr) = job.process(&["--result-filename", "gone"]);
    assert_eq!(code, 1);
    assert!(stderr.contains("gone.json cannot be read"), "{stderr}");
    job.file("envelope.json", &multinode_envelope("0123456789ab", &[8]));
    let (code, stderr) = job.process(&["--result-filename", "gone"]);
    assert_eq!(code, 1);
    assert!(stderr.contains("there is no `gone_*.json`"), "{stderr}");
    assert_eq!(job.process(&["x.json", "--result-filename", "gone"]).0, 2);
}

#[test]
fn two_files_of_one_name_are_refused_before_anything_is_written() {
    let job = Job::new(&multinode_envelope("0123456789ab", &[8, 16]));
    job.file("a/x.json", &benchmark(8));
    job.file("b/x.json", &benchmark(16));
    job.file("b/y.json", &benchmark(16));
    let (code, stderr) = job.process(&["b/y.json", "a/x.json", "b/x.json", "--out", "out"]);
    assert_eq!(code, 1);
    assert!(
        stderr.contains("a/x.json and b/x.json would both be written as `agg_x.json`"),
        "{stderr}"
    );
    assert!(!job.path().join("out").exists());
    assert_eq!(
        job.process(&["a/x.json", "b/y.json", "--out", "out"]),
        (0, String::new())
    );
}
