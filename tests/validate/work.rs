//! A folder that an eval ended in, and what the gate says of it.

use std::ops::Deref;

use serde_json::{Value, json};

use crate::fixture::folder::Folder;
use crate::fixture::{batch, gate, meta, result, run};

const THRESHOLDS: &str = "\
default:
  plain: 0.9
  tuned: {min-score: 0.8, metric: f1, max-empty: 0.5, mean: 0.85, spread: 0.01, samples: 900}
models:
  strict: {plain: 0.97}
";

/// A folder that an eval ended in.
pub struct Work(Folder);

impl Deref for Work {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.0
    }
}

impl Work {
    /// One point of one task that passes.
    pub fn new() -> Self {
        let work = Self(Folder::new());
        work.text("thresholds.yaml", THRESHOLDS);
        work.file("meta_env.json", &meta(64));
        work.file("results.json", &result("plain", 0.95));
        work
    }

    /// A batch over 16 and 32 that passes.
    pub fn batch() -> Self {
        let work = Self::new();
        work.remove("results.json");
        work.file("meta_env.json", &batch(&json!([16, 32]), &json!([16, 32]), &json!([])));
        work.file("results_conc16.json", &result("plain", 0.95));
        work.file("results_conc32.json", &result("plain", 0.95));
        work
    }

    pub fn judge(&self, args: &[&str]) -> (i32, Value, String) {
        let (code, stdout, stderr) = run(gate(self.path()).args(args));
        (code, serde_json::from_str(&stdout).unwrap_or(Value::Null), stderr)
    }

    #[track_caller]
    pub fn passes(&self, args: &[&str]) -> Value {
        let (code, report, stderr) = self.judge(args);
        assert_eq!((code, stderr.as_str()), (0, ""));
        report
    }

    /// Fails with exactly these problems: each is part of one message, and there are no more.
    #[track_caller]
    pub fn fails(&self, args: &[&str], wanted: &[&str]) -> String {
        let (code, report, stderr) = self.judge(args);
        assert_eq!(code, 1, "{stderr}");
        for part in wanted {
            assert!(stderr.contains(part), "no `{part}` in\n{stderr}");
        }
        if let Some(problems) = report["problems"].as_array() {
            assert_eq!(problems.len(), wanted.len(), "{stderr}");
        }
        stderr
    }
}
