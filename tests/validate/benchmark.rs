//! Accuracy benchmarks of srt-slurm: whole, the job's own, and over their thresholds.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::fixture::{multinode_envelope, run, sweepctl, write};

const ID: &str = "0123456789ab";
const SCORES: [f64; 4] = [0.79, 0.82, 0.80, 0.81];

/// A recipe; what it deploys is nobody's question here.
fn recipe(benchmark: &str) -> String {
    format!(
        "schema: 2\nname: one\nmodel: {{ path: org/model }}\nresources: {{ gpus_per_node: 4 }}\nengine: sglang\n\
         roles:\n  agg: {{ nodes: 1, workers: 1 }}\nbenchmark:\n{benchmark}"
    )
}

/// A folder of a job after its run, by file.
#[derive(Clone)]
struct Run(BTreeMap<String, String>);

impl Run {
    fn of(suite: &str, benchmark: &str) -> Self {
        let mut envelope = multinode_envelope(ID, &[16, 64]);
        let row = envelope["row"].as_object_mut().expect("a row");
        row.remove("eval-all-concs");
        for (name, value) in [
            ("eval-conc", json!(64)),
            ("eval-framework", json!("benchmark")),
            ("eval-suite", json!(suite)),
            ("eval-srt-recipe", json!("recipes/{suite}.yaml")),
        ] {
            row.insert(name.to_owned(), value);
        }
        let meta =
            json!({ "job_id": ID, "conc": 64, "is_multinode": true, "infmax_model_prefix": "m1", "eval_suite": suite });
        let mut run = Self(BTreeMap::new());
        run.put("envelope.json", envelope.to_string());
        run.put("meta_env.json", meta.to_string());
        run.put(&format!("recipes/{suite}.yaml"), recipe(benchmark));
        run.put(
            "thresholds.yaml",
            "default: { mmlu: 0.8, gpqa: 0.5, longbenchv2: 0.4, aime25: { min-score: 0.8, metric: 'pass@1' } }\n",
        );
        run
    }

    fn mmlu() -> Self {
        let mut run = Self::of("mmlu", "  type: mmlu\n  num_examples: 200\n  repeat: 4\n");
        run.put(
            "accuracy/mmlu_any.json",
            json!({ "stem": 0.7, "other": 0.9, "scores": SCORES, "mean_score": 0.805, "total_examples": 200 })
                .to_string(),
        );
        run
    }

    fn aime() -> Self {
        let mode = |value: f64| json!({ "num_entries": 30, "symbolic_correct": value });
        let mut first = mode(85.0);
        first["symbolic_correct_statistics"] =
            json!({ "avg": 0.85, "std_dev_across_runs": 0.04, "std_err_across_runs": 0.02 });
        let modes = json!({ "aime25": { "pass@1[avg-of-4]": first, "pass@4": mode(95.0), "majority@4": mode(90.0) } });
        let mut run = Self::of(
            "aime",
            "  type: custom\n  command: bash /configs/aime/run.sh\n  env: { REPEAT: '4' }\n",
        );
        run.put("accuracy/aime25/eval-results/aime25/metrics.json", modes.to_string());
        run
    }

    fn longbench() -> Self {
        let mut run = Self::of(
            "longbenchv2",
            "  type: longbenchv2\n  categories: [single_document_qa, long_structured_data]\n",
        );
        let scores = json!({ "single_document_qa": 0.4, "long_structured_data": 0.6, "score": 0.5 });
        run.put("accuracy/longbench_v2_x.json", scores.to_string());
        run
    }

    fn put(&mut self, name: &str, text: impl Into<String>) {
        self.0.insert(name.to_owned(), text.into());
    }

    fn with(&self, name: &str, from: &str, to: &str) -> Self {
        let mut run = self.clone();
        assert!(run.0[name].contains(from), "{name} has no {from}");
        run.put(name, self.0[name].replace(from, to));
        run
    }

    fn without(&self, name: &str) -> Self {
        let mut run = self.clone();
        run.0.remove(name).expect("a file");
        run
    }

    /// The gate's exit code, its judgement, and what it says.
    fn judge(&self) -> (i32, Value, String) {
        self.judge_by(&["--envelope", "envelope.json"])
    }

