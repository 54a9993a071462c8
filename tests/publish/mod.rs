//! What of a run is published: one decision, and everybody who asks it says the same.

mod announced;

use std::process::Output;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixture::{envelope, meta, read_json, result};
use crate::support::{stderr, stdout, sweepctl, write};

/// A run that planned three recipes: `a` with two points and their eval, `b` with a point and its eval, and `c`, which is
/// only evaluated.
struct Run(TempDir);

const A8: &str = "00000000000a";
const A64: &str = "00000000000b";
const EVAL_A: &str = "00000000000c";
const B8: &str = "00000000000d";
const EVAL_B: &str = "00000000000e";
const EVAL_C: &str = "00000000000f";

fn fingerprint(digit: char) -> String {
    digit.to_string().repeat(64)
}

fn job(id: &str, conc: u64, image: char, eval: bool) -> Value {
    let mut envelope = envelope(id, conc);
    envelope["name"] = json!(format!("{image} c{conc}{}", if eval { " eval" } else { "" }));
    envelope["row"]["image"] = json!(format!("img:{image}"));
    if !eval {
        envelope["row"]["run-eval"] = json!(false);
        envelope["row"]["eval-only"] = json!(false);
        envelope["row"]["recipe-fingerprint"] = json!(fingerprint(image));
    }
    envelope
}

impl Run {
    fn new() -> Self {
        let run = Self(tempfile::tempdir().expect("a folder"));
        let plan = [
            job(A8, 8, 'a', false),
            job(A64, 64, 'a', false),
            job(EVAL_A, 64, 'a', true),
            job(B8, 8, 'b', false),
            job(EVAL_B, 64, 'b', true),
            job(EVAL_C, 64, 'c', true),
        ];
        run.file("plan.json", &json!(plan));
        for (id, conc, recipe) in [(A8, 8, 'a'), (A64, 64, 'a'), (B8, 8, 'b')] {
            run.file(
                &format!("artifacts/bmk_m1_{id}/agg_r.json"),
                &json!({
                    "hw": "h200", "conc": conc, "infmax_model_prefix": "m1", "framework": "vllm", "precision": "fp8",
                    "recipe_fingerprint": fingerprint(recipe), "isl": 8192, "osl": 1024, "is_multinode": false, "tp": 8,
                    "tput_per_gpu": 1234.5,
                }),
            );
        }
        for id in [EVAL_A, EVAL_B, EVAL_C] {
            run.eval(id, 0.91);
        }
        run
    }

    fn file(&self, path: &str, value: &Value) {
        write(self.0.path(), path, value.to_string());
    }

    fn eval(&self, id: &str, score: f64) {
        self.file(&format!("artifacts/eval_m1_{id}/meta_env.json"), &meta(64));
        self.file(
            &format!("artifacts/eval_m1_{id}/results_2026-11-01T00-00-00.json"),
            &result("gsm8k", score),
        );
    }

    fn without(&self, folder: &str) -> &Self {
        std::fs::remove_dir_all(self.0.path().join("artifacts").join(folder)).expect("a folder");
        self
    }

    fn sweepctl(&self, args: &[&str]) -> Output {
        let output = sweepctl(self.0.path())
            .args(args)
            .env("GITHUB_STEP_SUMMARY", self.0.path().join("summary.md"))
            .output();
        output.expect("the binary runs")
    }

