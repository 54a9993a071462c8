//! `sweepctl verdict`: green only where everything planned ran.

use serde_json::{Value, json};

use super::gate::{EVALS, Plan, THROUGHPUT, needs};
use crate::support::{stderr, sweepctl, write};

/// The buckets of the small plan that have jobs, and the canary.
const PLANNED: [&str; 5] = [
    "canary",
    "sweep-single-node-1k1k",
    "sweep-single-node-8k1k",
    "sweep-single-node-other",
    "sweep-evals",
];

/// Needs of a run in which everything went well.
fn green(plan: &Plan) -> Value {
    let ended: Vec<(&str, &str)> = PLANNED.iter().map(|job| (*job, "success")).collect();
    let mut needs = needs(plan, &ended);
    for job in ["collect", "chart"] {
        needs[job] = json!({ "result": "success", "outputs": {} });
    }
    needs["ingest"] = json!({ "result": "skipped", "outputs": {} });
    needs
}

struct Said {
    ok: bool,
    verdict: Value,
    stderr: String,
    summary: String,
}

impl Said {
    /// The problems, which must be said on standard error too.
    fn problems(&self) -> Vec<&str> {
        let problems = self.verdict["problems"].as_array().expect("problems");
        let problems: Vec<&str> = problems.iter().map(|p| p.as_str().expect("text")).collect();
        assert!(problems.iter().all(|p| self.stderr.contains(p)), "{}", self.stderr);
        assert_eq!(self.ok, problems.is_empty());
        assert_eq!(self.verdict["ok"], self.ok);
        problems
    }

    /// The one problem.
    fn only(&self) -> &str {
        let problems = self.problems();
        assert_eq!(problems.len(), 1, "{problems:?}");
        problems[0]
    }

    fn line(&self, bucket: &str) -> &Value {
        let lines = self.verdict["buckets"].as_array().expect("buckets");
        lines
            .iter()
            .find(|line| line["bucket"] == bucket)
            .expect("the bucket's line")
    }
}

fn judge(plan: &Plan, needs: &Value, more: &[&str]) -> Said {
    let at = plan.folder.path();
    write(at, "needs.json", needs.to_string());
    let summary = at.join("summary.md");
    let _ = std::fs::remove_file(&summary);
    let output = sweepctl(at)
        .args(["verdict", "--needs", "needs.json", "--plan", "plan"])
        .args(more)
        .env("GITHUB_STEP_SUMMARY", &summary)
        .output()
        .expect("the binary runs");
    let stderr = stderr(&output);
    let verdict = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no verdict: {stderr}"));
    assert!(matches!(output.status.code(), Some(0 | 1)), "{stderr}");
    Said {
        ok: output.status.success(),
        verdict,
        stderr,
        summary: std::fs::read_to_string(summary).expect("a summary"),
    }
}

/// Needs in which one job ended otherwise.
fn but(plan: &Plan, job: &str, result: &str) -> Value {
    let mut needs = green(plan);
    needs[job]["result"] = json!(result);
    needs
}

#[test]
fn a_green_run_says_so_in_one_sentence() {
    let plan = Plan::new(&["--canary"]);
    let said = judge(&plan, &green(&plan), &[]);
    assert!(said.problems().is_empty());
    assert_eq!(said.verdict["reason"], "All 9 planned jobs ran and succeeded.");
    assert!(said.stderr.is_empty(), "{}", said.stderr);
    assert!(
        said.summary
            .starts_with("### Verdict\n\nAll 9 planned jobs ran and succeeded.\n"),
        "{}",
        said.summary
    );
    assert!(
        said.summary
            .contains("| single_node_8k1k | sweep-single-node-8k1k | 3 | 3 | 0 | 0 | success |")
    );
    assert!(
        said.summary.contains("| canary | canary | 1 | 1 | 0 | 0 | success |"),
        "{}",
        said.summary
    );
    // Buckets without jobs are no lines.
    assert_eq!(said.verdict["buckets"].as_array().map(Vec::len), Some(PLANNED.len()));
}