    fn judge_by(&self, job: &[&str]) -> (i32, Value, String) {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in &self.0 {
            write(folder.path().join(name), text);
        }
        let mut command = sweepctl(folder.path());
        command
            .env_remove("RUNNER_NAME")
            .env_remove("GITHUB_RUN_ID")
            .env_remove("GITHUB_RUN_ATTEMPT");
        let args = ["eval", "validate", "--thresholds", "thresholds.yaml", "--json"];
        let (code, stdout, stderr) = run(command.args(args).args(job));
        (code, serde_json::from_str(&stdout).unwrap_or_default(), stderr)
    }

    #[track_caller]
    fn passes(&self) -> Value {
        let (code, judged, said) = self.judge();
        assert_eq!(code, 0, "{said}");
        assert_eq!(judged["passed"], true);
        judged["checks"].clone()
    }

    #[track_caller]
    fn fails(&self, says: &str) {
        let (code, judged, said) = self.judge();
        assert!(code == 1 && said.contains(says), "exit {code}: {says}: {said}{judged}");
    }
}

fn check<'c>(checks: &'c Value, task: &str) -> &'c Value {
    let checks = checks.as_array().expect("checks");
    checks
        .iter()
        .find(|check| check["task"] == task)
        .unwrap_or_else(|| panic!("no {task}: {checks:?}"))
}

#[test]
fn a_whole_run_over_its_floor_passes_and_its_categories_are_shown() {
    let checks = Run::mmlu().passes();
    let whole = check(&checks, "mmlu");
    assert_eq!(
        (&whole["score"], &whole["threshold"], &whole["repeats"]),
        (&json!(0.805), &json!(0.8), &json!(4))
    );
    assert!((whole["spread"].as_f64().expect("a spread") - 0.012_91).abs() < 1e-5);
    let part = check(&checks, "mmlu_stem");
    assert_eq!(
        (&part["score"], &part["threshold"], &part["passed"]),
        (&json!(0.7), &Value::Null, &json!(true))
    );
    let checks = Run::aime().passes();
    assert_eq!(check(&checks, "aime25")["metric"], "pass@1,none");
    assert_eq!(Run::longbench().passes().as_array().map(Vec::len), Some(3));
}

#[test]
fn floors_are_those_of_any_task() {
    let run = Run::mmlu();
    let name = "thresholds.yaml";
    run.with(name, "mmlu: 0.8", "mmlu: 0.81")
        .fails("`mmlu` `acc,none` is 0.8050 (4 repeats, spread 0.0129), under 0.81 (default) by 0.8 standard errors");
    run.with(name, "mmlu: 0.8", "mmlu: 0.8, mmlu_stem: 0.71")
        .fails("`mmlu_stem` `acc,none` is 0.7000, under 0.71");
    run.with(name, "mmlu: 0.8", "mmlu: 0.8, mmlu_stem: 0.7").passes();
    // The floor of no threshold is `--min-score`.
    run.with(name, "mmlu: 0.8, ", "").fails("under 0.85 (--min-score)");
    let run = Run::aime();
    run.with(name, "'pass@1'", "'majority@4'").passes();
    run.with(
        name,
        "min-score: 0.8, metric: 'pass@1'",
        "min-score: 0.91, metric: 'majority@4'",
    )
    .fails("`majority@4,none` is 0.9000 (4 repeats), under 0.91");
    run.with(name, "'pass@1'", "'majority@16'")
        .fails("has no `majority@16`");
}

#[test]
fn what_the_recipe_asks_for_and_is_missing_is_no_pass() {
    let run = Run::mmlu();
    let name = "recipes/mmlu.yaml";
    run.with(name, "repeat: 4", "repeat: 8")
        .fails("asks for 8 repeats of `mmlu`, and it has 4");
    run.with(name, "  repeat: 4\n", "").fails("asks for 8 repeats");
    run.with(name, "num_examples: 200", "num_examples: 300")
        .fails("asks for 300 examples of `mmlu`, and it has 200");
    run.with("accuracy/mmlu_any.json", "\"total_examples\":200", "\"latency\":1.5")
        .fails("it does not say how many");
    run.with(name, "type: mmlu", "type: gpqa")
        .fails("asks for `mmlu`, and its recipe runs `gpqa`");
    run.without(name).fails("recipes/mmlu.yaml");
    let run = Run::longbench();
    run.with(
        "recipes/longbenchv2.yaml",
        "long_structured_data",
        "long_structured_data, synthetic",
    )
    .fails("no score of: synthetic");
    let run = Run::aime();
    run.with("recipes/aime.yaml", "REPEAT: '4'", "REPEAT: '4', DATASET: aime24")
        .fails("no output has a score of `aime24`");
    run.with(
        "accuracy/aime25/eval-results/aime25/metrics.json",
        "\"num_entries\":30",
        "\"num_entries\":12",
    )
    .fails("12");
}

