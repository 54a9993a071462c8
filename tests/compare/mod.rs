//! `sweepctl compare`: what changed between two collections, and what could not be compared.

mod components;

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixture::{run, sweepctl, write};
use crate::support::terminal;

/// A folder with `before/` and `after/`.
struct Sides(TempDir);

impl Sides {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// The throughput rows of a side.
    fn throughput(&self, side: &str, rows: &Value) {
        write(
            self.path().join(side).join("results_bmk/agg_bmk.json"),
            rows.to_string(),
        );
    }

    /// The scores of a side.
    fn scores(&self, side: &str, rows: &Value) {
        let path = self.path().join(side).join("eval_results_all/agg_eval_all.json");
        write(path, rows.to_string());
    }

    fn compare(&self, args: &[&str]) -> (i32, Value, String) {
        let mut command = sweepctl(self.path());
        let (code, stdout, stderr) = run(command.args(["compare", "before", "after"]).args(args));
        (code, serde_json::from_str(&stdout).unwrap_or(Value::Null), stderr)
    }

    #[track_caller]
    fn compared(&self) -> Value {
        let (code, printed, stderr) = self.compare(&[]);
        assert_eq!(code, 0, "{stderr}");
        printed
    }

    fn summary(&self, args: &[&str]) -> String {
        let file = self.path().join("summary.md");
        let _ = std::fs::remove_file(&file);
        let mut command = sweepctl(self.path());
        command.env("GITHUB_STEP_SUMMARY", &file);
        run(command.args(["compare", "before", "after"]).args(args));
        std::fs::read_to_string(file).expect("a summary")
    }
}

fn row(conc: u64, tput: f64) -> Value {
    json!({"hw": "h200", "conc": conc, "image": "engine:1", "model": "org/model", "infmax_model_prefix": "m1",
           "framework": "vllm", "precision": "fp8", "spec_decoding": "none", "disagg": false,
           "recipe_fingerprint": format!("{:064x}", conc), "isl": 1024, "osl": 1024, "is_multinode": false, "tp": 8,
           "pp": 1, "dcp_size": 1, "pcp_size": 1, "ep": 1, "dp_attention": "false", "tput_per_gpu": tput})
}

/// A row with fields of its own.
fn with(mut row: Value, fields: &Value) -> Value {
    let own = fields.as_object().expect("fields").clone();
    row.as_object_mut().expect("a row").extend(own);
    row
}

fn score(conc: u64, score: f64, se: f64) -> Value {
    json!({"is_multinode": false, "model_prefix": "m1", "model": "org/model", "hw": "H200", "framework": "vllm",
           "precision": "fp8", "spec_decoding": "none", "isl": 8192, "osl": 1024, "tp": 8, "ep": 1, "conc": conc,
           "dp_attention": "false", "task": "gsm8k", "score": score, "score_name": "em_strict", "score_se": se})
}

fn column(printed: &Value, list: &str, field: &str) -> Vec<Value> {
    let rows = printed[list].as_array().expect("a list");
    rows.iter().map(|row| row[field].clone()).collect()
}

#[test]
fn the_largest_regression_stands_first() {
    let sides = Sides::new();
    sides.throughput("before", &json!([row(4, 100.0), row(8, 200.0), row(16, 400.0)]));
    sides.throughput("after", &json!([row(16, 440.0), row(4, 99.0), row(8, 150.0)]));
    let printed = sides.compared();
    assert_eq!(column(&printed, "points", "conc"), [8, 4, 16]);
    assert_eq!(column(&printed, "points", "regression_percent"), [25.0, 1.0, -10.0]);
    let metric = json!({"name": "tput_per_gpu", "before": 200.0, "after": 150.0, "change_percent": -25.0});
    assert_eq!(printed["points"][0]["metrics"], json!([metric]));
    assert_eq!(
        (&printed["only_baseline"], &printed["only_current"]),
        (&json!([]), &json!([]))
    );
}

#[test]
fn the_table_fits_80_and_120_columns() {
    let sides = Sides::new();
    let latency = |ttft: f64| json!({"median_ttft": ttft, "p99_ttft": ttft * 4.0, "median_intvty": 50.0 / ttft});
    let side = |ttft: f64| {
        json!([
            with(row(4, 100.0 / ttft), &latency(ttft)),
            with(row(128, 1234.5), &latency(1.0))
        ])
    };
    sides.throughput("before", &side(1.0));
    sides.throughput("after", &side(2.5));
    sides.scores("before", &json!([score(4, 0.9, 0.01)]));
    sides.scores("after", &json!([score(4, 0.8, 0.01)]));
    let mut command = crate::support::sweepctl(sides.path());
    terminal::held("screen_compare", command.args(["compare", "before", "after"]));
}

