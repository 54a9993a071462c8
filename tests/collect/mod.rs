//! `sweepctl collect`: sets and aggregates of a whole sweep, held against its plan.

mod accuracy;
mod benchmark;
mod beside;
mod evals;
mod planned;
mod results;
mod unfit;

use std::ops::Deref;

use serde_json::{Value, json};

use crate::fixture::folder::Folder;
use crate::fixture::{meta, result, run, sweepctl};

/// A folder with `artifacts/`.
struct Sweep(Folder);

impl Deref for Sweep {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.0
    }
}

impl Sweep {
    fn new() -> Self {
        Self(Folder::new())
    }

    fn file(&self, name: &str, value: &Value) {
        self.0.file(&format!("artifacts/{name}"), value);
    }

    /// A set of one task at one concurrency.
    fn set(&self, folder: &str, meta: &Value, score: f64) {
        self.file(&format!("{folder}/meta_env.json"), meta);
        self.file(
            &format!("{folder}/results_2026-11-01T00-00-00.json"),
            &result("gsm8k", score),
        );
    }

    fn plan(&self, envelopes: &Value) {
        self.0.file("plan.json", envelopes);
    }

    fn collect(&self, what: &str, args: &[&str]) -> (i32, Value, String) {
        let mut command = sweepctl(self.path());
        let (code, stdout, stderr) = run(command.args(["collect", what, "artifacts"]).args(args));
        (code, serde_json::from_str(&stdout).unwrap_or(Value::Null), stderr)
    }

    #[track_caller]
    fn evals(&self, args: &[&str]) -> Value {
        let (code, printed, stderr) = self.collect("evals", args);
        assert_eq!(code, 0, "{stderr}");
        printed
    }
}

fn column(printed: &Value, list: &str, field: &str) -> Vec<Value> {
    printed[list]
        .as_array()
        .expect("a list")
        .iter()
        .map(|row| row[field].clone())
        .collect()
}

fn attempt(job: &str, run: u64, attempt: u64) -> Value {
    let mut meta = meta(64);
    meta["job_id"] = json!(job);
    meta["run_id"] = json!(run.to_string());
    meta["run_attempt"] = json!(attempt);
    meta
}

const JOB: &str = "0123456789ab";
const OTHER: &str = "ba9876543210";