    /// Collects, and gives the ledger.
    #[track_caller]
    fn collect(&self, more: &[&str]) -> Value {
        let args = ["collect", "sweep", "artifacts", "--plan", "plan.json", "--out", "kept"];
        let output = self.sweepctl(&[&args[..], more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let ledger = read_json(&self.0.path().join("kept/ledger.json"));
        let printed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(
            (&printed["jobs"], &printed["recipes"]),
            (&ledger["jobs"], &ledger["recipes"])
        );
        ledger
    }

    /// What a kept file has of each row.
    fn kept(&self, file: &str, field: &str) -> Vec<Value> {
        let path = self.0.path().join("kept").join(file);
        if !path.exists() {
            return Vec::new();
        }
        let rows = read_json(&path);
        rows.as_array()
            .expect("a list")
            .iter()
            .map(|row| row[field].clone())
            .collect()
    }

    /// Needs in which buckets ended so.
    fn needs(&self, throughput: &str, evals: &str) {
        let mut needs = json!({
            "decide": { "result": "success", "outputs": {
                "run": "true", "reason": "Asked for.", "sweep": "true", "jobs": "6", "canary_jobs": "0", "single_node_8k1k_jobs": "3", "single_node_8k1k_shards": "[0]",
                "evals_jobs": "3", "evals_shards": "[0]",
            } },
            "collect-results": { "result": "success", "outputs": { "rows": "3" } },
            "collect-evals": { "result": "success", "outputs": { "rows": "3" } },
        });
        for bucket in [
            "single_node_1k1k",
            "single_node_other",
            "single_node_agentic",
            "multi_node_1k1k",
            "multi_node_8k1k",
            "multi_node_other",
            "multi_node_agentic",
            "agentic_evals",
            "multinode_evals",
            "multinode_agentic_evals",
        ] {
            needs["decide"]["outputs"][format!("{bucket}_jobs")] = json!("0");
        }
        needs["sweep-single-node-8k1k"] = json!({ "result": throughput, "outputs": {} });
        needs["sweep-evals"] = json!({ "result": evals, "outputs": {} });
        self.file("needs.json", &needs);
    }
}

/// The recipes by whether they are published, each by its image.
fn published(ledger: &Value) -> Vec<(String, bool)> {
    let image = ["a", "b", "c"];
    let recipes = ledger["recipes"].as_array().expect("a list").iter().enumerate();
    recipes
        .map(|(index, recipe)| (image[index].to_owned(), recipe["published"] == true))
        .collect()
}

fn names(of: &[&str]) -> Vec<(String, bool)> {
    ["a", "b", "c"].map(|name| (name.to_owned(), of.contains(&name))).into()
}

fn states(ledger: &Value) -> Vec<&str> {
    let jobs = ledger["jobs"].as_array().expect("a list").iter();
    jobs.map(|job| job["state"].as_str().expect("a state")).collect()
}

#[test]
fn a_whole_run_is_published_whole() {
    let run = Run::new();
    let ledger = run.collect(&["--strict"]);
    assert_eq!(published(&ledger), names(&["a", "b", "c"]));
    assert_eq!(states(&ledger), ["done"; 6]);
    assert_eq!(ledger["publish"], "recipe");
    // An eval belongs to the rows of its topology; one that has none to a recipe of its own.
    let recipes: Vec<&Value> = ledger["jobs"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|job| &job["recipe"])
        .collect();
    assert!(
        recipes[..3].iter().all(|recipe| **recipe == fingerprint('a')),
        "{recipes:?}"
    );
    assert!(
        recipes[3..5].iter().all(|recipe| **recipe == fingerprint('b')),
        "{recipes:?}"
    );
    assert_eq!(recipes[5].as_str().map(str::len), Some(64));
    assert!(recipes[5] != recipes[0] && recipes[5] != recipes[3]);
    let score = &ledger["jobs"][2]["scores"][0];
    assert_eq!(
        score,
        &json!({ "task": "gsm8k", "conc": 64, "score": 0.91, "score_name": "em_strict", "floor": score["floor"], "passed": true })
    );
    assert_eq!(run.kept("results_bmk/agg_bmk.json", "conc"), [8, 8, 64]);
    assert_eq!(run.kept("eval_results_all/agg_eval_all.json", "score").len(), 3);
    let summary = std::fs::read_to_string(run.0.path().join("summary.md")).expect("a summary");
    assert!(
        summary.starts_with("### Published results\n\nAll 3 recipes are published.\n"),
        "{summary}"
    );
}

#[test]
fn a_recipe_with_a_missing_point_is_withheld_with_its_eval() {
    let run = Run::new();
    let ledger = run.without(&format!("bmk_m1_{A64}")).collect(&[]);
    assert_eq!(published(&ledger), names(&["b", "c"]));
    let a = &ledger["recipes"][0];
    assert_eq!((&a["planned"], &a["done"]), (&json!(3), &json!(2)));
    assert_eq!(a["name"], "m1 fp8 vllm h200 8k1k tp8");
    assert_eq!(
        a["reason"],
        format!("1 of 3 jobs is not done: a c64 ({A64}) is missing: no result arrived")
    );
    assert_eq!(
        run.kept("results_bmk/agg_bmk.json", "recipe_fingerprint"),
        [fingerprint('b')]
    );
    assert_eq!(run.kept("eval_results_all/agg_eval_all.json", "score").len(), 2);
    let summary = std::fs::read_to_string(run.0.path().join("summary.md")).expect("a summary");
    assert!(
        summary.contains("2 of 3 recipes are published, 1 withheld."),
        "{summary}"
    );
    assert!(
        summary.contains("| m1 fp8 vllm h200 8k1k tp8 | aaaaaaaaaaaaaaaa | 2 of 3 |"),
        "{summary}"
    );
}

#[test]
fn a_score_under_its_floor_is_no_job_that_is_done() {
    let run = Run::new();
    run.eval(EVAL_B, 0.2);
    let ledger = run.collect(&[]);
    assert_eq!(published(&ledger), names(&["a", "c"]));
    let job = &ledger["jobs"][4];
    assert_eq!(
        (&job["state"], &job["scores"][0]["passed"]),
        (&json!("failed"), &json!(false))
    );
    let reason = job["reason"].as_str().expect("a reason");
    assert!(
        reason.starts_with("`gsm8k` at concurrency 64 has 0.2 for em_strict, which does not clear 0."),
        "{reason}"
    );
    assert_eq!(
        run.kept("results_bmk/agg_bmk.json", "recipe_fingerprint"),
        [fingerprint('a'), fingerprint('a')]
    );
}

#[test]
fn runs_are_published_whole_or_not_and_jobs_one_by_one() {
    let run = Run::new();
    run.without(&format!("bmk_m1_{A64}"));
    let ledger = run.collect(&["--publish", "run"]);
    assert_eq!(published(&ledger), names(&[]));
    assert_eq!(
        ledger["recipes"][1]["reason"],
        "other jobs of the run are not done, and runs are published whole"
    );
    assert!(!run.0.path().join("kept/results_bmk").exists());
    write(run.0.path(), "configs/workflows.yaml", settings("publish: job\n"));
    let ledger = run.collect(&[]);
    assert_eq!(ledger["publish"], "job");
    assert_eq!(published(&ledger), names(&["a", "b", "c"]));
    assert_eq!(run.kept("results_bmk/agg_bmk.json", "conc"), [8, 8]);
    // Nothing that failed is taken for done, by whatever rule.
    run.eval(EVAL_C, 0.1);
    let ledger = run.collect(&[]);
    assert_eq!(published(&ledger), names(&["a", "b"]));
    assert_eq!(run.kept("eval_results_all/agg_eval_all.json", "score").len(), 2);
}

/// The starter's settings with more.
fn settings(more: &str) -> String {
    format!("{}\n{more}", sweepctl::config::workflows::BUILT_IN)
}

#[test]
fn a_bucket_that_failed_has_no_job_that_is_done_unless_something_says_which_failed() {
    let run = Run::new();
    run.needs("success", "failure");
    let ledger = run.collect(&["--needs", "needs.json"]);
    // Everything is there, and some eval failed: it may be any.
    assert_eq!(states(&ledger), ["done", "done", "failed", "done", "failed", "failed"]);
    assert_eq!(published(&ledger), names(&[]));
    assert_eq!(
        ledger["jobs"][2]["reason"],
        "`sweep-evals` ended as `failure`, and nothing says which of its jobs did"
    );
    // One that is missing is the one that failed.
    run.without(&format!("eval_m1_{EVAL_A}"));
    let ledger = run.collect(&["--needs", "needs.json"]);
    assert_eq!(states(&ledger), ["done", "done", "missing", "done", "done", "done"]);
    assert_eq!(published(&ledger), names(&["b", "c"]));
}

fn told(name: &str, conclusion: &str, attempt: u64) -> Value {
    json!({ "name": format!("Evals (0) / {name} / Benchmark"), "conclusion": conclusion, "attempt": attempt, "labels": [] })
}

#[test]
fn what_github_says_of_a_job_counts_more_than_what_it_left() {
    let run = Run::new();
    run.needs("success", "failure");
    let asked = ["--needs", "needs.json", "--jobs", "run_stats.json"];
    run.file(
        "run_stats.json",
        &json!([
            told("a c64 eval", "success", 1),
            told("b c64 eval", "failure", 1),
            told("c c64 eval", "success", 1)
        ]),
    );
    let ledger = run.collect(&asked);
    assert_eq!(states(&ledger), ["done", "done", "done", "done", "failed", "done"]);
    assert_eq!(
        ledger["jobs"][4]["reason"],
        "the job itself ended as `failure`, whatever it left"
    );
    assert_eq!(published(&ledger), names(&["a", "c"]));
    // The newest attempt at it counts.
    run.file(
        "run_stats.json",
        &json!([
            told("a c64 eval", "success", 1),
            told("b c64 eval", "failure", 1),
            told("b c64 eval", "success", 2),
            told("c c64 eval", "success", 1),
        ]),
    );
    assert_eq!(published(&run.collect(&asked)), names(&["a", "b", "c"]));
    // Nothing tells two jobs of one name apart.
    let mut plan = read_json(&run.0.path().join("plan.json"));
    plan[5]["name"] = json!("b c64 eval");
    run.file("plan.json", &plan);
    run.file(
        "run_stats.json",
        &json!([
            told("a c64 eval", "success", 1),
            told("b c64 eval", "failure", 1),
            told("b c64 eval", "success", 1)
        ]),
    );
    assert_eq!(published(&run.collect(&asked)), names(&["a"]));
    run.file("run_stats.json", &json!({ "jobs": "none" }));
    let args = [
        "collect",
        "sweep",
        "artifacts",
        "--plan",
        "plan.json",
        "--jobs",
        "run_stats.json",
    ];
    let output = run.sweepctl(&args);
    assert!(
        stderr(&output).contains("is no list of a run's jobs"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn verdict_and_gates_say_what_the_collection_said() {
    for (throughput, evals, publishes) in [
        ("success", "success", &["a", "b", "c"][..]),
        ("success", "failure", &[]),
        ("failure", "success", &["c"]),
    ] {
        let run = Run::new();
        run.needs(throughput, evals);
        let ledger = run.collect(&["--needs", "needs.json"]);
        assert_eq!(published(&ledger), names(publishes));
        // The ledger of the run, and what the two collectors leave alone, give one answer.
        for (what, file) in [("results", "alone/results.json"), ("evals", "alone/evals.json")] {
            let args = [
                "collect",
                what,
                "artifacts",
                "--plan",
                "plan.json",
                "--ledger",
                file,
                "--out",
                "alone",
            ];
            assert!(run.sweepctl(&args).status.success());
        }
        for results in ["kept/ledger.json", "kept", "alone"] {
            let asked = ["--needs", "needs.json", "--plan", "plan.json", "--results", results];
            for gate in ["ingest", "comparison"] {
                let output = run.sweepctl(&[&["gate", "--for", gate][..], &asked].concat());
                let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
                assert_eq!(answer["run"], !publishes.is_empty(), "{results}: {answer}");
                assert!(
                    publishes.len() == 3 || answer["reason"].to_string().contains("Withheld: `m1 fp8"),
                    "{answer}"
                );
            }
            let output = run.sweepctl(&[&["verdict"][..], &asked].concat());
            let verdict: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            assert_eq!(verdict["ok"], publishes.len() == 3, "{verdict}");
            let withheld = verdict["withheld"].as_array().map_or(0, Vec::len);
            assert_eq!(withheld, 3 - publishes.len(), "{verdict}");
            for line in verdict["buckets"].as_array().expect("lines") {
                let all_done = (line["done"].clone(), line["failed"].clone()) == (line["planned"].clone(), json!(0));
                assert_eq!(all_done, line["result"] == "success", "{line}");
            }
        }
    }
}

#[test]
fn a_gate_without_results_publishes_nothing_of_a_bucket_that_failed() {
    let run = Run::new();
    run.needs("success", "failure");
    let output = run.sweepctl(&[
        "gate",
        "--for",
        "ingest",
        "--needs",
        "needs.json",
        "--plan",
        "plan.json",
    ]);
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(answer["run"], false);
    assert!(
        answer["reason"].to_string().contains("`sweep-evals` did not succeed"),
        "{answer}"
    );
}

#[test]
fn a_comparison_names_what_is_withheld() {
    let run = Run::new();
    run.collect(&[]);
    std::fs::rename(run.0.path().join("kept"), run.0.path().join("before")).expect("a folder");
    run.without(&format!("bmk_m1_{A64}")).collect(&[]);
    let output = run.sweepctl(&["compare", "before", "kept", "--ledger", "kept/ledger.json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let compared: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(compared["withheld"].as_array().map(Vec::len), Some(1));
    assert_eq!(compared["points"].as_array().map(Vec::len), Some(1));
    assert!(
        stderr(&output).contains("withheld, and not compared: m1 fp8 vllm h200 8k1k tp8"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_run_that_left_nothing_fails_and_a_step_gets_counts() {
    let run = Run::new();
    let outputs = run.0.path().join("outputs");
    let mut command = sweepctl(run.0.path());
    let args = [
        "collect",
        "sweep",
        "artifacts",
        "--plan",
        "plan.json",
        "--out",
        "kept",
        "--github-output",
    ];
    let output = command.args(args).env("GITHUB_OUTPUT", &outputs).output();
    assert!(output.expect("the binary runs").status.success());
    let text = std::fs::read_to_string(outputs).expect("outputs");
    let values: Vec<&str> = text.lines().filter(|line| !line.contains("sweepctl_")).collect();
    assert_eq!(values, ["6", "3", "0"], "{text}");
    std::fs::remove_dir_all(run.0.path().join("artifacts")).expect("a folder");
    let output = run.sweepctl(&["collect", "sweep", "artifacts", "--plan", "plan.json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("no result arrived in artifacts, the plan has 6"),
        "{}",
        stderr(&output)
    );
}
