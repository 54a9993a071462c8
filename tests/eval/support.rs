//! What the tests of eval steps share.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support;

/// The checkout.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The binary, in an environment without what a shell or a runner may have set.
pub fn sweepctl() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sweepctl"));
    let ours = [
        "EVAL_", "GITHUB_", "RUNNER_", "MODEL", "PREFILL_", "DECODE_", "HF_", "IS_",
    ];
    let exact = [
        "CONC",
        "TP",
        "ISL",
        "OSL",
        "FRAMEWORK",
        "RUN_EVAL",
        "OPENAI_API_KEY",
        "RESULT_FILENAME",
        "MAX_MODEL_LEN",
    ];
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if ours.iter().any(|start| text.starts_with(start)) || exact.contains(&&*text) {
            command.env_remove(&name);
        }
    }
    command.current_dir(root());
    command
}

/// The envelope of a single-node eval job, with some of its row's fields replaced.
pub fn envelope(id: &str, replaced: Value) -> Value {
    let mut row = json!({
        "image": "engine:1", "model": "org/stub-7b", "model-prefix": "stub", "precision": "fp8",
        "framework": "sglang", "runner": "h200", "isl": 8192, "osl": 1024, "tp": 8, "pp": 1, "dcp-size": 1,
        "pcp-size": 1, "ep": 1, "dp-attn": false, "spec-decoding": "none", "conc": 4, "max-model-len": 9472,
        "exp-name": "stub_8k1k", "disagg": false, "run-eval": true, "eval-only": true,
        "eval-framework": "lm-eval", "eval-suite": ""
    });
    for (name, value) in replaced.as_object().expect("an object") {
        row[name] = value.clone();
    }
    json!({"id": id, "name": "stub 8k1k", "runs-on": "h200", "timeout-minutes": 360, "row": row})
}

/// The same for a multi-node job: its row has prefill and decode instead of one topology.
pub fn multi_node(id: &str, conc: &[u64]) -> Value {
    let side = |workers: u64| json!({"num-worker": workers, "tp": 4, "ep": 4, "dp-attn": true});
    let mut all = envelope(id, json!({"framework": "dynamo-trt", "eval-all-concs": true}));
    support::spread(&mut all["row"], [side(2), side(3)], conc);
    all
}

/// Writes JSON to a file of a folder.
pub fn write_json(folder: &Path, name: &str, value: &Value) -> PathBuf {
    let file = folder.join(name);
    std::fs::write(&file, value.to_string()).expect("a file");
    file
}

/// Reads JSON from a file.
pub fn read_json(file: &Path) -> Value {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The names in a folder, sorted.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
