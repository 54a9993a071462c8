//! Append-only entries over the fleet: what they plan, and what they refuse.

use serde_json::Value;

use crate::support::fleet::{edit, entry, lines, log, repository};
use crate::support::{self, run, stderr};

const AMD: &str = "configs/amd-master.yaml";
const NVIDIA: &str = "configs/nvidia-master.yaml";
const ARGS: [&str; 5] = ["plan", "--base-ref", "HEAD~1", "--head-ref", "HEAD"];

/// A change of the fleet's files with an append-only entry for config keys.
fn change(edits: &[(&str, &str, &str)], entries: &str) -> tempfile::TempDir {
    let folder = repository();
    for (path, old, new) in edits {
        edit(folder.path(), path, old, new);
    }
    log(folder.path(), entries);
    folder
}

fn append(keys: &str, more: &str) -> String {
    entry(keys, &format!("  append-only: true\n{more}"))
}

#[track_caller]
fn planned(edits: &[(&str, &str, &str)], entries: &str) -> Value {
    support::json(change(edits, entries).path(), ARGS)
}

#[track_caller]
fn refused(edits: &[(&str, &str, &str)], entries: &str, reason: &str) {
    let output = run(change(edits, entries).path(), ARGS);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{reason}");
    assert!(output.stdout.is_empty());
    assert!(said.contains(reason), "wanted `{reason}`\n{said}");
}

const ALPHA: &str = "alpha-mi-vllm-fp8";
const MORE_POINTS: (&str, &str, &str) = (AMD, "conc-list: [8, 16, 32]", "conc-list: [4, 8, 16, 32, 64]");

#[test]
fn new_points_alone_are_planned() {
    let plan = planned(&[MORE_POINTS], &append(ALPHA, ""));
    assert_eq!(
        lines(&plan["single_node"]["8k1k"]),
        ["alpha_8k1k tp1 4 no", "alpha_8k1k tp1 64 no"]
    );
    assert_eq!(plan["single_node"].as_object().map(serde_json::Map::len), Some(1));
    assert_eq!(plan["evals"].as_array().map(Vec::len), Some(0));
    // The same points from another form of the same entry are the same.
    let range = (AMD, "conc-start: 4, conc-end: 20", "conc-list: [20, 4, 16, 8, 40]");
    assert_eq!(
        lines(&planned(&[range], &append(ALPHA, ""))["single_node"]["1k1k"]),
        ["alpha_1k1k tp2 40 no"]
    );
}

#[test]
fn a_multi_node_list_keeps_its_new_values_only() {
    let edits = [
        (NVIDIA, "conc-list: [64, 8, 32]", "conc-list: [64, 8, 256, 32, 12]"),
        (NVIDIA, "conc-list: [4, 8]\n", "conc-list: [4, 8, 16]\n"),
    ];
    let plan = planned(&edits, &append("gamma-nv-sglang-fp4, delta-nv-trt-fp4", ""));
    assert_eq!(lines(&plan["multi_node"]["8k1k"]), ["gamma_8k1k 1x4/1x8 [256,12] no"]);
    assert_eq!(
        lines(&plan["multi_node"]["agentic"]),
        ["delta_p1x8_d0x8_conc16 1x8/0x8 [16]"]
    );
    // A point moved from one entry of a topology to another is no new point.
    let moved = [
        (NVIDIA, "conc-list: [64, 8, 32]", "conc-list: [64, 8]"),
        (NVIDIA, "conc-list: [16, 128]", "conc-list: [16, 32, 128, 512]"),
    ];
    let plan = planned(&moved, &append("gamma-nv-sglang-fp4", ""));
    assert_eq!(lines(&plan["multi_node"]["8k1k"]), ["gamma_8k1k 1x4/1x8 [512] no"]);
}