#[test]
fn every_planned_bucket_that_did_not_run_is_named() {
    let plan = Plan::new(&["--canary"]);
    for job in &PLANNED[1..] {
        for (result, word) in [
            ("skipped", "was skipped"),
            ("cancelled", "was cancelled"),
            ("failure", "failed"),
        ] {
            let said = judge(&plan, &but(&plan, job, result), &[]);
            let problem = said.only();
            assert!(problem.starts_with(&format!("`{job}` {word}")), "{problem}");
        }
        let mut absent = green(&plan);
        absent.as_object_mut().expect("needs").remove(*job);
        let said = judge(&plan, &absent, &[]);
        let problem = said.only();
        assert!(
            problem.contains(job) && problem.contains("not among `needs`"),
            "{problem}"
        );
    }
    let said = judge(&plan, &but(&plan, "sweep-single-node-8k1k", "skipped"), &[]);
    assert!(said.only().contains("3 jobs never ran"), "{}", said.only());
    let line = said.line("single_node_8k1k");
    assert_eq!(
        (&line["done"], &line["missing"], &line["result"]),
        (&json!(0), &json!(3), &json!("skipped"))
    );
    // A part of a matrix that was cancelled: how many of its jobs ended well is not known here.
    let said = judge(&plan, &but(&plan, "sweep-single-node-8k1k", "cancelled"), &[]);
    assert_eq!(said.line("single_node_8k1k")["done"], Value::Null);
    assert!(
        said.summary.contains("| 3 | ? | ? | ? | cancelled |"),
        "{}",
        said.summary
    );
}

#[test]
fn all_problems_are_said_not_the_first() {
    let plan = Plan::new(&["--canary"]);
    let mut needs = but(&plan, "sweep-single-node-1k1k", "failure");
    needs["sweep-evals"]["result"] = json!("skipped");
    needs["chart"]["result"] = json!("failure");
    let said = judge(&plan, &needs, &[]);
    let problems = said.problems();
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert_eq!(
        said.verdict["reason"],
        "The run did not do what was planned: 3 problems."
    );
    assert!(problems.iter().any(|p| p.contains("`chart` failed")), "{problems:?}");
}

#[test]
fn a_failed_decision_check_or_plan_fails_the_run() {
    let plan = Plan::new(&[]);
    let nothing = |ended: &[(&str, &str)]| needs(&plan, ended);
    for (result, word) in [
        ("failure", "failed"),
        ("cancelled", "was cancelled"),
        ("skipped", "was skipped"),
    ] {
        let said = judge(&plan, &nothing(&[("decide", result)]), &[]);
        assert_eq!(said.only(), format!("`decide` {word}: nothing ran"));
    }
    // A failed decision is one problem, and another job is another.
    let mut both = nothing(&[("decide", "failure")]);
    both["chart"] = json!({ "result": "failure", "outputs": {} });
    assert_eq!(judge(&plan, &both, &[]).problems().len(), 2);
    // The outputs themselves may be lost.
    let mut lost = green(&plan);
    lost["decide"]["outputs"] = json!({});
    assert!(judge(&plan, &lost, &[]).only().contains("did not say whether to run"));
    lost["decide"]["outputs"] = json!({ "run": "true" });
    assert!(judge(&plan, &lost, &[]).only().contains("no output `jobs`"));
}

#[test]
fn a_run_that_was_not_to_sweep_is_green_with_the_reason() {
    let plan = Plan::new(&[]);
    let mut needs = needs(&plan, &[]);
    needs["decide"]["outputs"] = json!({ "run": "false", "reason": "A draft starts no GPU job." });
    let said = judge(&plan, &needs, &[]);
    assert!(said.problems().is_empty());
    assert_eq!(
        said.verdict["reason"],
        "No sweep was asked for. A draft starts no GPU job."
    );
    // There is no plan then.
    std::fs::remove_dir_all(plan.folder.path().join("plan")).expect("the plan");
    assert!(judge(&plan, &needs, &[]).ok);
    // Its other jobs still count.
    needs["chart"] = json!({ "result": "failure", "outputs": {} });
    assert!(judge(&plan, &needs, &[]).only().contains("`chart` failed"));
}

