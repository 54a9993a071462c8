//! The points that were asked for, and the metadata that says which were evaluated.

use serde_json::{Value, json};

use super::work::Work;
use crate::fixture::{batch, envelope, meta, multinode_envelope, result};

#[test]
fn a_batch_has_exactly_the_points_that_were_asked_for() {
    let work = Work::batch();
    work.passes(&["--expected-concs", "32 16"]);
    work.passes(&[]);
    work.fails(
        &["--expected-concs", "16 32 64"],
        &[
            "`eval_concs` is concurrencies 16, 32",
            "`completed_eval_concs` lacks concurrency 64",
            "no result file for concurrency 64",
        ],
    );
    work.file("results_conc16_2.json", &result("plain", 0.95));
    work.fails(&[], &["2 result files for concurrency 16"]);
    work.rename("results_conc16_2.json", "results_conc48.json");
    work.fails(&[], &["results_conc48.json: concurrency 48 is unexpected"]);
    work.rename("results_conc48.json", "results_x.json");
    work.fails(&[], &["results_x.json: no `_conc<N>` before the extension"]);
}

#[test]
fn a_key_that_reaches_no_task_is_told_once_for_all_points() {
    let work = Work::batch();
    work.text("thresholds.yaml", "default: { PLAIN: 0.1 }\n");
    for conc in [16, 32] {
        let mut two = result("plain", 0.95);
        two["results"]["other"] = two["results"]["plain"].clone();
        two["n-samples"]["other"] = two["n-samples"]["plain"].clone();
        work.file(&format!("results_conc{conc}.json"), &two);
    }
    work.fails(&[], &["`default.PLAIN` reaches no task"]);
}

#[test]
fn the_lists_of_a_batch_are_lists_of_distinct_concurrencies() {
    let work = Work::batch();
    let cases = [
        (
            batch(&json!([16, 32]), &json!([16]), &json!([32])),
            vec!["failed at concurrency 32", "lacks concurrency 32"],
        ),
        (
            batch(&json!([16, 32, 16]), &json!([16, 32]), &json!([])),
            vec!["`eval_concs` has 16 twice"],
        ),
        (
            batch(&json!([16, 32]), &json!([16, 32, 32]), &json!([])),
            vec!["`completed_eval_concs` has 32 twice"],
        ),
        (
            batch(&json!([16, 32]), &json!([16, 32, 64]), &json!([])),
            vec!["has concurrency 64, which nobody asked for"],
        ),
        (
            batch(&json!([16, 32]), &json!("16 32"), &json!([])),
            vec!["`completed_eval_concs` is no list"],
        ),
        (
            batch(&json!([16, 32]), &json!([16, 32]), &Value::Null),
            vec!["`failed_eval_concs` is no list"],
        ),
        (
            batch(&json!([16, "32x"]), &json!([16, 32]), &json!([])),
            vec!["`eval_concs` has \"32x\", which is no concurrency"],
        ),
        (
            batch(&json!([16, true]), &json!([16, 32]), &json!([])),
            vec!["`eval_concs` has true"],
        ),
        (
            batch(&json!([16, 0]), &json!([16, 32]), &json!([])),
            vec!["`eval_concs` has 0, which is no concurrency"],
        ),
    ];
    for (meta, wanted) in cases {
        work.file("meta_env.json", &meta);
        work.fails(&[], &wanted);
    }
}

#[test]
fn metadata_that_is_lost_or_broken_fails_where_it_matters() {
    let work = Work::new();
    work.remove("meta_env.json");
    work.passes(&[]);
    work.fails(&["--expected-concs", "64"], &["meta_env.json does not exist"]);
    work.file("results_old.json", &result("plain", 0.95));
    work.fails(&[], &["2 result files for a single point"]);
    work.remove("results_old.json");
    // One file of a batch among others is enough to need it.
    std::fs::copy(
        work.path().join("results.json"),
        work.path().join("results_conc16.json"),
    )
    .expect("copied");
    work.fails(&[], &["meta_env.json does not exist"]);
    work.remove("results_conc16.json");
    work.text("meta_env.json", "{");
    work.fails(&[], &["meta_env.json is cut off in line 1"]);
    let work = Work::batch();
    work.remove("meta_env.json");
    work.fails(&[], &["meta_env.json does not exist"]);
}

