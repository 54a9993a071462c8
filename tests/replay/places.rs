//! Where replays and samples of GPUs lie: found, uploaded and cleaned by one list.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::{ID, Job, agentic, agentic_on_many, good, summary};
use crate::fixture::{run, sweepctl};
use crate::support::git;

/// The names of files under a folder, from it, sorted.
fn files(folder: &std::path::Path) -> Vec<String> {
    let mut found = Vec::new();
    for walked in sweepctl::files::walk(folder, 16).unwrap_or_default() {
        for name in &walked.names {
            let path = walked.path.join(name);
            found.push(path.strip_prefix(folder).expect("below").display().to_string());
        }
    }
    found.sort();
    found
}

#[test]
fn a_replay_in_the_workspace_is_found_and_uploaded() {
    for place in ["results", "agentic_results", "results/conc_64"] {
        let job = Job::new(&agentic("vllm"));
        job.replay(&format!("{place}/aiperf_artifacts"), &good(), &summary(2, 0));
        job.file(&format!("{place}/aiperf_artifacts/inputs.json"), "{}");
        job.file(&format!("{place}/server.log"), "GPU KV cache size: 12 tokens");
        // A client's own result decides nothing where there is the replay itself.
        job.file("r.json", &summary(2, 0).to_string());
        let (code, stderr) = job.process(&[]);
        assert_eq!(code, 0, "{place}: {stderr}");
        assert_eq!(job.read("agg_r.json")["kv_cache_pool_tokens"], 12.0, "{place}");
        let mut command = sweepctl(job.path());
        command.env("RESULT_FILENAME", "r");
        command.args([
            "upload",
            "--kind",
            "agentic",
            "--envelope",
            "envelope.json",
            "--to",
            "up",
            "--workspace",
            ".",
        ]);
        let (code, _, stderr) = run(&mut command);
        assert_eq!(code, 0, "{stderr}");
        let within = place.strip_suffix("/conc_64").map_or("", |_| "conc_64/");
        let wanted = [
            "aiperf_artifacts/profile_export.jsonl",
            "aiperf_artifacts/profile_export_aiperf.json",
            "server.log",
        ];
        let uploaded = files(&job.path().join(format!("up/agentic_m1_8k1k_{ID}")));
        assert_eq!(uploaded, wanted.map(|name| format!("{within}{name}")), "{place}");
    }
}

#[test]
fn of_many_nodes_each_concurrency_has_its_folder() {
    let job = Job::new(&agentic_on_many(&[8, 16]));
    job.replay("LOGS/agentic/conc_8/aiperf_artifacts", &good(), &summary(2, 0));
    job.refused(
        &[],
        "r_conc16.json: there is neither the aggregate nor the raw replay at 16",
    );
    job.replay("LOGS/agentic/conc_16/aiperf_artifacts", &good()[..1], &summary(2, 0));
    let (code, stderr) = job.process(&[]);
    assert_eq!(code, 0, "{stderr}");
    let [few, many] = [8, 16].map(|conc| job.read(&format!("agg_r_conc{conc}.json")));
    assert_eq!((&few["conc"], &few["num_requests_total"]), (&json!(8), &json!(2)));
    assert_eq!((&many["conc"], &many["num_requests_total"]), (&json!(16), &json!(1)));
    assert_eq!((&few["tp"], &few["num_prefill_gpu"]), (&json!(12), &json!(8)));
    job.refused(&["--replay", "LOGS/agentic"], "the job replays at 8, 16");
    let one = Job::new(&agentic_on_many(&[8]));
    one.replay("LOGS/agentic/aiperf_artifacts", &good(), &summary(2, 0));
    assert_eq!(one.process(&[]).0, 0);
    assert_eq!(one.read("agg_r.json")["conc"], 8);
}

#[test]
fn no_link_is_followed_to_a_replay() {
    let job = Job::new(&agentic("vllm"));
    job.replay("elsewhere/aiperf_artifacts", &good(), &summary(2, 0));
    symlink("elsewhere", job.path().join("results")).expect("a link");
    job.refused(&[], "r.json");
    assert!(!job.has("agg_r.json"));
}

