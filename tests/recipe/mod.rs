//! `sweepctl recipe`: accuracy benchmarks in recipes of srt-slurm.

mod accuracy;
mod check;
mod rows;
mod schema_two;

use std::path::Path;

use serde_json::Value;

use crate::support::{run, stderr, write};

/// A recipe of schema 2, of a model that reasons only when told to.
pub const TWO: &str = "\
# The deployment.
schema: 2
name: one
model:
  path: deepseek-ai/DeepSeek-V4-Pro  # weights
  precision: fp4
resources:
  gpu_type: gb200
  gpus_per_node: 4
engine: sglang
roles:
  # Two workers on two nodes.
  prefill:
    nodes: 2
    workers: 2
    args:
      served-model-name: dspro
      context-length: 409600
      tensor-parallel-size: 4
  decode:
    nodes: 4
    workers: 2
    env:
      NCCL_DEBUG: INFO
    args:
      served-model-name: dspro
      context-length: 409600
      tensor-parallel-size: 8

# What is measured.
benchmark:
  type: sa-bench  # throughput
  isl: 8192
  osl: 1024
  concurrencies: [16, 64]

health_check:
  max_attempts: 360
";

/// The same of schema 1.
pub const ONE: &str = "\
name: one
model:
  path: deepseek-ai/DeepSeek-V4-Pro
  container: sglang
  precision: fp4
resources:
  gpu_type: gb200
  gpus_per_node: 4
  prefill_nodes: 2
  prefill_workers: 2
  decode_nodes: 4
  decode_workers: 2
backend:
  type: sglang  # the engine
  sglang_config:
    prefill:
      served-model-name: dspro
      context-length: 409600
      tensor-parallel-size: 4
    decode:
      served-model-name: dspro
      context-length: 409600
      tensor-parallel-size: 8
benchmark:
  type: sa-bench
  isl: 8192
  osl: 1024
  concurrencies: [16, 64]
";

/// A recipe with a benchmark written into it.
pub fn written(recipe: &str, args: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let path = write(folder.path(), "r.yaml", recipe);
    let output = run(
        folder.path(),
        [&["recipe", "accuracy", args[0], "r.yaml"], &args[1..]].concat(),
    );
    assert!(output.status.success(), "{}", stderr(&output));
    std::fs::read_to_string(path).expect("the recipe")
}

/// The ids of what `recipe check` refuses and warns of, in their order.
pub fn found(folder: &Path, recipe: &str) -> Vec<String> {
    write(folder, "r.yaml", recipe);
    let output = run(folder, ["recipe", "check", "r.yaml", "--format", "sarif"]);
    let log: Value = serde_json::from_slice(&output.stdout).expect("a log");
    let results = log["runs"][0]["results"].as_array().expect("results").clone();
    let is_refused = results.iter().any(|result| result["level"] == "error");
    assert_eq!(output.status.code(), Some(i32::from(is_refused)), "{}", stderr(&output));
    let place = |result: &Value| result["locations"][0]["physicalLocation"]["region"]["startLine"].as_u64();
    assert!(results.iter().all(|result| place(result).is_some()), "{log}");
    results
        .iter()
        .map(|result| result["ruleId"].as_str().expect("an id").to_owned())
        .collect()
}