#[test]
fn less_latency_and_more_interactivity_are_better() {
    let sides = Sides::new();
    let before = json!({"median_ttft": 2.0, "p99_ttft": 8.0, "std_ttft": 1.0, "mean_ttft": 2.5, "median_tpot": 0.02,
                        "median_intvty": 50.0, "p99_tpot": 0.05, "p90_e2el": 9.0});
    let after = json!({"median_ttft": 1.0, "p99_ttft": 10.0, "std_ttft": 9.0, "mean_ttft": 9.5, "median_tpot": 0.04,
                       "median_intvty": 25.0, "p99_tpot": 0.06, "p90_e2el": 99.0});
    sides.throughput("before", &json!([with(row(4, 100.0), &before)]));
    sides.throughput("after", &json!([with(row(4, 100.0), &after)]));
    let printed = sides.compared();
    let mut metrics = column(&printed["points"][0], "metrics", "name");
    metrics.sort_by_key(Value::to_string);
    // The time per token is left out where its inverse is there.
    assert_eq!(
        metrics,
        ["median_intvty", "median_ttft", "p99_tpot", "p99_ttft", "tput_per_gpu"].map(Value::from)
    );
    assert_eq!(printed["points"][0]["regression_percent"], 50.0);
    let (_, printed, _) = sides.compare(&["--metric", "p90_e2el,std_ttft"]);
    let mut changes = column(&printed["points"][0], "metrics", "change_percent");
    changes.sort_by_key(Value::to_string);
    assert_eq!(changes, [1000.0, 800.0]);
}

#[test]
fn a_point_is_what_must_be_the_same_and_no_more() {
    let sides = Sides::new();
    // Another image, model path, router, recipe, spelling and absent defaults: the point is the same.
    let changed = json!({"image": "engine:2", "model": "other/path", "router": {"name": "r"}, "hw": "H200",
                         "recipe_fingerprint": "f".repeat(64), "pp": null, "dp_attention": false, "ep": "1"});
    sides.throughput("before", &json!([row(4, 100.0)]));
    sides.throughput("after", &json!([with(row(4, 110.0), &changed)]));
    assert_eq!(column(&sides.compared(), "points", "conc"), [4]);
    for (field, value) in [
        ("infmax_model_prefix", json!("m2")),
        ("hw", json!("b200")),
        ("framework", json!("sglang")),
        ("precision", json!("fp4")),
        ("spec_decoding", json!("mtp")),
        ("disagg", json!(true)),
        ("osl", json!(8192)),
        ("tp", json!(4)),
        ("pp", json!(2)),
        ("dcp_size", json!(2)),
        ("pcp_size", json!(2)),
        ("ep", json!(8)),
        ("dp_attention", json!("true")),
        ("conc", json!(5)),
    ] {
        sides.throughput("after", &json!([with(row(4, 110.0), &json!({ field: value }))]));
        let printed = sides.compared();
        assert_eq!(printed["points"], json!([]), "{field}");
        assert_eq!(column(&printed, "only_baseline", "conc"), [4], "{field}");
        assert_eq!(printed["only_current"].as_array().map(Vec::len), Some(1), "{field}");
    }
}

#[test]
fn many_nodes_are_told_apart_by_their_sides() {
    let sides = Sides::new();
    let nodes = json!({"is_multinode": true, "tp": null, "prefill_tp": 4, "prefill_num_workers": 2, "decode_tp": 8,
                       "decode_num_workers": 0, "decode_dp_attention": "true", "prefill_hw": "h200"});
    let multi = |fields: Value| with(with(row(64, 10.0), &nodes), &fields);
    sides.throughput(
        "before",
        &json!([multi(json!({})), multi(json!({"prefill_num_workers": 3}))]),
    );
    sides.throughput("after", &json!([multi(json!({"decode_ep": 8})), multi(json!({}))]));
    let printed = sides.compared();
    let topology = |list: &str| column(&printed, list, "topology");
    assert_eq!(topology("points"), ["prefill 2x tp4 on h200, decode 0x tp8 dpa"]);
    assert_eq!(topology("only_baseline"), ["prefill 3x tp4 on h200, decode 0x tp8 dpa"]);
    assert_eq!(
        topology("only_current"),
        ["prefill 2x tp4 on h200, decode 0x tp8 ep8 dpa"]
    );
}

