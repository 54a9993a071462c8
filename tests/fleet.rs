//! The matrix over a small made-up fleet. Every expectation here was worked out by hand from the rules.

mod append_only;
mod evals;
mod plan;
mod select;

use serde_json::{Value, json};

use crate::support::fleet::{edit, fixture, folder, lines, wanted};
use crate::support::{self, difference, run, stderr};

/// Rows of the fixture itself, which nothing changes.
fn generate(args: &[&str]) -> Value {
    let mut all = vec!["generate"];
    all.extend(args);
    support::json(&fixture("fleet"), all)
}

fn generated(args: &[&str]) -> Vec<String> {
    lines(&generate(args))
}

#[track_caller]
fn same(found: &[String], text: &str) {
    let wanted = wanted(text);
    assert_eq!(found, wanted, "found\n{}\n", found.join("\n"));
}

/// What generating says when it is refused.
fn refusal(folder: &std::path::Path, args: &[&str]) -> String {
    let mut all = vec!["generate"];
    all.extend(args);
    let output = run(folder, all);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(output.stdout.is_empty());
    stderr(&output)
}

#[test]
fn rows_follow_configs_scenarios_and_lists() {
    // The agentic scenario of beta stands first in its file, and comes second.
    same(
        &generated(&["full-sweep", "--no-evals"]),
        "alpha_1k1k tp2 4 no
         alpha_1k1k tp2 8 no
         alpha_1k1k tp2 16 no
         alpha_1k1k tp2 20 no
         alpha_8k1k tp1 8 no
         alpha_8k1k tp1 16 no
         alpha_8k1k tp1 32 no
         alpha_8k1k tp4 16 no
         alpha_8k1k tp4 32 no
         alpha_8k1k tp4 64 no
         alpha_8k1k tp2 4 no
         alpha_8k1k tp2 8 no
         alpha_2048_512 tp8 1 no
         beta_8k1k tp8 16 no
         beta_tp2_conc2_kvnone tp2 2
         beta_tp2_conc4_kvnone tp2 4
         beta_tp4_conc8_kvdram-lmcache_spec-mtp tp4 8
         kimik3_tp8_conc4_kvnone tp8 4
         kimik3_tp8_conc16_kvnone tp8 16
         gamma_1k1k 1x4/2x8 [4] no
         gamma_8k1k 1x4/1x8 [64,8,32] no
         gamma_8k1k 1x4/1x8 [16,128] no
         gamma_8k1k 2x8/1x8 [2,4,8,12] no
         delta_p1x8_d0x8_conc4 1x8/0x8 [4]
         delta_p1x8_d0x8_conc8 1x8/0x8 [8]
         delta_p1x4ep4dpa_d1x8ep8_conc2_kvdram-hicache 1x4/1x8 [2]
         minimaxm3_p1x4_d1x4_conc16 1x4/1x4 [16]
         minimaxm3_p1x4_d1x4_conc32 1x4/1x4 [32]",
    );
}

fn row(rows: &Value, index: usize, wanted: &Value) {
    if let Some(difference) = difference(&rows[index], wanted) {
        panic!("{difference}");
    }
}