#[test]
fn samples_of_gpus_are_found_beside_the_result() {
    let benchmark = json!({
        "model_id": "org/model", "num_prompts": 640, "max_concurrency": 64, "duration": 100.5, "completed": 640,
        "total_input_tokens": 5_242_880, "total_output_tokens": 655_360, "output_throughput": 8000.0,
        "total_token_throughput": 16_000.0, "median_ttft_ms": 200.0,
    });
    let fixed = crate::fixture::envelope(ID, 64);
    let power = |place: Option<&str>, required: &str| -> (i32, Value) {
        let job = Job::new(&fixed);
        job.file("r.json", &benchmark.to_string());
        if let Some(place) = place {
            job.file(place, "timestamp, index, power.draw [W]\n");
        }
        let mut command = sweepctl(job.path());
        command.env("REQUIRE_POWER", required);
        let (code, _, _) = run(command.args(["result", "process", "--result-filename", "r"]));
        (code, job.read("agg_r.json")["power_valid"].clone())
    };
    assert_eq!(power(None, ""), (0, Value::Null));
    assert_eq!(power(Some("gpu_metrics.csv"), ""), (0, json!(0)));
    assert_eq!(power(Some("results/gpu_metrics.csv"), ""), (0, json!(0)));
    assert_eq!(
        power(None, "1"),
        (1, json!(0)),
        "what is required and missing is not passed over"
    );
    let job = Job::with_replay();
    job.refused(&["--replay", "replay", "--gpu-metrics", "x.csv"], "these are replays");
}

#[test]
fn an_old_replay_is_cleaned_and_what_git_tracks_stays() {
    let job = Job::new(&agentic("vllm"));
    let kept = [
        "LOGS/agentic/README.md",
        "envelope.json",
        "results/aiperf_artifacts/kept.json",
        "results/baseline.csv",
    ];
    for name in kept {
        job.file(name, "kept");
    }
    git(job.path(), &["init", "-q"]);
    git(job.path(), &["add", "."]);
    git(job.path(), &["commit", "-q", "-m", "baseline"]);
    job.replay("results/aiperf_artifacts/run", &good(), &summary(2, 0));
    job.replay("LOGS/agentic/conc_8/aiperf_artifacts", &good(), &summary(2, 0));
    for name in [
        "results/server.log",
        "results/notes.txt",
        "results/deep/er/x.json",
        "outside/x.log",
    ] {
        job.file(name, "old");
    }
    symlink(job.path().join("outside"), job.path().join("results/link")).expect("a link");
    clean(&job);
    let mut left = files(job.path());
    left.retain(|name| !name.starts_with(".git/"));
    let mut wanted: Vec<String> = kept.map(str::to_owned).to_vec();
    wanted.push("outside/x.log".to_owned());
    wanted.sort();
    assert_eq!(left, wanted);
    assert!(
        !job.has("results/aiperf_artifacts/run") && !job.has("results/deep"),
        "empty folders go too"
    );
}

#[test]
fn results_without_a_replay_lose_only_what_has_a_jobs_name() {
    let job = Job::new(&agentic("vllm"));
    let old = [
        "results/server.log",
        "results/gpu_metrics.csv",
        "results/gpu_metrics_energy_start.csv",
        "results/engine_config.json",
        "results/benchmark_command.txt",
    ];
    let kept = ["envelope.json", "results/mine/server.log", "results/thesis.csv"];
    for name in old.iter().chain(&kept) {
        job.file(name, "x");
    }
    let removed = clean(&job);
    assert_eq!(removed, old.len());
    assert_eq!(files(job.path()), kept);
}

/// Cleans; how many entries went.
fn clean(job: &Job) -> usize {
    let (code, printed, stderr) = run(sweepctl(job.path()).args(["clean", "--workspace", "."]));
    assert_eq!(code, 0, "{stderr}");
    let printed: Value = serde_json::from_str(&printed).expect("JSON");
    printed["removed"].as_array().expect("a list").len()
}
