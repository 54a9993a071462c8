//! `sweepctl workflow simulate` as a command.

use serde_json::Value as Json;

use super::PLANS;
use crate::support::{json, project, run, stderr, stdout, sweepctl, write};

const EVENT: &str = "tests/fixtures/events/labeled.json";

/// The arguments of a simulation of a full plan.
fn args<'a>(plan: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["workflow", "simulate", "--event", EVENT, "--plan", plan];
    args.extend(more);
    args
}

fn simulated(more: &[&str]) -> Json {
    let plan = PLANS.path("full canary");
    json(project(), args(plan.to_str().expect("a path"), more))
}

fn job<'j>(jobs: &'j Json, id: &str) -> &'j Json {
    let jobs = jobs.as_array().expect("jobs");
    jobs.iter()
        .find(|job| job["job"] == id)
        .unwrap_or_else(|| panic!("no job {id}"))
}

#[test]
fn called_workflows_are_entered_with_their_inputs() {
    let run = simulated(&[]);
    assert_eq!(run["starts"], true);
    let bucket = job(&run["jobs"], "sweep-multi-node-8k1k");
    let leg = &bucket["legs"][0];
    assert_eq!(leg["name"], "Multi-node, 8k1k (0)");
    let inside = &leg["jobs"];
    assert_eq!(job(inside, "one-node")["runs"], false);
    assert_eq!(job(inside, "one-node")["why"], "!startsWith(inputs.bucket, 'multi')");
    let many = job(inside, "many-nodes");
    let shard: Json = {
        let file = PLANS.path("full canary").join("multi_node_8k1k/0.json");
        serde_json::from_slice(&std::fs::read(file).expect("a shard")).expect("JSON")
    };
    let shard = shard.as_array().expect("envelopes");
    assert_eq!(many["legs"].as_array().map(Vec::len), Some(shard.len()));
    for (leg, envelope) in many["legs"].as_array().expect("legs").iter().zip(shard) {
        assert_eq!(leg["name"], envelope["name"]);
        let benchmark = job(&leg["jobs"], "benchmark");
        assert_eq!(benchmark["legs"][0]["runs-on"][0], envelope["runs-on"]);
    }
}

/// The event asks for evals alone, and for the first failure to cancel the rest.
#[test]
fn a_plan_that_the_event_does_not_ask_for_is_told() {
    let said = |plan: &str| {
        let plan = PLANS.path(plan);
        stderr(&run(project(), args(plan.to_str().expect("a path"), &[])))
    };
    let note = |flag: &str| format!("the event asks for `{flag}`, and the plan was made without it");
    for flag in ["--evals-only", "--fail-fast"] {
        assert!(said("full canary").contains(&note(flag)), "{}", said("full canary"));
    }
    let evals = said("evals");
    assert!(evals.contains(&note("--fail-fast")), "{evals}");
    assert!(!evals.contains("--evals-only"), "{evals}");
}

#[test]
fn each_job_that_does_not_run_says_why() {
    let why = |more: &[&str], id: &str| {
        simulated(more)["jobs"]
            .as_array()
            .expect("jobs")
            .iter()
            .find(|job| job["job"] == id)
            .map(|job| job["why"].as_str().unwrap_or_default().to_owned())
            .expect("the job")
    };
    let said = why(&["--result", "canary=failure"], "sweep-evals");
    assert_eq!(said, "needs.gate.outputs.run == 'true', but it is 'false'");
    let said = why(&["--result", "decide=failure"], "check-changelog");
    assert_eq!(said, "`decide` failed, and its condition has no status function");
    let said = why(&["--output", "setup.evals_shards=[]"], "sweep-evals");
    assert!(said.contains("the matrix axis `shard` has no value"), "{said}");
    let said = why(&["--cancelled-in", "canary"], "gate");
    assert_eq!(said, "!cancelled()");
    let said = why(&["--result", "sweep-evals/load=failure"], "sweep-evals");
    assert!(said.starts_with("its job load failed"), "{said}");
    let said = why(
        &["--result", "canary=failure", "--result", "sweep-evals=failure"],
        "sweep-evals",
    );
    assert!(said.ends_with("(so it cannot end as failure)"), "{said}");
}

