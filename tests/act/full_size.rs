//! A sweep of full size, from its plan to its verdict: every job once, every result collected.
//!
//! The jobs themselves are one step that notes the envelope and leaves a result. All else is as rendered: the plan's
//! outputs, the shards, a matrix of up to 256 in each, and the names by which results are fetched.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sweepctl::github::needs::job_of;
use sweepctl::matrix::bucket::Bucket;

use super::calls::{self, Step};
use super::events;
use super::harness::{Act, Repository, Run};
use crate::corpus::corpus;
use crate::eval::support::{names, read_json};
use crate::support::{git, project, run, stderr, write};

/// The largest fleet at hand, and what a sweep of it plans at least.
fn fleet() -> (Repository, usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    let least = match corpus() {
        Some(corpus) => {
            let bundle = corpus.join("history.bundle");
            git(root, &["clone", "-q", bundle.to_str().expect("a path"), "."]);
            git(root, &["switch", "-q", "-C", "main"]);
            1800
        }
        None => {
            eprintln!("*** the project's own fleet is swept instead ***");
            git(root, &["init", "-q"]);
            let configs = ["amd-master", "nvidia-master", "runners", "clusters", "engines"];
            std::fs::create_dir(root.join("configs")).expect("a folder");
            let mut copy = std::process::Command::new("cp");
            copy.args(["-r", "recipes", "runners"]).arg(root).current_dir(project());
            assert!(copy.status().is_ok_and(|status| status.success()));
            for name in configs {
                let text = std::fs::read(project().join(format!("configs/{name}.yaml"))).expect("a config");
                write(root, &format!("configs/{name}.yaml"), text);
            }
            100
        }
    };
    let made = run(root, ["init"]);
    assert!(made.status.success(), "{}", stderr(&made));
    let repository = Repository::of(folder);
    repository.commit("Adopt sweepctl");
    (repository, least)
}

/// The workflows up to the border of jobs.
fn bare(name: &str, text: String) -> String {
    match name {
        "sweep-shard.yml" => calls::apart(&text, |_| Step {
            run: "source \"$ACT_ACTIONS/record.sh\"".to_owned(),
            outputs: Vec::new(),
        }),
        _ => text,
    }
}

/// What was planned, by the call of each shard: the envelopes.
fn planned(run: &Run) -> BTreeMap<String, Value> {
    let index = run.json("plan/index.json");
    let mut shards = BTreeMap::new();
    for bucket in Bucket::ALL {
        let counts = &index["buckets"][bucket.name()];
        for number in 0..counts["shards"].as_array().map_or(0, Vec::len) {
            let shard = run.json(&format!("plan/{}/{number}.json", bucket.name()));
            shards.insert(format!("{}-{number}", job_of(*bucket)), shard);
        }
    }
    shards
}

#[test]
fn every_job_of_a_full_sweep_runs_once_and_is_collected() {
    let (repository, least) = fleet();
    let command = "full-sweep --config-files configs/amd-master.yaml configs/nvidia-master.yaml --no-evals";
    let event = events::dispatch(
        "e2e-tests.yml",
        json!({ "generate-cli-command": command, "ref": "main" }),
    );
    let act = Act::new(&repository, "e2e-tests.yml", ("workflow_dispatch", event));
    let run = act.edited(bare).run();
    assert!(run.ok, "{run}");

    let shards = planned(&run);
    let mut ids = Vec::new();
    for (call, envelopes) in &shards {
        let envelopes = envelopes.as_array().expect("envelopes");
        assert!((1..=256).contains(&envelopes.len()), "{call}");
        // A plan of this size is not handed on in outputs.
        assert_eq!(run.job(call, "load").result, "success", "{call}");
        for envelope in envelopes {
            let id = envelope["id"].as_str().expect("an id");
            assert_eq!(read_json(&run.file("envelopes").join(id)), *envelope);
            ids.push(id.to_owned());
        }
    }
    assert!(ids.len() >= least, "{} jobs", ids.len());
    ids.sort();
    assert_eq!(names(&run.file("envelopes")), ids, "no job but the planned ones");
    // Every result was fetched by its name, and counted for its job.
    let ledger = run.json("ledger/ledger.json");
    let jobs = ledger["jobs"].as_array().expect("jobs");
    let open: Vec<&Value> = jobs.iter().filter(|job| job["state"] != "done").collect();
    assert_eq!(open, Vec::<&Value>::new());
    let mut counted: Vec<&str> = jobs.iter().map(|job| job["id"].as_str().expect("an id")).collect();
    counted.sort_unstable();
    assert_eq!(counted, ids);
}
