//! The likeliest mistakes, and what a person reads then: a snapshot of each message.

use std::path::Path;

use serde_json::Value;

use crate::support::fleet::{CHANGELOG, edit, entry, folder, log, repository};
use crate::support::{run, stderr, sweepctl, write};

const AMD: &str = "configs/amd-master.yaml";
const NVIDIA: &str = "configs/nvidia-master.yaml";
const RUNNERS: &str = "configs/runners.yaml";

/// Compares with the snapshot of a name; what differs from run to run is filtered.
#[track_caller]
fn snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.add_filter(r"/tmp/\.tmp[A-Za-z0-9]+", "[FOLDER]");
    settings.add_filter(r"\b[0-9a-f]{40}\b", "[HASH]");
    settings.bind(|| insta::assert_snapshot!(format!("mistake_{name}"), text));
}

#[track_caller]
fn refused(folder: &Path, args: &[&str]) -> String {
    let output = run(folder, args);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    match args.first() {
        // What reads a check gets its findings.
        Some(&"check") => {
            let found: Value = serde_json::from_slice(&output.stdout).expect("findings as JSON");
            let count = found["findings"].as_array().map_or(0, Vec::len);
            let errors = said.lines().filter(|line| line.starts_with("error[")).count();
            assert_eq!(count, errors, "{found}");
        }
        _ => assert!(output.stdout.is_empty(), "nothing is printed beside a refusal"),
    }
    said
}

/// What `sweepctl check` says of one edit of the fleet.
#[track_caller]
fn check(name: &str, path: &str, old: &str, new: &str) {
    let folder = folder();
    edit(folder.path(), path, old, new);
    snapshot(name, &refused(folder.path(), &["check"]));
}

/// What `sweepctl plan` says of entries that a commit adds.
#[track_caller]
fn plan(name: &str, entries: &str, flags: &[&str]) {
    let folder = repository();
    log(folder.path(), entries);
    let args = [&["plan", "--base-ref", "HEAD~1", "--head-ref", "HEAD"], flags].concat();
    snapshot(name, &refused(folder.path(), &args));
}

