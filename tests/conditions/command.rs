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
    let asked = "(needs.decide.outputs.canary_jobs == '0' || needs.canary.result == 'success')";
    assert_eq!(said, asked);
    let said = why(&["--result", "decide=failure"], "collect");
    assert_eq!(said, "needs.decide.result == 'success', but it is 'failure'");
    let said = why(&["--output", "decide.evals_shards=[]"], "sweep-evals");
    assert!(said.contains("the matrix axis `shard` has no value"), "{said}");
    let said = why(&["--cancelled-in", "canary"], "sweep-evals");
    assert_eq!(said, "!cancelled()");
    let said = why(&["--result", "sweep-evals/one-node=failure"], "sweep-evals");
    assert!(said.starts_with("its job one-node failed"), "{said}");
    let said = why(
        &["--result", "canary=failure", "--result", "sweep-evals=failure"],
        "sweep-evals",
    );
    assert!(said.ends_with("(so it cannot end as failure)"), "{said}");
}

/// Each is a runner to wait for.
#[test]
fn gpus_wait_for_one_hosted_job() {
    let hosted = |jobs: &Json| -> Vec<String> {
        let runs = |job: &&Json| job["runs"] == true && job["legs"][0]["runs-on"][0] == "ubuntu-24.04";
        let ids = jobs.as_array().expect("jobs").iter().filter(runs);
        ids.map(|job| job["job"].as_str().expect("an id").to_owned()).collect()
    };
    let all = hosted(&simulated(&[])["jobs"]);
    let (first, rest) = all.split_first().expect("a hosted job");
    assert_eq!(first, "decide");
    assert!(rest.contains(&"collect".to_owned()), "{rest:?}");
    // The others stand behind the GPUs or beside them, and none inside of what they are called with.
    let failed: Vec<String> = rest.iter().map(|id| format!("{id}=failure")).collect();
    let more: Vec<&str> = failed.iter().flat_map(|ends| ["--result", ends]).collect();
    let run = simulated(&more);
    for id in ["canary", "sweep-evals", "sweep-multi-node-8k1k"] {
        let job = job(&run["jobs"], id);
        assert_eq!(job["runs"], true, "{id} waits for one of {rest:?}");
        assert_eq!(hosted(&job["legs"][0]["jobs"]), Vec::<String>::new(), "{id}");
    }
    let large = simulated(&LOADED);
    assert_eq!(hosted(&job(&large["jobs"], "sweep-evals")["legs"][0]["jobs"]), ["load"]);
}

/// A plan of this size hands its envelopes on; with empty ones each shard has to load its own.
const LOADED: [&str; 2] = ["--output", r#"decide.evals_inputs=[{"envelopes":"","max-parallel":2}]"#];

#[test]
fn shards_are_loaded_only_where_their_envelopes_are_not_handed_on() {
    let inside = |more: &[&str]| job(&simulated(more)["jobs"], "sweep-evals")["legs"][0]["jobs"].clone();
    let (handed_on, loaded) = (inside(&[]), inside(&LOADED));
    assert_eq!(
        (&job(&handed_on, "load")["runs"], &job(&loaded, "load")["runs"]),
        (&Json::from(false), &Json::from(true))
    );
    let benchmarks = job(&handed_on, "one-node")["legs"].clone();
    assert_eq!(benchmarks.as_array().map(Vec::len), Some(2));
    assert_eq!(job(&loaded, "one-node")["legs"], benchmarks);
}

#[test]
fn a_shard_that_fails_to_load_runs_nothing_of_itself() {
    let run = simulated(&[&LOADED[..], &["--result", "sweep-evals/load=failure"]].concat());
    let inside = &job(&run["jobs"], "sweep-evals")["legs"][0]["jobs"];
    for id in ["one-node", "many-nodes"] {
        assert_eq!(job(inside, id)["runs"], false, "{id}");
    }
    assert_eq!(job(&run["jobs"], "sweep-evals")["result"], "failure");
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
    assert_eq!(job(&run["jobs"], "decide")["result"], "success");
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
        (&["--output", "decide=false"], 2, &["JOB.NAME=VALUE"]),
        (
            &["--output", "decide.swep=true"],
            1,
            &["`decide` has no output `swep`", "did you mean `sweep`?"],
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
