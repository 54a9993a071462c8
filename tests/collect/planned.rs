//! `sweepctl collect evals`: attempts at one job, and sets held against a plan.

use serde_json::{Value, json};

use super::{JOB, OTHER, Sweep, attempt, column};
use crate::fixture::{batch, envelope, meta, multinode_envelope, read_json, result, run, sweepctl, write};

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
        sweep.file(&format!("{folder}/results_{time}.json"), &result("gsm8k", score));
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
fn an_attempt_without_a_number_is_told_by_its_run() {
    let sweep = Sweep::new();
    sweep.set("a", &attempt(JOB, 7, 0), 0.1);
    sweep.set("b", &attempt(JOB, 7, 1), 0.2);
    let printed = sweep.evals(&["--strict"]);
    assert_eq!(
        column(&printed, "jobs", "reason"),
        ["artifacts/a: an attempt without a number, of run 7, there is a newer one"]
    );
}

#[test]
fn a_set_in_the_folder_of_no_planned_job_is_of_the_job_that_it_names() {
    let sweep = Sweep::new();
    sweep.set(&format!("eval_m1_8k1k_{OTHER}"), &attempt(JOB, 7, 1), 0.95);
    sweep.plan(&json!([envelope(JOB, 64)]));
    let printed = sweep.evals(&["--plan", "plan.json"]);
    assert_eq!(column(&printed, "jobs", "state"), ["done"], "{printed}");
    assert_eq!(printed["unplanned"], json!([]));
}

#[test]
fn why_a_planned_set_cannot_be_read_is_the_reason_of_its_job() {
    let sweep = Sweep::new();
    let set = format!("artifacts/eval_m1_8k1k_{JOB}");
    write(sweep.path().join(&set).join("meta_env.json"), "{");
    sweep.plan(&json!([envelope(JOB, 64)]));
    let printed = sweep.evals(&["--plan", "plan.json"]);
    assert_eq!(column(&printed, "jobs", "state"), ["failed"]);
    assert_eq!(
        printed["jobs"][0]["reason"],
        format!("{set}/meta_env.json is cut off in line 1")
    );
}

