//! From an empty repository to a green run of what it is given, with the throughput client and the real lm-eval.

use serde_json::json;

use super::events;
use super::harness::{Act, Repository};
use crate::eval::tools;
use crate::support::{commit, git, run, stderr, stdout};

#[test]
fn the_starter_runs_as_rendered() {
    tools::lm_eval();
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    git(root, &["init", "-q"]);
    let before = commit(root, "Start");
    for command in [&["init", "."][..], &["render"], &["check"], &["workflow", "check"]] {
        let done = run(root, command);
        assert!(done.status.success(), "{command:?}: {}{}", stdout(&done), stderr(&done));
    }
    let after = commit(root, "Adopt sweepctl");
    let repository = Repository::of(folder);
    let run = Act::new(&repository, "run-sweep.yml", ("push", events::push(&before, &after)))
        .runner("local_0")
        .environment("SWEEPCTL_TOOLS", tools::folder().display().to_string())
        .environment("HF_HUB_OFFLINE", "1")
        .run();
    assert!(run.ok, "{run}");
    let ended = run.ended(&["decide", "collect", "verdict"]);
    assert_eq!(ended, ["success"; 3], "{run}");
    // 40 right answers of 40, and throughput at 4 and 16.
    let evals = run.json("eval_results_all/agg_eval_all.json");
    let row = &evals[0];
    assert_eq!(
        (&row["task"], &row["score"], &row["n_eff"], &row["conc"]),
        (&json!("gsm8k_smoke"), &json!(1.0), &json!(40), &json!(16))
    );
    let results = run.json("results_bmk/agg_bmk.json");
    let concs: Vec<_> = results
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| row["conc"].clone())
        .collect();
    assert_eq!(concs, [4, 16], "{results}");
}
