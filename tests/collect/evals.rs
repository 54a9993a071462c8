//! `sweepctl collect evals`.

use serde_json::{Value, json};

use super::{JOB, OTHER, Sweep, attempt, column};
use crate::fixture::{batch, envelope, every_case, meta, multinode_envelope, read_json, result, run, sweepctl, write};

#[test]
fn the_corpus_gives_its_rows() {
    every_case("evals/collect", |folder| {
        let out = tempfile::tempdir().expect("a folder");
        let mut command = sweepctl(folder);
        let (code, _, stderr) = run(command.args(["collect", "evals", "artifacts", "--out"]).arg(out.path()));
        let mut rows = read_json(&out.path().join("agg_eval_all.json"));
        let mut wanted = read_json(&folder.join("expected.json"))["rows"].take();
        // The corpus keeps rows in an order of its own.
        for rows in [&mut rows, &mut wanted] {
            let rows = rows.as_array_mut().expect("a list");
            rows.sort_by_key(|row| (row["source"].to_string(), row["task"].to_string()));
        }
        let misses = code != 0 || rows != wanted || stderr.is_empty() == wanted.as_array().is_some_and(Vec::is_empty);
        misses.then(|| format!("exit {code}, {stderr}\n{rows:#}\nnot\n{wanted:#}"))
    });
}

#[test]
fn sets_are_found_at_any_depth_and_flat() {
    let sweep = Sweep::new();
    sweep.set(".", &meta(1), 0.9);
    sweep.set("a", &meta(2), 0.8);
    sweep.set("a/b/c/d", &meta(3), 0.7);
    let printed = sweep.evals(&[]);
    assert_eq!(column(&printed, "rows", "conc"), [1, 2, 3]);
    let sources = column(&printed, "rows", "source");
    assert_eq!(sources[0], "artifacts/results_2026-11-01T00-00-00.json");
    assert_eq!(sources[2], "artifacts/a/b/c/d/results_2026-11-01T00-00-00.json");
    assert_eq!(read_json(&sweep.path().join("agg_eval_all.json")), printed["rows"]);
}

#[test]
fn an_absolute_folder_puts_no_machine_path_into_rows() {
    let sweep = Sweep::new();
    sweep.set("a", &meta(1), 0.9);
    let elsewhere = tempfile::tempdir().expect("a folder");
    for folder in [sweep.path(), elsewhere.path()] {
        let mut command = sweepctl(folder);
        command
            .args(["collect", "evals", "--out"])
            .arg(sweep.path())
            .arg(sweep.path().join("artifacts"));
        let (code, stdout, _) = run(&mut command);
        let printed: Value = serde_json::from_str(&stdout).expect("JSON");
        assert_eq!(code, 0);
        assert_eq!(
            printed["rows"][0]["source"],
            "artifacts/a/results_2026-11-01T00-00-00.json"
        );
    }
}

#[test]
fn the_latest_result_is_by_the_time_in_its_name() {
    let sweep = Sweep::new();
    sweep.file("a/meta_env.json", &meta(1));
    sweep.file("a/results_2026-11-02T00-00-00.5.json", &result("plain", 0.5));
    sweep.file("a/results_2026-11-02T00-00-00.json", &result("plain", 0.1));
    sweep.file("a/results_2026-10-02T00-00-00.999999.json", &result("plain", 0.2));
    assert_eq!(column(&sweep.evals(&[]), "rows", "score"), [0.5]);
}

#[test]
fn a_batch_gives_a_row_for_each_point_that_completed() {
    let sweep = Sweep::new();
    sweep.file(
        "a/meta_env.json",
        &batch(&json!([16, 32, 64]), &json!([64, 16]), &json!([32])),
    );
    for (name, score) in [
        ("results_2026-11-01T00-00-00_conc16.json", 0.1),
        ("results_2026-11-02T00-00-00_conc16_2.json", 0.2),
        ("results_2026-11-01T00-00-00_conc32.json", 0.3),
        ("results_2026-11-01T00-00-00_conc64.json", 0.4),
        ("results_2026-11-03T00-00-00.json", 0.5),
    ] {
        sweep.file(&format!("a/{name}"), &result("plain", score));
    }
    let printed = sweep.evals(&["--strict"]);
    assert_eq!(column(&printed, "rows", "conc"), [16, 64]);
    assert_eq!(column(&printed, "rows", "score"), [0.2, 0.4]);
    std::fs::remove_file(sweep.path().join("artifacts/a/results_2026-11-01T00-00-00_conc64.json")).expect("removed");
    let printed = sweep.evals(&[]);
    assert_eq!(column(&printed, "rows", "conc"), [16]);
    assert_eq!(
        printed["problems"],
        json!(["artifacts/a: concurrency 64 completed, but has no result file"])
    );
}

