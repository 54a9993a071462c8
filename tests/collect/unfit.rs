//! `sweepctl collect results|sweep`: aggregates without usable figures, and those of another row, are not published.

use serde_json::{Value, json};

use super::{JOB, OTHER, Sweep, column};
use crate::fixture::{as_replay, envelope, multinode_envelope, read_json, run, sweepctl, write};

/// A planned throughput job.
fn planned(mut envelope: Value, fingerprint: &str) -> Value {
    envelope["row"]["eval-only"] = json!(false);
    envelope["row"]["run-eval"] = json!(false);
    if let Some(row) = envelope["row"].as_object_mut() {
        row.remove("eval-all-concs");
    }
    envelope["row"]["recipe-fingerprint"] = json!(fingerprint.repeat(64));
    envelope
}

fn aggregate() -> Value {
    json!({"hw": "h200", "conc": 64, "infmax_model_prefix": "m1", "model": "org/model", "framework": "vllm",
           "precision": "fp8", "recipe_fingerprint": "a".repeat(64), "isl": 8192, "osl": 1024, "is_multinode": false,
           "tp": 8, "pp": 1, "dcp_size": 1, "pcp_size": 1, "ep": 1, "dp_attention": "false", "tput_per_gpu": 7372.8,
           "output_tput_per_gpu": 819.2, "input_tput_per_gpu": 6553.6, "median_ttft": 0.5, "std_ttft": 0.0,
           "p99.9_tpot": 0.02, "median_intvty": 50.0, "mean_e2el": 20.0})
}

fn replay() -> Value {
    json!({"hw": "h200", "conc": 64, "model": "org/model", "recipe_fingerprint": "a".repeat(64), "tp": 16,
           "scenario_type": "agentic-coding", "request_accounting": {}, "request_metrics": {
            "throughput": {"per_gpu": {"total_tput_tps": 900.0, "output_tput_tps": 0.0, "input_tput_tps": 900.0}},
            "latency": {"ttft": {"mean": 0.5, "p50": 0.4, "std": 0.0}, "itl": {}, "e2el": {"mean": null}}}})
}

/// What is collected of one file in the artifact of one planned job: rows, the job's state and why, and the problems.
fn collected(plan: &Value, aggregate: &Value) -> (Value, Value, String, String) {
    let sweep = Sweep::new();
    sweep.plan(&json!([plan]));
    sweep.file("flat/agg_r.json", aggregate);
    let (_, printed, _) = sweep.collect("results", &["--plan", "plan.json"]);
    let job = &printed["jobs"][0];
    (
        printed["rows"].clone(),
        job["state"].clone(),
        job["reason"].to_string(),
        printed["problems"].to_string(),
    )
}

#[track_caller]
fn refused(plan: &Value, aggregate: &Value, wanted: &str) {
    let (rows, state, reason, problems) = collected(plan, aggregate);
    assert_eq!((&rows, &state), (&json!([]), &json!("failed")), "{wanted}: {reason}");
    for said in [reason, problems] {
        assert!(said.replace("\\\"", "'").contains(wanted), "{wanted} in {said}");
    }
}

#[track_caller]
fn taken(plan: &Value, aggregate: &Value) {
    let (rows, state, reason, problems) = collected(plan, aggregate);
    assert_eq!(state, "done", "{reason}");
    assert_eq!((&rows[0], problems.as_str()), (aggregate, "[]"));
}