#[test]
fn a_run_that_was_reused_is_green_once_its_results_were_taken_over() {
    let plan = Plan::new(&[]);
    let reused = |results: &str| {
        let mut needs = needs(&plan, &[]);
        needs["decide"]["outputs"]["sweep"] = json!("false");
        needs["decide"]["outputs"]["reuse"] = json!("true");
        needs["decide"]["outputs"]["reuse_reason"] = json!("Run 101 stands in.");
        needs["reuse-results"] = json!({ "result": results, "outputs": {} });
        needs
    };
    // It is not asked for its plan.
    std::fs::rename(plan.folder.path().join("plan"), plan.folder.path().join("kept")).expect("the plan");
    let said = judge(&plan, &reused("success"), &[]);
    assert!(said.problems().is_empty());
    assert_eq!(said.verdict["reason"], "An earlier run was reused. Run 101 stands in.");
    for (result, words) in [
        ("failure", "`reuse-results` failed"),
        ("cancelled", "`reuse-results` was cancelled"),
        ("skipped", "`reuse-results` did not run: no results were taken over"),
    ] {
        assert_eq!(judge(&plan, &reused(result), &[]).only(), words);
    }
    let mut absent = reused("success");
    absent.as_object_mut().expect("needs").remove("reuse-results");
    assert!(
        judge(&plan, &absent, &[])
            .only()
            .contains("`reuse-results` did not run")
    );
    std::fs::rename(plan.folder.path().join("kept"), plan.folder.path().join("plan")).expect("the plan");
    // Nobody asked for it, or the event is none that could: the plan counts.
    for word in ["false", ""] {
        let mut swept = green(&plan);
        swept["canary"]["result"] = json!("skipped");
        swept["decide"]["outputs"]["reuse"] = json!(word);
        swept["reuse-results"] = json!({ "result": "skipped", "outputs": {} });
        assert!(judge(&plan, &swept, &[]).ok, "{word}");
    }
}

#[test]
fn a_commit_that_is_not_swept_again_has_the_verdict_of_the_run_that_stands_in() {
    let plan = Plan::new(&[]);
    let mut needs = needs(&plan, &[]);
    let mut judged = |verdict: &str| {
        let outputs = &mut needs["decide"]["outputs"];
        outputs["reuse"] = json!("true");
        outputs["reuse_verdict"] = json!(verdict);
        outputs["reuse_reason"] = json!("Run 101 had the plan of this commit.");
        needs["reuse-results"] = json!({ "result": "skipped", "outputs": {} });
        judge(&plan, &needs, &[])
    };
    let said = judged("success");
    assert!(said.problems().is_empty());
    assert_eq!(
        said.verdict["reason"],
        "An earlier run stands in. Run 101 had the plan of this commit."
    );
    for verdict in ["failure", "cancelled"] {
        let said = judged(verdict);
        assert_eq!(said.only(), format!("the run that stands in ended as `{verdict}`"));
    }
    // On a push results must be taken over.
    assert!(judged("").only().contains("`reuse-results` did not run"));
}

#[test]
fn a_failed_canary_is_said_to_have_stopped_the_fan_out() {
    let plan = Plan::new(&["--canary"]);
    for (result, word) in [("failure", "failed"), ("cancelled", "was cancelled")] {
        let mut needs = needs(&plan, &[("canary", result)]);
        needs["collect"] = json!({ "result": "success", "outputs": {} });
        let said = judge(&plan, &needs, &[]);
        let problems = said.problems();
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert_eq!(problems[0], format!("the canary {word}: it stopped the fan-out"));
        assert!(
            problems[1].starts_with("8 jobs never ran, stopped by the canary:"),
            "{problems:?}"
        );
        assert!(PLANNED[1..].iter().all(|job| problems[1].contains(job)), "{problems:?}");
    }
    // A canary that was planned and skipped is no canary that failed.
    let said = judge(&plan, &needs(&plan, &[("canary", "skipped")]), &[]);
    assert!(
        said.problems()[0].starts_with("`canary` was skipped"),
        "{:?}",
        said.problems()
    );
}

