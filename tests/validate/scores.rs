//! Scores and sample counts of one point.

use serde_json::{Value, json};

use super::work::Work;
use crate::fixture::{envelope, gate, meta, result, run};

#[test]
fn a_threshold_is_the_models_then_the_default_then_min_score() {
    let work = Work::new();
    let report = work.passes(&[]);
    assert_eq!(report["checks"][0]["threshold"], 0.9);
    assert_eq!(report["checks"][0]["source"], "default");
    assert_eq!(report["model_prefix"], "m1");
    let check = &report["checks"][0];
    assert_eq!((&check["score"], &check["stderr"]), (&json!(0.95), &json!(0.02)));
    work.fails(
        &["--model-prefix", "strict"],
        &["under 0.97 (models.strict) by 1.0 standard errors of 0.0200"],
    );
    // An error of 0 is no measure of a distance.
    let mut certain = result("plain", 0.5);
    certain["results"]["plain"]["exact_match_stderr,strict-match"] = json!(0.0);
    work.file("results.json", &certain);
    work.fails(
        &[],
        &["under 0.9 (default) by 0.4000; the file gives no standard error"],
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
        let checks = &work.judge(&[]).1["checks"];
        assert_eq!(
            (&checks[0]["score"], &checks[0]["passed"]),
            (&Value::Null, &json!(false)),
            "{value}"
        );
    }
    work.text("results.json", result("plain", 0.5).to_string().replace("0.5", "null"));
    work.fails(&[], &["`plain` has no metric, so nothing of it was checked"]);
}

