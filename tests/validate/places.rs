//! Where metadata is looked for when results are named.

use serde_json::json;

use crate::fixture::{meta, result, run, sweepctl, write};

#[test]
fn metadata_is_what_lies_beside_the_results_that_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let thresholds = "models:\n  strict: { plain: 0.97 }\n  lenient: { plain: 0.5 }\n";
    write(folder.path().join("thresholds.yaml"), thresholds);
    let mut strict = meta(64);
    strict["infmax_model_prefix"] = json!("strict");
    let mut lenient = meta(64);
    lenient["infmax_model_prefix"] = json!("lenient");
    write(folder.path().join("meta_env.json"), lenient.to_string());
    write(folder.path().join("set/meta_env.json"), strict.to_string());
    write(
        folder.path().join("set/results.json"),
        result("plain", 0.95).to_string(),
    );
    let judge = |more: &[&str]| {
        let args = [
            "eval",
            "validate",
            "--thresholds",
            "thresholds.yaml",
            "--results-glob",
            "set/results*.json",
        ];
        run(sweepctl(folder.path()).args(args).args(more))
    };
    let (code, _, stderr) = judge(&[]);
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("0.97"), "{stderr}");
    assert_eq!(judge(&["--meta-env", "meta_env.json"]).0, 0);
    // Where nothing lies beside them, what lies in the job's folder.
    std::fs::remove_file(folder.path().join("set/meta_env.json")).expect("removed");
    assert_eq!(judge(&[]).0, 0);
}