#[test]
fn counts_that_the_workflow_lost_or_changed_are_seen() {
    let plan = Plan::new(&["--canary"]);
    // GitHub dropped the list of shards, so the bucket had nothing to run.
    let mut needs = but(&plan, "sweep-evals", "skipped");
    needs["decide"]["outputs"]
        .as_object_mut()
        .expect("outputs")
        .remove("evals_shards");
    let said = judge(&plan, &needs, &[]);
    let problems = said.problems();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].contains("`evals_shards`"), "{problems:?}");
    assert!(said.stderr.contains("masked value"), "{}", said.stderr);
    for lost in [
        "jobs",
        "canary_jobs",
        "single_node_8k1k_jobs",
        "canary",
        "multi_node_other_jobs",
    ] {
        let mut needs = green(&plan);
        needs["decide"]["outputs"]
            .as_object_mut()
            .expect("outputs")
            .remove(lost);
        let said = judge(&plan, &needs, &[]);
        assert!(said.only().contains(&format!("`{lost}`")), "{}", said.only());
    }
    let mut other = green(&plan);
    other["decide"]["outputs"]["evals_jobs"] = json!("5");
    assert_eq!(
        judge(&plan, &other, &[]).only(),
        "`decide` says 5 for `evals_jobs`, the plan says 2"
    );
}

#[test]
fn a_job_that_ran_unplanned_and_a_collector_that_did_not_run_are_wrong() {
    let plan = Plan::new(&["--canary"]);
    for job in THROUGHPUT.iter().chain(&EVALS).filter(|job| !PLANNED.contains(*job)) {
        let said = judge(&plan, &but(&plan, job, "success"), &[]);
        assert!(
            said.only().contains(job) && said.only().contains("nothing was planned"),
            "{}",
            said.only()
        );
    }
    let said = judge(&plan, &but(&plan, "collect", "skipped"), &[]);
    assert!(
        said.only().starts_with("`collect` was skipped although `canary`, "),
        "{}",
        said.only()
    );
    let said = judge(&plan, &but(&plan, "collect", "failure"), &[]);
    assert_eq!(said.only(), "`collect` failed");
}

/// The ids of a bucket's jobs.
fn ids(plan: &Plan, bucket: &str) -> Vec<String> {
    let path = plan.folder.path().join(format!("plan/{bucket}/0.json"));
    let shard: Value = serde_json::from_slice(&std::fs::read(path).expect("a shard")).expect("JSON");
    let ids = shard
        .as_array()
        .expect("a list")
        .iter()
        .map(|e| e["id"].as_str().expect("an id").to_owned());
    ids.collect()
}

/// The collectors' ledgers, in which every job is done.
fn ledgers(plan: &Plan) -> (Vec<Value>, Vec<Value>) {
    let done = |bucket: &str| -> Vec<Value> {
        let ids = ids(plan, bucket).into_iter();
        ids.map(|id| json!({ "id": id, "name": "", "state": "done", "reason": "" }))
            .collect()
    };
    let canary: Value = serde_json::from_str(plan.outputs["canary"].as_str().expect("text")).expect("JSON");
    let mut results = vec![json!({ "id": canary["id"], "name": "", "state": "done", "reason": "" })];
    for bucket in ["single_node_1k1k", "single_node_8k1k", "single_node_other"] {
        results.extend(done(bucket));
    }
    (results, done("evals"))
}

fn write_ledgers(plan: &Plan, results: &[Value], evals: &[Value]) {
    let at = plan.folder.path();
    let _ = std::fs::remove_dir_all(at.join("ledgers"));
    write(
        at,
        "ledgers/results_bmk/ledger.json",
        json!({ "rows": [], "jobs": results }).to_string(),
    );
    write(
        at,
        "ledgers/eval_results_all/ledger.json",
        json!({ "rows": [], "jobs": evals }).to_string(),
    );
    // What else lies there is passed over.
    write(at, "ledgers/eval_results_all/agg_eval_all.json", "[]");
    write(at, "ledgers/notes.txt", "not JSON");
}

const RESULTS: [&str; 2] = ["--results", "ledgers"];