#[test]
fn a_single_point_has_one_result_at_its_concurrency() {
    let work = Work::new();
    work.passes(&["--expected-concs", "64"]);
    work.fails(&["--expected-concs", "32"], &["`conc` is 64, 32 was asked for"]);
    work.fails(
        &["--expected-concs", "32 64"],
        &["concurrencies 32, 64 were asked for, but there is no `eval_concs`"],
    );
    work.rename("results.json", "results_conc64.json");
    work.passes(&[]);
    work.rename("results_conc64.json", "results_conc32.json");
    work.fails(
        &[],
        &["results_conc32.json: concurrency 32 is unexpected, `conc` is 64"],
    );
    work.rename("results_conc32.json", "results.json");
    work.file("results_old.json", &result("plain", 0.95));
    work.fails(
        &[],
        &["2 result files for a single point: results.json, results_old.json"],
    );
    for text in ["", "16 x", "0", "16 16", "-1", "1.5"] {
        let (code, _, stderr) = work.judge(&[&format!("--expected-concs={text}")]);
        assert_eq!(code, 1, "{text}: {stderr}");
        assert!(stderr.contains("--expected-concs"), "{stderr}");
    }
}

#[test]
fn an_envelope_says_what_was_asked_for() {
    let work = Work::new();
    work.file("envelope.json", &envelope("0123456789ab", 64));
    assert_eq!(work.passes(&["--envelope", "envelope.json"])["model_prefix"], "m1");
    work.file("envelope.json", &envelope("0123456789ab", 32));
    work.fails(&["--envelope", "envelope.json"], &["`conc` is 64, 32 was asked for"]);
    let mut other = meta(64);
    for (name, value) in [
        ("job_id", json!("ffffffffffff")),
        ("tp", json!(4)),
        ("hw", json!("B200")),
        ("isl", json!("1024")),
    ] {
        other[name] = value;
    }
    work.file("meta_env.json", &other);
    work.file("envelope.json", &envelope("0123456789ab", 64));
    let wanted = [
        "`job_id` is \"ffffffffffff\", the job's is \"0123456789ab\"",
        "`tp` is 4, the job's is 8",
        "`hw` is \"B200\"",
        "`isl` is \"1024\", the job's is 8192",
    ];
    work.fails(&["--envelope", "envelope.json"], &wanted);
    // Other writers get this wrong, and say no job; this tool never does.
    let work = Work::batch();
    work.file("envelope.json", &multinode_envelope("0123456789ab", &[16, 32]));
    work.passes(&["--envelope", "envelope.json"]);
    let mut signed = batch(&json!([16, 32]), &json!([16, 32]), &json!([]));
    (signed["job_id"], signed["tp"]) = (json!("0123456789ab"), json!(4));
    work.file("meta_env.json", &signed);
    work.fails(
        &["--envelope", "envelope.json"],
        &["`is_multinode` is false, the job's is true"],
    );
    // Numbers count by their value; the concurrency of a batch is one of its points.
    signed["is_multinode"] = json!(true);
    (signed["conc"], signed["eval_concs"]) = (json!("32"), json!(["16", 32.0]));
    work.file("meta_env.json", &signed);
    work.passes(&["--envelope", "envelope.json"]);
    for (conc, said) in [
        (json!(7), "7"),
        (json!([16]), "a list or a mapping"),
        (json!("x"), "\"x\""),
    ] {
        signed["conc"] = conc;
        work.file("meta_env.json", &signed);
        work.fails(
            &["--envelope", "envelope.json"],
            &[&format!("`conc` is {said}, the job's is 16, 32")],
        );
    }
}