#[test]
fn agentic_points_are_told_apart_by_their_offloading() {
    let sides = Sides::new();
    let agentic = |tput: f64, kv: &str, recipe: &str| {
        let fields = json!({"isl": null, "osl": null, "scenario_type": "agentic-coding", "kv_offloading": kv,
                            "recipe_fingerprint": recipe});
        with(row(8, tput), &fields)
    };
    sides.throughput(
        "before",
        &json!([agentic(10.0, "none", "a"), agentic(20.0, "dram", "b")]),
    );
    sides.throughput(
        "after",
        &json!([agentic(22.0, "dram", "c"), agentic(10.0, "none", "d")]),
    );
    let printed = sides.compared();
    assert_eq!(column(&printed, "points", "offload"), [Value::Null, json!("dram")]);
    assert_eq!(column(&printed, "points", "regression_percent"), [0.0, -10.0]);
    // Rows that do not say how they differ are paired by their recipe; what is left over belongs to nothing.
    let rows = |tputs: [f64; 3], recipes: [&str; 3]| {
        let row = |(tput, recipe): (f64, &str)| agentic(tput, "none", recipe);
        json!(tputs.into_iter().zip(recipes).map(row).collect::<Vec<_>>())
    };
    sides.throughput("before", &rows([10.0, 20.0, 30.0], ["a", "b", "c"]));
    sides.throughput("after", &rows([20.0, 33.0, 10.0], ["b", "z", "a"]));
    let mut changes = column(&sides.compared(), "points", "regression_percent");
    changes.sort_by(|a, b| a.as_f64().partial_cmp(&b.as_f64()).expect("numbers"));
    assert_eq!(changes, [-10.0, 0.0, 0.0]);
    sides.throughput("after", &rows([20.0, 33.0, 10.0], ["b", "y", "z"]));
    let printed = sides.compared();
    assert_eq!(column(&printed, "points", "conc"), [8]);
    assert_eq!(
        printed["problems"],
        json!(["m1 h200 vllm fp8 agentic-coding tp8 c8: 2 earlier and 2 later measurements of one point"])
    );
}

#[test]
fn scores_change_in_standard_errors() {
    let sides = Sides::new();
    let other = json!({"task": "gpqa", "score_se": "N/A"});
    let before = json!([
        score(16, 0.90, 0.03),
        score(32, 0.90, 0.03),
        with(score(16, 0.5, 0.0), &other)
    ]);
    let after = json!([
        score(32, 0.70, 0.04),
        score(16, 0.95, 0.04),
        with(score(16, 0.4, 0.0), &other)
    ]);
    sides.scores("before", &before);
    sides.scores("after", &after);
    let printed = sides.compared();
    assert_eq!(column(&printed, "scores", "task"), ["gsm8k", "gpqa", "gsm8k"]);
    assert_eq!(column(&printed, "scores", "conc"), [32, 16, 16]);
    let errors: Vec<Option<f64>> = column(&printed, "scores", "change_in_se")
        .iter()
        .map(Value::as_f64)
        .collect();
    assert!((errors[0].expect("errors") + 4.0).abs() < 1e-9 && (errors[2].expect("errors") - 1.0).abs() < 1e-9);
    assert_eq!(errors[1], None);
    // A strict match is not held against a flexible one.
    sides.scores(
        "after",
        &json!([with(score(16, 0.5, 0.1), &json!({"score_name": "em_flexible"}))]),
    );
    let printed = sides.compared();
    assert_eq!(
        (&printed["scores"], column(&printed, "only_baseline", "task").len()),
        (&json!([]), 2)
    );
    let said = printed["problems"][0].as_str().expect("a reason");
    assert!(
        said.ends_with("gsm8k: the score was em_strict, it is em_flexible"),
        "{said}"
    );
}

