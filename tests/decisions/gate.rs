//! `sweepctl gate`: answers for every way in which a collection can end; and plans and needs that other tests judge.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::read_outputs;
use crate::support::{fed, json as run_json, stderr, stdout, sweepctl, write};

/// The jobs of the twelve buckets.
pub const THROUGHPUT: [&str; 8] = [
    "sweep-single-node-1k1k",
    "sweep-single-node-8k1k",
    "sweep-single-node-other",
    "sweep-single-node-agentic",
    "sweep-multi-node-1k1k",
    "sweep-multi-node-8k1k",
    "sweep-multi-node-other",
    "sweep-multi-node-agentic",
];
pub const EVALS: [&str; 4] = [
    "sweep-evals",
    "sweep-agentic-evals",
    "sweep-multi-node-evals",
    "sweep-multi-node-agentic-evals",
];

/// A plan of a small fleet: a canary, two more jobs at 1k1k, three at 8k1k, one of other lengths, two evals.
pub struct Plan {
    pub folder: TempDir,
    pub outputs: Value,
}

const CONFIG: &str = "\
small:
  image: engine:1
  model: acme/small
  model-prefix: small
  precision: fp8
  framework: vllm
  runner: h1
  multinode: false
  scenarios:
    fixed-seq-len:
    - { isl: 1024, osl: 1024, search-space: [{ tp: 1, conc-list: [4, 8, 32] }] }
    - { isl: 8192, osl: 1024, search-space: [{ tp: 1, conc-list: [16, 32, 64] }] }
    - { isl: 512, osl: 512, search-space: [{ tp: 1, conc-list: [8] }] }
";

impl Plan {
    pub fn new(more: &[&str]) -> Self {
        let folder = TempDir::new().expect("a folder");
        let at = folder.path();
        write(at, "configs/x-master.yaml", CONFIG);
        write(at, "configs/runners.yaml", "labels: { h1: [h1_0] }\nhardware: {}\n");
        let mut command = sweepctl(at);
        command
            .args(["generate", "full-sweep", "--emit", "plan", "--github-output"])
            .args(more)
            .env("GITHUB_OUTPUT", at.join("outputs"));
        let output = command.output().expect("the binary runs");
        assert!(output.status.success(), "{}", stderr(&output));
        let outputs = read_outputs(&at.join("outputs"));
        let outputs = outputs.into_iter().map(|(name, value)| (name, json!(value))).collect();
        Self {
            folder,
            outputs: Value::Object(outputs),
        }
    }
}

/// `toJson(needs)`: the named jobs ended so, every other bucket was skipped.
pub fn needs(plan: &Plan, ended: &[(&str, &str)]) -> Value {
    let mut needs = json!({
        "decide": { "result": "success", "outputs": plan.outputs },
        "canary": { "result": "skipped", "outputs": {} },
    });
    let said = [("run", "true"), ("sweep", "true"), ("reason", "Asked for.")];
    said.into_iter()
        .for_each(|(name, value)| needs["decide"]["outputs"][name] = json!(value));
    for job in THROUGHPUT.iter().chain(&EVALS) {
        needs[*job] = json!({ "result": "skipped", "outputs": {} });
    }
    for (job, result) in ended {
        needs[*job]["result"] = json!(result);
        needs[*job]["outputs"] = needs[*job].get("outputs").cloned().unwrap_or(json!({}));
    }
    needs
}

fn ask(plan: &Plan, gate: &str, needs: &Value, with_plan: bool) -> Result<(bool, String), String> {
    let at = plan.folder.path();
    write(at, "needs.json", needs.to_string());
    let mut command = sweepctl(at);
    command.args(["gate", "--for", gate, "--needs", "needs.json"]);
    if with_plan {
        command.args(["--plan", "plan"]);
    }
    let output = command.output().expect("the binary runs");
    match output.status.code() {
        Some(0) => {
            let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            Ok((
                answer["run"].as_bool().expect("an answer"),
                answer["reason"].as_str().expect("a reason").to_owned(),
            ))
        }
        Some(1) => Err(stderr(&output)),
        code => panic!("exit code {code:?}: {}", stderr(&output)),
    }
}

