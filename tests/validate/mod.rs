//! `sweepctl eval validate`: each rule of the gate.

mod benchmark;
mod fleets;
mod hostile;
mod properties;
mod set;
mod shapes;

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixture::{
    batch, corpus, envelope, every_case, gate, meta, multinode_envelope, read_json, result, run, sweepctl, write,
};

#[test]
fn the_corpus_is_judged_as_it_should_be() {
    every_case("evals/validate", |folder| {
        let case = read_json(&folder.join("case.json"));
        let thresholds = corpus("evals/thresholds.yaml").expect("there are cases, so there is a corpus");
        let mut command = sweepctl(&folder.join("work"));
        command.args(["eval", "validate", "--thresholds"]).arg(thresholds);
        command.args(
            case["args"]
                .as_array()
                .expect("args")
                .iter()
                .map(|arg| arg.as_str().expect("text")),
        );
        let (code, stdout, stderr) = run(&mut command);
        if i64::from(code) != case["expect_exit"] {
            return Some(format!("exit {code}\n{stdout}{stderr}"));
        }
        (code != 0 && !stderr.contains("error[")).then(|| "fails without a reason".to_owned())
    });
}

const THRESHOLDS: &str = "\
default:
  plain: 0.9
  tuned: {min-score: 0.8, metric: f1, max-empty: 0.5, mean: 0.85, spread: 0.01, samples: 900}
models:
  strict: {plain: 0.97}
";

/// A folder that an eval ended in.
struct Work(TempDir);

impl Work {
    /// One point of one task that passes.
    fn new() -> Self {
        let work = Self(tempfile::tempdir().expect("a folder"));
        work.text("thresholds.yaml", THRESHOLDS);
        work.file("meta_env.json", &meta(64));
        work.file("results.json", &result("plain", 0.95));
        work
    }