#[test]
fn a_limit_fails_and_names_every_point_over_it() {
    let sides = Sides::new();
    let ttft = |seconds: f64| json!({ "median_ttft": seconds });
    let before = json!([row(4, 100.0), with(row(8, 100.0), &ttft(1.0)), row(16, 100.0)]);
    let after = json!([row(4, 89.0), with(row(8, 80.0), &ttft(1.2)), row(16, 95.0)]);
    sides.throughput("before", &before);
    sides.throughput("after", &after);
    let (code, printed, stderr) = sides.compare(&["--max-regression", "10"]);
    assert_eq!(code, 1);
    let regressions = json!([
        "m1 h200 vllm fp8 1024/1024 tp8 c8: tput_per_gpu 100.0 → 80.00 (-20.0 %), median_ttft 1.000 → 1.200 (+20.0 %)",
        "m1 h200 vllm fp8 1024/1024 tp8 c4: tput_per_gpu 100.0 → 89.00 (-11.0 %)",
    ]);
    assert_eq!(printed["regressions"], regressions);
    assert!(
        stderr.contains("worse than allowed: m1 h200 vllm fp8 1024/1024 tp8 c4"),
        "{stderr}"
    );
    assert!(!stderr.contains("c16"), "{stderr}");
    assert!(
        sides
            .summary(&["--max-regression", "10"])
            .contains("#### Worse than allowed: 2")
    );
    // Exactly the limit is allowed, and without one nothing fails.
    for args in [
        &["--max-regression", "20"][..],
        &["--max-regression", "11", "--metric", "tput_per_gpu"],
        &[],
    ] {
        let wanted = i32::from(args.contains(&"11"));
        assert_eq!(sides.compare(args).0, wanted, "{args:?}");
    }
    for wrong in ["-1", "nan", "inf", "much"] {
        assert_eq!(sides.compare(&[&format!("--max-regression={wrong}")]).0, 2, "{wrong}");
    }
}

#[test]
fn an_unknown_metric_is_named_once() {
    let sides = Sides::new();
    sides.throughput("before", &json!([row(4, 100.0), row(8, 100.0)]));
    sides.throughput("after", &json!([row(4, 100.0), row(8, 100.0)]));
    let args = [
        "compare",
        "before",
        "after",
        "--metric",
        "tput_per_gpus",
        "--max-regression",
        "5",
    ];
    let output = crate::support::run(sides.path(), args);
    let said = crate::support::stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("no throughput result has the metric `tput_per_gpus`"),
        "{said}"
    );
    assert!(said.contains("did you mean `tput_per_gpu`"), "{said}");
    assert_eq!(said.matches("error[").count(), 1, "{said}");
}