#[test]
fn the_four_shapes_have_their_fields() {
    let rows = generate(&["full-sweep", "--no-evals"]);
    row(
        &rows,
        12,
        &json!({
            "image": "example/vllm:1", "model": "org/alpha", "model-prefix": "alpha", "precision": "fp8",
            "framework": "vllm", "runner": "mi", "isl": 2048, "osl": 512, "tp": 8, "pp": 2, "dcp-size": 4,
            "pcp-size": 2, "conc": 1, "max-model-len": 2816, "ep": 1, "dp-attn": false, "spec-decoding": "none",
            "exp-name": "alpha_2048_512", "disagg": false, "run-eval": false,
            "router": {"name": "rr", "version": "1.10"},
        }),
    );
    row(
        &rows,
        16,
        &json!({
            "image": "example/vllm:1", "model": "org/beta", "model-prefix": "beta", "precision": "fp8",
            "framework": "vllm", "runner": "cluster:mi-a", "tp": 4, "pp": 1, "dcp-size": 1, "pcp-size": 1, "ep": 1,
            "dp-attn": false, "spec-decoding": "mtp", "conc": 8, "kv-offloading": "dram",
            "kv-offload-backend": {"name": "lmcache", "version": "1.10"}, "total-cpu-dram-gb": 435,
            "duration": 3600, "exp-name": "beta_tp4_conc8_kvdram-lmcache_spec-mtp",
            "scenario-type": "agentic-coding",
        }),
    );
    row(
        &rows,
        22,
        &json!({
            "image": "example/sglang:2", "model": "org/gamma", "model-prefix": "gamma", "precision": "fp4",
            "framework": "sglang", "runner": "nv-pair", "isl": 8192, "osl": 1024, "spec-decoding": "none",
            "prefill": {"num-worker": 2, "tp": 8, "pp": 1, "dcp-size": 1, "pcp-size": 1, "ep": 8, "dp-attn": true,
                        "additional-settings": ["A=1"]},
            "decode": {"num-worker": 1, "tp": 8, "pp": 1, "dcp-size": 1, "pcp-size": 1, "ep": 8, "dp-attn": true},
            "conc": [2, 4, 8, 12], "max-model-len": 9472, "exp-name": "gamma_8k1k", "disagg": true,
            "run-eval": false, "router": {"name": "rr", "version": "2"}, "kv-p2p-transfer": "nixl",
        }),
    );
    row(
        &rows,
        25,
        &json!({
            "image": "example/trt:3", "model": "org/delta", "model-prefix": "delta", "precision": "fp4",
            "framework": "trt", "runner": "cluster:nv", "spec-decoding": "none",
            "prefill": {"num-worker": 1, "tp": 4, "pp": 2, "dcp-size": 1, "pcp-size": 1, "ep": 4, "dp-attn": true},
            "decode": {"num-worker": 1, "tp": 8, "pp": 1, "dcp-size": 1, "pcp-size": 1, "ep": 8, "dp-attn": false},
            "conc": [2], "kv-offloading": "dram", "kv-offload-backend": {"name": "hicache"},
            "total-cpu-dram-gb": 2399, "duration": 3600,
            "exp-name": "delta_p1x4ep4dpa_d1x8ep8_conc2_kvdram-hicache", "disagg": false,
            "scenario-type": "agentic-coding",
        }),
    );
}

/// The memory of beta's offloading row, with its block's share and its hardware replaced.
fn dram(share: &str, mib: &str, tp: &str) -> Value {
    let folder = folder();
    edit(
        folder.path(),
        "configs/amd-master.yaml",
        "dram-utilization: 0.83",
        &format!("dram-utilization: {share}"),
    );
    edit(
        folder.path(),
        "configs/amd-master.yaml",
        "- tp: 4\n        spec",
        &format!("- tp: {tp}\n        spec"),
    );
    edit(
        folder.path(),
        "configs/runners.yaml",
        "cluster:mi-a: { available-cpu-dram-mib: 1_000_000",
        &format!("cluster:mi-a: {{ available-cpu-dram-mib: {mib}"),
    );
    let rows = support::json(
        folder.path(),
        [
            "generate",
            "test-config",
            "--config-keys",
            "beta-mi-vllm-fp8",
            "--conc",
            "8",
        ],
    );
    rows[0]["total-cpu-dram-gb"].clone()
}

#[test]
fn host_memory_is_exact_floored_and_capped() {
    // 1,000,000 MiB = 1,048,576,000,000 bytes; x 0.83 x 4/8 = 435.159... GB.
    assert_eq!(dram("0.83", "1_000_000", "4"), 435);
    // 1,953,125 MiB are 2,048 GB. Half of it is 1,024, and a hair less than half is not.
    assert_eq!(dram("0.5", "1953125", "8"), 1024);
    assert_eq!(dram("0.4999999999999999999", "1953125", "8"), 1023);
    // 2,861,022 MiB = 2,999,999,004,672 bytes is the most that counts.
    assert_eq!(dram("1", "2_861_022", "8"), 2999);
    assert_eq!(dram("1", "2_147_483_647", "8"), 2999);
    assert_eq!(dram("1.0", "2_147_483_647", "1"), 374);
    // 1 MiB x 1e-9 x 1/8 is nothing, and nothing is no error.
    assert_eq!(dram("0.000000001", "1", "1"), 0);
}

