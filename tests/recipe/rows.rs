//! Rows whose eval is an accuracy benchmark of their recipe: planned, explained, and refused where they cannot run.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{TWO, written};
use crate::support::fleet::edit;
use crate::support::{commit, git, json, run, stderr, stdout, write};

const MASTER: &str = "\
deploy:
  image: org/image:1
  model: org/model
  model-prefix: dsv4
  precision: fp4
  framework: dynamo-sglang
  runner: gb200
  multinode: true
  disagg: true
  kv-p2p-transfer: nixl
  scenarios:
    fixed-seq-len:
    - isl: 8192
      osl: 1024
      search-space:
      - conc-list: [16, 64]
        srt-recipe: throughput.yaml
        eval-srt-recipe: 'accuracy/{suite}.yaml'
        prefill: { num-worker: 2, tp: 4, ep: 1, dp-attn: false }
        decode: { num-worker: 2, tp: 8, ep: 1, dp-attn: false }
";

const POLICY: &str = "\
active: accuracy
policies:
  accuracy:
    description: lm-eval in place, and two benchmarks beside it.
    plan-trim: minimum
    eval-context: max-model-len
    selection:
      rules:
      - { name: mmlu, scenario: fixed-seq-len, nodes: multi, pick: [highest], eval-conc: highest, evaluator: { framework: benchmark, suite: mmlu } }
      - { name: graded, scenario: fixed-seq-len, nodes: multi, pick: [highest], eval-conc: highest, evaluator: { framework: lm-eval } }
      - { name: gpqa, scenario: fixed-seq-len, nodes: multi, pick: [highest], eval-conc: highest, evaluator: { framework: benchmark, suite: gpqa } }
    all-evals:
      rules:
      - { name: mmlu, scenario: fixed-seq-len, nodes: multi, pick: [every], eval-conc: highest, evaluator: { framework: benchmark, suite: mmlu } }
";

/// A repository of one deployment, with a recipe for each of its benchmarks.
fn fleet() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    write(path, "configs/nvidia-master.yaml", MASTER);
    write(path, "configs/amd-master.yaml", "{}\n");
    write(path, "configs/eval-policy.yaml", POLICY);
    let runners =
        "labels:\n  gb200: [gb200_0]\nhardware:\n  gb200: { available-cpu-dram-mib: 1000000, gpus-per-node: 4 }\n";
    write(path, "configs/runners.yaml", runners);
    let clusters = "clusters:\n  gb200: { backend: srt, recipes-dir: recipes }\n";
    write(path, "configs/clusters.yaml", clusters);
    write(path, "recipes/throughput.yaml", TWO);
    for suite in ["mmlu", "gpqa"] {
        write(path, &format!("recipes/accuracy/{suite}.yaml"), written(TWO, &[suite]));
    }
    folder
}

fn rows(folder: &Path, args: &[&str]) -> Vec<Value> {
    let printed = json(folder, [&["generate", "full-sweep", "--json"], args].concat());
    printed.as_array().expect("rows").clone()
}

/// What of a row says how it is evaluated.
fn marks(row: &Value) -> Value {
    let suite = row.get("eval-suite").cloned().unwrap_or_default();
    json!([
        row["run-eval"],
        row.get("eval-only"),
        row.get("eval-conc"),
        row.get("eval-framework"),
        suite
    ])
}