#[test]
fn what_is_wrong_with_a_row_loses_that_row_alone() {
    let sides = Sides::new();
    let mut rows = vec![row(1, 1.0)];
    let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    let mut wanted = Vec::new();
    for (fields, reason) in [
        (json!({"conc": 0}), "`conc` is 0, it must be a number above 0"),
        (json!({"conc": [4]}), "`conc` is a list or a mapping"),
        (json!({"hw": null}), "`hw` is null, it must be a text"),
        (json!({"framework": 7}), "`framework` is 7, it must be a text"),
        (
            json!({"precision": "x".repeat(201)}),
            "`precision` is longer than 200 characters",
        ),
        (json!({"tp": "eight"}), "`tp` is \"eight\", it must be a whole number"),
        (json!({"tp": -1}), "`tp` is -1"),
        (
            json!({"isl": null, "osl": null}),
            "`isl` is null and `osl` is null, and no scenario is named",
        ),
        (
            json!({"tput_per_gpu": "NaN"}),
            "`tput_per_gpu` is NaN, it must be a finite number above 0",
        ),
        (json!({"tput_per_gpu": null}), "it has no `tput_per_gpu`"),
        (json!({"median_ttft": 0}), "`median_ttft` is 0"),
        (
            json!({"task": "gsm8k", "score_name": "em_strict", "score": 1.5}),
            "`score` is 1.5, not a number from 0 to 1",
        ),
        (json!({"task": "gsm8k", "score": 0.5}), "`score_name` is null"),
    ] {
        rows.push(with(row(1, 1.0), &fields));
        wanted.push(format!("row {}: {reason}", rows.len()));
    }
    for (value, reason) in [(json!("text"), "no JSON object"), (json!([1, 2]), "no JSON object")] {
        rows.push(value);
        wanted.push(format!("row {}: it is {reason}", rows.len()));
    }
    // A bare NaN and a value nested thousands deep, as no serializer here would write them.
    let text = json!(rows).to_string().replace("\"NaN\"", "NaN").replacen(
        "\"image\":\"engine:1\"",
        &format!("\"image\":{deep}"),
        1,
    );
    write(sides.path().join("before/agg_bmk.json"), text);
    write(sides.path().join("before/cut/agg_bmk.json"), "[{\"conc\": 1");
    write(sides.path().join("before/text/agg_bmk.json"), "\"text\"");
    write(sides.path().join("before/job/agg_r1.json"), row(1, 9.0).to_string());
    sides.throughput("after", &json!([row(1, 2.0)]));
    let (code, printed, stderr) = sides.compare(&[]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(column(&printed, "points", "regression_percent"), [-100.0]);
    wanted.extend([
        "agg_bmk.json is cut off in line 1".to_owned(),
        "agg_bmk.json is no list of rows".to_owned(),
    ]);
    let problems = printed["problems"].as_array().expect("a list");
    assert_eq!(problems.len(), wanted.len(), "{problems:#?}");
    for reason in wanted {
        let said = |problem: &Value| problem.as_str().is_some_and(|text| text.contains(&reason));
        assert!(problems.iter().any(said), "no `{reason}` in {problems:#?}");
        assert!(stderr.contains(&reason), "no `{reason}` in {stderr}");
    }
}

#[test]
fn a_side_without_results_is_no_failure() {
    let sides = Sides::new();
    sides.throughput("after", &json!([row(1, 2.0)]));
    let (code, printed, stderr) = sides.compare(&["--max-regression", "1"]);
    assert_eq!((code, &printed["points"]), (0, &json!([])));
    assert_eq!(stderr, "nothing to compare: before is not found\n");
    assert!(sides.summary(&[]).contains("Nothing to compare: before is not found."));
    let mut command = sweepctl(sides.path());
    let (code, _, stderr) = run(command.args(["compare", "before", "after/results_bmk/agg_bmk.json"]));
    assert_eq!((code, stderr.lines().count()), (0, 1), "{stderr}");
}

#[test]
fn a_limit_needs_results_to_hold_against() {
    let limited = |after: &str, args: &[&str]| {
        let sides = Sides::new();
        sides.throughput("before", &json!([row(1, 2.0), row(2, 2.0)]));
        write(sides.path().join("after/agg_bmk.json"), after);
        sides.compare(&[&["--max-regression", "5"], args].concat())
    };
    let good = json!([row(1, 2.0)]).to_string();
    assert_eq!(limited(&good, &[]).0, 0);
    let unreadable = json!([row(1, 2.0), row(2, -1.0)]).to_string();
    for (after, args, reason) in [
        ("[]", &[][..], "nothing shows that nothing got worse"),
        ("[{\"conc\":", &[], "is cut off in line 1"),
        (&unreadable, &[], "`tput_per_gpu` is -1"),
        (
            &good,
            &["--metric", "absent"],
            "no throughput result has the metric `absent`",
        ),
    ] {
        let (code, _, stderr) = limited(after, args);
        assert!(code == 1 && stderr.contains(reason), "{after}: {code}, {stderr}");
    }
}

#[test]
fn a_file_that_is_named_must_be_a_collection() {
    let sides = Sides::new();
    write(sides.path().join("one.json"), row(1, 1.0).to_string());
    write(sides.path().join("two.json"), json!([row(1, 1.5)]).to_string());
    let compare = |before: &str, after: &str| run(sweepctl(sides.path()).args(["compare", before, after]));
    let (code, stdout, _) = compare("two.json", "two.json");
    let printed: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(
        (code, column(&printed, "points", "regression_percent")),
        (0, vec![json!(-0.0)])
    );
    let (_, _, stderr) = compare("one.json", "two.json");
    assert!(stderr.contains("one.json is no list of rows"), "{stderr}");
}

#[test]
fn a_summary_is_bounded_and_nothing_in_it_is_markup() {
    let sides = Sides::new();
    let hostile = json!({"infmax_model_prefix": "<img src=x>|`a`\n::error::x", "framework": "[l](u)"});
    let rows = |tput: f64| -> Value {
        let row = |conc: u64| with(row(conc, tput), &hostile);
        json!((1..=1500).map(row).collect::<Vec<_>>())
    };
    sides.throughput("before", &rows(100.0));
    sides.throughput("after", &rows(90.0));
    sides.scores(
        "before",
        &json!((1..=300).map(|conc| score(conc, 0.9, 0.1)).collect::<Vec<_>>()),
    );
    let text = sides.summary(&["--max-regression", "5"]);
    assert!(text.len() < 1_048_576, "{}", text.len());
    assert!(
        text.starts_with("### Comparison: 1500 points and 0 scores on both sides, 300 only before"),
        "{text:.200}"
    );
    assert_eq!(text.matches("| 100.0 → 90.00 (-10.0 %) |").count(), 1000);
    for part in [
        "_500 more changed less._",
        "#### Worse than allowed: 1500",
        "_1400 more._",
        "_200 more._",
    ] {
        assert!(text.contains(part), "{part}");
    }
    assert!(!text.contains("<img") && !text.contains("\n::error") && !text.contains("[l](u)"));
    let (code, _, stderr) = sides.compare(&["--max-regression", "5"]);
    assert_eq!(code, 1);
    assert!(!stderr.lines().any(|line| line.starts_with("::")), "{stderr:.500}");
}
