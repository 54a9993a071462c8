//! A sweep of full size, from its plan to the border of its jobs: every job once, every result in its bundle.
//!
//! The jobs themselves are one step that notes the envelope, and the bundles' fetches, of which there is one for each
//! job, are a shell's instead of the action's stand-in. All else is as rendered: the plan's outputs, the shards, a matrix
//! of up to 256 in each, the names by which results are fetched.

use std::collections::BTreeMap;

use serde_json::{Value, json};

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
            for name in ["amd-master.yaml", "nvidia-master.yaml", "runners.yaml"] {
                let text = std::fs::read(project().join("configs").join(name)).expect("a config");
                write(root, &format!("configs/{name}"), text);
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
        "e2e-tests.yml" => {
            let (text, _) = text
                .split_once("\n  gate-collect:\n")
                .expect("the jobs behind the sweep");
            format!("{text}\n")
        }
        "sweep-shard.yml" => calls::apart(&shell_fetches(&text), |_| Step {
            run: "source \"$ACT_ACTIONS/record.sh\"".to_owned(),
            outputs: Vec::new(),
        }),
        _ => text,
    }
}

/// The text with the numbered fetches as steps of a shell.
fn shell_fetches(text: &str) -> String {
    let mut out = String::new();
    let mut is_fetch = false;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("      - name: ") {
            let number = name.strip_prefix("Fetch ");
            is_fetch = number.is_some_and(|number| number.parse::<usize>().is_ok());
        }
        let line = match line.trim_start().split_once(": ") {
            Some(("uses", _)) if is_fetch => "        run: source \"$ACT_ACTIONS/fetch.sh\"".to_owned(),
            Some(("name", value)) if is_fetch && line.starts_with("          ") => format!("          NAME: {value}"),
            Some(("path", value)) if is_fetch => format!("          INTO: {value}"),
            _ if is_fetch && line == "        with:" => "        env:".to_owned(),
            _ => line.to_owned(),
        };
        out.push_str(&line);
        out.push('\n');
    }
    out
}

/// What was planned, by bucket and shard: the ids and what each envelope is.
fn planned(run: &Run) -> BTreeMap<String, Value> {
    let index = run.json("plan/index.json");
    let mut shards = BTreeMap::new();
    for (bucket, counts) in index["buckets"].as_object().expect("buckets") {
        for number in 0..counts["shards"].as_array().expect("shards").len() {
            let shard = run.json(&format!("plan/{bucket}/{number}.json"));
            shards.insert(format!("bundle_{bucket}_{number}"), shard);
        }
    }
    shards
}

#[test]
fn every_job_of_a_full_sweep_runs_once_and_is_bundled() {
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
    let mut jobs = 0;
    for (bundle, envelopes) in &shards {
        let envelopes = envelopes.as_array().expect("envelopes");
        assert!((1..=256).contains(&envelopes.len()), "{bundle}");
        jobs += envelopes.len();
        let bundled = names(&run.file("artifacts").join(bundle));
        assert_eq!(bundled.len(), envelopes.len(), "{bundle}");
        for envelope in envelopes {
            let id = envelope["id"].as_str().expect("an id");
            assert_eq!(read_json(&run.file("envelopes").join(id)), *envelope);
            assert!(bundled.iter().any(|name| name.ends_with(id)), "{bundle} lacks {id}");
        }
    }
    assert!(jobs >= least, "{jobs} jobs");
    assert_eq!(names(&run.file("envelopes")).len(), jobs, "no job but the planned ones");
    let bundles: Vec<String> = run
        .artifacts()
        .into_iter()
        .filter(|name| name.starts_with("bundle_"))
        .collect();
    assert_eq!(bundles, shards.into_keys().collect::<Vec<_>>());
}