#[test]
fn a_new_topology_may_join_a_series_that_has_one_image() {
    let wider = (
        AMD,
        "- { tp: 1, conc-list: [8, 16, 32] }",
        "- { tp: 1, conc-list: [8, 16, 32] }\n      - { tp: 8, conc-list: [128] }",
    );
    let plan = planned(&[wider], &append(ALPHA, ""));
    assert_eq!(lines(&plan["single_node"]["8k1k"]), ["alpha_8k1k tp8 128 no"]);
    // No point at 8k1k was measured with a draft model.
    let drafted = (
        AMD,
        "- { tp: 1, conc-list: [8, 16, 32] }",
        "- { tp: 1, conc-list: [8, 16, 32] }\n      - { tp: 1, spec-decoding: draft_model, conc-list: [128] }",
    );
    refused(
        &[drafted],
        &append(ALPHA, ""),
        "lies on no curve that the base measured with this one image",
    );
    // Agentic series do not tell speculative decoding apart, but offloading.
    let agentic = (
        AMD,
        "- { tp: 2, kv-offloading: none, conc-list: [2, 4] }",
        "- { tp: 2, kv-offloading: none, conc-list: [2, 4] }\n      - { tp: 2, spec-decoding: mtp, kv-offloading: none, conc-list: [2] }",
    );
    let plan = planned(&[agentic], &append("beta-mi-vllm-fp8", ""));
    assert_eq!(
        lines(&plan["single_node"]["agentic"]),
        ["beta_tp2_conc2_kvnone_spec-mtp tp2 2"]
    );
    let offloading = (
        AMD,
        "conc-list: [4, 16] }",
        "conc-list: [4, 16] }\n      - { tp: 4, kv-offloading: dram, kv-offload-backend: { name: x }, conc-list: [2] }",
    );
    let share = (
        AMD,
        "    agentic-coding:\n    - search-space:",
        "    agentic-coding:\n    - dram-utilization: 0.5\n      search-space:",
    );
    refused(
        &[offloading, share],
        &append("kimi-mi-vllm-fp4", ""),
        "lies on no curve",
    );
}

#[test]
fn a_series_with_two_images_takes_no_more_points() {
    let folder = repository();
    let twin = "\ntwin-mi-vllm-fp8:\n  image: example/vllm:0\n  model: org/alpha\n  model-prefix: alpha\n  precision: fp8\n  framework: vllm\n  runner: mi\n  multinode: false\n  scenarios:\n    fixed-seq-len:\n    - { isl: 8192, osl: 1024, search-space: [{ tp: 8, conc-list: [512] }] }\n";
    let text = std::fs::read_to_string(folder.path().join(AMD)).expect("a file");
    support::write(folder.path(), AMD, text + twin);
    support::commit(folder.path(), "A twin with another image");
    let (path, old, new) = MORE_POINTS;
    edit(folder.path(), path, old, new);
    // Both configs are selected, so that both are of the base's series.
    edit(folder.path(), path, "conc-list: [512]", "conc-list: [512, 1024]");
    log(folder.path(), &append("alpha-mi-vllm-fp8, twin-mi-vllm-fp8", ""));
    let output = run(folder.path(), ARGS);
    assert!(stderr(&output).contains("lies on no curve"), "{}", stderr(&output));
}

