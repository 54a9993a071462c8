//! `sweepctl reuse check`: the results of an earlier run, whole or wrong in one way each.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixture::{envelope, meta, result};
use crate::support::{project, run, stderr, stdout, write};

/// What a run left that planned two throughput jobs and an eval.
struct Left(TempDir);

const IDS: [&str; 3] = ["00000000000a", "00000000000b", "00000000000c"];

fn fingerprint(digit: char) -> String {
    digit.to_string().repeat(64)
}

fn throughput(id: &str, conc: u64, digit: char) -> Value {
    let mut envelope = envelope(id, conc);
    envelope["row"]["run-eval"] = json!(false);
    envelope["row"]["eval-only"] = json!(false);
    envelope["row"]["recipe-fingerprint"] = json!(fingerprint(digit));
    envelope
}

fn aggregate(conc: u64, digit: char) -> Value {
    json!({
        "hw": "h200", "conc": conc, "image": "img:1", "model": "org/model", "infmax_model_prefix": "m1",
        "framework": "vllm", "precision": "fp8", "spec_decoding": "none", "disagg": false,
        "recipe_fingerprint": fingerprint(digit), "isl": 8192, "osl": 1024, "is_multinode": false, "tp": 8,
        "tput_per_gpu": 1234.5, "output_tput_per_gpu": 137.2, "median_ttft": 0.31,
    })
}

impl Left {
    fn new() -> Self {
        let left = Self(tempfile::tempdir().expect("a folder"));
        let plan = [
            throughput(IDS[0], 16, 'a'),
            throughput(IDS[1], 64, 'b'),
            envelope(IDS[2], 64),
        ];
        left.plan(&plan);
        left.put(
            "left/results/bundle_x_0/bmk_m1_00000000000a/agg_r.json",
            &aggregate(16, 'a'),
        );
        left.put(
            "left/results/bundle_x_0/bmk_m1_00000000000b/agg_r.json",
            &aggregate(64, 'b'),
        );
        let eval = "left/results/bundle_evals_0/eval_m1_00000000000c";
        left.put(&format!("{eval}/meta_env.json"), &meta(64));
        left.put(
            &format!("{eval}/results_2026-11-01T00-00-00.json"),
            &result("gsm8k", 0.91),
        );
        // What the run's own collectors made of it, from a folder of another name.
        let at = left.0.path();
        std::fs::rename(at.join("left/results"), at.join("elsewhere")).expect("a folder");
        for (what, name) in [("results", "results_bmk"), ("evals", "eval_results_all")] {
            let out = format!("left/{name}");
            let output = run(
                at,
                [
                    "collect",
                    what,
                    "elsewhere",
                    "--plan",
                    "plan",
                    "--strict",
                    "--out",
                    &out,
                ],
            );
            assert!(output.status.success(), "{}", stderr(&output));
        }
        std::fs::rename(at.join("elsewhere"), at.join("left/results")).expect("a folder");
        left
    }

    fn put(&self, path: &str, value: &Value) {
        write(self.0.path(), path, value.to_string());
    }

    /// The plan's folder, with all jobs in two buckets.
    fn plan(&self, plan: &[Value]) {
        let evals = plan.iter().filter(|envelope| envelope["row"]["eval-only"] == true);
        let evals: Vec<&Value> = evals.collect();
        let rest: Vec<&Value> = plan.iter().filter(|envelope| !evals.contains(envelope)).collect();
        self.put("plan/evals/0.json", &json!(evals));
        self.put("plan/single_node_8k1k/0.json", &json!(rest));
        let bucket = |jobs: usize| json!({ "jobs": jobs, "shards": [{ "jobs": jobs, "max-parallel": 1 }] });
        let buckets = json!({ "single_node_8k1k": bucket(rest.len()), "evals": bucket(evals.len()) });
        let index = json!({
            "jobs": plan.len(), "throughput-jobs": rest.len(), "eval-jobs": evals.len(), "buckets": buckets,
        });
        self.put("plan/index.json", &index);
    }

    fn change(&self, path: &str, change: impl FnOnce(&mut Value)) {
        let text = std::fs::read(self.0.path().join(path)).expect("a file");
        let mut value = serde_json::from_slice(&text).expect("JSON");
        change(&mut value);
        self.put(path, &value);
    }

    fn remove(&self, path: &str) {
        std::fs::remove_dir_all(self.0.path().join(path)).expect("a folder");
    }

