//! Scores and sample counts of one point.

use serde_json::json;

use super::work::Work;
use crate::fixture::{envelope, gate, meta, result, run};

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
