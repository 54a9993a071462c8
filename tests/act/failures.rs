//! Sweeps in which something fails: what is there is kept, the run fails, and the verdict says why.

use serde_json::{Value, json};

use super::harness::Repository;

#[test]
fn a_gate_and_a_script_fail_and_the_run_says_which() {
    let repository = Repository::new();
    let entries = [("wrong-box-vllm-fp8, broken-box-vllm-fp8, short-box-vllm-fp8", "")];
    let run = repository.push(&entries).run();
    assert!(!run.ok, "{run}");
    assert_eq!(
        run.ended(&["decide", "collect", "verdict"]),
        ["success", "success", "failure"],
        "{run}"
    );
    assert_eq!(
        run.benchmarks(),
        [
            "sweep-evals-0 failure",
            "sweep-single-node-1k1k-0 failure",
            "sweep-single-node-1k1k-0 failure",
            "sweep-single-node-1k1k-0 success",
            "sweep-single-node-1k1k-0 success",
            "sweep-single-node-8k1k-0 success",
        ],
        "{run}"
    );

    // The gate stands behind the uploads.
    assert_eq!(
        run.files("eval_wrong_8k1k"),
        [
            "meta_env.json",
            "results_2026-01-01T00-00-00.000000.json",
            "samples_gsm8k_2026-01-01T00-00-00.000000.jsonl",
        ],
        "{run}"
    );
    // A recipe with a job that is not done is withheld: the eval that failed takes its throughput with it.
    assert!(!run.artifacts().contains(&"eval_results_all".to_owned()), "{run}");
    let results = run.json("results_bmk/agg_bmk.json");
    let points: Vec<(&Value, &Value)> = results
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| (&row["infmax_model_prefix"], &row["conc"]))
        .collect();
    let short = json!("short");
    assert_eq!(points, [(&short, &json!(4)), (&short, &json!(8))], "{results}");
    assert!(
        !run.artifacts().iter().any(|name| name.starts_with("bmk_broken")),
        "{run}"
    );

    // The jobs without evidence are named, those that left theirs are not.
    let verdict = run.verdict();
    for part in [
        "`sweep-evals` failed, with 1 job planned",
        "`sweep-single-node-1k1k` failed, with 4 jobs planned",
        "broken fp8 vllm box 1k1k tp1 c2",
        "broken fp8 vllm box 1k1k tp1 c4",
    ] {
        assert!(verdict.contains(part), "{part} in {verdict}");
    }
    assert!(!verdict.contains("short fp8 vllm box 1k1k tp1 c4"), "{verdict}");
}
