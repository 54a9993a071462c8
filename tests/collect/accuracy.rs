//! What accuracy benchmarks of srt-slurm leave: good, partial and lying.

use serde_json::{Value, json};

use super::Sweep;
use crate::fixture::{meta, write};

const SCORES: [&str; 4] = ["0.790", "0.820", "0.800", "0.810"];

/// The log of an MMLU run of four repeats.
fn log() -> String {
    let scores: Vec<String> = SCORES.iter().map(|score| format!("'{score}'")).collect();
    format!(
        "MMLU Config: endpoint=http://localhost:8000; model=some/Name; num_examples=200; max_tokens=2048; repeat=4; num_threads=512\n\
         Running MMLU evaluation...\n====================\nRepeat: 4, mean: 0.805\nScores: [{}]\n====================\n\
         {{'other': np.float64(0.9), 'other:std': np.float64(0.3), 'stem': np.float64(0.7), 'score': np.float64(0.81)}}\n\
         Score: 0.810\nMMLU evaluation complete\n",
        scores.join(", ")
    )
}

/// The file of the last repeat, under the name of a model that nobody runs.
fn last() -> Value {
    json!({ "other": 0.9, "other:std": 0.3, "stem": 0.7, "stem:std": 0.4, "score:std": 0.39, "score": 0.81 })
}

fn aime() -> Value {
    let mode =
        |value: f64| json!({ "num_entries": 30, "avg_tokens": 9000, "symbolic_correct": value, "no_answer": 1.0 });
    let mut first = mode(85.0);
    first["symbolic_correct_statistics"] =
        json!({ "avg": 0.85, "std_dev_across_runs": 0.04, "std_err_across_runs": 0.01 });
    json!({ "aime25": { "pass@1[avg-of-16]": first, "pass@16": mode(95.0), "majority@16": mode(90.0) } })
}

/// Collects one set with these outputs.
fn collected(outputs: &[(&str, String)]) -> Value {
    let sweep = Sweep::new();
    sweep.file("eval_a/meta_env.json", &meta(16));
    for (name, text) in outputs {
        write(sweep.path().join("artifacts/eval_a").join(name), text.clone());
    }
    sweep.evals(&[])
}

fn rows(printed: &Value) -> Vec<(String, f64)> {
    let rows = printed["rows"].as_array().expect("rows").iter();
    rows.map(|row| {
        let task = row["task"].as_str().expect("a task").to_owned();
        (task, row["score"].as_f64().expect("a score"))
    })
    .collect()
}

fn row<'r>(printed: &'r Value, task: &str) -> &'r Value {
    let rows = printed["rows"].as_array().expect("rows");
    rows.iter()
        .find(|row| row["task"] == task)
        .unwrap_or_else(|| panic!("no {task}: {printed}"))
}

#[track_caller]
fn is_refused(outputs: &[(&str, String)], says: &str) {
    let printed = collected(outputs);
    assert_eq!(rows(&printed), [], "{printed}");
    let problems = printed["problems"].to_string();
    assert!(problems.contains(says), "{problems}");
}

const MMLU: &str = "accuracy/mmlu_other_Model.json";

#[test]
fn the_mean_over_repeats_is_the_score_and_the_row_says_whose() {
    let file = (MMLU, last().to_string());
    for outputs in [
        vec![file.clone(), ("benchmark.out", log())],
        // Newer clients write all repeats into the file.
        vec![(
            MMLU,
            json!({ "other": 0.9, "stem": 0.7, "scores": SCORES, "mean_score": 0.805, "latency": 4.2 }).to_string(),
        )],
        // The file was not found, and the log has it all.
        vec![("benchmark.out", log())],
    ] {
        let printed = collected(&outputs);
        assert_eq!(
            rows(&printed),
            [
                ("mmlu".to_owned(), 0.805),
                ("mmlu_other".to_owned(), 0.9),
                ("mmlu_stem".to_owned(), 0.7)
            ],
            "{printed}"
        );
        let row = row(&printed, "mmlu");
        assert_eq!((&row["repeats"], &row["score_name"]), (&json!(4), &json!("accuracy")));
        let (spread, se) = (
            row["spread"].as_f64().expect("one"),
            row["score_se"].as_f64().expect("one"),
        );
        assert!(
            (spread - 0.012_91).abs() < 1e-5 && (se - spread / 2.0).abs() < 1e-9,
            "{row}"
        );
        assert_eq!(row["model"], meta(16)["model"], "the row says whose it is");
    }
}

#[test]
fn aime_is_pass_at_one_with_the_other_modes_beside_it() {
    let printed = collected(&[("accuracy/aime25/eval-results/aime25/metrics.json", aime().to_string())]);
    assert_eq!(rows(&printed), [("aime25".to_owned(), 0.85)], "{printed}");
    let row = row(&printed, "aime25");
    assert_eq!(row["score_name"], "pass@1,none");
    assert_eq!((&row["repeats"], &row["n_eff"]), (&json!(16), &json!(30)));
    assert_eq!((&row["spread"], &row["score_se"]), (&json!(0.04), &json!(0.01)));
}

