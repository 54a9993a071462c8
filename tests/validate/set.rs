//! One good set with its envelope and thresholds, to be changed.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::fixture::{envelope, meta, run, sweepctl, write};

pub const ID: &str = "0123456789ab";
pub const RESULT: &str = "results_2026-11-01T00-00-00.json";
pub const SAMPLES: &str = "samples_gsm8k_2026-11-01T00-00-00.jsonl";

/// The files of a set, by name.
#[derive(Clone)]
pub struct Set(pub BTreeMap<String, String>);

impl Set {
    pub fn good() -> Self {
        let mut envelope = envelope(ID, 64);
        envelope["row"]["eval-framework"] = json!("lm-eval");
        envelope["row"]["eval-suite"] = json!("gsm8k");
        let mut meta = meta(64);
        meta["job_id"] = json!(ID);
        meta["eval_suite"] = json!("gsm8k");
        meta["run_id"] = json!("7001");
        meta["run_attempt"] = json!("2");
        let result = json!({
            "results": {"gsm8k": {"alias": "gsm8k", "exact_match,strict-match": 0.95,
                "exact_match_stderr,strict-match": 0.02, "exact_match,flexible-extract": 0.96,
                "exact_match_stderr,flexible-extract": 0.02}},
            "group_subtasks": {},
            "configs": {"gsm8k": {"metric_list": [{"metric": "exact_match", "higher_is_better": true}],
                "filter_list": [{"name": "strict-match"}, {"name": "flexible-extract"}]}},
            "higher_is_better": {"gsm8k": {"exact_match": true}},
            "n-samples": {"gsm8k": {"original": 20, "effective": 20}},
            "config": {"limit": null},
            "model_name": "org/model",
        });
        let mut set = Self(BTreeMap::new());
        set.put("envelope.json", envelope.to_string());
        set.put("meta_env.json", meta.to_string());
        set.put(RESULT, result.to_string());
        set.put(SAMPLES, samples(20, |_| "so it is 4".to_owned()));
        set.put("thresholds.yaml", "default: { gsm8k: 0.9 }\n".to_owned());
        set
    }

    pub fn put(&mut self, name: &str, text: impl Into<String>) {
        self.0.insert(name.to_owned(), text.into());
    }

    pub fn json(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut value: Value = serde_json::from_str(&self.0[name]).expect("JSON");
        change(&mut value);
        self.put(name, value.to_string());
    }

    /// Sets what a pointer names, or removes it.
    pub fn set(&mut self, name: &str, pointer: &str, value: Option<Value>) {
        self.json(name, |root| {
            let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
            let parent = root
                .pointer_mut(parent)
                .expect("its parent")
                .as_object_mut()
                .expect("an object");
            let key = key.replace("~1", "/");
            match value {
                Some(value) => parent.insert(key, value),
                None => parent.remove(&key),
            };
        });
    }

    pub fn replace(&mut self, name: &str, from: &str, to: &str) {
        let text = &self.0[name];
        assert!(text.contains(from), "{name} has no {from}");
        let text = text.replacen(from, to, 1);
        self.put(name, text);
    }

    /// The gate's exit code and what it says.
    pub fn judge(&self) -> (i32, String) {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in &self.0 {
            write(folder.path().join(name), text);
        }
        let mut command = sweepctl(folder.path());
        command
            .env("GITHUB_RUN_ID", "7001")
            .env("GITHUB_RUN_ATTEMPT", "2")
            .env_remove("RUNNER_NAME");
        command.args([
            "eval",
            "validate",
            "--envelope",
            "envelope.json",
            "--thresholds",
            "thresholds.yaml",
        ]);
        let (code, _, stderr) = run(&mut command);
        (code, stderr)
    }

    /// The collector's rows.
    pub fn rows(&self) -> Vec<Value> {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in &self.0 {
            write(folder.path().join("sets/a").join(name), text);
        }
        let mut command = sweepctl(folder.path());
        command.arg("collect").arg("evals").arg("sets");
        command
            .arg("--thresholds")
            .arg(folder.path().join("sets/a/thresholds.yaml"));
        let (_, stdout, stderr) = run(&mut command);
        // Thresholds that cannot be read are an error of the whole command.
        let Ok(printed) = serde_json::from_str::<Value>(&stdout) else {
            assert!(stderr.contains("thresholds"), "{stderr}");
            return Vec::new();
        };
        printed["rows"].as_array().expect("rows").clone()
    }
}

/// Sample lines of two filters, with an answer a question.
pub fn samples(questions: usize, answer: impl Fn(usize) -> String) -> String {
    let line = |(filter, id): (&str, usize)| {
        json!({"doc_id": id, "resps": [[answer(id)]], "filtered_resps": ["4"], "filter": filter}).to_string() + "\n"
    };
    let filters = ["strict-match", "flexible-extract"];
    filters
        .iter()
        .flat_map(|filter| (0..questions).map(|id| (*filter, id)))
        .map(line)
        .collect()
}