#[test]
fn host_memory_that_cannot_be_sized_is_refused() {
    let folder = folder();
    let args = ["test-config", "--config-keys", "*"];
    let master = "configs/amd-master.yaml";
    edit(
        folder.path(),
        master,
        "- tp: 4\n        spec",
        "- tp: 8\n        pp: 2\n        spec",
    );
    let said = refusal(folder.path(), &args);
    assert!(said.contains("16 GPUs on one node, which has 8"), "{said}");
    assert!(said.contains("amd-master.yaml:"), "{said}");

    edit(folder.path(), master, "- tp: 8\n        pp: 2", "- tp: 4");
    let nvidia = "configs/nvidia-master.yaml";
    edit(folder.path(), nvidia, "tp: 4, pp: 2, ep: 4", "tp: 3, pp: 2, ep: 4");
    let said = refusal(folder.path(), &args);
    assert!(
        said.contains("a prefill replica of 6 GPUs does not fit nodes of 4 evenly"),
        "{said}"
    );

    edit(folder.path(), nvidia, "tp: 3, pp: 2, ep: 4", "tp: 4, pp: 2, ep: 4");
    edit(
        folder.path(),
        "configs/runners.yaml",
        "  cluster:nv: { available-cpu-dram-mib: 3_000_000, gpus-per-node: 4 }\n",
        "",
    );
    // Only rows that offload need the facts, and the message lists the labels that have them.
    let said = refusal(folder.path(), &args);
    assert!(said.contains("`cluster:nv`, whose hardware is not known"), "{said}");
    assert!(said.contains("labels with hardware: cluster:mi-a"), "{said}");
    let alone = ["generate", "test-config", "--config-keys", "minimax-nv-vllm-fp4"];
    assert!(run(folder.path(), alone).status.success());
}

#[test]
fn a_prefill_replica_within_a_node_takes_its_share() {
    let folder = folder();
    // Two of four GPUs: half of 2,999,999,004,672 x 0.8 bytes.
    edit(
        folder.path(),
        "configs/nvidia-master.yaml",
        "tp: 4, pp: 2, ep: 4",
        "tp: 1, pp: 2, ep: 4",
    );
    let rows = support::json(
        folder.path(),
        ["generate", "test-config", "--config-keys", "delta-*", "--conc", "2"],
    );
    assert_eq!(rows[0]["total-cpu-dram-gb"], 1199);
}

#[test]
fn ranges_multiply_by_the_step_and_end_at_their_end() {
    let points = |step: &str| {
        let rows = generate(&[
            "full-sweep",
            "--model-prefix",
            "alpha",
            "--seq-lens",
            "1k1k",
            "--step-size",
            step,
        ]);
        let rows = rows.as_array().expect("rows");
        rows.iter()
            .map(|row| row["conc"].as_u64().expect("a point"))
            .collect::<Vec<_>>()
    };
    assert_eq!(points("2"), [4, 8, 16, 20]);
    assert_eq!(points("3"), [4, 12, 20]);
    assert_eq!(points("5"), [4, 20]);
    assert_eq!(points("100"), [4, 20]);
    assert_eq!(points("9223372036854775807"), [4, 20]);
}

#[test]
fn equal_sizes_are_one_topology_however_they_are_written() {
    let folder = folder();
    // `ep: 1` and `dp-attn: false` are the defaults: written out they deploy the same.
    edit(
        folder.path(),
        "configs/amd-master.yaml",
        "- { tp: 1, conc-list: [8, 16, 32] }",
        "- { tp: 1, conc-list: [16, 32] }\n      - { tp: 1, ep: 1, dp-attn: false, conc-list: [8] }",
    );
    let args = [
        "generate",
        "test-config",
        "--config-keys",
        "alpha-*",
        "--seq-lens",
        "8k1k",
        "--trim-conc",
        "--no-evals",
    ];
    same(
        &lines(&support::json(folder.path(), args)),
        "alpha_8k1k tp1 8 no
         alpha_8k1k tp4 16 no
         alpha_8k1k tp2 4 no",
    );
}

#[test]
fn files_are_read_with_the_habits_of_yaml_1_1() {
    let folder = folder();
    let master = "configs/amd-master.yaml";
    edit(
        folder.path(),
        master,
        "{ name: rr, version: \"1.10\" }",
        "{ name: rr, version: 1.10 }",
    );
    edit(
        folder.path(),
        master,
        "image: example/vllm:1\n  model: org/alpha",
        "image: 0.8.1.post1\n  model: 010",
    );
    edit(
        folder.path(),
        master,
        "{ tp: 8, pp: 2, dcp-size: 4",
        "{ tp: 0x8, pp: 2, dp-attn: on, dcp-size: 4",
    );
    let args = ["generate", "test-config", "--config-keys", "alpha-*", "--conc", "1"];
    let row = support::json(folder.path(), args)[0].clone();
    assert_eq!(row["router"]["version"], "1.10");
    assert_eq!(row["image"], "0.8.1.post1");
    assert_eq!(row["model"], "010");
    assert_eq!(row["tp"], 8);
    assert_eq!(row["dp-attn"], true);
}