#[test]
fn the_newest_attempt_counts_and_the_others_are_listed() {
    let sweep = Sweep::new();
    sweep.set("a", &attempt(JOB, 7, 1), 0.1);
    sweep.set("b", &attempt(JOB, 7, 10), 0.2);
    sweep.set("c", &attempt(JOB, 7, 9), 0.3);
    sweep.set("d", &attempt(OTHER, 7, 1), 0.4);
    let printed = sweep.evals(&["--strict"]);
    assert_eq!(column(&printed, "rows", "score"), [0.2, 0.4]);
    assert_eq!(column(&printed, "jobs", "state"), ["superseded", "superseded"]);
    assert_eq!(
        printed["jobs"][1]["reason"],
        "artifacts/c: attempt 9 of run 7, there is a newer one"
    );
    // A later run is newer than every attempt of an earlier one.
    sweep.set("e", &attempt(JOB, 8, 1), 0.5);
    assert_eq!(column(&sweep.evals(&[]), "rows", "score"), [0.4, 0.5]);
    sweep.set("f", &attempt(JOB, 8, 1), 0.6);
    let (code, printed, stderr) = sweep.collect("evals", &["--strict"]);
    assert_eq!(code, 1, "{stderr}");
    assert_eq!(column(&printed, "rows", "score"), [0.4, 0.5]);
    assert!(
        stderr.contains("artifacts/f: the same attempt at the same job as artifacts/e"),
        "{stderr}"
    );
}

#[test]
fn of_attempts_without_numbers_the_newest_by_its_results_counts() {
    let sweep = Sweep::new();
    for (folder, time, score) in [
        ("c", "2026-11-02T00-00-00", 0.3),
        ("a", "2026-11-03T00-00-00.5", 0.1),
        ("b", "2026-11-03T00-00-00", 0.2),
    ] {
        let mut meta = meta(64);
        meta["job_id"] = json!(JOB);
        sweep.file(&format!("{folder}/meta_env.json"), &meta);
        sweep.file(&format!("{folder}/results_{time}.json"), &result("plain", score));
    }
    let printed = sweep.evals(&["--strict"]);
    assert_eq!(column(&printed, "rows", "score"), [0.1]);
    let reasons = column(&printed, "jobs", "reason");
    assert_eq!(
        reasons[0],
        "artifacts/b: an attempt without a number, there is a newer one"
    );
    assert_eq!(reasons.len(), 2);
}

#[test]
fn an_attempt_that_left_no_result_hides_none_that_did() {
    let sweep = Sweep::new();
    sweep.set("a", &attempt(JOB, 7, 1), 0.9);
    sweep.file("b/meta_env.json", &attempt(JOB, 7, 2));
    sweep.file("c/meta_env.json", &attempt(JOB, 7, 3));
    write(sweep.path().join("artifacts/c/results.json"), "{\"results\": ");
    sweep.plan(&json!([envelope(JOB, 64)]));
    let printed = sweep.evals(&["--strict", "--plan", "plan.json"]);
    assert_eq!(column(&printed, "rows", "score"), [0.9]);
    assert_eq!(column(&printed, "jobs", "state"), ["done", "superseded", "superseded"]);
    assert_eq!(
        printed["jobs"][1]["reason"],
        "artifacts/b: attempt 2 of run 7 left no result, another one did"
    );
}