/// The answer with and without the plan's index must be the same.
fn answer(plan: &Plan, gate: &str, needs: &Value) -> bool {
    let (with, without) = (ask(plan, gate, needs, true), ask(plan, gate, needs, false));
    let (with, without) = (with.expect("an answer"), without.expect("an answer"));
    assert_eq!(with.0, without.0, "{gate}: {} / {}", with.1, without.1);
    with.0
}

#[test]
fn the_canary_is_the_lowest_single_node_job_without_an_eval() {
    let plan = Plan::new(&["--canary"]);
    let canary: Value =
        serde_json::from_str(plan.outputs["canary"].as_str().expect("text")).expect("an envelope as JSON");
    assert_eq!(
        (&canary["row"]["conc"], &canary["row"]["isl"]),
        (&json!(4), &json!(1024))
    );
    assert_eq!(canary["row"]["run-eval"], false);
    // It leaves the matrix and stays in the plan.
    let at = plan.folder.path();
    let shard = run_json(at, ["shard", "--bucket", "single_node_1k1k", "--index", "0"]);
    let concs: Vec<&Value> = shard
        .as_array()
        .expect("a list")
        .iter()
        .map(|e| &e["row"]["conc"])
        .collect();
    assert_eq!(concs, [&json!(8), &json!(32)]);
    let index: Value =
        serde_json::from_slice(&std::fs::read(at.join("plan/index.json")).expect("an index")).expect("JSON");
    assert_eq!(
        (&index["jobs"], &index["throughput-jobs"], &index["canary"]),
        (&json!(9), &json!(7), &canary)
    );
    // Without it the plan is as ever.
    assert_eq!(Plan::new(&[]).outputs["single_node_1k1k_jobs"], "3");
}

#[test]
fn plans_of_the_same_jobs_have_one_digest() {
    let digest = |flags: &[&str]| {
        let plan = Plan::new(flags);
        let index = std::fs::read(plan.folder.path().join("plan/index.json")).expect("an index");
        let index: Value = serde_json::from_slice(&index).expect("JSON");
        assert_eq!(index["digest"], plan.outputs["plan_digest"]);
        index["digest"].as_str().expect("text").to_owned()
    };
    // Neither the canary nor how buckets are cut changes what is measured.
    let whole = digest(&[]);
    assert!(
        whole.len() == 16 && whole.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{whole}"
    );
    assert_eq!(digest(&["--canary"]), whole);
    for other in ["--trim-conc", "--no-evals", "--evals-only"] {
        assert_ne!(digest(&[other]), whole, "{other}");
    }
}

/// `toJson(steps)` behind the two collections, with the rows that these gave.
fn collected(results: (&str, Option<&str>), evals: (&str, Option<&str>)) -> Value {
    let step = |(outcome, rows): (&str, Option<&str>)| {
        let outputs = rows.map_or(json!({}), |rows| json!({ "rows": rows }));
        json!({ "outputs": outputs, "outcome": outcome, "conclusion": outcome })
    };
    // Every step with an id is there, also those that nobody asks for.
    json!({
        "fetch-results": step(("success", None)),
        "collect-results": step(results),
        "fetch-evals": step(("skipped", None)),
        "collect-evals": step(evals),
    })
}