#[test]
fn an_attempt_that_left_no_result_hides_none_that_did() {
    let sweep = Sweep::new();
    sweep.set("a", &attempt(JOB, 7, 1), 0.9);
    sweep.file("b/meta_env.json", &attempt(JOB, 7, 2));
    sweep.file("c/meta_env.json", &attempt(JOB, 7, 3));
    write(sweep.path().join("artifacts/c/results.json"), "{\"results\": ");
    sweep.plan(&json!([envelope(JOB, 64)]));
    let printed = sweep.evals(&["--plan", "plan.json"]);
    assert_eq!(column(&printed, "rows", "score"), [0.9]);
    assert_eq!(column(&printed, "jobs", "state"), ["done", "superseded", "superseded"]);
    // That the newest cannot be read is said; that an attempt left nothing at all is no news.
    assert_eq!(
        printed["problems"],
        json!(["artifacts/c/results.json is cut off in line 1"])
    );
    assert_eq!(sweep.collect("evals", &["--strict", "--plan", "plan.json"]).0, 1);
    // An older attempt that broke is the reason for the newer one.
    sweep.set("d", &attempt(JOB, 7, 4), 0.95);
    let printed = sweep.evals(&["--strict", "--plan", "plan.json"]);
    assert_eq!(column(&printed, "rows", "score"), [0.95]);
    std::fs::remove_dir_all(sweep.path().join("artifacts/d")).expect("removed");
    let printed = sweep.evals(&["--plan", "plan.json"]);
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

/// The gate sees scores too, and samples; the collector has the scores, and reads no samples.
#[test]
fn what_a_gate_refuses_is_not_done_and_still_has_its_row() {
    let whole = || result("gsm8k", 0.95);
    let edited = |path: &str, value: Value| {
        let mut result = whole();
        *result.pointer_mut(path).expect("a field") = value;
        result
    };
    let subtasks = "/group_subtasks";
    let mut extra = result("arc", 0.9);
    extra["results"]["gsm8k"] = whole()["results"]["gsm8k"].clone();
    extra["n-samples"]["gsm8k"] = whole()["n-samples"]["gsm8k"].clone();
    for (result, task, wanted) in [
        (
            result("arc", 0.95),
            "arc",
            "the job asked for `gsm8k`, and `results` has none",
        ),
        (
            result("GSM8K", 0.95),
            "GSM8K",
            "the job asked for `gsm8k`, and `results` has none",
        ),
        (extra, "arc", "`results` has `arc`, and the job asked for `gsm8k`"),
        (
            edited("/n-samples/gsm8k/effective", json!(50)),
            "gsm8k",
            "evaluated 50 of 100 samples",
        ),
        (
            edited("/n-samples/gsm8k/effective", json!(101)),
            "gsm8k",
            "more than there are",
        ),
        (edited("/n-samples", json!({})), "gsm8k", "`gsm8k` has no sample count"),
        (
            edited(subtasks, json!({"g": ["gsm8k", "lost"]})),
            "gsm8k",
            "`lost` of the group `g` has no result",
        ),
        (
            edited(subtasks, json!({"g": ["gsm8k", ""]})),
            "gsm8k",
            "holds \"\", which is no task",
        ),
    ] {
        let sweep = Sweep::new();
        sweep.file("a/meta_env.json", &attempt(JOB, 7, 1));
        sweep.file("a/results.json", &result);
        let mut job = envelope(JOB, 64);
        sweep.plan(&json!([job]));
        let printed = sweep.evals(&["--plan", "plan.json"]);
        assert_eq!(printed["jobs"][0]["state"], "failed", "{wanted}");
        let reason = printed["jobs"][0]["reason"].as_str().expect("a reason");
        assert!(
            reason.contains("artifacts/a/results.json") && reason.contains(wanted),
            "{reason}"
        );
        assert!(column(&printed, "rows", "task").contains(&json!(task)), "{printed}");
        let (code, _, stderr) = sweep.collect("evals", &["--plan", "plan.json", "--strict"]);
        assert!(code == 1 && stderr.contains(wanted), "{stderr}");
        // Beside throughput an eval fails nothing.
        job["row"]["eval-only"] = json!(false);
        sweep.plan(&json!([job]));
        assert_eq!(sweep.evals(&["--plan", "plan.json"])["jobs"][0]["state"], "done");
    }
}

#[test]
fn a_folder_that_cannot_be_searched_loses_only_itself() {
    let sweep = Sweep::new();
    sweep.set("a", &attempt(JOB, 7, 1), 0.95);
    let deep = std::iter::repeat_n("d", 70).collect::<Vec<_>>().join("/");
    std::fs::create_dir_all(sweep.path().join("artifacts/b").join(deep)).expect("folders");
    sweep.plan(&json!([envelope(JOB, 64)]));
    let printed = sweep.evals(&["--plan", "plan.json"]);
    assert_eq!(
        (&printed["jobs"][0]["state"], &printed["rows"][0]["score"]),
        (&json!("done"), &json!(0.95))
    );
    let said = printed["problems"].to_string();
    assert!(
        said.contains("artifacts/b/d") && said.contains("64 folders deep"),
        "{said}"
    );
    assert_eq!(sweep.collect("evals", &["--strict"]).0, 1);
}

#[test]
fn a_batch_over_points_that_the_job_has_not_is_of_another_job() {
    let sweep = Sweep::new();
    let mut meta = batch(&json!([16, 48]), &json!([16]), &json!([]));
    meta["job_id"] = json!(JOB);
    (meta["is_multinode"], meta["tp"]) = (json!(true), json!(4));
    sweep.file("a/meta_env.json", &meta);
    sweep.file("a/results_conc16.json", &result("gsm8k", 0.9));
    sweep.plan(&json!([multinode_envelope(JOB, &[16, 32])]));
    let printed = sweep.evals(&["--plan", "plan.json"]);
    assert_eq!(printed["rows"], json!([]));
    assert_eq!(printed["jobs"][0]["state"], "failed");
    let said = printed["problems"].to_string();
    assert!(said.contains("`eval_concs` has 48, the job's are 16, 32"), "{said}");
}

#[test]
fn points_that_are_not_there_are_told_beside_what_is_wrong() {
    let sweep = Sweep::new();
    let mut meta = batch(&json!([16, 32]), &json!([]), &json!([16, 32]));
    (meta["job_id"], meta["is_multinode"], meta["tp"]) = (json!(JOB), json!(true), json!(4));
    sweep.plan(&json!([multinode_envelope(JOB, &[16, 32])]));
    for (completed, wanted) in [
        (json!([]), "artifacts/a: nothing at concurrency 16, 32"),
        (
            json!([16]),
            "artifacts/a/results_conc16.json: `odd` has no metric, so it has no score; artifacts/a: nothing at concurrency 32; \
             artifacts/a/results_conc16.json [conc 16]: `results` has `odd`, and the job asked for `gsm8k`; \
             artifacts/a/results_conc16.json [conc 16]: `odd` has no sample count",
        ),
    ] {
        meta["completed_eval_concs"] = completed;
        sweep.file("a/meta_env.json", &meta);
        let mut two = result("gsm8k", 0.9);
        two["results"]["odd"] = json!({});
        sweep.file("a/results_conc16.json", &two);
        let job = sweep.evals(&["--plan", "plan.json"])["jobs"][0].clone();
        assert_eq!((&job["state"], &job["reason"]), (&json!("failed"), &json!(wanted)));
    }
}

#[test]
fn what_scripts_are_known_to_get_wrong_is_forgiven_and_nothing_else() {
    let one = envelope(JOB, 64);
    let many = multinode_envelope(JOB, &[64]);
    let of_side = [
        ("prefill_ep", json!(3)),
        ("decode_num_workers", json!(9)),
        ("decode_tp", json!(3)),
    ];
    let forgiven = [
        ("is_multinode", json!("maybe")),
        ("model", json!("served-name")),
        ("ep", json!(3)),
        ("dp_attention", json!(true)),
    ];
    let sizes = [("tp", json!(3)), ("pp", json!(3)), ("dcp_size", json!(3))];
    let others = [
        ("framework", json!("sglang")),
        ("precision", json!("fp4")),
        ("hw", json!("b200")),
        ("isl", json!(1)),
        ("conc", json!(32)),
        ("spec_decoding", json!("mtp")),
        ("infmax_model_prefix", json!("m2")),
        ("run", json!(1)),
    ];
    for (plan, size_counts) in [(&one, false), (&many, true)] {
        let all = of_side.iter().chain(&forgiven).map(|field| (field, true));
        let all = all.chain(sizes.iter().map(|field| (field, size_counts)));
        // A field that the comparison does not know contradicts nothing.
        let all = all.chain(others.iter().map(|field| (field, field.0 == "run")));
        for ((name, value), counts) in all {
            let sweep = Sweep::new();
            let mut written = meta(64);
            if size_counts {
                written["is_multinode"] = json!(true);
            }
            written[name] = value.clone();
            sweep.set(&format!("eval_m1_8k1k_{JOB}"), &written, 0.95);
            sweep.plan(&json!([plan]));
            let printed = sweep.evals(&["--plan", "plan.json"]);
            let state = if counts { "done" } else { "failed" };
            assert_eq!(
                printed["jobs"][0]["state"], state,
                "{name}, many nodes {size_counts}: {printed}"
            );
        }
    }
}

#[test]
fn a_planned_model_is_published_under_its_planned_name() {
    let sweep = Sweep::new();
    let mut written = meta(64);
    written["infmax_model_prefix"] = json!("unknown");
    sweep.set(&format!("eval_m1_8k1k_{JOB}"), &written, 0.95);
    assert_eq!(column(&sweep.evals(&[]), "rows", "model_prefix"), ["unknown"]);
    sweep.plan(&json!([envelope(JOB, 64)]));
    let printed = sweep.evals(&["--plan", "plan.json"]);
    assert_eq!(column(&printed, "rows", "model_prefix"), ["m1"]);
}

#[test]
fn no_set_is_a_message_and_a_failure_only_of_a_plan() {
    let sweep = Sweep::new();
    let nothing = "there is no eval result in artifacts\n";
    let (code, printed, stderr) = sweep.collect("evals", &[]);
    assert_eq!((code, &printed["rows"]), (0, &json!([])));
    assert_eq!(
        stderr,
        "there is no eval result in artifacts: the folder was not found\n"
    );
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
    sweep.file("d/results_conc16.json", &result("gsm8k", 0.9));
    sweep.set(&format!("eval_m1_8k1k_{}", ids[5]), &meta(64), 0.9);
    sweep.set("e", &attempt("ffffffffffff", 1, 1), 0.9);
    sweep.set("f", &meta(8), 0.9);
    let mut plan: Vec<Value> = ids.iter().map(|id| envelope(id, 64)).collect();
    plan[4] = multinode_envelope(ids[4], &[16, 32]);
    sweep.plan(&json!(plan));
    let summary = sweep.path().join("summary.md");
    let mut command = sweepctl(sweep.path());
    command.args(["collect", "evals", "artifacts", "--plan", "plan.json"]);
    assert_eq!(run(command.env("GITHUB_STEP_SUMMARY", &summary)).0, 0);
    let text = std::fs::read_to_string(summary).expect("a summary");
    for part in [
        "#### Jobs: 2 done, 3 failed, 1 missing, 1 superseded\n\n| Job | Id | State | Reason |",
        "| m1 c64 | 000000000003 | missing | no result arrived |",
        "\n\n#### Problems\n\n- ",
        "- artifacts/c: there is no result file\n",
        "\n\n#### Jobs: ",
        "#### Not in the plan\n\n- artifacts/e\n- artifacts/f\n",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    assert!(!text.contains("| done |"), "{text}");
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
fn a_run_with_a_limit_says_so_in_row_ledger_and_summary() {
    let sweep = Sweep::new();
    let mut meta = attempt(JOB, 7, 1);
    meta["answers"] = json!({"asked": 100, "empty": 1, "reasoning_only": 0, "cut": 2});
    sweep.set("a", &meta, 0.9);
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
    assert!(summary.contains("| 100 (diagnostic) (1 empty, 2 cut) |"), "{summary}");
}

#[test]
fn sets_that_no_job_planned_are_named() {
    let sweep = Sweep::new();
    sweep.plan(&json!([envelope(JOB, 64)]));
    sweep.set(&format!("eval_x_{JOB}"), &attempt(JOB, 7, 1), 0.95);
    let args = ["--plan", "plan.json", "--ledger", "ledger.json"];
    let (code, _, stderr) = sweep.collect("evals", &args);
    assert_eq!((code, stderr.as_str()), (0, ""));
    sweep.set(&format!("eval_x_{OTHER}"), &attempt(OTHER, 7, 1), 0.5);
    // With a ledger the table is printed, else JSON.
    for args in [&args[..], &args[..2]] {
        let (code, _, stderr) = sweep.collect("evals", args);
        assert_eq!(code, 0, "{stderr}");
        let wanted = format!("warning[command/warning]: 1 set of no planned job: artifacts/eval_x_{OTHER}\n");
        assert!(stderr.contains(&wanted), "{stderr}");
    }
    let (code, _, stderr) = sweep.collect("evals", &[&args[..], &["--strict"]].concat());
    assert_eq!(code, 0, "{stderr}");
}

#[test]
fn a_threshold_that_misses_rows_by_its_case_is_told_as_the_gate_tells_it() {
    let sweep = Sweep::new();
    sweep.set("a", &meta(1), 0.9);
    let told = |thresholds: &str| {
        sweep.text("thresholds.yaml", thresholds);
        let (code, printed, stderr) = sweep.collect("evals", &["--thresholds", "thresholds.yaml", "--strict"]);
        assert_eq!(code == 0, printed["problems"] == json!([]), "{stderr}");
        printed["problems"].clone()
    };
    assert_eq!(
        told("default: {gsm8k: 0.9, other: 0.9}\nmodels: {m1: {gsm8k: 0.9}}\n"),
        json!([])
    );
    assert_eq!(
        told("default: {GSM8K: 0.9}\n"),
        json!(["`default.GSM8K` reaches no task: the name of this one is `gsm8k`"])
    );
    let missed = "`models.M1` reaches no job: the key of this model is `m1`";
    assert_eq!(
        told("default: {gsm8k: 0.9}\nmodels: {M1: {gsm8k: 0.9}}\n"),
        json!([missed])
    );
    assert_eq!(
        told("default: {gsm8k: 0.9}\nmodels: {model: {gsm8k: 0.9}}\n"),
        json!(["`models.model` reaches no job: the key of this model is `m1`"])
    );
    // Another row's own key misses nothing.
    let mut other = meta(2);
    other["infmax_model_prefix"] = json!("M1");
    sweep.set("b", &other, 0.9);
    assert_eq!(told("default: {gsm8k: 0.9}\nmodels: {M1: {gsm8k: 0.9}}\n"), json!([]));
}

#[test]
fn what_is_collected_and_what_is_wrong_are_one_document() {
    let sweep = Sweep::new();
    sweep.plan(&json!([envelope(JOB, 64)]));
    for what in ["evals", "results"] {
        for folder in ["artifacts", "nosuch"] {
            std::fs::create_dir_all(sweep.path().join("artifacts")).expect("a folder");
            let mut command = sweepctl(sweep.path());
            command.args(["collect", what, folder, "--plan", "plan.json", "--json", "--strict"]);
            let (code, stdout, stderr) = run(&mut command);
            let printed: Value = serde_json::from_str(&stdout).expect("one document");
            let problems = printed["problems"].to_string();
            // The plan has no throughput job.
            let is_good = what == "results" && folder == "artifacts";
            assert_eq!(code, i32::from(!is_good), "{stderr}");
            assert_eq!(
                problems.contains("was not found"),
                folder == "nosuch",
                "{what} {folder}: {problems}"
            );
        }
    }
    let mut command = sweepctl(sweep.path());
    command.args(["collect", "evals", "artifacts", "--plan", "plan.json", "--json"]);
    let printed: Value = serde_json::from_str(&run(&mut command).1).expect("one document");
    assert_eq!(
        printed["problems"],
        json!(["no eval result arrived in artifacts, the plan has 1"])
    );
}