#[test]
fn a_set_that_contradicts_its_job_hides_no_attempt_that_does_not() {
    let sweep = Sweep::new();
    sweep.set("a", &attempt(JOB, 7, 1), 0.91);
    let mut other = attempt(JOB, 7, 2);
    other["precision"] = json!("fp4");
    sweep.set("b", &other, 0.92);
    // This artifact is of the one job, what lies in it of another.
    sweep.set(&format!("eval_m1_8k1k_{JOB}"), &attempt(OTHER, 7, 3), 0.93);
    sweep.plan(&json!([envelope(JOB, 64), envelope(OTHER, 64)]));
    let printed = sweep.evals(&["--plan", "plan.json"]);
    assert_eq!(column(&printed, "rows", "score"), [0.91]);
    let states = ["done", "missing", "superseded", "superseded"];
    assert_eq!(column(&printed, "jobs", "state"), states);
    assert_eq!(
        printed["jobs"][2]["reason"],
        "artifacts/b: attempt 2 of run 7 contradicts the job, another one does not"
    );
    let (code, printed, stderr) = sweep.collect("evals", &["--plan", "plan.json", "--strict"]);
    assert_eq!((code, printed["problems"].as_array().map(Vec::len)), (1, Some(2)));
    for wanted in ["`precision` is \"fp4\", the job's is \"fp8\"", "`job_id` is"] {
        assert!(stderr.contains(wanted), "{stderr}");
    }
    // Alone it leaves the job without a result.
    std::fs::remove_dir_all(sweep.path().join("artifacts/a")).expect("removed");
    let (_, printed, _) = sweep.collect("evals", &["--plan", "plan.json"]);
    assert_eq!(printed["rows"], json!([]));
    assert_eq!(printed["jobs"][0]["state"], "failed");
    assert_eq!(printed["problems"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_run_with_a_limit_says_so_in_row_ledger_and_summary() {
    let sweep = Sweep::new();
    sweep.set("a", &attempt(JOB, 7, 1), 0.9);
    let mut limited = envelope(JOB, 64);
    limited["overrides"] = json!({"eval-limit": "100"});
    sweep.plan(&json!([limited]));
    let summary = sweep.path().join("summary.md");
    let mut command = sweepctl(sweep.path());
    command.args(["collect", "evals", "artifacts", "--plan", "plan.json", "--strict"]);
    let (code, stdout, stderr) = run(command.env("GITHUB_STEP_SUMMARY", &summary));
    assert_eq!(code, 0, "{stderr}");
    let printed: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(printed["rows"][0]["diagnostic"], true);
    assert_eq!(printed["jobs"][0]["reason"], "diagnostic: a limit on samples was set");
    assert_eq!(printed["jobs"][0]["diagnostic"], true);
    let summary = std::fs::read_to_string(summary).expect("a summary");
    assert!(summary.contains("100 (diagnostic)"), "{summary}");
}

#[test]
fn a_score_is_strict_else_accuracy_else_flexible() {
    let row = |metrics: Value, declared: &str| {
        let sweep = Sweep::new();
        sweep.file("a/meta_env.json", &meta(1));
        let mut result = result("plain", 0.5);
        result["results"]["plain"] = metrics;
        result["configs"]["plain"]["metric_list"] = json!([{"metric": declared}]);
        sweep.file("a/results.json", &result);
        sweep.evals(&[])["rows"][0].clone()
    };
    let scored = |row: &Value| (row["score"].clone(), row["score_name"].clone(), row["score_se"].clone());
    let all = json!({"exact_match,flexible-extract": 0.3, "acc,none": 0.2, "exact_match,strict-match": 0.1,
                     "exact_match_stderr,strict-match": "N/A"});
    let strict = row(all, "exact_match");
    assert_eq!(scored(&strict), (json!(0.1), json!("em_strict"), json!("N/A")));
    assert_eq!(
        (&strict["em_flexible"], &strict["em_strict_se"]),
        (&json!(0.3), &json!("N/A"))
    );
    let accuracy = row(
        json!({"exact_match,flexible-extract": 0.3, "acc,none": 0.2, "acc_stderr,none": 0.01}),
        "acc",
    );
    assert_eq!(scored(&accuracy), (json!(0.2), json!("accuracy"), json!(0.01)));
    assert_eq!(accuracy["em_strict"], Value::Null);
    let flexible = row(json!({"exact_match,extract_abcd": 0.3}), "exact_match");
    assert_eq!(scored(&flexible), (json!(0.3), json!("em_flexible"), Value::Null));
    let resolved = row(json!({"exact_match,resolved": 0.54}), "exact_match");
    assert_eq!(scored(&resolved).1, "em_strict");
    let unfiltered = row(json!({"exact_match,none": 0.6}), "exact_match");
    assert_eq!(scored(&unfiltered).1, "em_strict");
    // A known metric comes before a declared one.
    let both = row(json!({"f1,strict-match": 0.7, "exact_match,strict-match": 0.1}), "f1");
    assert_eq!(scored(&both), (json!(0.1), json!("em_strict"), Value::Null));
    let declared = row(json!({"bleu,none": 0.6, "f1,none": 0.7}), "f1");
    assert_eq!(scored(&declared).1, "f1,none");
}

#[test]
fn what_has_no_score_is_a_problem_and_not_a_row() {
    let cases = [
        (
            json!({"bleu_stderr,none": 0.5, "alias": "x"}),
            "`plain` has no metric, so it has no score",
        ),
        (
            json!({"exact_match,strict-match": 1.5, "acc,none": 0.5}),
            "`plain` has 1.5 for `exact_match,strict-match`, not a number from 0 to 1",
        ),
        (
            json!({"exact_match,strict-match": true}),
            "`plain` has true for `exact_match,strict-match`",
        ),
        (json!(3), "`plain` has no metric"),
    ];
    for (metrics, wanted) in cases {
        let sweep = Sweep::new();
        sweep.set("good", &meta(2), 0.9);
        let mut result = result("plain", 0.5);
        result["results"]["plain"] = metrics;
        sweep.file("a/meta_env.json", &meta(1));
        sweep.file("a/results.json", &result);
        let (code, printed, stderr) = sweep.collect("evals", &["--strict"]);
        assert_eq!(
            (code, column(&printed, "rows", "conc")),
            (1, vec![json!(2)]),
            "{stderr}"
        );
        assert!(stderr.contains(wanted), "{stderr}");
    }
}

#[test]
fn a_group_has_a_row_only_where_none_of_its_tasks_has_one() {
    let sweep = Sweep::new();
    sweep.file("a/meta_env.json", &meta(1));
    let mut group = result("plain", 0.5);
    group["results"]["family"] = json!({"acc,none": 0.4, "alias": "family"});
    group["results"]["second"] = json!({"acc,none": 0.3});
    group["groups"] = json!({"family": {"acc,none": 0.4, "alias": "family"}, "bare": {"alias": "bare"}});
    group["group_subtasks"] = json!({"family": ["plain", "second"], "bare": ["family"]});
    group["n-samples"]["second"] = json!({"original": 7, "effective": 7});
    sweep.file("a/results.json", &group);
    let printed = sweep.evals(&["--strict"]);
    assert_eq!(column(&printed, "rows", "task"), ["plain", "second"]);
    assert_eq!(column(&printed, "rows", "n_eff"), [100, 7]);
    // A group speaks for its tasks only where none of them does.
    let results = group["results"].as_object_mut().expect("results");
    results.remove("plain");
    results.remove("second");
    sweep.file("a/results.json", &group);
    let printed = sweep.evals(&["--strict"]);
    assert_eq!(column(&printed, "rows", "task"), ["family"]);
    assert_eq!(column(&printed, "rows", "n_eff"), [107]);
}

#[test]
fn metadata_in_any_spelling_gives_typed_rows() {
    let sweep = Sweep::new();
    let mut odd = meta(1);
    for (name, value) in [
        ("tp", json!("4")),
        ("dp_attention", json!("True")),
        ("isl", json!(null)),
        ("conc", json!("128")),
        ("framework", json!("SGLang")),
        ("spec_decoding", json!(null)),
    ] {
        odd[name] = value;
    }
    sweep.set("a", &odd, 0.5);
    let row = &sweep.evals(&["--strict"])["rows"][0];
    assert_eq!(
        (&row["tp"], &row["conc"], &row["isl"]),
        (&json!(4), &json!(128), &json!(0))
    );
    assert_eq!((&row["prefill_tp"], &row["decode_tp"]), (&json!(4), &json!(4)));
    assert_eq!(
        (&row["dp_attention"], &row["decode_dp_attention"]),
        (&json!("true"), &json!("true"))
    );
    assert_eq!(
        (&row["framework"], &row["spec_decoding"]),
        (&json!("sglang"), &json!("unknown"))
    );
}

#[test]
fn rows_sort_by_model_or_by_hardware() {
    let sweep = Sweep::new();
    for (at, (prefix, hw, conc)) in [
        ("b", "h100", 8),
        ("a", "h200", 128),
        ("a", "h200", 16),
        ("a", "b200", 1),
    ]
    .iter()
    .enumerate()
    {
        let mut meta = meta(*conc);
        meta["infmax_model_prefix"] = json!(prefix);
        meta["hw"] = json!(hw);
        sweep.set(&format!("s{at}"), &meta, 0.5);
    }
    assert_eq!(column(&sweep.evals(&[]), "rows", "conc"), [1, 16, 128, 8]);
    assert_eq!(column(&sweep.evals(&["--sort", "hw"]), "rows", "conc"), [1, 8, 16, 128]);
}

#[test]
fn a_broken_set_loses_only_itself() {
    let sweep = Sweep::new();
    sweep.set("good", &meta(1), 0.9);
    write(sweep.path().join("artifacts/cut/meta_env.json"), "{\"tp\": ");
    write(sweep.path().join("artifacts/list/meta_env.json"), "[]");
    sweep.file("empty/meta_env.json", &meta(2));
    sweep.file("orphan/results.json", &result("plain", 0.5));
    sweep.file("half/meta_env.json", &meta(3));
    write(sweep.path().join("artifacts/half/results.json"), "");
    sweep.file("zero/meta_env.json", &meta(4));
    let mut zero = result("plain", 0.5);
    zero["n-samples"]["plain"]["effective"] = json!(0);
    sweep.file("zero/results.json", &zero);
    sweep.file("failed/meta_env.json", &meta(5));
    sweep.file(
        "failed/results.json",
        &json!({"integration_error": "no sandbox", "results": {}}),
    );
    let printed = sweep.evals(&[]);
    assert_eq!(column(&printed, "rows", "conc"), [1]);
    let wanted = [
        "artifacts/cut/meta_env.json is cut off in line 1",
        "artifacts/list/meta_env.json is no JSON object",
        "artifacts/orphan: there are results, but no meta_env.json",
        "artifacts/empty: there is no result file",
        "artifacts/failed/results.json: the eval itself failed: no sandbox",
        "artifacts/half/results.json is empty",
        "artifacts/zero/results.json: `plain` evaluated 0 samples",
    ];
    assert_eq!(printed["problems"], json!(wanted));
    let (code, printed, stderr) = sweep.collect("evals", &["--strict"]);
    assert_eq!((code, column(&printed, "rows", "conc")), (1, vec![json!(1)]));
    assert!(wanted.iter().all(|problem| stderr.contains(problem)), "{stderr}");
}

#[test]
fn links_are_not_followed() {
    let sweep = Sweep::new();
    let outside = tempfile::tempdir().expect("a folder");
    write(outside.path().join("set/meta_env.json"), meta(1).to_string());
    write(
        outside.path().join("set/results.json"),
        result("plain", 0.5).to_string(),
    );
    let link = |target: &str, name: &str| {
        let place = sweep.path().join("artifacts").join(name);
        std::fs::create_dir_all(place.parent().expect("a folder")).expect("created");
        std::os::unix::fs::symlink(outside.path().join(target), place).expect("linked");
    };
    link("set", "folder");
    link("set/meta_env.json", "a/meta_env.json");
    sweep.file("b/meta_env.json", &meta(2));
    link("set/results.json", "b/results.json");
    let printed = sweep.evals(&[]);
    assert_eq!(printed["rows"], json!([]));
    let wanted = [
        "artifacts/a/meta_env.json cannot be read: it is a link, and links are refused",
        "artifacts/b/results.json cannot be read: it is a link, and links are refused",
    ];
    assert_eq!(printed["problems"], json!(wanted));
}

#[test]
fn no_set_is_a_message_and_a_failure_only_of_a_plan() {
    let sweep = Sweep::new();
    let nothing = "there is no eval result in artifacts\n";
    let (code, printed, stderr) = sweep.collect("evals", &[]);
    assert_eq!((code, &printed["rows"]), (0, &json!([])));
    assert_eq!(stderr, nothing);
    // A folder that is not there may be one that was misspelled.
    for what in ["evals", "results"] {
        let (code, printed, stderr) = sweep.collect(what, &["--strict"]);
        assert_eq!((code, &printed["rows"]), (1, &json!([])));
        assert!(stderr.contains("the folder artifacts was not found"), "{stderr}");
    }
    std::fs::create_dir(sweep.path().join("artifacts")).expect("created");
    let (code, printed, stderr) = sweep.collect("evals", &["--strict"]);
    assert_eq!((code, &printed["rows"]), (0, &json!([])));
    assert_eq!(stderr, nothing);
    assert_eq!(read_json(&sweep.path().join("agg_eval_all.json")), json!([]));
    let mut no_eval = envelope(JOB, 64);
    no_eval["row"]["run-eval"] = json!(false);
    no_eval["row"]["eval-only"] = json!(false);
    sweep.plan(&json!([no_eval]));
    assert_eq!(sweep.collect("evals", &["--plan", "plan.json"]).0, 0);
    sweep.plan(&json!([envelope(JOB, 64)]));
    let (code, _, stderr) = sweep.collect("evals", &["--plan", "plan.json"]);
    assert_eq!(code, 1);
    assert!(
        stderr.contains("no eval result arrived in artifacts, the plan has 1"),
        "{stderr}"
    );
}

#[test]
fn every_planned_eval_is_accounted_for() {
    let ids = [
        "000000000001",
        "000000000002",
        "000000000003",
        "000000000004",
        "000000000005",
        "000000000006",
    ];
    let sweep = Sweep::new();
    sweep.set("a", &attempt(ids[0], 1, 1), 0.9);
    sweep.set("b", &attempt(ids[0], 1, 2), 0.9);
    sweep.file("c/meta_env.json", &attempt(ids[1], 1, 1));
    // This one's metadata is lost: the folder still says whose it is.
    write(
        sweep
            .path()
            .join(format!("artifacts/eval_m1_8k1k_{}/meta_env.json", ids[3])),
        "",
    );
    let mut half = batch(&json!([16, 32]), &json!([16]), &json!([32]));
    half["job_id"] = json!(ids[4]);
    (half["is_multinode"], half["tp"]) = (json!(true), json!(4));
    sweep.file("d/meta_env.json", &half);
    sweep.file("d/results_conc16.json", &result("plain", 0.9));
    sweep.set(&format!("eval_m1_8k1k_{}", ids[5]), &meta(64), 0.9);
    sweep.set("e", &attempt("ffffffffffff", 1, 1), 0.9);
    sweep.set("f", &meta(8), 0.9);
    let mut plan: Vec<Value> = ids.iter().map(|id| envelope(id, 64)).collect();
    plan[4] = multinode_envelope(ids[4], &[16, 32]);
    sweep.plan(&json!(plan));
    let printed = sweep.evals(&["--plan", "plan.json"]);
    let states = ["done", "failed", "missing", "failed", "failed", "done", "superseded"];
    assert_eq!(column(&printed, "jobs", "state"), states);
    assert_eq!(printed["jobs"][1]["reason"], "artifacts/c: there is no result file");
    assert_eq!(printed["jobs"][4]["reason"], "artifacts/d: nothing at concurrency 32");
    assert_eq!(printed["jobs"][6]["name"], "m1 c64");
    assert_eq!(printed["unplanned"], json!(["artifacts/e", "artifacts/f"]));
    let (code, _, stderr) = sweep.collect("evals", &["--plan", "plan.json", "--strict"]);
    assert_eq!(code, 1);
    assert!(
        stderr.contains("m1 c64 (000000000003) is missing: no result arrived"),
        "{stderr}"
    );
}

#[test]
fn a_plan_that_cannot_be_read_is_an_error() {
    let sweep = Sweep::new();
    sweep.set("a", &meta(1), 0.9);
    let mut twice = json!([envelope(JOB, 64), envelope(JOB, 64)]);
    for (plan, wanted) in [
        (json!({}), "is not a list of envelopes"),
        (json!([{"id": "x"}]), "missing field `name`"),
        (twice.take(), "twice"),
    ] {
        sweep.plan(&plan);
        let (code, _, stderr) = sweep.collect("evals", &["--plan", "plan.json"]);
        assert_eq!(code, 1);
        assert!(stderr.contains(wanted), "{stderr}");
    }
}

#[test]
fn hostile_names_stay_text_in_summary_and_annotations() {
    let sweep = Sweep::new();
    sweep.set("x|y`z\n::error::forged", &meta(1), 0.9);
    sweep.file("b|`c\n::error::forged/meta_env.json", &json!([]));
    let mut bad = result("t|`k\n::error::forged", 0.9);
    bad["model_name"] = json!("m\n::error::forged");
    sweep.file("c/meta_env.json", &meta(2));
    sweep.file("c/results.json", &bad);
    let summary = sweep.path().join("summary.md");
    let mut command = sweepctl(sweep.path());
    command.args(["collect", "evals", "artifacts"]);
    command
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_STEP_SUMMARY", &summary);
    let (code, stdout, stderr) = run(&mut command);
    assert_eq!(code, 0, "{stderr}");
    let lines = stdout.lines().chain(stderr.lines());
    let commands: Vec<&str> = lines.filter(|line| line.trim_start().starts_with("::")).collect();
    assert_eq!(commands.len(), 1, "{commands:?}");
    assert!(
        commands[0].starts_with("::warning file=artifacts/b|`c%0A%3A%3Aerror"),
        "{commands:?}"
    );
    let summary = std::fs::read_to_string(summary).expect("a summary");
    assert!(summary.lines().all(|line| !line.starts_with("::")), "{summary}");
    assert!(summary.contains(r"| t\|\`k ::error::forged |"), "{summary}");
}

#[test]
fn a_summary_that_is_cut_is_kept_whole_as_a_file() {
    let sweep = Sweep::new();
    sweep.file("a/meta_env.json", &meta(1));
    let mut many = result("plain", 0.9);
    let whole = sweep.path().join("agg_eval_all.md");
    for at in 0..9000 {
        if at == 5000 {
            sweep.file("a/results.json", &many);
            let mut command = sweepctl(sweep.path());
            command
                .args(["collect", "evals", "artifacts"])
                .env("GITHUB_STEP_SUMMARY", sweep.path().join("half.md"));
            assert_eq!(run(&mut command).0, 0);
            assert!(!whole.exists(), "a summary that fits needs no file");
        }
        let task = format!("task_{at:05}_{}", "x".repeat(60));
        many["results"][&task] = json!({"exact_match,strict-match": 0.5});
    }
    sweep.file("a/results.json", &many);
    let summary = sweep.path().join("summary.md");
    let mut command = sweepctl(sweep.path());
    command
        .args(["collect", "evals", "artifacts"])
        .env("GITHUB_STEP_SUMMARY", &summary);
    assert_eq!(run(&mut command).0, 0);
    let cut = std::fs::read_to_string(&summary).expect("a summary");
    assert!(cut.len() <= 1 << 20 && cut.contains("more lines"), "{}", cut.len());
    let whole = std::fs::read_to_string(whole).expect("the whole table");
    assert_eq!(whole.matches("| task_").count(), 9000);
}

#[test]
fn the_output_is_named_and_placed_and_replaced_whole() {
    let sweep = Sweep::new();
    sweep.set("a", &meta(1), 0.9);
    write(sweep.path().join("out/agg_eval_x.json"), "old".repeat(10_000));
    let printed = sweep.evals(&["--name", "x", "--out", "out"]);
    assert_eq!(printed["file"], "out/agg_eval_x.json");
    assert_eq!(read_json(&sweep.path().join("out/agg_eval_x.json")), printed["rows"]);
    let left: Vec<_> = std::fs::read_dir(sweep.path().join("out")).expect("a folder").collect();
    assert_eq!(left.len(), 1, "{left:?}");
    for name in ["../x", "", "a\nb"] {
        assert_eq!(sweep.collect("evals", &["--name", name]).0, 2, "{name:?}");
    }
}