#[test]
fn longbench_has_two_names_and_two_forms() {
    let own = json!({
        "model": "x", "scores": { "single_doc_qa": 0.8, "synthetic": 0.9 }, "overall_score": 0.85,
        "total_examples": 500, "total_latency_s": 1842.5,
    });
    let printed = collected(&[("accuracy/longbenchv2_x.json", own.to_string())]);
    assert_eq!(row(&printed, "longbenchv2")["n_eff"], 500);
    assert_eq!(row(&printed, "longbenchv2_synthetic")["score"], 0.9);
    let client = json!({ "chars": 400.5, "chars:std": 3.0, "code_repo_understanding": 0.5, "difficulty_easy": 0.6, "score": 0.5 });
    let printed = collected(&[("longbench_v2_x.json", client.to_string())]);
    assert_eq!(
        rows(&printed),
        [
            ("longbenchv2".to_owned(), 0.5),
            ("longbenchv2_code_repo_understanding".to_owned(), 0.5)
        ]
    );
}

#[test]
fn partial_outputs_are_refused() {
    let complete = "GPQA Config: endpoint=x; num_examples=198; max_tokens=1; repeat=8; num_threads=1\n\
                    Warning: Could not find result file in /tmp\nGPQA evaluation complete\n";
    is_refused(&[("benchmark.out", complete.to_owned())], "complete, and has no number");
    is_refused(
        &[("benchmark.out", "=== Phase 2: ns eval ===\n\n=== Done ===\n".to_owned())],
        "has no number",
    );
    let cut = log().replace(", '0.810']", "]");
    is_refused(
        &[(MMLU, last().to_string()), ("benchmark.out", cut)],
        "3 scores of 4 repeats",
    );
    let ended = log().split("====").next().expect("a part").to_owned();
    is_refused(
        &[(MMLU, last().to_string()), ("benchmark.out", ended)],
        "0 scores of 4 repeats",
    );
    is_refused(&[(MMLU, "{\"other\": 0.9, ".to_owned())], "cut off");
    is_refused(&[(MMLU, "{}".to_owned())], "has no score");
    let mut modes = aime();
    modes["aime25"]
        .as_object_mut()
        .expect("modes")
        .remove("pass@1[avg-of-16]");
    is_refused(&[("metrics.json", modes.to_string())], "no pass@1");
    let mut modes = aime();
    modes["aime25"].as_object_mut().expect("modes").remove("majority@16");
    is_refused(&[("metrics.json", modes.to_string())], "no majority@16");
}

#[test]
fn lying_outputs_are_refused() {
    let with = |from: &str, to: &str| vec![(MMLU, last().to_string()), ("benchmark.out", log().replace(from, to))];
    is_refused(&with("mean: 0.805", "mean: 0.905"), "has the mean 0.905");
    is_refused(&with("repeat=4", "repeat=8"), "8 were asked for");
    // The newest file of the node was one of an earlier job.
    let old = last().to_string().replace("0.81", "0.72");
    is_refused(&[(MMLU, old), ("benchmark.out", log())], "has the score 0.72");
    for (from, to, says) in [
        ("\"score\":0.81", "\"score\":0.99", "categories are from"),
        ("\"score\":0.81", "\"score\":NaN", "NaN"),
        ("\"other\":0.9", "\"other\":1.9", "`other`"),
    ] {
        is_refused(&[(MMLU, last().to_string().replace(from, to))], says);
    }
    for (mode, value, says) in [
        ("pass@16", 50.0, "less finds more"),
        ("majority@16", 99.0, "less finds more"),
        ("pass@1[avg-of-16]", 850.0, "no percentage"),
    ] {
        let mut modes = aime();
        modes["aime25"][mode]["symbolic_correct"] = json!(value);
        is_refused(&[("metrics.json", modes.to_string())], says);
    }
}

#[test]
fn outputs_without_metadata_are_nobodys() {
    let sweep = Sweep::new();
    // What lies below a set is that set's; this lies beside one.
    sweep.set("eval_b", &meta(16), 0.9);
    sweep.file("eval_b/accuracy/aime25/metrics.json", &aime());
    let whole = sweep.evals(&["--strict"]);
    assert_eq!(rows(&whole), [("aime25".to_owned(), 0.85), ("gsm8k".to_owned(), 0.9)]);
    sweep.file("eval_a/metrics.json", &aime());
    let printed = sweep.evals(&[]);
    assert_eq!(rows(&printed), rows(&whole));
    assert_eq!(
        printed["problems"],
        json!(["artifacts/eval_a: there are results, but no meta_env.json"])
    );
}

/// The log of AIME's script, with what it was told.
fn log_of_aime(data_set: &str, repeat: u64) -> String {
    format!(
        "=== Config ===\n  endpoint:    http://localhost:8000/v1\n  model:       dspro\n  dataset:     {data_set}\n  \
         repeat:      {repeat}\n\n=== Phase 1: prepare_data ===\n  repeat: 3\n\n=== Phase 2: ns eval ===\n  dataset: other\n\n\
         === Done ===\n"
    )
}