#[test]
fn a_bound_admits_what_stands_on_it_and_is_shown_as_it_was_written() {
    let work = Work::new();
    work.text(
        "thresholds.yaml",
        "default: { plain: 0.951234, long: 0.95123456789, less: { max: 9.5 } }\n",
    );
    let judged = |task: &str, score: f64| work.file("results.json", &result(task, score));
    judged("plain", 0.951234);
    work.passes(&[]);
    judged("plain", 0.951233);
    work.fails(&[], &["under 0.951234 (default)"]);
    judged("long", 0.9);
    work.fails(&[], &["under 0.9512 (default)"]);
    for (perplexity, wanted) in [
        ("9.5", None),
        ("0", None),
        (
            "9.51",
            Some("`less` `exact_match,strict-match` is 9.5100, over 9.5 (default)"),
        ),
        ("NaN", Some("is NaN, not a finite number")),
        ("-Infinity", Some("is -Infinity, not a finite number")),
    ] {
        let mut less = result("less", 0.5);
        less["higher_is_better"] = json!({"less": {"exact_match": false}});
        work.text("results.json", less.to_string().replace("0.5", perplexity));
        match wanted {
            None => assert_eq!(work.passes(&[])["checks"][0]["bound"], "max"),
            Some(wanted) => _ = work.fails(&[], &[wanted]),
        }
    }
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
    // A limit of 1 is one sample, and not the whole split.
    limited["overrides"] = json!({"eval-limit": "1"});
    work.file("envelope.json", &limited);
    let mut one = short.clone();
    one["n-samples"]["plain"]["effective"] = json!(1);
    work.file("results.json", &one);
    work.passes(&["--envelope", "envelope.json"]);
    // Below 1 it is a share of the split, as the file alone may say it.
    for (effective, share, wanted) in [
        (50, 0.5, None),
        (49, 0.5, Some("the limit was 50")),
        (1, 0.001, None),
        (99, 0.0, Some("no limit was set")),
    ] {
        one["n-samples"]["plain"]["effective"] = json!(effective);
        one["config"]["limit"] = json!(share);
        work.file("results.json", &one);
        match wanted {
            None => _ = work.passes(&[]),
            Some(wanted) => _ = work.fails(&[], &[wanted]),
        }
    }
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
    // None at all is no count either.
    group["group_subtasks"] = json!({"family": ["plain"]});
    group["results"].as_object_mut().expect("results").remove("bare");
    group["n-samples"]["plain"]["effective"] = json!(0);
    work.file("results.json", &group);
    work.fails(
        &[],
        &[
            "`plain` evaluated 0 samples",
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
    let summary = work.path().join("summary.md");
    let mut command = gate(work.path());
    command
        .args(["--envelope", "envelope.json"])
        .env("GITHUB_STEP_SUMMARY", &summary);
    assert_eq!(run(&mut command).0, 0);
    let text = std::fs::read_to_string(summary).expect("a summary");
    let start = "### Eval scores: passed, diagnostic\n\nA limit on samples was set: this run measures no model.\n\n|";
    assert!(text.starts_with(start), "{text}");
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
    let summary = work.path().join("summary.md");
    assert_eq!(run(gate(work.path()).env("GITHUB_STEP_SUMMARY", &summary)).0, 0);
    let text = std::fs::read_to_string(&summary).expect("a summary");
    let start =
        "### Eval scores: passed\n\nAnswers: of 100 answers 1 were empty, 60 came only as reasoning, 61 were cut";
    assert!(text.starts_with(start), "{text}");
    work.file("results.json", &result("plain", 0.5));
    let summary = work.path().join("failed.md");
    assert_eq!(run(gate(work.path()).env("GITHUB_STEP_SUMMARY", &summary)).0, 1);
    let text = std::fs::read_to_string(&summary).expect("a summary");
    let (said, table) = text.split_once("\n\n|").expect("a table behind what is wrong");
    assert!(
        said.starts_with("### Eval scores: 1 problem\n\nAnswers: ") && said.contains("\n\n- results.json: "),
        "{text}"
    );
    for part in [
        " File | Task | Metric |",
        "\n| results.json | plain | exact_match,strict-match | 0.5000 | 0.0200 | 0.9 (default) | FAIL |\n",
    ] {
        assert!(table.contains(part), "{text}");
    }
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
fn a_metric_prefix_chooses_what_is_judged_and_not_what_is_published() {
    let work = Work::new();
    let mut two = result("plain", 0.5);
    two["results"]["plain"]["f1,none"] = json!(0.95);
    two["results"]["plain"]["f1,other"] = json!(0.7);
    work.file("results.json", &two);
    work.passes(&["--metric-prefix", "f1,none"]);
    let judged = work.fails(&["--metric-prefix", "f1"], &["`plain` `f1,other` is 0.7000, under 0.9"]);
    assert!(!judged.contains("exact_match"), "{judged}");
    // Less of a metric is better, and the threshold has no ceiling.
    two["higher_is_better"] = json!({"plain": {"f1": false}});
    work.file("results.json", &two);
    work.fails(
        &["--metric-prefix", "f1,none"],
        &["`f1,none` is 0.95, less of it is better, and no `max` judges it"],
    );
    // The threshold names another metric, which is what would be published.
    work.file("results.json", &{
        let mut lacking = result("tuned", 0.95);
        lacking["results"]["tuned"]["acc,none"] = json!(0.95);
        lacking
    });
    work.fails(
        &["--metric-prefix", "acc"],
        &["`tuned` has no `f1`, which its threshold names; it has acc,none, exact_match,strict-match, so it cannot be published"],
    );
}

#[test]
fn a_task_file_says_what_its_results_are_called() {
    let work = Work::new();
    let mut job = envelope("0123456789ab", 64);
    job["row"]["eval-framework"] = json!("lm-eval");
    job["row"]["eval-suite"] = json!("mine");
    work.file("envelope.json", &job);
    work.text("configs/evals/mine.yaml", "task: plain\n");
    let args = ["--envelope", "envelope.json"];
    work.passes(&args);
    // It is a task: a group of that name is another thing.
    let mut group = result("easy", 0.95);
    group["group_subtasks"] = json!({"plain": ["easy"]});
    work.file("results.json", &group);
    let lacking = "the job asked for `plain`, and `results` has none";
    work.fails(&args, &[lacking, "`results` has `easy`"]);
    work.text("configs/evals/mine.yaml", "group: plain\ntask: [easy]\n");
    work.passes(&args);
    // Another framework's suites are its own: no task file speaks for them.
    job["row"]["eval-framework"] = json!("kimi-vendor");
    work.file("envelope.json", &job);
    work.file("results.json", &result("plain", 0.95));
    work.fails(
        &args,
        &[
            "the job asked for `mine`, and `results` has none",
            "`results` has `plain`",
        ],
    );
}

#[test]
fn a_limit_that_only_the_environment_knows_makes_a_run_diagnostic() {
    let work = Work::new();
    for (limit, diagnostic) in [("8", true), ("full", false), ("0", false), ("", false)] {
        let (code, stdout, stderr) = run(gate(work.path()).env("EVAL_LIMIT", limit).arg("--json"));
        assert_eq!(code, 0, "{stderr}");
        let report: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
        assert_eq!(report["diagnostic"], diagnostic, "{limit:?}");
    }
}