    /// A batch over 16 and 32 that passes.
    fn batch() -> Self {
        let work = Self::new();
        std::fs::remove_file(work.path().join("results.json")).expect("removed");
        work.file("meta_env.json", &batch(&json!([16, 32]), &json!([16, 32]), &json!([])));
        work.file("results_conc16.json", &result("plain", 0.95));
        work.file("results_conc32.json", &result("plain", 0.95));
        work
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn text(&self, name: &str, text: impl AsRef<[u8]>) {
        write(self.path().join(name), text);
    }

    fn file(&self, name: &str, value: &Value) {
        self.text(name, value.to_string());
    }

    fn judge(&self, args: &[&str]) -> (i32, Value, String) {
        let (code, stdout, stderr) = run(gate(self.path()).args(args));
        (code, serde_json::from_str(&stdout).unwrap_or(Value::Null), stderr)
    }

    #[track_caller]
    fn passes(&self, args: &[&str]) -> Value {
        let (code, report, stderr) = self.judge(args);
        assert_eq!((code, stderr.as_str()), (0, ""));
        report
    }

    /// Fails with exactly these problems: each is part of one message, and there are no more.
    #[track_caller]
    fn fails(&self, args: &[&str], wanted: &[&str]) -> String {
        let (code, report, stderr) = self.judge(args);
        assert_eq!(code, 1, "{stderr}");
        for part in wanted {
            assert!(stderr.contains(part), "no `{part}` in\n{stderr}");
        }
        if let Some(problems) = report["problems"].as_array() {
            assert_eq!(problems.len(), wanted.len(), "{stderr}");
        }
        stderr
    }
}

#[test]
fn a_threshold_is_the_models_then_the_default_then_min_score() {
    let work = Work::new();
    let report = work.passes(&[]);
    assert_eq!(report["checks"][0]["threshold"], 0.9);
    assert_eq!(report["checks"][0]["source"], "default");
    assert_eq!(report["model_prefix"], "m1");
    work.fails(
        &["--model-prefix", "strict"],
        &["under 0.97 (models.strict) by 1.0 standard errors of 0.0200"],
    );
    work.file("results.json", &result("unlisted", 0.95));
    work.passes(&[]);
    work.fails(&["--min-score", "0.96"], &["under 0.96 (--min-score)"]);
    assert_eq!(work.judge(&["--min-score", "1.5"]).0, 2);
}

#[test]
fn the_prefix_comes_from_the_files_before_the_environment() {
    let work = Work::new();
    let judge = |work: &Work| {
        let mut command = gate(work.path());
        command.env("MODEL_PREFIX", "strict");
        run(&mut command).0
    };
    assert_eq!(judge(&work), 0);
    let mut unknown = meta(64);
    unknown["infmax_model_prefix"] = json!("unknown");
    work.file("meta_env.json", &unknown);
    assert_eq!(judge(&work), 1);
}

#[test]
fn a_score_is_a_finite_number_from_0_to_1() {
    let work = Work::new();
    for value in [
        "NaN",
        "Infinity",
        "-Infinity",
        "true",
        "1.01",
        "-0.01",
        "\"0.95\"",
        "[0.95]",
    ] {
        let text = result("plain", 0.5).to_string().replace("0.5", value);
        work.text("results.json", text);
        work.fails(&[], &["not a number from 0 to 1"]);
    }
    work.text("results.json", result("plain", 0.5).to_string().replace("0.5", "null"));
    work.fails(&[], &["`plain` has no metric, so nothing of it was checked"]);
}

#[test]
fn nothing_checked_is_a_failure_of_that_task() {
    let work = Work::new();
    let mut two = result("plain", 0.95);
    two["results"]["other"] = json!({"alias": "other", "f1,none": null});
    two["n-samples"]["other"] = json!({"original": 5, "effective": 5});
    work.file("results.json", &two);
    work.fails(&[], &["`other` has no metric, so nothing of it was checked"]);
    two["results"]["other"] = json!({"f1,none": 0.9});
    work.file("results.json", &two);
    work.passes(&[]);
    work.fails(
        &["--metric-prefix", "bleu"],
        &["`plain` has no metric", "`other` has no metric"],
    );
}

#[test]
fn a_threshold_names_its_metric_and_shows_its_calibration() {
    let work = Work::new();
    let mut tuned = result("tuned", 0.1);
    tuned["results"]["tuned"]["f1,none"] = json!(0.7);
    work.file("results.json", &tuned);
    let stderr = work.fails(&[], &["`tuned` `f1,none` is 0.7000, under 0.8 (default)"]);
    assert!(
        stderr.contains("calibrated on a mean of 0.85, a spread of 0.01, 900 samples"),
        "{stderr}"
    );
    assert!(stderr.contains("the file gives no standard error"), "{stderr}");
}

#[test]
fn every_sample_counts_unless_a_limit_was_set() {
    let work = Work::new();
    let mut short = result("plain", 0.95);
    short["n-samples"]["plain"]["effective"] = json!(10);
    work.file("results.json", &short);
    work.fails(&[], &["evaluated 10 of 100 samples, and no limit was set"]);
    short["config"]["limit"] = json!(10);
    work.file("results.json", &short);
    work.passes(&[]);
    // A job's envelope knows better than its results: no limit was planned.
    work.file("envelope.json", &envelope("0123456789ab", 64));
    work.fails(&["--envelope", "envelope.json"], &["evaluated 10 of 100 samples"]);
    let mut limited = envelope("0123456789ab", 64);
    limited["overrides"] = json!({"eval-limit": "10"});
    work.file("envelope.json", &limited);
    work.passes(&["--envelope", "envelope.json"]);
    for effective in ["0", "-1", "true", "null", "NaN", "\"100\""] {
        let text = result("plain", 0.95)
            .to_string()
            .replace("\"effective\":100", &format!("\"effective\":{effective}"));
        work.text("results.json", text);
        work.fails(&[], &["`plain` evaluated "]);
    }
    let mut silent = result("plain", 0.95);
    silent.as_object_mut().expect("an object").remove("n-samples");
    work.file("results.json", &silent);
    work.fails(&[], &["`plain` has no sample count"]);
}

#[test]
fn a_group_has_the_samples_of_its_tasks() {
    let work = Work::new();
    let mut group = result("plain", 0.95);
    group["results"]["family"] = json!({"exact_match,strict-match": 0.95, "alias": "family"});
    group["results"]["bare"] = json!({"alias": "bare"});
    group["groups"] = json!({"family": {"exact_match,strict-match": 0.95}});
    group["group_subtasks"] = json!({"family": ["plain"], "bare": ["plain"], "plain": []});
    work.file("results.json", &group);
    let report = work.passes(&[]);
    assert_eq!(report["checks"].as_array().map(Vec::len), Some(2), "{report}");
    group["group_subtasks"]["family"] = json!(["plain", "gone"]);
    work.file("results.json", &group);
    work.fails(
        &[],
        &[
            "`gone` of the group `family` has no result",
            "the tasks of the group `family` have no whole sample count",
        ],
    );
}

#[test]
fn a_floor_is_scaled_to_the_samples_of_a_limited_run() {
    let work = Work::new();
    work.text(
        "thresholds.yaml",
        "default: { plain: { min-score: 0.93, mean: 0.953, spread: 0.006, samples: 1319 } }\n",
    );
    let mut limited = envelope("0123456789ab", 64);
    limited["overrides"] = json!({"eval-limit": "125"});
    work.file("envelope.json", &limited);
    let judged = |score: f64| {
        let mut result = result("plain", score);
        result["n-samples"]["plain"] = json!({"original": 1319, "effective": 125});
        work.file("results.json", &result);
    };
    // 0.953 - 0.023 x sqrt(1319 / 125) = 0.8783
    judged(0.8784);
    let report = work.passes(&["--envelope", "envelope.json"]);
    assert_eq!(report["diagnostic"], true);
    judged(0.8782);
    let stderr = work.fails(
        &["--envelope", "envelope.json"],
        &["`exact_match,strict-match` is 0.8782, under 0.8783"],
    );
    assert!(
        stderr.contains("0.93 of 1319 samples, scaled to the 125 that were judged"),
        "{stderr}"
    );
}

#[test]
fn a_score_under_its_floor_comes_with_what_became_of_the_answers() {
    let work = Work::new();
    let mut meta = meta(64);
    meta["answers"] = json!({"asked": 100, "empty": 1, "reasoning_only": 60, "cut": 61});
    work.file("meta_env.json", &meta);
    assert_eq!(work.passes(&[])["answers"]["cut"], 61);
    work.file("results.json", &result("plain", 0.5));
    work.fails(
        &[],
        &["under 0.9 (default) by 20.0 standard errors of 0.0200; of 100 answers 1 were empty, 60 came only as reasoning, \
           61 were cut by the output budget"],
    );
}

#[test]
fn an_integration_error_is_a_failure_whatever_the_scores() {
    let work = Work::new();
    let mut failed = result("plain", 1.0);
    failed["integration_error"] = json!({"type": "SetupError", "message": "no sandbox"});
    work.file("results.json", &failed);
    work.fails(&[], &["the eval itself failed: SetupError: no sandbox"]);
}

#[test]
fn unreadable_files_are_named_and_do_not_hide_others() {
    let work = Work::batch();
    work.text("results_conc16.json", "");
    work.text("results_conc32.json", b"{\"results\": {\"\xff\": 1}}");
    work.fails(
        &[],
        &[
            "results_conc16.json is empty",
            "results_conc32.json is not UTF-8 at byte 14",
        ],
    );
    work.text("results_conc16.json", "{\"results\": {\"plain\": ");
    work.text("results_conc32.json", "[]");
    work.fails(
        &[],
        &[
            "results_conc16.json is cut off in line 1",
            "results_conc32.json is no JSON object",
        ],
    );
    work.file("results_conc16.json", &json!({}));
    std::fs::remove_file(work.path().join("results_conc32.json")).expect("removed");
    std::os::unix::fs::symlink("/etc/passwd", work.path().join("results_conc32.json")).expect("linked");
    let stderr = work.fails(
        &[],
        &[
            "`results` holds no task",
            "results_conc32.json cannot be read: it is a link",
        ],
    );
    assert!(!stderr.contains("root:"), "{stderr}");
}

#[test]
fn a_pipe_or_a_folder_is_no_result_and_does_not_block() {
    let work = Work::new();
    let path = work.path().join("results.json");
    std::fs::remove_file(&path).expect("removed");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    work.fails(&[], &["results.json cannot be read: it is no regular file"]);
    std::fs::remove_file(&path).expect("removed");
    std::fs::create_dir(&path).expect("a folder");
    work.fails(&[], &["there is no result file"]);
}

#[test]
fn an_unreadable_thresholds_file_is_an_error() {
    let work = Work::new();
    work.text("thresholds.yaml", "default: [");
    work.fails(&[], &["thresholds.yaml"]);
    std::fs::remove_file(work.path().join("thresholds.yaml")).expect("removed");
    work.fails(&[], &["`thresholds.yaml` does not exist"]);
}

#[test]
fn silence_is_said_apart_from_wrong_answers() {
    let work = Work::new();
    let lines = |empty: usize, all: usize| {
        let line = |at: usize| {
            format!(
                "{{\"resps\": [[\"{}\"]], \"exact_match\": NaN}}\n",
                if at < empty { "" } else { "x" }
            )
        };
        (0..all).map(line).collect::<String>()
    };
    work.text("samples_plain_2026-11-01T00-00-00.jsonl", lines(5, 100));
    let report = work.passes(&[]);
    assert_eq!(report["silence"][0]["empty"], 5);
    work.text("samples_plain_2026-11-01T00-00-00.jsonl", lines(6, 100));
    work.fails(
        &[],
        &["6 of 100 questions have an empty answer in `resps` (6.0%), at most 5.0% may"],
    );
    let mut tuned = result("tuned", 0.1);
    tuned["results"]["tuned"]["f1,none"] = json!(0.9);
    work.file("results.json", &tuned);
    std::fs::remove_file(work.path().join("samples_plain_2026-11-01T00-00-00.jsonl")).expect("removed");
    work.text("samples_tuned_2026-11-01T00-00-00.jsonl", lines(50, 100));
    work.passes(&[]);
    work.text(
        "samples_tuned_2026-11-01T00-00-00.jsonl",
        format!("{}{{\"resps\": [[\"", lines(0, 2)),
    );
    work.fails(&[], &["samples_tuned_2026-11-01T00-00-00.jsonl is cut off in line 3"]);
}

#[test]
fn a_batch_has_exactly_the_points_that_were_asked_for() {
    let work = Work::batch();
    work.passes(&["--expected-concs", "32 16"]);
    work.passes(&[]);
    work.fails(
        &["--expected-concs", "16 32 64"],
        &[
            "`eval_concs` is concurrencies 16, 32",
            "`completed_eval_concs` lacks concurrency 64",
            "no result file for concurrency 64",
        ],
    );
    work.file("results_conc16_2.json", &result("plain", 0.95));
    work.fails(&[], &["2 result files for concurrency 16"]);
    std::fs::rename(
        work.path().join("results_conc16_2.json"),
        work.path().join("results_conc48.json"),
    )
    .expect("moved");
    work.fails(&[], &["results_conc48.json: concurrency 48 is unexpected"]);
    std::fs::rename(
        work.path().join("results_conc48.json"),
        work.path().join("results_x.json"),
    )
    .expect("moved");
    work.fails(&[], &["results_x.json: no `_conc<N>` before the extension"]);
}

#[test]
fn the_lists_of_a_batch_are_lists_of_distinct_concurrencies() {
    let work = Work::batch();
    let cases = [
        (
            batch(&json!([16, 32]), &json!([16]), &json!([32])),
            vec!["failed at concurrency 32", "lacks concurrency 32"],
        ),
        (
            batch(&json!([16, 32, 16]), &json!([16, 32]), &json!([])),
            vec!["`eval_concs` has 16 twice"],
        ),
        (
            batch(&json!([16, 32]), &json!([16, 32, 32]), &json!([])),
            vec!["`completed_eval_concs` has 32 twice"],
        ),
        (
            batch(&json!([16, 32]), &json!([16, 32, 64]), &json!([])),
            vec!["has concurrency 64, which nobody asked for"],
        ),
        (
            batch(&json!([16, 32]), &json!("16 32"), &json!([])),
            vec!["`completed_eval_concs` is no list"],
        ),
        (
            batch(&json!([16, 32]), &json!([16, 32]), &Value::Null),
            vec!["`failed_eval_concs` is no list"],
        ),
        (
            batch(&json!([16, "32"]), &json!([16, 32]), &json!([])),
            vec!["`eval_concs` has \"32\", which is no concurrency"],
        ),
        (
            batch(&json!([16, true]), &json!([16, 32]), &json!([])),
            vec!["`eval_concs` has true"],
        ),
    ];
    for (meta, wanted) in cases {
        work.file("meta_env.json", &meta);
        work.fails(&[], &wanted);
    }
}

#[test]
fn metadata_that_is_lost_or_broken_fails_where_it_matters() {
    let work = Work::new();
    std::fs::remove_file(work.path().join("meta_env.json")).expect("removed");
    work.passes(&[]);
    work.fails(&["--expected-concs", "64"], &["meta_env.json does not exist"]);
    work.text("meta_env.json", "{");
    work.fails(&[], &["meta_env.json is cut off in line 1"]);
    let work = Work::batch();
    std::fs::remove_file(work.path().join("meta_env.json")).expect("removed");
    work.fails(&[], &["meta_env.json does not exist"]);
}

#[test]
fn a_single_point_has_one_result_at_its_concurrency() {
    let work = Work::new();
    work.passes(&["--expected-concs", "64"]);
    work.fails(&["--expected-concs", "32"], &["`conc` is 64, 32 was asked for"]);
    work.fails(
        &["--expected-concs", "32 64"],
        &["concurrencies 32, 64 were asked for, but there is no `eval_concs`"],
    );
    work.file("results_old.json", &result("plain", 0.95));
    work.fails(
        &[],
        &["2 result files for a single point: results.json, results_old.json"],
    );
    for text in ["", "16 x", "0", "16 16", "-1", "1.5"] {
        let (code, _, stderr) = work.judge(&[&format!("--expected-concs={text}")]);
        assert_eq!(code, 1, "{text}: {stderr}");
        assert!(stderr.contains("--expected-concs"), "{stderr}");
    }
}

#[test]
fn an_envelope_says_what_was_asked_for() {
    let work = Work::new();
    work.file("envelope.json", &envelope("0123456789ab", 64));
    assert_eq!(work.passes(&["--envelope", "envelope.json"])["model_prefix"], "m1");
    work.file("envelope.json", &envelope("0123456789ab", 32));
    work.fails(&["--envelope", "envelope.json"], &["`conc` is 64, 32 was asked for"]);
    let mut other = meta(64);
    for (name, value) in [
        ("job_id", json!("ffffffffffff")),
        ("tp", json!(4)),
        ("hw", json!("B200")),
        ("isl", json!("1024")),
    ] {
        other[name] = value;
    }
    work.file("meta_env.json", &other);
    work.file("envelope.json", &envelope("0123456789ab", 64));
    let wanted = [
        "`job_id` is \"ffffffffffff\", the job's is \"0123456789ab\"",
        "`tp` is 4, the job's is 8",
        "`hw` is \"B200\"",
        "`isl` is \"1024\", the job's is 8192",
    ];
    work.fails(&["--envelope", "envelope.json"], &wanted);
    // Other writers get this wrong, and say no job; this tool never does.
    let work = Work::batch();
    work.file("envelope.json", &multinode_envelope("0123456789ab", &[16, 32]));
    work.passes(&["--envelope", "envelope.json"]);
    let mut signed = batch(&json!([16, 32]), &json!([16, 32]), &json!([]));
    (signed["job_id"], signed["tp"]) = (json!("0123456789ab"), json!(4));
    work.file("meta_env.json", &signed);
    work.fails(
        &["--envelope", "envelope.json"],
        &["`is_multinode` is false, the job's is true"],
    );
}

#[test]
fn on_actions_problems_are_annotated_within_the_limit_and_summarized() {
    let work = Work::new();
    let mut many = result("plain", 0.1);
    for at in 0..30 {
        let task = format!("t{at}|`x`\n::set-env name=A::b");
        many["results"][&task] = json!({"exact_match,strict-match": 0.1});
        many["n-samples"][&task] = json!({"original": 5, "effective": 5});
    }
    work.file("results.json", &many);
    let summary = work.path().join("summary.md");
    let mut command = gate(work.path());
    command
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_STEP_SUMMARY", &summary);
    let (code, stdout, stderr) = run(&mut command);
    assert_eq!(code, 1);
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(report["problems"].as_array().map(Vec::len), Some(31));
    let annotations: Vec<&str> = stderr
        .lines()
        .filter(|line| line.trim_start().starts_with("::"))
        .collect();
    let (errors, notices): (Vec<&str>, Vec<&str>) = annotations.iter().partition(|line| line.starts_with("::error"));
    assert_eq!(errors.len(), 9, "{annotations:?}");
    assert_eq!(notices, ["::notice::22 more: see the log and the step summary"]);
    let summary = std::fs::read_to_string(summary).expect("a summary");
    assert!(summary.starts_with("### Eval scores: 31 problems\n"), "{summary}");
    assert!(summary.contains(r"t3\|\`x\` ::set-env"), "{summary}");
}

#[test]
fn thousands_of_tasks_are_judged_at_once() {
    let work = Work::new();
    let mut many = result("plain", 0.95);
    for at in 0..5000 {
        let task = format!("task_{at}");
        many["results"][&task] = json!({"exact_match,none": 0.9});
        many["n-samples"][&task] = json!({"original": 5, "effective": 5});
    }
    work.file("results.json", &many);
    assert_eq!(work.passes(&[])["checks"].as_array().map(Vec::len), Some(5001));
}
