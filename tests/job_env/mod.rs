//! An envelope in, the environment of its job out.

mod clusters;
mod fields;
mod hostile;
mod rules;
mod shapes;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support;

/// A job's variables.
type Variables = BTreeMap<String, String>;

/// `job env` in a folder, on no runner.
fn job_env(folder: &Path, envelope: &Value, args: &[&str]) -> Command {
    let file = support::write(folder, "envelope.json", envelope.to_string());
    let mut command = support::sweepctl(folder);
    for name in ["RUNNER_NAME", "GITHUB_WORKSPACE", "MODEL_PATH"] {
        command.env_remove(name);
    }
    command.args(["job", "env", "--envelope"]).arg(file).args(args);
    command
}

fn output(command: &mut Command) -> Output {
    command.output().expect("the binary runs")
}

/// The variables that the command prints.
fn variables(command: &mut Command) -> Variables {
    let output = output(command);
    assert!(output.status.success(), "{}", support::stderr(&output));
    serde_json::from_slice(&output.stdout).expect("names and values as JSON")
}

/// An envelope of a row.
fn envelope(row: Value) -> Value {
    json!({"id": "0123456789ab", "name": "a job", "runs-on": "b200", "timeout-minutes": 360, "row": row})
}

/// A row of fixed sequences on one node.
fn single_fixed() -> Value {
    json!({
        "image": "vllm/vllm-openai:v0.25.1", "model": "org/Model-8B", "model-prefix": "model8b", "precision": "fp8",
        "framework": "vllm", "runner": "b200", "isl": 8192, "osl": 1024, "tp": 4, "pp": 2, "dcp-size": 2,
        "pcp-size": 1, "ep": 4, "dp-attn": true, "spec-decoding": "mtp", "conc": 64, "max-model-len": 9472,
        "exp-name": "model8b_8k1k", "disagg": false, "run-eval": true, "eval-only": true,
        "eval-framework": "lm-eval", "eval-suite": "", "recipe-fingerprint": "00112233445566778899aabbccddeeff",
    })
}

/// A multi-node row of fixed sequences.
fn multi_fixed() -> Value {
    json!({
        "image": "lmsysorg/sglang:v0.5", "model": "org/Model-R1", "model-prefix": "modelr1", "precision": "fp4",
        "framework": "dynamo-sglang", "runner": "gb200", "isl": 1024, "osl": 1024, "spec-decoding": "none",
        "prefill": {"num-worker": 2, "tp": 4, "ep": 4, "dp-attn": true, "hardware": "gb200", "pp": 1, "dcp-size": 1,
            "pcp-size": 2, "additional-settings": ["CONFIG_FILE=recipes/x.yaml", "A=b c=d"]},
        "decode": {"num-worker": 1, "tp": 16, "ep": 8, "dp-attn": false, "hardware": "gb300", "pp": 2, "dcp-size": 4,
            "pcp-size": 1, "additional-settings": ["DECODE_NODES=4", "A=b c=d"]},
        "conc": [256, 1024], "max-model-len": 2304, "exp-name": "modelr1_1k1k", "disagg": true,
        "run-eval": true, "eval-only": true, "eval-all-concs": true,
        "router": {"name": "sgl-router", "version": "0.3.2"}, "kv-p2p-transfer": "nixl",
        "srt-recipe": "recipes/x.yaml",
    })
}

/// An agentic row on one node.
fn single_agentic() -> Value {
    json!({
        "image": "vllm/vllm-openai:v0.25.1", "model": "/models/m3", "model-prefix": "minimaxm3", "precision": "fp8",
        "framework": "vllm", "runner": "cluster:b200-birch", "tp": 8, "pp": 1, "dcp-size": 1, "pcp-size": 1,
        "ep": 1, "dp-attn": false, "spec-decoding": "draft_model", "conc": 16, "kv-offloading": "dram",
        "kv-offload-backend": {"name": "lmcache", "version": "0.3"}, "total-cpu-dram-gb": 1499, "duration": 600,
        "exp-name": "minimaxm3_tp8_conc16_kvdram-lmcache_spec-draft_model", "scenario-type": "agentic-coding",
        "run-eval": true, "eval-framework": "minimax-vendor", "eval-suite": "minimax_m3_full",
    })
}

/// An multi-node agentic row.
fn multi_agentic() -> Value {
    json!({
        "image": "vllm/vllm-openai:v0.25.1", "model": "org/Model-K3", "model-prefix": "kimik3", "precision": "int4",
        "framework": "dynamo-vllm", "runner": "cluster:gb200-cedar", "spec-decoding": "none",
        "prefill": {"num-worker": 1, "tp": 4, "ep": 1, "dp-attn": false, "pp": 1, "dcp-size": 1, "pcp-size": 1},
        "decode": {"num-worker": 0, "tp": 4, "ep": 1, "dp-attn": false, "pp": 1, "dcp-size": 1, "pcp-size": 1},
        "conc": [32], "kv-offloading": "none", "total-cpu-dram-gb": 0, "duration": 3600,
        "exp-name": "kimik3_p1x4_d0x4_conc32", "disagg": false, "scenario-type": "agentic-coding",
        "run-eval": true, "eval-conc": 32, "eval-framework": "lm-eval", "eval-suite": "",
    })
}