/// The log of a GPQA run that wrote a file and kept one.
fn log_of_gpqa(examples: &str, wrote: &str, kept: &str) -> String {
    format!(
        "GPQA Config: endpoint=x; model=org/model; num_examples={examples}; max_tokens=1; repeat=2; num_threads=1\n\
         ====================\nRepeat: 2, mean: 0.650\nScores: ['0.600', '0.700']\n====================\n{wrote}\n\
         Score: 0.700\n{kept}\nGPQA evaluation complete\n"
    )
}

/// What is collected of outputs: tasks with their scores, or why there are none.
type Wanted<'w> = Result<&'w [(&'w str, f64)], &'w str>;

#[track_caller]
fn is(outputs: &[(&str, String)], wanted: Wanted<'_>) {
    match wanted {
        Err(says) => is_refused(outputs, says),
        Ok(wanted) => {
            let printed = collected(outputs);
            let found = rows(&printed);
            let found: Vec<(&str, f64)> = found.iter().map(|(task, score)| (task.as_str(), *score)).collect();
            assert_eq!(found, wanted, "{printed}");
            assert_eq!(printed["problems"], json!([]));
        }
    }
}

#[test]
fn a_file_of_another_run_is_refused_wherever_its_log_tells_them_apart() {
    let gpqa = "accuracy/gpqa_org_model.json";
    let score = json!({ "chars": 8.5, "score:std": 0.4, "score": 0.7 });
    let wrote = "Writing results to /tmp/gpqa_org_model.json";
    let kept = "Results saved to: /logs/accuracy/gpqa_org_model.json";
    let log = |examples, wrote, kept| ("benchmark.out", log_of_gpqa(examples, wrote, kept));
    let cases: [(&str, Value, (&str, String), Wanted<'_>); 10] = [
        (gpqa, score.clone(), log("198", wrote, kept), Ok(&[("gpqa", 0.65)])),
        // The newest file of the node was another one, or there was none.
        (
            gpqa,
            score.clone(),
            log("198", wrote, "Results saved to: /logs/accuracy/gpqa_other.json"),
            Err("its log says that it kept `gpqa_other.json`"),
        ),
        (
            gpqa,
            score.clone(),
            log("198", "Writing results to /tmp/gpqa_new.json", kept),
            Err("its log says that it wrote `gpqa_new.json`"),
        ),
        (
            gpqa,
            score.clone(),
            log("198", "", "Warning: Could not find result file in /tmp"),
            Err("says that no result file was found"),
        ),
        // Counts and models.
        (
            gpqa,
            json!({ "score": 0.7, "total_examples": 198 }),
            log("198", wrote, kept),
            Ok(&[("gpqa", 0.65)]),
        ),
        (
            gpqa,
            json!({ "score": 0.7, "total_examples": 100 }),
            log("198", wrote, kept),
            Err("is over 100 examples, and 198 were asked for"),
        ),
        (
            gpqa,
            json!({ "score": 0.7, "model": "org/other" }),
            log("198", wrote, kept),
            Err("names another model than its log"),
        ),
        // AIME's script says its data set and repeats.
        (
            "accuracy/aime25/eval-results/aime25/metrics.json",
            aime(),
            ("accuracy/benchmark.out", log_of_aime("aime25", 16)),
            Ok(&[("aime25", 0.85)]),
        ),
        (
            "metrics.json",
            aime(),
            ("benchmark.out", log_of_aime("aime26", 16)),
            Err("its log asks for `aime26`"),
        ),
        (
            "metrics.json",
            aime(),
            ("benchmark.out", log_of_aime("aime25", 8)),
            Err("has 16 repeats of `aime25`, and 8 were asked for"),
        ),
    ];
    for (name, file, log, wanted) in cases {
        is(&[(name, file.to_string()), log], wanted);
    }
}

#[test]
fn modes_of_aime_are_over_all_of_its_problems() {
    for (mode, count, says) in [
        (
            "pass@16",
            29,
            "over 30 problems of `aime25` in one mode, and over 29 in another",
        ),
        ("pass@16", 0, "evaluated nothing"),
    ] {
        let mut modes = aime();
        modes["aime25"][mode]["num_entries"] = json!(count);
        is_refused(&[("metrics.json", modes.to_string())], says);
    }
    let mut modes = aime();
    for mode in modes["aime25"].as_object_mut().expect("modes").values_mut() {
        mode["num_entries"] = json!(12);
    }
    is_refused(
        &[("metrics.json", modes.to_string())],
        "over 12 problems of `aime25`, which has 30",
    );
    // A log without an end is of a run that never came to its score.
    let log = log_of_aime("aime25", 16);
    let begun = log.split("=== Phase 2").next().expect("a part").to_owned();
    is_refused(&[("benchmark.out", begun)], "ends without a number");
}