    fn check(&self, more: &[&str]) -> (Option<i32>, Value, String) {
        let args = [&["reuse", "check", "left", "--plan", "plan"], more].concat();
        let output = run(self.0.path(), args);
        let printed = serde_json::from_str(&stdout(&output)).unwrap_or(Value::Null);
        (output.status.code(), printed, stderr(&output))
    }

    /// Everything that is wrong, at least what is named.
    #[track_caller]
    fn is_refused(&self, more: &[&str], words: &[&str]) {
        let (code, _, said) = self.check(more);
        assert_eq!(code, Some(1), "{said}");
        for word in words {
            assert!(said.contains(word), "{word}: {said}");
        }
    }
}

const RESULTS: &str = "left/results_bmk/agg_bmk.json";
const EVALS: &str = "left/eval_results_all/agg_eval_all.json";

fn push_again(list: &mut Value, index: usize) {
    let list = list.as_array_mut().expect("a list");
    let again = list[index].clone();
    list.push(again);
}

/// Emits a plan of the project's smoke test.
fn emit(plan: &Path, flags: &[&str]) {
    let args = ["generate", "test-config", "--config-keys", "smoke-local-mock", "--emit"];
    let plan = plan.to_str().expect("a path");
    let output = run(project(), [&args[..], &[plan], flags].concat());
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn whole_results_pass() {
    let left = Left::new();
    let (code, printed, said) = left.check(&[]);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert_eq!(
        printed,
        json!({ "results": 2, "evals": 1, "missing": [], "problems": [] })
    );
    // What is planned today, or by another policy, is not asked.
    assert!(!Path::new(&left.0.path().join("configs")).exists());
}

#[test]
fn an_aggregate_that_differs_from_its_single_results_is_refused() {
    let left = Left::new();
    left.change(RESULTS, |rows| rows[0]["tput_per_gpu"] = json!(99999.0));
    left.change(EVALS, |rows| rows[0]["score"] = json!(0.99));
    left.is_refused(
        &[],
        &[
            "agg_bmk.json[0]: no single result says the same: m1 h200 vllm fp8 16",
            "agg_bmk.json: it lacks a single result as it is: m1 h200 vllm fp8 16",
            "agg_eval_all.json[0]: no single result says the same",
            "4 problems",
        ],
    );
    left.is_refused(&["--partial"], &["4 problems"]);
}

#[test]
fn a_run_that_left_out_a_part_of_its_sweep_is_refused() {
    let left = Left::new();
    left.change("plan/index.json", |index| {
        index["asked"] = json!({ "trim-conc": true, "agentx-fast": true, "all-evals": true })
    });
    left.is_refused(
        &[],
        &["the run planned with --trim-conc and --agentx-fast: it is no full sweep"],
    );
    // That is what such a plan says.
    let folder = tempfile::tempdir().expect("a folder");
    let asked = |name: &str, flags: &[&str]| {
        emit(&folder.path().join(name), flags);
        let index = std::fs::read(folder.path().join(name).join("index.json")).expect("an index");
        serde_json::from_slice::<Value>(&index).expect("JSON")["asked"].clone()
    };
    assert_eq!(asked("whole", &[]), Value::Null);
    let all = ["--trim-conc", "--evals-only", "--agentx-fast"];
    let less = json!({ "trim-conc": true, "evals-only": true, "agentx-fast": true });
    assert_eq!(asked("less", &all), less);
}

#[test]
fn a_row_twice_is_refused() {
    let left = Left::new();
    left.change(RESULTS, |rows| push_again(rows, 1));
    left.change(EVALS, |rows| push_again(rows, 0));
    left.is_refused(
        &[],
        &[
            "agg_bmk.json[2]: it is there 2 times, planned were 1",
            "agg_eval_all.json[1]: it is there 2 times, planned were 1",
        ],
    );
    let left = Left::new();
    left.put(
        "left/results/bundle_x_1/bmk_m1_00000000000a/agg_again.json",
        &aggregate(16, 'a'),
    );
    left.is_refused(&[], &["the same attempt at the same job"]);
}

#[test]
fn rows_that_do_not_say_what_they_are_of_are_refused() {
    for (file, index, name, value) in [
        (RESULTS, 0, "hw", Value::Null),
        (RESULTS, 0, "recipe_fingerprint", json!("")),
        (RESULTS, 1, "precision", json!(8)),
        (RESULTS, 1, "conc", json!("many")),
        (EVALS, 0, "model_prefix", json!([])),
        (EVALS, 0, "task", Value::Null),
        (EVALS, 0, "score", json!(1.5)),
        (EVALS, 0, "conc", json!(-1)),
    ] {
        let left = Left::new();
        left.change(file, |rows| rows[index][name] = value);
        left.is_refused(&[], &[&format!("`{name}`")]);
    }
    for (text, words) in [
        ("{}", "is no list of results"),
        ("[1, null]", "[1]"),
        ("[{]", "is no list of results"),
        ("", "is no list"),
    ] {
        for file in [RESULTS, EVALS] {
            let left = Left::new();
            write(left.0.path(), file, text);
            left.is_refused(&[], &[words]);
        }
    }
}

#[test]
fn what_the_run_did_not_plan_is_refused_and_what_is_missing_too() {
    let left = Left::new();
    left.plan(&[
        throughput(IDS[0], 16, 'a'),
        throughput(IDS[1], 64, 'd'),
        envelope(IDS[2], 32),
    ]);
    left.is_refused(
        &[],
        &[
            "agg_bmk.json[1]: the run did not plan it",
            "m1 c64 (throughput at concurrency 64) was planned, and has no row",
            "agg_eval_all.json[0]: the run did not plan it",
            "m1 c32 (eval at concurrency 32) was planned, and has no row",
        ],
    );
}

#[test]
fn a_pinned_run_may_lack_jobs_but_no_more() {
    let left = Left::new();
    left.change(RESULTS, |rows| drop(rows.as_array_mut().expect("a list").pop()));
    left.remove("left/results/bundle_x_0/bmk_m1_00000000000b");
    left.remove("left/eval_results_all");
    left.remove("left/results/bundle_evals_0");
    left.is_refused(
        &[],
        &[
            "m1 c64 (throughput at concurrency 64)",
            "m1 c64 (eval at concurrency 64)",
        ],
    );
    let (code, printed, said) = left.check(&["--partial"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(
        (&printed["results"], printed["missing"].as_array().map(Vec::len)),
        (&json!(1), Some(2))
    );
    // It was cancelled before it bundled anything: there is nothing to compare with.
    left.remove("left/results");
    assert_eq!(left.check(&["--partial"]).0, Some(0));
    left.is_refused(&[], &["no single result says the same"]);
    left.remove("left/results_bmk");
    left.is_refused(&["--partial"], &["holds neither results_bmk nor eval_results_all"]);
}

#[test]
fn results_are_held_against_the_plan_of_the_commit() {
    let left = Left::new();
    let against = |plan: &[Value]| left.put("commit.json", &json!(plan));
    let (a, b) = (throughput(IDS[0], 16, 'a'), throughput(IDS[1], 64, 'b'));
    let more = ["--against", "commit.json"];
    against(&[a.clone(), b.clone(), envelope(IDS[2], 64)]);
    assert_eq!(left.check(&more).0, Some(0), "{}", left.check(&more).2);
    // Which evals a policy chooses today is not asked.
    against(&[a.clone(), b.clone()]);
    assert_eq!(left.check(&more).0, Some(0), "{}", left.check(&more).2);
    against(&[a.clone(), b.clone(), envelope(IDS[2], 8)]);
    assert_eq!(left.check(&more).0, Some(0), "{}", left.check(&more).2);
    // A later commit changed a recipe: what was measured is not what is merged.
    against(&[a.clone(), throughput(IDS[1], 64, 'd')]);
    left.is_refused(
        &more,
        &[
            "m1 c64 (throughput at concurrency 64) is planned by the commit, and the run did not measure it",
            "agg_bmk.json[1]: the commit does not plan it",
            "2 problems",
        ],
    );
    // A pinned run may lack jobs of the commit too, and is said to.
    against(&[a.clone(), b.clone(), throughput(IDS[2], 128, 'a')]);
    left.is_refused(
        &more,
        &["m1 c128 (throughput at concurrency 128) is planned by the commit"],
    );
    let (code, printed, said) = left.check(&["--against", "commit.json", "--partial"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(printed["missing"], json!(["m1 c128 (throughput at concurrency 128)"]));
    // An eval of what the commit does not plan at all.
    let mut other = b;
    other["row"]["model-prefix"] = json!("m2");
    let mut first = a;
    first["row"]["model-prefix"] = json!("m2");
    against(&[first, other]);
    left.is_refused(&more, &["agg_eval_all.json[0]: the commit does not plan it"]);
}

#[test]
fn what_a_pinned_run_withheld_is_no_result_that_was_lost() {
    let left = Left::new();
    left.change(RESULTS, |rows| drop(rows.as_array_mut().expect("a list").pop()));
    left.is_refused(&[], &["it lacks a single result as it is"]);
    let (code, printed, said) = left.check(&["--partial"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(printed["missing"], json!(["m1 c64 (throughput at concurrency 64)"]));
}