#[test]
fn nothing_old_may_change() {
    let e = || append(ALPHA, "");
    refused(&[], &e(), "no point was added");
    refused(
        &[(AMD, "conc-list: [8, 16, 32]", "conc-list: [16, 32, 64]")],
        &e(),
        "lost its points [8]",
    );
    let wider = (
        AMD,
        "- { tp: 1, conc-list: [8, 16, 32] }",
        "- { tp: 16, conc-list: [8, 16, 32, 64] }",
    );
    refused(&[wider], &e(), "was removed or modified");
    let image = (
        AMD,
        "image: example/vllm:1\n  model: org/alpha",
        "image: example/vllm:2\n  model: org/alpha",
    );
    refused(&[image, MORE_POINTS], &e(), "was removed or modified");
    let other = (AMD, "conc-list: [4, 16]", "conc-list: [4, 16, 32]");
    refused(
        &[other, MORE_POINTS],
        &e(),
        "config `kimi-mi-vllm-fp4` differs, and the append-only entry does not select it",
    );
    let renamed = (AMD, "kimi-mi-vllm-fp4:", "kimi-mi-vllm-fp4b:");
    refused(&[renamed, MORE_POINTS], &e(), "config `kimi-mi-vllm-fp4` was removed");
    refused(&[renamed, MORE_POINTS], &e(), "config `kimi-mi-vllm-fp4b` was added");
    refused(
        &[renamed],
        &append("kimi-mi-vllm-fp4b", ""),
        "config `kimi-mi-vllm-fp4b` does not exist at the base",
    );
}

#[test]
fn what_the_entry_does_not_select_may_not_change_either() {
    let agentic = || append("beta-mi-vllm-fp8", "  scenario-type: [agentic-coding]\n");
    let more = (AMD, "conc-list: [2, 4] }", "conc-list: [2, 4, 8] }");
    let fixed = (AMD, "- { tp: 8, conc-list: [16] }", "- { tp: 8, conc-list: [16, 32] }");
    let plan = planned(&[more], &agentic());
    assert_eq!(lines(&plan["single_node"]["agentic"]), ["beta_tp2_conc8_kvnone tp2 8"]);
    refused(&[more, fixed], &agentic(), "scenario `fixed-seq-len` differs");
    let image = (
        AMD,
        "image: example/vllm:1\n  model: org/beta",
        "image: example/vllm:2\n  model: org/beta",
    );
    refused(&[more, image], &agentic(), "a field above its scenarios differs");
}

#[test]
fn the_bases_runners_make_the_bases_rows() {
    // More memory at the head makes another recipe of the offloading rows.
    let memory = (
        "configs/runners.yaml",
        "available-cpu-dram-mib: 1_000_000",
        "available-cpu-dram-mib: 1_500_000",
    );
    let more = (AMD, "conc-list: [8]\n", "conc-list: [8, 12]\n");
    refused(
        &[memory, more],
        &append("beta-mi-vllm-fp8", ""),
        "was removed or modified",
    );
}

#[test]
fn append_only_stands_alone() {
    let two = append(ALPHA, "") + &entry("beta-mi-vllm-fp8", "");
    refused(&[MORE_POINTS], &two, "shares a plan with an `append-only` one");
    for field in ["evals-only: true", "all-evals: true", "eval-min-prefill-ep: 4"] {
        let name = field.split(':').next().expect("a name");
        let reason = format!("`append-only` cannot stand with `{name}`");
        refused(&[MORE_POINTS], &append(ALPHA, &format!("  {field}\n")), &reason);
    }
    let folder = change(&[MORE_POINTS], &append(ALPHA, ""));
    for flag in ["--all-evals", "--evals-only"] {
        let output = run(folder.path(), [&ARGS[..], &[flag]].concat());
        assert!(
            stderr(&output).contains("cannot be planned with all-evals or evals-only"),
            "{}",
            stderr(&output)
        );
    }
    // Trimming is no modifier, and several append-only entries may stand together.
    let both = append(ALPHA, "") + &append("kimi-mi-vllm-fp4", "");
    let kimi = (AMD, "conc-list: [4, 16]", "conc-list: [4, 16, 32]");
    let folder = change(&[MORE_POINTS, kimi], &both);
    let plan = support::json(folder.path(), [&ARGS[..], &["--trim-conc"]].concat());
    assert_eq!(lines(&plan["single_node"]["8k1k"]), ["alpha_8k1k tp1 4 no"]);
    assert_eq!(
        lines(&plan["single_node"]["agentic"]),
        ["kimik3_tp8_conc32_kvnone tp8 32"]
    );
}