#[test]
fn a_benchmark_is_a_job_beside_the_row_that_it_is_of() {
    let folder = fleet();
    let found = rows(folder.path(), &[]);
    let marked: Vec<Value> = found.iter().map(marks).collect();
    assert_eq!(
        marked,
        [
            json!([true, null, 64, "lm-eval", ""]),
            json!([true, true, 64, "benchmark", "mmlu"]),
            json!([true, true, 64, "benchmark", "gpqa"]),
        ]
    );
    // Throughput is measured where no other eval marks the row.
    let policy = POLICY.replace(
        "evaluator: { framework: lm-eval } }",
        "floor: 1000, evaluator: { framework: lm-eval } }",
    );
    write(folder.path(), "configs/eval-policy.yaml", &policy);
    let marked: Vec<Value> = rows(folder.path(), &[]).iter().map(marks).collect();
    assert_eq!(marked[0], json!([false, null, null, null, null]));
    assert_eq!(marked.len(), 3);
    // The copies follow their row where the policy says so.
    write(
        folder.path(),
        "configs/eval-policy.yaml",
        policy.replacen("selection:\n", "selection:\n      extra-rows: adjacent\n", 1),
    );
    assert_eq!(rows(folder.path(), &[]).iter().map(marks).collect::<Vec<_>>(), marked);
    let only: Vec<Value> = rows(folder.path(), &["--evals-only"]).iter().map(marks).collect();
    assert_eq!(only, marked[1..]);
    let all: Vec<Value> = rows(folder.path(), &["--all-evals"]).iter().map(marks).collect();
    assert_eq!(all, marked[1..2]);
}

#[test]
fn checks_explanations_and_plans_know_them() {
    let folder = fleet();
    let checked = run(folder.path(), ["check"]);
    assert!(checked.status.success(), "{}", stderr(&checked));
    let explained = stdout(&run(folder.path(), ["explain", "--json"]));
    assert!(
        explained.contains("by benchmark gpqa, in a job of its own"),
        "{explained}"
    );
    let emitted = run(folder.path(), ["generate", "full-sweep", "--emit", "plan", "--json"]);
    assert!(emitted.status.success(), "{}", stderr(&emitted));
    let names: Vec<String> = walk(&folder.path().join("plan"));
    for name in ["c16,64 eval:mmlu", "c16,64 eval:gpqa"] {
        assert!(names.iter().any(|text| text.contains(name)), "{name}");
    }
}

#[test]
fn a_plan_of_an_entry_holds_them_among_its_evals() {
    let folder = fleet();
    let path = folder.path();
    write(path, "perf-changelog.yaml", "");
    git(path, &["init", "-q"]);
    let base = commit(path, "The fleet");
    let entry = "- config-keys: [deploy]\n  description: [A change.]\n  pr-link: https://example.com/2\n";
    write(path, "perf-changelog.yaml", entry);
    let head = commit(path, "An entry");
    let output = run(path, ["plan", "--json", "--base-ref", &base, "--head-ref", &head]);
    assert!(output.status.success(), "{}", stderr(&output));
    let planned: Value = serde_json::from_slice(&output.stdout).expect("a plan");
    let suites: Vec<Value> = planned["multinode_evals"]
        .as_array()
        .expect("rows")
        .iter()
        .map(marks)
        .collect();
    assert_eq!(
        suites,
        [
            json!([true, true, 64, "lm-eval", ""]),
            json!([true, true, 64, "benchmark", "mmlu"]),
            json!([true, true, 64, "benchmark", "gpqa"]),
        ]
    );
    assert_eq!(
        planned["multi_node"]["8k1k"][0]["run-eval"], false,
        "throughput is planned beside them"
    );
    // The recipes are those of the commit, and it has to have them.
    git(path, &["rm", "-q", "recipes/accuracy/gpqa.yaml"]);
    let head = commit(path, "Without a recipe");
    let output = run(path, ["plan", "--json", "--base-ref", &base, "--head-ref", &head]);
    let said = stderr(&output);
    assert!(
        output.status.code() == Some(1) && said.contains("no recipe `recipes/accuracy/gpqa.yaml`"),
        "{said}"
    );
}

/// The texts of all files of a folder.
fn walk(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("one").path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => walk(&path),
            false => vec![std::fs::read_to_string(&path).unwrap_or_default()],
        })
        .collect()
}