#[test]
fn a_limited_run_has_the_examples_of_its_limit_and_is_diagnostic() {
    let whole = Run::mmlu();
    let limited = |limit: &str| {
        let overrides = format!("{{\"overrides\":{{\"eval-limit\":\"{limit}\"}},");
        whole.with("envelope.json", "{\"id\"", &format!("{overrides}\"id\""))
    };
    limited("50").fails("asks for 50 examples of `mmlu`, and it has 200");
    let fifty = limited("50").with(
        "accuracy/mmlu_any.json",
        "\"total_examples\":200",
        "\"total_examples\":50",
    );
    let (code, judged, said) = fifty.judge();
    assert_eq!((code, &judged["diagnostic"]), (0, &json!(true)), "{said}");
    // A recipe that asks for less is not made to ask for more.
    limited("500").passes();
    limited("full").passes();
}

#[test]
fn nothing_and_another_benchmarks_output_are_no_pass() {
    let run = Run::mmlu();
    let file = "accuracy/mmlu_any.json";
    run.without(file)
        .fails("no output has a score of `mmlu`, so nothing was checked");
    let mut complete = run.without(file);
    complete.put(
        "benchmark.out",
        "MMLU Config: endpoint=x; num_examples=200; repeat=4\nMMLU evaluation complete\n",
    );
    complete.fails("complete, and has no number");
    let mut other = run.without(file);
    other.put("accuracy/gpqa_x.json", run.0[file].clone());
    other.fails("it has a score of `gpqa`, and the job asked for `mmlu`");
    let mut two = run.clone();
    two.put("accuracy/mmlu_b.json", run.0[file].clone());
    two.fails("2 outputs have a score of `mmlu`");
    run.with(file, "\"mean_score\":0.805", "\"mean_score\":NaN")
        .fails("mmlu_any.json");
    // lm-eval's result of the same job is none of the benchmark's.
    let mut both = run.clone();
    both.put("results_1.json", crate::fixture::result("gsm8k", 0.99).to_string());
    both.fails("`results` has `gsm8k`");
}

/// MMLU once, with its log alone.
fn logged(log: &str) -> Run {
    let mut run = Run::of("mmlu", "  type: mmlu\n  num_examples: 200\n  repeat: 1\n");
    let config = "MMLU Config: endpoint=x; num_examples=200; repeat=1\n";
    run.put("benchmark.out", format!("{config}{log}MMLU evaluation complete\n"));
    run
}

#[test]
fn a_log_alone_is_judged_by_its_score_or_by_the_mean_of_its_repeats() {
    let checks = logged("{'stem': 0.8, 'other': 0.9, 'score': np.float64(0.81), 'score:std': 0.4}\n").passes();
    let whole = check(&checks, "mmlu");
    assert_eq!((&whole["score"], &whole["repeats"]), (&json!(0.81), &Value::Null));
    // Of 200 examples.
    assert!((whole["stderr"].as_f64().expect("a standard error") - 0.028_28).abs() < 1e-5);
    assert_eq!(check(&checks, "mmlu_stem")["score"], 0.8);
    let mut repeated = Run::mmlu().without("accuracy/mmlu_any.json");
    repeated.put(
        "benchmark.out",
        "MMLU Config: endpoint=x; num_examples=200; repeat=4\nRepeat: 4, mean: 0.805\n\
         Scores: [0.79, 0.82, 0.80, 0.81]\nMMLU evaluation complete\n",
    );
    let checks = repeated.passes();
    assert_eq!(check(&checks, "mmlu")["score"], 0.805);
}

#[test]
fn a_file_is_more_exact_than_its_log() {
    let exact = Run::mmlu().with(
        "accuracy/mmlu_any.json",
        "\"mean_score\":0.805",
        "\"mean_score\":0.8053",
    );
    let exact = exact.with("accuracy/mmlu_any.json", "0.79,", "0.7912,");
    let mut run = exact;
    run.put(
        "benchmark.out",
        "MMLU Config: endpoint=x; num_examples=200; repeat=4\nRepeat: 4, mean: 0.805\n\
         Scores: [0.791, 0.820, 0.800, 0.810]\nMMLU evaluation complete\n",
    );
    assert_eq!(check(&run.passes(), "mmlu")["score"], 0.8053);
}

