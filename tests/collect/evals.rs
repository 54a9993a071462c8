//! `sweepctl collect evals`: from sets to rows.

use serde_json::{Value, json};

use super::{Sweep, column};
use crate::fixture::{batch, every_case, meta, read_json, result, run, sweepctl, write};

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
    let odd = row(json!({"acc,none": 0.2, "acc_stderr,none": "odd"}), "acc");
    assert_eq!(scored(&odd).2, Value::Null);
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
    let mut half = group.clone();
    half["results"].as_object_mut().expect("results").remove("second");
    sweep.file("a/results.json", &half);
    assert_eq!(column(&sweep.evals(&[]), "rows", "task"), ["plain"]);
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
fn many_nodes_are_told_by_their_sides() {
    let sweep = Sweep::new();
    let mut many = meta(64);
    for (name, value) in [
        ("is_multinode", json!(true)),
        ("prefill_tp", json!(4)),
        ("prefill_num_workers", json!(2)),
        ("decode_num_workers", json!(3)),
        ("dp_attention", json!("mixed")),
        ("model", json!("an alias")),
    ] {
        many[name] = value;
    }
    sweep.set("a", &many, 0.9);
    many["prefill_dp_attention"] = json!(true);
    many["decode_dp_attention"] = json!("False");
    sweep.set("b", &many, 0.8);
    let summary = sweep.path().join("summary.md");
    let mut command = sweepctl(sweep.path());
    command.args(["collect", "evals", "artifacts", "--strict"]);
    let (code, stdout, stderr) = run(command.env("GITHUB_STEP_SUMMARY", &summary));
    assert_eq!(code, 0, "{stderr}");
    let printed: Value = serde_json::from_str(&stdout).expect("JSON");
    let flags = ["mixed", "prefill=true,decode=false"].map(Value::from);
    assert_eq!(column(&printed, "rows", "dp_attention"), flags);
    // The result says which model was asked.
    assert_eq!(column(&printed, "rows", "model"), ["org/model"; 2]);
    let text = std::fs::read_to_string(summary).expect("a summary");
    for part in [
        "### Eval results: 2 rows of 2 sets\n\n#### Multi node\n\n| Model |",
        "| 8192/1024 | 2x tp4 ep1 dpa mixed | 3x tp8 ep1 dpa mixed | 64 | gsm8k | 0.9000 ± 0.0200 (em_strict) | 100 |",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    assert!(!text.contains("Single node"), "{text}");
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
    sweep.file("none/meta_env.json", &meta(6));
    sweep.file("none/results.json", &json!({"results": {}}));
    let printed = sweep.evals(&[]);
    assert_eq!(column(&printed, "rows", "conc"), [1]);
    let wanted = [
        "artifacts/cut/meta_env.json is cut off in line 1",
        "artifacts/list/meta_env.json is no JSON object",
        "artifacts/orphan: there are results, but no meta_env.json",
        "artifacts/empty: there is no result file",
        "artifacts/failed/results.json: the eval itself failed: no sandbox",
        "artifacts/half/results.json is empty",
        "artifacts/none/results.json: `results` holds no task",
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

#[test]
fn rows_of_one_model_stand_by_their_parallelism_and_then_by_their_concurrency() {
    let sweep = Sweep::new();
    for (tp, conc) in [(8, 4), (4, 64), (4, 16)] {
        let mut meta = meta(conc);
        meta["tp"] = json!(tp);
        sweep.set(&format!("tp{tp}_{conc}"), &meta, 0.95);
    }
    assert_eq!(column(&sweep.evals(&[]), "rows", "conc"), [16, 64, 4]);
}