#[test]
fn what_cannot_run_one_is_refused_with_the_way_out() {
    let cases = [
        (
            "configs/eval-policy.yaml",
            "framework: benchmark, suite: gpqa",
            "framework: benchmark, suite: gqpa",
            "config/unknown-suite",
            "did you mean `gpqa`",
        ),
        (
            "configs/eval-policy.yaml",
            "framework: benchmark, suite: gpqa",
            "framework: benchmark",
            "config/unknown-suite",
            "aime, mmlu, gpqa, longbenchv2",
        ),
        (
            "configs/eval-policy.yaml",
            "framework: benchmark, suite: gpqa",
            "framework: benchmrak, suite: gpqa",
            "config/unknown-evaluator",
            "did you mean `benchmark`",
        ),
        (
            "configs/eval-policy.yaml",
            "name: gpqa, scenario: fixed-seq-len, nodes: multi",
            "name: gpqa, scenario: fixed-seq-len, nodes: single",
            "config/conflict",
            "nodes: multi",
        ),
        (
            "configs/eval-policy.yaml",
            "eval-conc: highest, evaluator: { framework: benchmark, suite: gpqa",
            "eval-conc: all, evaluator: { framework: benchmark, suite: gpqa",
            "config/conflict",
            "num_threads",
        ),
        (
            "configs/clusters.yaml",
            "backend: srt, recipes-dir: recipes",
            "backend: local",
            "plan/benchmark-row",
            "backend `local`",
        ),
        (
            "configs/nvidia-master.yaml",
            "        srt-recipe: throughput.yaml\n        eval-srt-recipe: 'accuracy/{suite}.yaml'\n",
            "",
            "plan/benchmark-row",
            "name no recipe",
        ),
        (
            "configs/nvidia-master.yaml",
            "        eval-srt-recipe: 'accuracy/{suite}.yaml'\n",
            "",
            "recipe/other-benchmark",
            "runs `sa-bench`",
        ),
        (
            "configs/nvidia-master.yaml",
            "'accuracy/{suite}.yaml'",
            "accuracy/mmlu.yaml",
            "recipe/other-benchmark",
            "asks for `gpqa`, and its recipe runs `mmlu`",
        ),
        (
            "configs/nvidia-master.yaml",
            "'accuracy/{suite}.yaml'",
            "'{suite}.yaml'",
            "plan/benchmark-row",
            "no recipe `recipes/gpqa.yaml`",
        ),
        (
            "configs/nvidia-master.yaml",
            "'accuracy/{suite}.yaml'",
            "'../recipes/{suite}.yaml'",
            "plan/benchmark-row",
            "leads out of the checkout",
        ),
        (
            "recipes/accuracy/gpqa.yaml",
            "num_examples: 198",
            "num_examples: 199",
            "recipe/examples",
            "199",
        ),
    ];
    for (file, from, to, id, says) in cases {
        let folder = fleet();
        edit(folder.path(), file, from, to);
        for command in [&["check"][..], &["generate", "full-sweep", "--emit", "plan"]] {
            let output = run(folder.path(), command);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{to}: {command:?}: {said}");
            assert!(
                said.contains(&format!("error[{id}]")) && said.contains(says),
                "{to}: {command:?}: {said}"
            );
            assert!(!folder.path().join("plan").exists(), "{to}: a plan was written");
        }
    }
}

#[test]
fn an_override_reaches_only_jobs_that_can_run_it() {
    let folder = fleet();
    let is_other = |line: &&str| !line.contains("framework: benchmark");
    let graded: Vec<&str> = POLICY.lines().filter(is_other).collect();
    let policy = graded
        .join("\n")
        .replace("    all-evals:\n      rules:", "    all-evals:\n      rules: []\n");
    write(folder.path(), "configs/eval-policy.yaml", policy);
    let ask = |into: &str| {
        let args = [
            "generate",
            "full-sweep",
            "--eval-framework",
            "benchmark",
            "--eval-suite",
            "mmlu",
            "--emit",
            into,
        ];
        let output = run(folder.path(), args);
        (output.status.code(), stderr(&output))
    };
    let (code, said) = ask("plan");
    assert_eq!(code, Some(0), "{said}");
    let names = walk(&folder.path().join("plan"));
    assert!(names.iter().any(|text| text.contains("c16,64 eval:mmlu")), "{names:?}");
    let recipes = "        srt-recipe: throughput.yaml\n        eval-srt-recipe: 'accuracy/{suite}.yaml'\n";
    edit(folder.path(), "configs/nvidia-master.yaml", recipes, "");
    let (code, said) = ask("other");
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("error[plan/benchmark-row]") && said.contains("name no recipe"),
        "{said}"
    );
}