macro_rules! mistakes {
    ($($check:ident $name:ident($($argument:expr),+ $(,)?);)+) => {
        $(#[test] fn $name() { $check(stringify!($name), $($argument),+); })+
    };
}

mistakes! {
    check misspelt_field(AMD, "precision: fp8\n  framework: vllm\n  runner: mi\n", "precison: fp8\n  framework: vllm\n  runner: mi\n");
    check missing_field(AMD, "  model-prefix: alpha\n", "");
    check two_forms_of_concurrency(AMD, "{ tp: 2, conc-start: 4,", "{ tp: 2, conc-list: [4], conc-start: 4,");
    check no_concurrency(AMD, "{ tp: 8, conc-list: [16] }", "{ tp: 8 }");
    check misspelt_concurrency(AMD, "{ tp: 8, conc-list: [16] }", "{ tp: 8, conc-lst: [16] }");
    check misspelt_scenarios(AMD, "  runner: mi\n  multinode: false\n  scenarios:", "  runner: mi\n  multinode: false\n  scenario:");
    check merge_conflict(AMD, "  model: org/alpha\n", "<<<<<<< HEAD\n  model: org/alpha\n=======\n  model: org/beta\n>>>>>>> topic\n");
    check half_a_range(AMD, "conc-start: 4, conc-end: 20", "conc-start: 4");
    check range_upside_down(AMD, "conc-start: 4, conc-end: 20", "conc-start: 20, conc-end: 4");
    check quoted_number(AMD, "{ tp: 8, conc-list: [16] }", "{ tp: \"8\", conc-list: [16] }");
    check fraction(AMD, "{ tp: 8, conc-list: [16] }", "{ tp: 8.5, conc-list: [16] }");
    check zero(AMD, "conc-list: [8, 16, 32]", "conc-list: [0, 16, 32]");
    check misspelt_choice(AMD, "spec-decoding: mtp, conc-list", "spec-decoding: mpt, conc-list");
    check tabs(AMD, "  image: example/vllm:1\n  model: org/alpha", "\timage: example/vllm:1\n  model: org/alpha");
    check missing_space_after_colon(AMD, "  model: org/alpha", "  model:org/alpha");
    check wrong_indentation(AMD, "  model: org/alpha", "   model: org/alpha");
    check open_bracket(AMD, "conc-list: [8, 16, 32] }", "conc-list: [8, 16, 32 }");
    check duplicate_key(AMD, "  model: org/alpha\n", "  model: org/alpha\n  image: example/vllm:2\n");
    check key_in_two_files(NVIDIA, "delta-nv-trt-fp4:", "alpha-mi-vllm-fp8:");
    check sides_on_one_node(AMD, "{ tp: 8, conc-list: [16] }", "{ tp: 8, conc-list: [16], prefill: { num-worker: 1, tp: 8, ep: 1, dp-attn: false } }");
    check tp_on_many_nodes(NVIDIA, "- conc-list: [16, 128]\n", "- conc-list: [16, 128]\n        tp: 8\n");
    check disagg_without_transfer(NVIDIA, "  kv-p2p-transfer: nixl\n", "");
    check router_twice(NVIDIA, "- conc-list: [16, 128]\n", "- conc-list: [16, 128]\n        router: { name: other, version: \"1\" }\n");
    check hardware_on_one_side(NVIDIA, "{ num-worker: 2, tp: 8, ep: 8, dp-attn: true, additional-settings: [A=1] }", "{ num-worker: 2, tp: 8, ep: 8, dp-attn: true, hardware: b200 }");
    check setting_without_value(NVIDIA, "[A=1]", "[\"A B=1\", DEBUG]");
    check agentic_on_a_plain_label(AMD, "runner: \"cluster:mi-a\"", "runner: mi");
    check offload_without_backend(AMD, "        kv-offload-backend: { name: lmcache, version: \"1.10\" }\n", "");
    check offload_without_share(AMD, "    - dram-utilization: 0.83\n      search-space:", "    - search-space:");
    check offload_without_hardware(RUNNERS, "  cluster:mi-a: { available-cpu-dram-mib: 1_000_000, gpus-per-node: 8 }\n", "");
    check empty_label(RUNNERS, "[nv-x_0]", "[]");
    check image_as_version(NVIDIA, "{ name: rr, version: \"2\" }", "{ name: rr, version: \"image:rr-2\" }");
    check empty_scenarios(NVIDIA, "    agentic-coding:\n    - search-space:\n      - conc-list: [16, 32]\n        prefill: { num-worker: 1, tp: 4, ep: 1, dp-attn: false }\n        decode: { num-worker: 1, tp: 4, ep: 1, dp-attn: false }\n", "    {}\n");

    plan misspelt_config_key(&entry("alpha-mi-vllm-fp4", ""), &[]);
    plan pattern_that_matches_nothing(&entry("'alpha-nv-*'", ""), &[]);
    plan misspelt_description("- config-keys: [alpha-mi-vllm-fp8]\n  descriptin: [A change.]\n  pr-link: x\n", &[]);
    plan conflict_in_the_changelog("<<<<<<< HEAD\n- config-keys: [a]\n=======\n- config-keys: [b]\n>>>>>>> topic\n", &[]);
    plan misspelt_entry_field(&entry("alpha-mi-vllm-fp8", "  eval-only: true\n"), &[]);
    plan flags_that_exclude_each_other(&entry("alpha-mi-vllm-fp8", "  append-only: true\n  evals-only: true\n"), &[]);
    plan no_evals_and_evals_only(&entry("alpha-mi-vllm-fp8", "  no-evals: true\n"), &["--evals-only"]);
    plan description_is_no_list("- config-keys: [alpha-mi-vllm-fp8]\n  description: A change.\n  pr-link: x\n", &[]);
    plan config_key_is_no_list("- config-keys: alpha-mi-vllm-fp8\n  description: [A change.]\n  pr-link: x\n", &[]);
    plan append_without_a_new_point(&entry("alpha-mi-vllm-fp8", "  append-only: true\n"), &[]);
    plan comment_alone("# Nothing new.\n", &[]);
}

#[test]
fn an_unknown_runner_type() {
    let folder = folder();
    let args = ["generate", "full-sweep", "--runner-type", "nv-pairs"];
    snapshot("an_unknown_runner_type", &refused(folder.path(), &args));
}

/// A clusters file of one cluster with these lines.
fn cluster(folder: &Path, lines: &str) {
    write(folder, "configs/clusters.yaml", format!("clusters:\n  mi:\n{lines}"));
}

#[test]
fn an_unknown_backend_is_one_mistake_and_a_runner_is_looked_for_meanwhile() {
    let folder = folder();
    edit(folder.path(), AMD, "  runner: mi\n", "  runner: mj\n");
    cluster(
        folder.path(),
        "    backend: locl\n    port: 1\n    eval-task: x\n    mounts: []\n",
    );
    let said = refused(folder.path(), &["check"]);
    assert_eq!(
        said.lines().filter(|line| line.starts_with("error[")).count(),
        2,
        "{said}"
    );
    snapshot("an_unknown_backend_and_runner", &said);
}

#[test]
fn an_open_brace_in_a_list_is_put_in_quotes() {
    let folder = folder();
    cluster(
        folder.path(),
        "    backend: local\n    server-command: [serve, --port={port}]\n",
    );
    let said = refused(folder.path(), &["check"]);
    assert!(said.contains("put the text that holds it in quotes"), "{said}");
}

#[test]
fn what_check_is_not_for_is_told() {
    let folder = folder();
    write(folder.path(), "recipes/x.yaml", "name: x\n");
    let said = refused(folder.path(), &["check", "recipes/x.yaml", "nosuch"]);
    assert!(said.contains("`sweepctl recipe check recipes/x.yaml`"), "{said}");
    assert!(said.contains("`nosuch` does not exist"), "{said}");
}

#[test]
fn an_eval_task_without_a_threshold_is_a_warning() {
    let folder = folder();
    cluster(folder.path(), "    backend: local\n    eval-task: my-own\n");
    let said = stderr(&run(folder.path(), ["check"]));
    let wanted = "warning[config/no-threshold]: the eval task `my-own` of the cluster `mi` has no threshold";
    assert!(said.contains(wanted), "{said}");
    cluster(folder.path(), "    backend: local\n    eval-task: gsm8k\n");
    assert!(!stderr(&run(folder.path(), ["check"])).contains("no-threshold"));
}

#[test]
fn a_server_beyond_its_node_and_a_point_twice_are_warnings() {
    let with = |gpus: u64| {
        let line = format!("hardware:\n  mi: {{ available-cpu-dram-mib: 1_000, gpus-per-node: {gpus} }}\n");
        let folder = folder();
        edit(folder.path(), RUNNERS, "hardware:\n", &line);
        folder
    };
    // The largest entry of that label takes 8 x 2 x 2 GPUs.
    assert_eq!(stderr(&run(with(32).path(), ["check"])), "");
    let folder = with(16);
    edit(
        folder.path(),
        AMD,
        "{ tp: 8, conc-list: [16] }",
        "{ tp: 8, conc-list: [16, 4, 8, 4] }",
    );
    let output = run(folder.path(), ["check"]);
    assert!(output.status.success(), "{}", stderr(&output));
    snapshot("a_server_beyond_its_node_and_a_point_twice", &stderr(&output));
}

#[test]
fn an_altered_entry() {
    let folder = repository();
    edit(
        folder.path(),
        CHANGELOG,
        "The first measurement.",
        "The very first measurement.",
    );
    log(folder.path(), &entry("alpha-mi-vllm-fp8", ""));
    let args = ["plan", "--base-ref", "HEAD~1", "--head-ref", "HEAD"];
    snapshot("an_altered_entry", &refused(folder.path(), &args));
}

#[test]
fn a_wrong_place() {
    let folder = tempfile::tempdir().expect("a folder");
    snapshot("a_wrong_place", &refused(folder.path(), &["check"]));
}

#[test]
fn a_file_of_an_unknown_name() {
    let folder = folder();
    write(folder.path(), "configs/amd-masters.yaml", "a: 1\n");
    snapshot(
        "a_file_of_an_unknown_name",
        &refused(folder.path(), &["check", "configs/amd-masters.yaml"]),
    );
}

#[test]
fn many_mistakes_are_said_at_once() {
    let folder = folder();
    edit(folder.path(), AMD, "  model-prefix: alpha\n", "");
    edit(
        folder.path(),
        AMD,
        "conc-list: [8, 16, 32]",
        "conc-list: [8, \"16\", 0]",
    );
    edit(folder.path(), NVIDIA, "disagg: true", "disag: true");
    edit(folder.path(), RUNNERS, "gpus-per-node: 4", "gpus-per-node: four");
    snapshot("many_mistakes_are_said_at_once", &refused(folder.path(), &["check"]));
}

#[test]
fn on_actions_the_first_nine_are_annotations_and_the_rest_is_in_the_summary() {
    let folder = repository();
    let path = folder.path();
    let entries: String = (0..12).map(|n| entry(&format!("no-such-config-{n}"), "")).collect();
    log(path, &entries);
    let summary = path.join("summary.md");
    let output = sweepctl(path)
        .args(["plan", "--base-ref", "HEAD~1", "--head-ref", "HEAD"])
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_STEP_SUMMARY", &summary)
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    let annotations: Vec<&str> = said.lines().filter(|line| line.starts_with("::error")).collect();
    assert_eq!(annotations.len(), 9, "{said}");
    // The file is the repository's, whatever ref it was read at.
    for (n, annotation) in annotations.iter().enumerate() {
        let line = 5 + 3 * n;
        let start = format!(
            "::error file=perf-changelog.yaml,line={line},col=17,title=plan/unknown-config::no config matches the key `no-such-config-{n}`"
        );
        assert!(annotation.starts_with(&start), "{annotation}");
    }
    let rest = std::fs::read_to_string(&summary).expect("a summary");
    assert_eq!(
        rest.matches("error[plan/unknown-config]: no config matches").count(),
        3,
        "{rest}"
    );
    for n in 9..12 {
        assert!(rest.contains(&format!("`no-such-config-{n}`")), "{rest}");
    }
}

#[test]
fn on_actions_a_file_of_the_work_tree_is_named_as_it_is() {
    let folder = folder();
    edit(folder.path(), AMD, "  model-prefix: alpha\n", "");
    let output = sweepctl(folder.path())
        .arg("check")
        .env("GITHUB_ACTIONS", "true")
        .output()
        .expect("it runs");
    let said = stderr(&output);
    let wanted = "::error file=configs/amd-master.yaml,line=4,col=3,title=config/missing-field::config `alpha-mi-vllm-fp8` lacks `model-prefix`%0A";
    assert!(said.lines().any(|line| line.starts_with(wanted)), "{said}");
}
