//! What the tests of results share: the binary, the corpus, and small result files.

use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use serde_json::{Value, json};

/// `sweepctl` in a folder, away from any runner.
pub fn sweepctl(folder: &Path) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("sweepctl"));
    command.current_dir(folder);
    for name in [
        "GITHUB_ACTIONS",
        "GITHUB_STEP_SUMMARY",
        "MODEL_PREFIX",
        "EVAL_LIMIT",
        "RESULT_FILENAME",
    ] {
        command.env_remove(name);
    }
    command
}

/// Runs, and gives status and texts.
pub fn run(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("sweepctl runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (status.code().expect("an exit code"), text(stdout), text(stderr))
}

/// A folder of the corpus; `None`, loudly, where there is no corpus.
pub fn corpus(part: &str) -> Option<PathBuf> {
    let root = std::env::var_os("SWEEPCTL_CORPUS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus"),
        PathBuf::from,
    );
    if root.is_dir() {
        return Some(root.join(part));
    }
    eprintln!(
        "NOT TESTED: there is no corpus at {}; name one in SWEEPCTL_CORPUS",
        root.display()
    );
    None
}

/// The cases of a part of the corpus.
pub fn cases(part: &str) -> Vec<PathBuf> {
    let Some(folder) = corpus(part) else {
        return Vec::new();
    };
    let entries = std::fs::read_dir(folder).expect("the corpus has this part");
    let mut cases: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    cases.sort();
    assert!(!cases.is_empty(), "{part} has no case");
    cases
}

pub fn read_json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

pub fn write(path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
    let path = path.as_ref();
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("created");
    std::fs::write(path, text).expect("written");
}

/// A result of one task, scored by strict match over 100 samples.
pub fn result(task: &str, score: f64) -> Value {
    json!({
        "results": {task: {"alias": task, "exact_match,strict-match": score, "exact_match_stderr,strict-match": 0.02}},
        "group_subtasks": {},
        "configs": {task: {"metric_list": [{"metric": "exact_match"}], "filter_list": [{"name": "strict-match"}]}},
        "n-samples": {task: {"original": 100, "effective": 100}},
        "config": {"limit": null},
        "model_name": "org/model",
    })
}

/// The metadata of a job on one node.
pub fn meta(conc: u64) -> Value {
    json!({
        "is_multinode": false, "framework": "vllm", "precision": "fp8", "spec_decoding": "none",
        "tp": 8, "pp": 1, "dcp_size": 1, "pcp_size": 1, "conc": conc, "ep": 1, "dp_attention": false,
        "model": "org/model", "infmax_model_prefix": "m1", "hw": "h200", "isl": "8192", "osl": "1024",
    })
}

/// The metadata of a batch.
pub fn batch(asked: &Value, completed: &Value, failed: &Value) -> Value {
    let mut meta = meta(16);
    meta["eval_concs"] = asked.clone();
    meta["completed_eval_concs"] = completed.clone();
    meta["failed_eval_concs"] = failed.clone();
    meta
}

/// The envelope of a job that evaluates at one concurrency.
pub fn envelope(id: &str, conc: u64) -> Value {
    json!({
        "id": id, "name": format!("m1 c{conc}"), "runs-on": "h200", "timeout-minutes": 360,
        "row": {
            "image": "img:1", "model": "org/model", "model-prefix": "m1", "precision": "fp8", "framework": "vllm",
            "runner": "h200", "isl": 8192, "osl": 1024, "tp": 8, "pp": 1, "dcp-size": 1, "pcp-size": 1, "ep": 1,
            "dp-attn": false, "spec-decoding": "none", "conc": conc, "max-model-len": 9472, "exp-name": "m1_8k1k",
            "disagg": false, "run-eval": true, "eval-only": true,
        },
    })
}

/// The envelope of a job on many nodes that evaluates every concurrency of its list.
pub fn multinode_envelope(id: &str, concs: &[u64]) -> Value {
    let role = |workers: u64, tp: u64| {
        json!({"num-worker": workers, "tp": tp, "pp": 1, "dcp-size": 1, "pcp-size": 1, "ep": 1, "dp-attn": false,
               "additional-settings": []})
    };
    let mut envelope = envelope(id, 1);
    let row = envelope["row"].as_object_mut().expect("a row");
    for name in ["tp", "pp", "dcp-size", "pcp-size", "ep", "dp-attn"] {
        row.remove(name);
    }
    row.insert("prefill".into(), role(2, 4));
    row.insert("decode".into(), role(1, 8));
    row.insert("conc".into(), json!(concs));
    row.insert("disagg".into(), json!(true));
    row.insert("eval-all-concs".into(), json!(true));
    envelope
}
