//! What happens on a node: an earlier job's leftovers, and a cancellation.

use super::harness::Repository;
use crate::eval::support::names;
use crate::launch::support::{assert_gone, signal, wait_for_lines};

/// A job of an earlier run, whose clone and files stay, for a checkout that leaves untracked files alone.
const EARLIER: &str = r#"
      - name: An earlier job
        run: |
          git clone --quiet "file://$ACT_ORIGIN" .
          mkdir -p agentic_results eval_results
          for name in old.log results_old.json samples_old.jsonl agg_old.json gpu_metrics_old.csv old_report.json \
              agentic_results/old.json eval_results/results_old.json; do
            echo '{}' > "$name"
          done
          echo '{ "job_id": "0123456789ab" }' | tee meta_env.json > eval_results/meta_env.json
"#;

/// The workflows of a node that keeps its clone.
fn stale(name: &str, text: String) -> String {
    if !name.starts_with("benchmark") {
        return text;
    }
    let (head, steps) = text.split_once("    steps:\n").expect("a job");
    let persist = "          persist-credentials: false\n";
    assert_eq!(steps.matches(persist).count(), 1);
    let steps = steps.replace(persist, &format!("{persist}          clean: false\n"));
    format!("{head}    steps:\n{}{steps}", EARLIER.trim_start_matches('\n'))
}

#[test]
fn nothing_of_an_earlier_job_is_uploaded() {
    let repository = Repository::new();
    let run = repository
        .push(&[("plain-box-vllm-fp8, agent-box-vllm-fp8", "")])
        .edited(stale)
        .with_last_lines()
        .run();
    assert!(run.ok, "{run}");
    let benchmarks = run.jobs.iter().filter(|job| job.id == "benchmark");
    let seen = benchmarks.filter(|job| job.output.contains("results_old.json")).count();
    assert_eq!(seen, 5, "the leftovers were there, and cleaned: {run}");
    let uploaded = names(&run.file("artifacts"));
    assert!(uploaded.len() >= 10, "{uploaded:?}");
    for artifact in uploaded {
        let files = names(&run.file("artifacts").join(&artifact));
        assert!(!files.iter().any(|file| file.contains("old")), "{artifact}: {files:?}");
    }
}

#[test]
fn a_cancelled_launch_leaves_its_results_and_no_process() {
    let repository = Repository::new();
    let running = repository.push(&[("endless-box-sglang-fp8", "")]).start();
    let pids = wait_for_lines(&running.file("pids"), 3);
    // As the runner does it: to the step's own process, which is the launch.
    signal(pids[0].parse().expect("a process"), "-INT");
    let run = running.wait();
    assert!(!run.ok, "{run}");
    assert_gone(&pids);
    let job = run.jobs.iter().find(|job| job.id == "benchmark").expect("it ran");
    let step = |name: &str| {
        let step = job.steps.iter().find(|(step, _)| step == name);
        step.map_or("-", |(_, result)| result.as_str())
    };
    let steps = [
        "Launch",
        "Upload the throughput result",
        "Upload server logs",
        "Release the node",
        "Clean again",
    ];
    assert_eq!(
        steps.map(step),
        ["failure", "success", "success", "success", "success"],
        "{run}"
    );
    assert_eq!(step("Process the result"), "-", "{run}");
    // Concurrency 16 was measured, 32 was not.
    let left = run.files("bmk_endless_1k1k");
    assert!(left.len() == 1 && left[0].ends_with("_conc16.json"), "{left:?}");
    assert_eq!(run.files("server_logs_endless_1k1k"), ["launch.log", "server.log"]);
    assert_eq!(run.ended(&["verdict"]), ["failure"], "{run}");
}
