//! Accuracy benchmarks among the evals of a run.

use serde_json::json;

use super::{BATCH, Downloaded};

#[test]
fn the_outputs_of_an_accuracy_benchmark_are_an_evals_results() {
    let folder = Downloaded::new();
    folder.edit("run/plan.json", |plan| {
        let row = plan[1]["row"].as_object_mut().expect("a row");
        row.remove("eval-all-concs");
        for (name, value) in [
            ("eval-conc", json!(32)),
            ("eval-framework", json!("benchmark")),
            ("eval-suite", json!("gpqa")),
        ] {
            row.insert(name.to_owned(), value);
        }
    });
    let set = format!("run/eval_m1_8k1k_{BATCH}");
    folder.edit(&format!("{set}/meta_env.json"), |meta| {
        let meta = meta.as_object_mut().expect("an object");
        for name in ["eval_concs", "completed_eval_concs", "failed_eval_concs"] {
            meta.remove(name);
        }
        meta.insert("conc".to_owned(), json!(32));
        meta.insert("eval_suite".to_owned(), json!("gpqa"));
    });
    for conc in [16, 32] {
        folder.remove(&format!("{set}/results_conc{conc}.json"));
    }
    folder.write("thresholds.yaml", "default:\n  plain: 0.9\n  gpqa: 0.5\n");
    let output = format!("{set}/accuracy/gpqa_any.json");
    let scores = json!({ "scores": [0.7, 0.72], "mean_score": 0.71, "total_examples": 198 });
    folder.json(&output, &scores);
    folder.collected();
    let (failing, value) = folder.look();
    assert!(failing.is_empty(), "{value:#}");
    // A score under its floor, and none at all.
    folder.write("thresholds.yaml", "default:\n  plain: 0.9\n  gpqa: 0.8\n");
    let (failing, value) = folder.look();
    assert!(failing.contains(&"gate".to_owned()), "{failing:?}");
    assert!(value.to_string().contains("under 0.8"), "{value:#}");
    folder.remove(&output);
    let (failing, _) = folder.look();
    for check in ["full-split", "batch-points", "gate"] {
        assert!(failing.contains(&check.to_owned()), "{check}: {failing:?}");
    }
}