#[test]
fn only_whole_collections_are_published() {
    let plan = Plan::new(&[]);
    let ok = |rows| ("success", Some(rows));
    let ingest = |results, evals| ask(&plan, "ingest", &collected(results, evals), true);
    let (run, reason) = ingest(ok("7"), ok("2")).expect("an answer");
    assert!(run && reason.starts_with("9 collected rows"), "{reason}");
    for (results, evals, because) in [
        (ok("7"), ("failure", None), "`collect-evals` failed"),
        (("failure", Some("7")), ok("2"), "`collect-results` failed"),
        (ok("7"), ("cancelled", None), "`collect-evals` was cancelled"),
        (ok("0"), ok("2"), "`collect-results` found nothing"),
        (
            ok("0"),
            ok("0"),
            "`collect-results` found nothing, and `collect-evals` found nothing",
        ),
        (
            ok("7"),
            ("skipped", None),
            "2 eval jobs were planned and `collect-evals` did not run",
        ),
        (("skipped", None), ("skipped", None), "7 throughput jobs were planned"),
    ] {
        let (run, reason) = ingest(results, evals).expect("an answer");
        assert!(!run && reason.contains(because), "{because}: {reason}");
    }
    // Evals that nobody planned are not waited for.
    let no_evals = Plan::new(&["--no-evals"]);
    let steps = collected(ok("7"), ("skipped", None));
    assert!(answer(&no_evals, "ingest", &steps));
    assert!(!answer(
        &no_evals,
        "ingest",
        &collected(("skipped", None), ("skipped", None))
    ));
}

#[test]
fn a_count_that_is_missing_or_none_is_an_error() {
    let plan = Plan::new(&[]);
    for rows in [None, Some(""), Some("-1"), Some("many")] {
        for gate in ["ingest", "comparison"] {
            let steps = collected(("success", rows), ("success", Some("2")));
            let said = ask(&plan, gate, &steps, true).expect_err("no count");
            assert!(said.contains("`rows`") && said.contains("`collect-results`"), "{said}");
        }
    }
}

#[test]
fn a_comparison_takes_what_there_is() {
    let plan = Plan::new(&[]);
    let compare = |results, evals| answer(&plan, "comparison", &collected(results, evals));
    assert!(compare(("success", Some("7")), ("failure", None)));
    assert!(compare(("skipped", None), ("success", Some("2"))));
    assert!(!compare(("success", Some("0")), ("failure", Some("2"))));
    assert!(!compare(("skipped", None), ("skipped", None)));
}

#[test]
fn steps_that_are_not_there_are_an_error() {
    let plan = Plan::new(&[]);
    for (gate, missing) in [("ingest", "collect-evals"), ("comparison", "collect-results")] {
        let mut steps = collected(("success", Some("7")), ("success", Some("2")));
        steps.as_object_mut().expect("steps").remove(missing);
        let said = ask(&plan, gate, &steps, true).expect_err(missing);
        assert!(said.contains(&format!("`{missing}`")), "{gate}: {said}");
    }
}

#[test]
fn steps_come_through_standard_input_and_answers_go_to_outputs() {
    let plan = Plan::new(&[]);
    let at = plan.folder.path();
    let outputs = at.join("gate-outputs");
    let mut command = sweepctl(at);
    command
        .args(["gate", "--for", "comparison", "--needs", "-", "--github-output"])
        .env("GITHUB_OUTPUT", &outputs);
    let steps = collected(("failure", None), ("success", Some("2")));
    let output = fed(&mut command, &serde_json::to_string_pretty(&steps).expect("JSON"));
    assert!(output.status.success());
    assert_eq!(
        read_outputs(&outputs),
        [
            ("run".to_owned(), "true".to_owned()),
            ("reason".to_owned(), "2 collected rows can be compared.".to_owned()),
        ]
    );
    assert!(stdout(&output).contains("\"run\":true"));
}

#[test]
fn steps_that_are_none_are_refused() {
    let plan = Plan::new(&[]);
    let unknown = json!({ "collect-results": { "outcome": "neutral", "outputs": {} } });
    for steps in [
        json!([]),
        json!("x"),
        unknown,
        json!({ "collect-results": { "outputs": {} } }),
    ] {
        let said = ask(&plan, "ingest", &steps, false).expect_err("no steps");
        assert!(said.contains("toJson"), "{said}");
    }
    let output = sweepctl(plan.folder.path())
        .args(["gate", "--needs", "x", "--for", "none"])
        .output();
    assert_eq!(output.expect("the binary runs").status.code(), Some(2));
}