#[test]
fn a_file_that_contradicts_itself_is_no_pass() {
    let run = Run::mmlu();
    let file = "accuracy/mmlu_any.json";
    run.with(file, "\"total_examples\":200", "\"total_examples\":0")
        .fails("mmlu_any.json evaluated nothing");
    run.with(file, "\"stem\"", "\"score\":0.81,\"stem\"").passes();
    run.with(file, "\"stem\"", "\"score\":0.75,\"stem\"")
        .fails("has the score 0.75, which is that of none of its 4 repeats");
}

#[test]
fn what_else_the_client_writes_beside_its_file_is_none_of_it() {
    let mut run = Run::mmlu();
    run.put("accuracy/mmlu_any.html", "<html>");
    run.passes();
}

#[test]
fn without_a_job_a_benchmark_is_judged_where_no_other_result_is() {
    let run = Run::mmlu();
    let (code, judged, said) = run.judge_by(&[]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(check(&judged["checks"], "mmlu")["score"], 0.805);
    let mut other = run.with("accuracy/mmlu_any.json", "0.805", "0.2");
    other.put("results_1.json", crate::fixture::result("gsm8k", 0.99).to_string());
    let (code, judged, said) = other.judge_by(&[]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(judged["checks"].as_array().map(Vec::len), Some(1), "{judged}");
}

const METRICS: &str = "accuracy/aime25/eval-results/aime25/metrics.json";

#[test]
fn aimes_file_says_its_data_set() {
    let mut run = Run::aime();
    run.put(METRICS, "{}");
    run.fails("metrics.json holds no data set");
    run.put(METRICS, json!({ "pass@1": { "symbolic_correct": 85.0 } }).to_string());
    run.fails("metrics.json does not say its data set");
}

#[test]
fn aimes_modes_are_metrics_where_they_are_over_all_repeats() {
    let run = Run::aime();
    let more = "\"majority@1\":{\"symbolic_correct\":85.0},\"pass@2[avg-of-4]\":{\"symbolic_correct\":88.0},\"pass@4\"";
    let run = run.with(METRICS, "\"pass@4\"", more);
    run.passes();
    for mode in ["majority@1", "pass@2"] {
        run.with("thresholds.yaml", "'pass@1'", &format!("'{mode}'"))
            .fails(&format!("has no `{mode}`"));
    }
    // Whatever is found, all repeats find.
    let all = run.with(METRICS, "95.0", "90.0").with(METRICS, "85.0", "90.0");
    all.with(METRICS, "88.0", "90.0").passes();
}

#[test]
fn aime_once_has_no_majority() {
    let mut run = Run::aime().with("recipes/aime.yaml", "REPEAT: '4'", "REPEAT: '1'");
    let once = json!({ "aime25": { "pass@1": { "num_entries": 30, "symbolic_correct": 90.0 } } });
    run.put(METRICS, once.to_string());
    assert_eq!(check(&run.passes(), "aime25")["score"], 0.9);
}

#[test]
fn aimes_spread_is_a_share_or_in_percent_where_its_average_is() {
    let spread = |run: &Run| {
        let checks = run
            .with("thresholds.yaml", "min-score: 0.8", "min-score: 0.001")
            .passes();
        let found = check(&checks, "aime25");
        [&found["spread"], &found["stderr"]].map(|number| number.as_f64().map(|number| (number * 1e6).round()))
    };
    let run = Run::aime();
    assert_eq!(spread(&run), [Some(40_000.0), Some(20_000.0)]);
    let statistics = "\"avg\":0.85,\"std_dev_across_runs\":0.04,\"std_err_across_runs\":0.02";
    let in_percent = |average: &str| {
        let percent = format!("\"avg\":{average},\"std_dev_across_runs\":4.0,\"std_err_across_runs\":2.0");
        run.with(METRICS, statistics, &percent).with(METRICS, "85.0", average)
    };
    // The second is one answer of 120.
    for average in ["85.0", "0.8333"] {
        assert_eq!(
            spread(&in_percent(average)),
            [Some(40_000.0), Some(20_000.0)],
            "{average}"
        );
    }
    let same = run
        .with(METRICS, "runs\":0.04", "runs\":0.0")
        .with(METRICS, "runs\":0.02", "runs\":0.0");
    assert_eq!(spread(&same), [Some(0.0), Some(0.0)]);
}