#[test]
fn a_figure_that_is_none_fails_its_job_and_is_not_published() {
    let plan = planned(envelope(JOB, 64), "a");
    taken(&plan, &aggregate());
    for field in [
        "tput_per_gpu",
        "output_tput_per_gpu",
        "input_tput_per_gpu",
        "median_ttft",
        "p99.9_tpot",
        "median_intvty",
        "mean_e2el",
    ] {
        for (value, shown) in [
            (json!(0), "0"),
            (json!(-1.5), "-1.5"),
            (json!("5"), "'5'"),
            (json!("NaN"), "NaN"),
            (json!(true), "true"),
            (json!([5]), "a list or a mapping"),
        ] {
            let mut wrong = aggregate();
            wrong[field] = value;
            refused(
                &plan,
                &wrong,
                &format!("agg_r.json: `{field}` is {shown}, it must be a finite number above 0"),
            );
        }
    }
    for absent in [true, false] {
        let mut wrong = aggregate();
        wrong["tput_per_gpu"] = Value::Null;
        if absent {
            wrong.as_object_mut().expect("an object").remove("tput_per_gpu");
        }
        refused(&plan, &wrong, "agg_r.json: `tput_per_gpu` is missing");
    }
    // What was not measured is absent, and a spread may be zero; below zero it is none.
    let mut less = aggregate();
    less["median_ttft"] = Value::Null;
    less.as_object_mut().expect("an object").remove("mean_e2el");
    taken(&plan, &less);
    less["std_ttft"] = json!(-1);
    refused(
        &plan,
        &less,
        "`std_ttft` is -1, it must be a finite number of at least 0",
    );
}

#[test]
fn an_aggregate_of_another_row_is_not_its_jobs() {
    let plan = planned(envelope(JOB, 64), "a");
    for (field, value, shown) in [
        ("model", json!("org/other"), "'org/other', the job's is 'org/model'"),
        ("isl", json!(1024), "1024, the job's is 8192"),
        ("osl", json!(8192), "8192, the job's is 1024"),
        ("tp", json!(4), "4, the job's is 8"),
        ("ep", json!("many"), "'many', the job's is 1"),
        ("dp_attention", json!("true"), "'true', the job's is 'false'"),
    ] {
        let mut wrong = aggregate();
        wrong[field] = value;
        refused(&plan, &wrong, &format!("`{field}` is {shown}"));
    }
    let mut other_words = aggregate();
    for (field, value) in [
        ("model", json!("/models/MODEL/")),
        ("isl", json!("8192")),
        ("dp_attention", json!(false)),
        ("ep", json!(null)),
        ("osl", json!("")),
    ] {
        other_words[field] = value;
    }
    taken(&plan, &other_words);
    let many = planned(multinode_envelope(JOB, &[64]), "a");
    let mut wrong = json!({"conc": 64, "recipe_fingerprint": "a".repeat(64), "tput_per_gpu": 1.0, "is_multinode": true,
                           "prefill_tp": 4, "prefill_num_workers": 2, "decode_tp": 8, "decode_num_workers": 1});
    taken(&many, &wrong);
    wrong["decode_num_workers"] = json!(2);
    refused(&many, &wrong, "`decode_num_workers` is 2, the job's is 1");
}

#[test]
fn a_replay_is_judged_by_what_replays_have() {
    let mut plan = planned(envelope(JOB, 64), "a");
    let row = plan["row"].as_object_mut().expect("a row");
    as_replay(row);
    // Of several nodes it has the sum of both sides' sizes.
    taken(&plan, &replay());
    for (pointer, value, wanted) in [
        (
            "/request_metrics/throughput/per_gpu/total_tput_tps",
            json!(0),
            "`request_metrics.throughput.per_gpu.total_tput_tps` is 0",
        ),
        (
            "/request_metrics/throughput/per_gpu/output_tput_tps",
            json!("1"),
            "`request_metrics.throughput.per_gpu.output_tput_tps` is '1'",
        ),
        (
            "/request_metrics/latency/ttft/p50",
            json!(0),
            "`request_metrics.latency.ttft.p50` is 0",
        ),
        (
            "/request_metrics/latency/ttft/p50",
            json!([]),
            "`request_metrics.latency.ttft.p50` is a list",
        ),
        ("/request_metrics/throughput", json!({}), "`tput_per_gpu` is missing"),
        ("/model", json!("org/other"), "`model` is 'org/other'"),
    ] {
        let mut wrong = replay();
        *wrong.pointer_mut(pointer).expect("there") = value;
        refused(&plan, &wrong, wanted);
    }
}

