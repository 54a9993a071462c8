//! How long it takes to gather and judge a large sweep: `cargo bench --bench collect`.
//!
//! The aim: 2,000 eval artifacts under a second on two cores, whatever the size of their sample files.
//! `process_*` are whole processes, each beside the bare start of one, so that the ratio can be compared across machines.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use divan::Bencher;
use serde_json::{Value, json};
use sweepctl::config::thresholds::Thresholds;
use sweepctl::step::collect::{evals, throughput};
use sweepctl::step::results::samples;
use sweepctl::step::validate::{self, Request};
use tempfile::TempDir;

fn main() {
    divan::main();
}

fn write(path: &Path, text: &[u8]) {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("created");
    std::fs::write(path, text).expect("written");
}

/// A result with the bulk that a task's config has.
fn result(task: &str) -> Value {
    json!({
        "results": {task: {"alias": task, "exact_match,strict-match": 0.95, "exact_match_stderr,strict-match": 0.02}},
        "configs": {task: {"metric_list": [{"metric": "exact_match"}], "doc_to_text": "x".repeat(3000)}},
        "n-samples": {task: {"original": 1319, "effective": 1319}},
        "model_name": "org/model",
    })
}

/// A sample file of `lines` answers.
fn sample_file(lines: usize) -> Vec<u8> {
    let line = json!({"doc": {"question": "q".repeat(400)}, "arguments": "a".repeat(2000),
                      "resps": [["an answer of some length ".repeat(40)]], "exact_match": 1.0});
    format!("{line}\n").repeat(lines).into_bytes()
}

fn eval_artifacts(count: u64, samples: usize) -> TempDir {
    let root = tempfile::tempdir().expect("a folder");
    let samples = sample_file(samples);
    for at in 0..count {
        let folder = root.path().join(format!("eval_m_8k1k_{at:012x}"));
        let meta = json!({"conc": at + 1, "hw": "h200", "framework": "vllm", "infmax_model_prefix": "m",
                          "job_id": format!("{at:012x}"), "run_id": "1", "run_attempt": "1"});
        write(&folder.join("meta_env.json"), meta.to_string().as_bytes());
        write(
            &folder.join("results_2026-11-01T00-00-00.json"),
            result("gsm8k").to_string().as_bytes(),
        );
        write(&folder.join("samples_gsm8k_2026-11-01T00-00-00.jsonl"), &samples);
    }
    root
}

fn sweepctl(folder: &Path, args: &[&str]) {
    let status = Command::new(env!("CARGO_BIN_EXE_sweepctl"))
        .current_dir(folder)
        .args(args)
        .stdout(Stdio::null())
        .status();
    assert!(status.is_ok_and(|status| status.success()), "sweepctl {args:?}");
}

#[divan::bench(sample_count = 20)]
fn process_start() {
    sweepctl(Path::new("."), &["--version"]);
}

/// One process that collects 2,000 sets.
#[divan::bench(sample_count = 20)]
fn process_collect_2000_sets(bencher: Bencher<'_, '_>) {
    let root = eval_artifacts(2000, 1);
    let out = tempfile::tempdir().expect("a folder");
    let (root, out_path) = (
        root.path().to_str().expect("UTF-8"),
        out.path().to_str().expect("UTF-8"),
    );
    bencher.bench(|| sweepctl(out.path(), &["collect", "evals", root, "--strict", "--out", out_path]));
}

/// One process that judges 2,000 points, with a sample file each.
#[divan::bench(sample_count = 20)]
fn process_gate_2000_points(bencher: Bencher<'_, '_>) {
    let root = tempfile::tempdir().expect("a folder");
    batch(root.path(), 2000);
    bencher.bench(|| sweepctl(root.path(), &["eval", "validate"]));
}

/// 2,000 artifacts with small and with large sample files take the same time: those are not read.
#[divan::bench(args = [1, 20], sample_count = 10)]
fn collect_2000_evals(bencher: Bencher<'_, '_>, samples: usize) {
    let root = eval_artifacts(2000, samples);
    bencher.bench(|| {
        let found = evals::collect(root.path(), None, evals::Order::Model, &Thresholds::default()).expect("gathered");
        assert_eq!((found.rows.len(), found.problems.len()), (2000, 0));
    });
}

#[divan::bench(sample_count = 5)]
fn collect_10000_throughput_results(bencher: Bencher<'_, '_>) {
    let root = tempfile::tempdir().expect("a folder");
    for at in 0..10_000 {
        let text = json!({"conc": at + 1, "hw": "h200", "infmax_model_prefix": "m", "tput_per_gpu": 1.5,
                          "note": "n".repeat(1500)});
        write(
            &root.path().join(format!("bmk_m_{at:012x}/agg_r.json")),
            text.to_string().as_bytes(),
        );
    }
    bencher.bench(|| {
        let found = throughput::collect(root.path(), None, Path::new("none")).expect("gathered");
        assert_eq!((found.aggregates.len(), found.problems.len()), (10_000, 0));
    });
}

/// Lays a batch of points with their sample files.
fn batch(root: &Path, count: u64) {
    let concs: Vec<u64> = (1..=count).collect();
    let meta = json!({"conc": 1, "eval_concs": concs, "completed_eval_concs": concs, "failed_eval_concs": []});
    write(&root.join("meta_env.json"), meta.to_string().as_bytes());
    let samples = sample_file(20);
    for conc in &concs {
        let name = |start: &str, end: &str| root.join(format!("{start}_2026-11-01T00-00-00_conc{conc}.{end}"));
        let mut result = result("gsm8k");
        result["n-samples"]["gsm8k"] = json!({"original": 20, "effective": 20});
        write(&name("results", "json"), result.to_string().as_bytes());
        write(&name("samples_gsm8k", "jsonl"), &samples);
    }
}

#[divan::bench(sample_count = 5)]
fn validate_1000_results(bencher: Bencher<'_, '_>) {
    let root = tempfile::tempdir().expect("a folder");
    batch(root.path(), 1000);
    let concs: Vec<u64> = (1..=1000).collect();
    let results: Vec<PathBuf> = concs
        .iter()
        .map(|conc| root.path().join(format!("results_2026-11-01T00-00-00_conc{conc}.json")))
        .collect();
    let request = Request {
        thresholds: Thresholds::default(),
        min_score: validate::MIN_SCORE,
        model_prefix: None,
        fallback_prefix: None,
        metric_prefix: None,
        expected_concs: Some(concs),
        limited: false,
        envelope: None,
        pattern: "results*.json".to_owned(),
        asked: validate::Asked::default(),
        run: (None, None),
        meta_env: root.path().join("meta_env.json"),
        results,
    };
    bencher.bench(|| {
        let report = validate::validate(&request);
        assert_eq!((report.checks.len(), report.problems.len()), (1000, 0));
    });
}

/// One sample file of 300 MB.
#[divan::bench(sample_count = 5)]
fn scan_a_large_sample_file(bencher: Bencher<'_, '_>) {
    let root = tempfile::tempdir().expect("a folder");
    let path = root.path().join("samples.jsonl");
    write(&path, &sample_file(88_000));
    let size = std::fs::metadata(&path).expect("a file").len();
    bencher
        .counter(divan::counter::BytesCount::new(size))
        .bench(|| assert_eq!(samples::count(&path).expect("scanned").total, 88_000));
}