#[test]
fn ledgers_tell_of_each_job() {
    let plan = Plan::new(&["--canary"]);
    let (mut results, evals) = ledgers(&plan);
    write_ledgers(&plan, &results, &evals);
    let said = judge(&plan, &green(&plan), &RESULTS);
    assert!(said.problems().is_empty(), "{:?}", said.problems());

    // A job that succeeded and left nothing, one that left something wrong, one of which nobody speaks.
    let bucket = ids(&plan, "single_node_8k1k");
    let at = |id: &str| results.iter().position(|job| job["id"] == id).expect("it is there");
    let (one, two, three) = (at(&bucket[0]), at(&bucket[1]), at(&bucket[2]));
    results[one] = json!({ "id": bucket[0], "state": "missing", "reason": "no result arrived" });
    results[two] = json!({ "id": bucket[1], "state": "failed", "reason": "output tokens are 0" });
    results[three] = json!({ "id": bucket[2], "state": "superseded", "reason": "attempt 1" });
    write_ledgers(&plan, &results, &evals);
    let said = judge(&plan, &green(&plan), &RESULTS);
    let problems = said.problems();
    assert_eq!(problems.len(), 3, "{problems:?}");
    for (id, words) in bucket.iter().zip([
        "is missing: no result arrived",
        "failed: output tokens are 0",
        "no collector",
    ]) {
        assert!(
            problems.iter().any(|p| p.contains(id) && p.contains(words)),
            "{id} {words}: {problems:?}"
        );
    }
    let line = said.line("single_node_8k1k");
    let counts = ["planned", "done", "failed", "missing"].map(|name| line[name].clone());
    assert_eq!(counts, [json!(3), json!(0), json!(1), json!(2)]);
}

#[test]
fn what_a_result_says_is_no_command() {
    let plan = Plan::new(&["--canary"]);
    let (mut results, evals) = ledgers(&plan);
    results[0]["state"] = json!("failed");
    results[0]["reason"] = json!("x\n::stop-commands::y\r::add-mask::z\n````\n# Big");
    write_ledgers(&plan, &results, &evals);
    let said = judge(&plan, &green(&plan), &RESULTS);
    assert!(
        said.only().contains("x ::stop-commands::y ::add-mask::z"),
        "{}",
        said.only()
    );
    assert!(
        !said.stderr.lines().any(|line| line.starts_with("::")),
        "{}",
        said.stderr
    );
    // In the summary it stays in its fence.
    assert!(
        !said.summary.lines().any(|line| line.starts_with("# Big")),
        "{}",
        said.summary
    );
}

#[test]
fn the_worst_ledger_of_a_job_counts() {
    let plan = Plan::new(&["--canary"]);
    let (mut results, evals) = ledgers(&plan);
    let id = results[1]["id"].clone();
    results.insert(0, json!({ "id": id, "state": "failed", "reason": "first" }));
    results.push(json!({ "id": id, "state": "superseded", "reason": "" }));
    write_ledgers(&plan, &results, &evals);
    let said = judge(&plan, &green(&plan), &RESULTS);
    assert!(said.only().contains("failed: first"), "{}", said.only());
}

#[test]
fn jobs_of_a_bucket_that_was_skipped_are_not_said_one_by_one() {
    let plan = Plan::new(&["--canary"]);
    let (results, _) = ledgers(&plan);
    write_ledgers(&plan, &results, &[]);
    let needs = but(&plan, "sweep-evals", "skipped");
    let said = judge(&plan, &needs, &RESULTS);
    assert_eq!(said.only(), "`sweep-evals` was skipped: its 2 jobs never ran");
}

#[test]
fn ledgers_that_cannot_be_read_are_an_error() {
    let plan = Plan::new(&["--canary"]);
    let at = plan.folder.path();
    write(at, "needs.json", green(&plan).to_string());
    let refused = |word: &str| {
        let output = sweepctl(at)
            .args([
                "verdict",
                "--needs",
                "needs.json",
                "--plan",
                "plan",
                "--results",
                "ledgers",
            ])
            .output()
            .expect("the binary runs");
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.is_empty());
        assert!(stderr(&output).contains(word), "{word}: {}", stderr(&output));
    };
    refused("cannot be read");
    std::fs::create_dir(at.join("ledgers")).expect("a folder");
    refused("no collector left a ledger");
    write(at, "ledgers/a.json", "{");
    refused("is no JSON");
    write(at, "ledgers/a.json", r#"{ "jobs": [{ "id": "x", "state": "lost" }] }"#);
    refused("is no ledger of jobs");
    // A link is not followed.
    let (results, evals) = ledgers(&plan);
    write_ledgers(&plan, &results, &evals);
    std::fs::rename(at.join("ledgers"), at.join("elsewhere")).expect("a folder");
    std::fs::create_dir(at.join("ledgers")).expect("a folder");
    std::os::unix::fs::symlink(at.join("elsewhere"), at.join("ledgers/link")).expect("a link");
    refused("no collector left a ledger");
}