#[test]
fn a_sweep_publishes_no_row_without_figures() {
    let sweep = Sweep::new();
    sweep.plan(&json!([
        planned(envelope(JOB, 64), "a"),
        planned(envelope(OTHER, 64), "b")
    ]));
    let mut wrong = aggregate();
    wrong["tput_per_gpu"] = json!(-1);
    sweep.file(&format!("bmk_m1_{JOB}/agg_r.json"), &wrong);
    let mut right = aggregate();
    right["recipe_fingerprint"] = json!("b".repeat(64));
    sweep.file(&format!("bmk_m1_{OTHER}/agg_r.json"), &right);
    let mut command = sweepctl(sweep.path());
    command.args(["collect", "sweep", "artifacts", "--plan", "plan.json", "--out", "out"]);
    let (code, _, stderr) = run(command.arg("--strict"));
    assert_eq!(code, 1);
    assert!(stderr.contains("`tput_per_gpu` is -1"), "{stderr}");
    assert_eq!(
        read_json(&sweep.path().join("out/results_bmk/agg_bmk.json")),
        json!([right])
    );
    let ledger = read_json(&sweep.path().join("out/ledger.json"));
    assert_eq!(column(&ledger, "jobs", "state"), ["failed", "done"]);
}

#[test]
fn an_attempt_without_figures_hides_none_that_has_them() {
    let sweep = Sweep::new();
    sweep.plan(&json!([planned(envelope(JOB, 64), "a")]));
    let attempt = |attempt: u64, tput: f64| {
        let mut aggregate = aggregate();
        (aggregate["run_id"], aggregate["run_attempt"]) = (json!(7), json!(attempt));
        aggregate["tput_per_gpu"] = json!(tput);
        sweep.file(&format!("{attempt}/agg_r.json"), &aggregate);
    };
    attempt(1, 5.0);
    attempt(2, 0.0);
    let (_, printed, _) = sweep.collect("results", &["--plan", "plan.json"]);
    assert_eq!(column(&printed, "rows", "tput_per_gpu"), [5.0]);
    assert_eq!(column(&printed, "jobs", "state"), ["done", "superseded"]);
    assert_eq!(printed["problems"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_broken_file_fails_the_job_whose_recipe_still_stands_in_it() {
    let sweep = Sweep::new();
    sweep.plan(&json!([
        planned(envelope("000000000001", 64), "a"),
        planned(envelope("000000000002", 32), "a"),
        planned(envelope("000000000003", 64), "b"),
        planned(envelope("000000000004", 64), "c"),
        planned(multinode_envelope("000000000005", &[8, 16]), "d"),
    ]));
    let whole = aggregate().to_string();
    let cut = &whole[..whole.find("\"isl\"").expect("there")];
    write(sweep.path().join("artifacts/x/agg_cut.json"), cut);
    sweep.file(
        "y/agg_none.json",
        &json!({"recipe_fingerprint": "b".repeat(64), "conc": 0}),
    );
    for conc in [8, 16] {
        sweep.file(
            &format!("z/agg_{conc}.json"),
            &json!({"recipe_fingerprint": "d".repeat(64), "conc": conc, "tput_per_gpu": 0}),
        );
    }
    // Nobody can tell which of two.
    sweep.file("z/agg_two.json", &json!({"recipe_fingerprint": "a".repeat(64)}));
    let (_, printed, _) = sweep.collect("results", &["--plan", "plan.json"]);
    assert_eq!(
        column(&printed, "jobs", "state"),
        ["failed", "missing", "failed", "missing", "failed"]
    );
    let reasons = column(&printed, "jobs", "reason");
    assert!(
        reasons[0].to_string().contains("artifacts/x/agg_cut.json is no JSON"),
        "{reasons:?}"
    );
    assert!(reasons[2].to_string().contains("`conc` is 0"), "{reasons:?}");
    for file in ["agg_8.json", "agg_16.json"] {
        assert!(reasons[4].to_string().contains(file), "{reasons:?}");
    }
}