#[test]
fn a_shard_that_fails_to_load_runs_nothing_more_of_itself() {
    let run = simulated(&[
        "--result",
        "sweep-evals/load=failure",
        "--result",
        "sweep-single-node-8k1k/one-node=failure",
    ]);
    let inside = &job(&run["jobs"], "sweep-evals")["legs"][0]["jobs"];
    for id in ["one-node", "many-nodes", "bundle"] {
        assert_eq!(job(inside, id)["runs"], false, "{id}");
    }
    let inside = &job(&run["jobs"], "sweep-single-node-8k1k")["legs"][0]["jobs"];
    assert_eq!(job(inside, "bundle")["runs"], true);
    assert_eq!(job(&run["jobs"], "verdict")["result"], "failure");
}

#[test]
fn the_plan_is_the_events_own() {
    let folder = crate::support::fleet::repository();
    let at = folder.path();
    assert!(run(at, ["render"]).status.success());
    let base = crate::support::git(at, &["rev-parse", "HEAD"]);
    let head = crate::support::fleet::log(at, &crate::support::fleet::entry("alpha-*", ""));
    let mut event: Json =
        serde_json::from_slice(&std::fs::read(project().join(EVENT)).expect("a fixture")).expect("JSON");
    event["pull_request"]["base"]["sha"] = base.into();
    event["pull_request"]["head"]["sha"] = head.into();
    write(at, "event.json", event.to_string());
    let event = ["workflow", "simulate", "--event", "event.json"];
    let run = json(at, event);
    assert_eq!(job(&run["jobs"], "setup")["result"], "success");
    // The label asks for evals alone, and the config has them on one node.
    let runs = |id: &str| job(&run["jobs"], id)["runs"] == true;
    assert!(runs("sweep-evals") && !runs("sweep-single-node-8k1k") && !runs("sweep-multi-node-evals"));
    let evals = &job(&run["jobs"], "sweep-evals")["legs"][0]["jobs"];
    let planned = json(at, ["plan", "--latest", "--evals-only", "--json"])["evals"]
        .as_array()
        .map(Vec::len);
    assert_eq!(job(evals, "one-node")["legs"].as_array().map(Vec::len), planned);
    assert_eq!(json(at, [&event[..], &["--latest"]].concat()), run);
}

#[test]
fn wrong_questions_are_refused() {
    let plan = PLANS.path("full");
    let plan = plan.to_str().expect("a path");
    let cases: [(&[&str], i32, &[&str]); 7] = [
        (
            &["--workflow", "run-swep"],
            1,
            &["no workflow `run-swep`", "did you mean `run-sweep`?"],
        ),
        (
            &["--result", "canry=failure"],
            1,
            &["no job `canry`", "did you mean `canary`?"],
        ),
        (&["--cancelled-in", "canary/load"], 1, &["a job of a called workflow"]),
        (
            &["--result", "canary=broken"],
            2,
            &["success, failure, cancelled or skipped"],
        ),
        (&["--output", "gate=false"], 2, &["JOB.NAME=VALUE"]),
        (
            &["--output", "decide.evalsonly=true"],
            1,
            &["`decide` has no output `evalsonly`", "`evals_only`"],
        ),
        (&["--root", "tests/fixtures/events"], 1, &["holds no workflow"]),
    ];
    for (more, code, said) in cases {
        let output = run(project(), args(plan, more));
        assert_eq!(output.status.code(), Some(code), "{more:?}: {}", stderr(&output));
        assert!(stdout(&output).is_empty());
        for part in said {
            assert!(stderr(&output).contains(part), "{more:?}: {}", stderr(&output));
        }
    }
    let output = sweepctl(project())
        .args(["workflow", "simulate"])
        .env_remove("GITHUB_EVENT_PATH")
        .output()
        .expect("the binary runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("name the file of a payload with --event"),
        "{}",
        stderr(&output)
    );
}
