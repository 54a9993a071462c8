//! `sweepctl collect results`.

use serde_json::{Value, json};

use super::{Sweep, column};
use crate::fixture::{envelope, multinode_envelope, read_json, run, sweepctl, write};

fn aggregate(conc: u64, tput: f64) -> Value {
    json!({"hw": "h200", "conc": conc, "infmax_model_prefix": "m1", "framework": "vllm", "precision": "fp8",
           "isl": 8192, "osl": 1024, "is_multinode": false, "tp": 8, "tput_per_gpu": tput})
}

#[test]
fn throughput_results_are_gathered_as_they_are() {
    let sweep = Sweep::new();
    let mut agentic = aggregate(8, 3.5);
    agentic["scenario_type"] = json!("agentic-coding");
    agentic["request_metrics"] = json!({"deep": [1, {"x": 2.50}]});
    sweep.file("bmk_agentic_x_000000000003/agg_r3.json", &agentic);
    sweep.file("bmk_x_000000000001/agg_r1.json", &aggregate(128, 1.5));
    sweep.file("bmk_x_000000000002/agg_r2.json", &aggregate(16, 2.5));
    sweep.file("eval/agg_eval_all.json", &json!([]));
    sweep.file("bmk_x_000000000001/r1.json", &json!({"raw": true}));
    let (code, printed, stderr) = sweep.collect("results", &["--strict"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert_eq!(column(&printed, "rows", "conc"), [8, 16, 128]);
    assert_eq!(printed["rows"][0], agentic);
    assert_eq!(read_json(&sweep.path().join("agg_bmk.json")), printed["rows"]);
}

#[test]
fn throughput_is_held_against_the_plan() {
    let sweep = Sweep::new();
    let throughput = |mut envelope: Value, fingerprint: &str| {
        envelope["row"]["eval-only"] = json!(false);
        envelope["row"]["recipe-fingerprint"] = json!(fingerprint);
        envelope
    };
    let plan = [
        throughput(envelope("000000000001", 64), &"a".repeat(64)),
        throughput(multinode_envelope("000000000002", &[8, 16]), &"b".repeat(64)),
        throughput(envelope("000000000003", 64), &"c".repeat(64)),
        throughput(envelope("000000000004", 64), &"d".repeat(64)),
        envelope("000000000005", 64),
    ];
    sweep.plan(&json!(plan));
    sweep.file("bmk_x_000000000001/agg_r.json", &aggregate(64, 1.0));
    sweep.file("bmk_x_000000000002/agg_r_1.json", &aggregate(8, 1.0));
    write(
        sweep.path().join("artifacts/bmk_x_000000000003/agg_r.json"),
        "{\"conc\": NaN}",
    );
    sweep.file("bmk_x_ffffffffffff/agg_r.json", &aggregate(4, 1.0));
    let (code, printed, _) = sweep.collect("results", &["--plan", "plan.json"]);
    assert_eq!(code, 0);
    assert_eq!(
        column(&printed, "jobs", "state"),
        ["done", "failed", "failed", "missing"]
    );
    assert_eq!(
        printed["jobs"][1]["reason"],
        "artifacts/bmk_x_000000000002/agg_r_1.json: nothing at concurrency 16"
    );
    assert_eq!(printed["unplanned"], json!(["artifacts/bmk_x_ffffffffffff/agg_r.json"]));
    // Unpacked flat, a result is known by its recipe.
    let mut flat = aggregate(64, 1.0);
    flat["recipe_fingerprint"] = json!("d".repeat(64));
    sweep.file("agg_flat.json", &flat);
    let (_, printed, _) = sweep.collect("results", &["--plan", "plan.json"]);
    assert_eq!(printed["jobs"][3]["state"], "done");
    assert_eq!(sweep.collect("results", &["--plan", "plan.json", "--strict"]).0, 1);
}

#[test]
fn two_results_of_one_point_and_unreadable_ones_are_problems() {
    let sweep = Sweep::new();
    sweep.file("bmk_x_000000000001/agg_a.json", &aggregate(64, 1.0));
    sweep.file("bmk_x_000000000001/agg_b.json", &aggregate(64, 2.0));
    sweep.file("p/agg_c.json", &aggregate(32, 3.0));
    sweep.file("q/agg_c.json", &aggregate(32, 3.0));
    write(sweep.path().join("artifacts/agg_cut.json"), "{\"conc\": 1");
    sweep.file("agg_list.json", &json!([1]));
    sweep.file("agg_none.json", &json!({"hw": "h200"}));
    let (code, printed, stderr) = sweep.collect("results", &["--strict"]);
    assert_eq!(code, 1);
    assert_eq!(column(&printed, "rows", "tput_per_gpu"), [3.0, 1.0]);
    for wanted in [
        "agg_b.json: the same attempt at the same job as artifacts/bmk_x_000000000001/agg_a.json",
        "artifacts/q/agg_c.json: the same attempt at the same job as artifacts/p/agg_c.json",
        "artifacts/agg_cut.json is no JSON",
        "artifacts/agg_list.json is no JSON object",
        "artifacts/agg_none.json has no concurrency: `conc` is null",
    ] {
        assert!(stderr.contains(wanted), "no `{wanted}` in {stderr}");
    }
}

#[test]
fn a_second_run_does_not_read_its_own_output() {
    let sweep = Sweep::new();
    sweep.file("agg_a.json", &aggregate(64, 1.0));
    for _ in 0..2 {
        let (code, printed, stderr) = sweep.collect("results", &["--out", "artifacts", "--strict"]);
        assert_eq!(
            (code, column(&printed, "rows", "conc")),
            (0, vec![json!(64)]),
            "{stderr}"
        );
    }
}

#[test]
fn a_step_needs_neither_a_shell_nor_jq() {
    let sweep = Sweep::new();
    let mut planned = envelope("000000000001", 64);
    planned["row"]["eval-only"] = json!(false);
    sweep.plan(&json!([planned]));
    sweep.file("bmk_x_000000000001/agg_r.json", &aggregate(64, 1.0));
    let outputs = sweep.path().join("outputs");
    let mut command = sweepctl(sweep.path());
    command
        .env("GITHUB_OUTPUT", &outputs)
        .args(["collect", "results", "artifacts", "--plan", "plan.json"]);
    command.args(["--ledger", "ledgers/results.json", "--github-output"]);
    let (code, stdout, stderr) = run(&mut command);
    assert_eq!((code, stderr.as_str()), (0, ""));
    // The log gets the table, the file what without it standard output would.
    assert!(stdout.starts_with(" MODEL ") && stdout.contains("1.000"), "{stdout}");
    let ledger = read_json(&sweep.path().join("ledgers/results.json"));
    let (_, printed, _) = sweep.collect("results", &["--plan", "plan.json"]);
    assert_eq!(ledger, printed);
    assert_eq!(column(&ledger, "jobs", "state"), ["done"]);
    let text = std::fs::read_to_string(outputs).expect("outputs");
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines.len() == 3 && lines[0].starts_with("rows<<") && lines[1] == "1",
        "{text}"
    );
    // Asked for, the JSON is printed beside it.
    let (_, both, _) = sweep.collect("results", &["--plan", "plan.json", "--ledger", "a.json", "--json"]);
    assert_eq!(both, printed);
}

#[test]
fn a_summary_shows_what_is_not_as_planned_and_how_each_point_is_spread() {
    let sweep = Sweep::new();
    sweep.file("agg_one.json", &aggregate(64, 1.5));
    let mut many = aggregate(32, 2.0);
    for (name, value) in [
        ("is_multinode", json!(true)),
        ("prefill_num_workers", json!(2)),
        ("prefill_tp", json!(4)),
        ("decode_num_workers", json!(1)),
        ("decode_tp", json!(8)),
        ("median_ttft", json!(0.25)),
    ] {
        many[name] = value;
    }
    sweep.file("agg_many.json", &many);
    let mut planned = envelope("000000000001", 64);
    planned["row"]["eval-only"] = json!(false);
    sweep.plan(&json!([planned]));
    let summary = sweep.path().join("summary.md");
    let mut command = sweepctl(sweep.path());
    command.args(["collect", "results", "artifacts", "--plan", "plan.json"]);
    assert_eq!(run(command.env("GITHUB_STEP_SUMMARY", &summary)).0, 0);
    let text = std::fs::read_to_string(summary).expect("a summary");
    for part in [
        "### Throughput results: 2 rows\n\n#### Jobs: 0 done, 1 missing\n\n| Job |",
        "\n#### Not in the plan\n\n- artifacts/agg_many.json\n- artifacts/agg_one.json\n\n#### Results\n\n| Model |",
        "| 8192/1024 | tp8 ep- | 64 | 1.500 | - | - |",
        "| 8192/1024 | prefill 2x tp4, decode 1x tp8 | 32 | 2.000 | - | 0.250 |",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
}

#[test]
fn the_nested_metrics_of_a_replay_stand_in_the_table() {
    let sweep = Sweep::new();
    let mut replay = aggregate(8, 0.0);
    let fields = replay.as_object_mut().expect("an object");
    fields.remove("tput_per_gpu");
    fields.insert(
        "request_metrics".to_owned(),
        json!({"throughput": {"per_gpu": {"total_tput_tps": 310.5, "output_tput_tps": 12.25}},
               "latency": {"ttft": {"p50": 0.75}}}),
    );
    sweep.file("bmk_agentic_x_000000000003/agg_r.json", &replay);
    // A number at the top is the file's own.
    let mut own = replay.clone();
    (own["conc"], own["tput_per_gpu"]) = (json!(16), json!(1.5));
    sweep.file("bmk_agentic_x_000000000004/agg_r.json", &own);
    let summary = sweep.path().join("summary.md");
    let mut command = sweepctl(sweep.path());
    command.args(["collect", "results", "artifacts"]);
    let (code, _, stderr) = run(command.env("GITHUB_STEP_SUMMARY", &summary));
    assert_eq!(code, 0, "{stderr}");
    let summary = std::fs::read_to_string(summary).expect("a summary");
    for row in ["| 8 | 310.500 | 12.250 | 0.750 |", "| 16 | 1.500 | 12.250 | 0.750 |"] {
        assert!(summary.contains(row), "{row}: {summary}");
    }
}

#[test]
fn of_attempts_at_one_point_the_newest_counts_and_the_other_is_told_by_its_job() {
    let sweep = Sweep::new();
    for (folder, number, tput) in [("a", 2, 2.5), ("b", 10, 10.5), ("c", 9, 9.5)] {
        let mut result = aggregate(64, tput);
        let fields = result.as_object_mut().expect("an object");
        for (name, value) in [
            ("job_id", json!("000000000001")),
            ("run_id", json!("7")),
            ("run_attempt", json!(number)),
        ] {
            fields.insert(name.to_owned(), value);
        }
        sweep.file(&format!("{folder}/agg_r.json"), &result);
    }
    let (code, printed, stderr) = sweep.collect("results", &["--strict"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert_eq!(column(&printed, "rows", "tput_per_gpu"), [10.5]);
    assert_eq!(column(&printed, "jobs", "id"), ["000000000001", "000000000001"]);
    assert_eq!(
        column(&printed, "jobs", "reason"),
        [
            "artifacts/a/agg_r.json: attempt 2 of run 7, there is a newer one",
            "artifacts/c/agg_r.json: attempt 9 of run 7, there is a newer one"
        ]
    );
}
