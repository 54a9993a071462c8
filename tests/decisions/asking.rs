//! What is asked of GitHub about an event, and what is said where it gives no answer.

use serde_json::{Value, json};

use super::answers::{check, listed};
use super::payload::payload;
use super::{HISTORY, decider};
use crate::github::server::{GitHub, Reply, keeps_the_token, pull, sha};
use crate::support::{project, stderr, write};

const MERGE_GROUP: &str = "tests/fixtures/events/merge_group.json";

/// Decides in a folder of the history.
fn decide(mut command: std::process::Command, more: &[&str]) -> (Option<i32>, Value, String) {
    let output = command.arg("decide").args(more).output().expect("the binary runs");
    keeps_the_token(&output);
    let json = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output.status.code(), json, stderr(&output))
}

fn merge_group() -> String {
    project().join(MERGE_GROUP).display().to_string()
}

#[test]
fn a_merge_group_takes_two_requests() {
    let github = GitHub::new();
    let checks = format!("GET /repos/acme/bench/commits/{}/check-runs", sha('b'));
    github.on("GET /repos/acme/bench/pulls/12", pull(&[]));
    github.on(&checks, listed(vec![check(4, 2, Some("success"), 0)]));
    let mut command = github.command(HISTORY.folder.path());
    command.env("GITHUB_ACTIONS", "true").env_remove("GITHUB_EVENT_NAME");
    let (code, decision, said) = decide(command, &["--event", &merge_group()]);
    assert_eq!((code, &decision["blocked"]), (Some(0), &json!(false)), "{said}");
    let asked = github.requests();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(
        asked[1].starts_with(&format!("{checks}?check_name=Verdict&")),
        "{asked:?}"
    );
}

#[test]
fn a_run_does_not_guess_what_github_does_not_say() {
    let github = GitHub::new();
    github.on(
        "GET /repos/acme/bench/pulls/12",
        Reply::message(403, "Resource not accessible by integration"),
    );
    let mut command = github.command(HISTORY.folder.path());
    command.env("GITHUB_ACTIONS", "true").env_remove("GITHUB_EVENT_NAME");
    let (code, decision, said) = decide(command, &["--event", &merge_group()]);
    assert_eq!((code, decision), (Some(1), Value::Null));
    assert!(said.contains("pull-requests: read"), "{said}");
    // Locally it is said, and the rest is decided.
    let mut command = github.command(HISTORY.folder.path());
    command.env_remove("GITHUB_EVENT_NAME");
    let (code, decision, said) = decide(command, &["--event", &merge_group()]);
    assert_eq!((code, &decision["decides"]), (Some(0), &json!(true)), "{said}");
    assert!(
        said.contains("note: ") && said.contains("is taken to have passed"),
        "{said}"
    );
}

#[test]
fn without_a_token_nothing_is_asked_locally() {
    let github = GitHub::new();
    let mut command = github.command(HISTORY.folder.path());
    command.env_remove("GH_TOKEN").env_remove("GITHUB_EVENT_NAME");
    let (code, _, said) = decide(command, &["--event", &merge_group()]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("note: GitHub is not asked: the verdict of the pull request's head is taken"),
        "{said}"
    );
    assert_eq!(github.requests(), [""; 0]);
}

#[test]
fn payloads_are_recognised_by_what_they_hold() {
    for name in ["merge_group", "schedule", "issue_comment", "repository_dispatch"] {
        let file = project().join(format!("tests/fixtures/events/{name}.json"));
        let mut command = decider(HISTORY.folder.path());
        command.env_remove("GH_TOKEN").env_remove("GITHUB_TOKEN");
        let (code, decision, said) = decide(command, &["--event", &file.display().to_string()]);
        assert_eq!((code, &decision["run"]), (Some(0), &json!(false)), "{name}: {said}");
        let reason = decision["reason"].as_str().expect("a reason");
        let wanted = match name {
            "merge_group" => "The verdict of pull request 12's head counts.".to_owned(),
            _ => format!("`{name}` events start no sweep."),
        };
        assert_eq!(reason, wanted);
    }
    // Text of a comment does not make it another event.
    let body = json!({ "comment": { "before": "x", "pull_request": 1 }, "issue": { "merge_group": {} } });
    let out = tempfile::tempdir().expect("a folder");
    let path = write(out.path(), "event.json", body.to_string());
    let (_, decision, _) = decide(decider(out.path()), &["--event", &path.display().to_string()]);
    assert_eq!(decision["reason"], "`issue_comment` events start no sweep.");
}

/// The verdict of a run with what `decide` said in it, and what became of its other jobs.
fn judged(
    github: &GitHub,
    attempt: &str,
    event: &str,
    decided: &[(&str, &str)],
    others: Value,
) -> (Option<i32>, String) {
    let outputs: Value = decided.iter().copied().collect();
    let mut needs = json!({
        "decide": { "result": "success", "outputs": outputs },
    });
    for (job, need) in others.as_object().expect("jobs") {
        needs[job] = need.clone();
    }
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "needs.json", needs.to_string());
    let output = github
        .command(folder.path())
        .args(["verdict", "--needs", "needs.json", "--plan", "plan"])
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_EVENT_NAME", event)
        .env("GITHUB_RUN_ID", "5")
        .env("GITHUB_RUN_ATTEMPT", attempt)
        .output()
        .expect("the binary runs");
    keeps_the_token(&output);
    (output.status.code(), stderr(&output))
}

/// The verdict of a run that was not to sweep.
fn verdict(github: &GitHub, attempt: &str, event: &str, decided: &[(&str, &str)]) -> (Option<i32>, String) {
    let decided = [&[("run", "false")], decided].concat();
    judged(github, attempt, event, &decided, json!({}))
}

#[test]
fn a_run_that_is_started_again_covers_no_later_verdict() {
    let head = sha('b');
    let decided = [("decides", "true"), ("head_ref", head.as_str()), ("blocked", "false")];
    let checks = format!("GET /repos/acme/bench/commits/{head}/check-runs");
    let github = GitHub::new();
    github.on(
        &checks,
        listed(vec![check(50, 5, Some("success"), 0), check(60, 9, Some("failure"), 0)]),
    );
    let (code, said) = verdict(&github, "2", "pull_request", &decided);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("run 9 decided about this commit after this run"),
        "{said}"
    );
    // Of later runs the newest counts, and one that goes on has not passed.
    github.on(
        &checks,
        listed(vec![
            check(61, 10, Some("success"), 0),
            check(60, 9, Some("failure"), 0),
        ]),
    );
    assert_eq!(verdict(&github, "2", "pull_request", &decided).0, Some(0));
    github.on(&checks, listed(vec![check(61, 10, None, 0)]));
    assert_eq!(verdict(&github, "2", "pull_request", &decided).0, Some(1));
    // An older run says nothing about this one.
    github.on(&checks, listed(vec![check(60, 3, Some("failure"), 0)]));
    assert_eq!(verdict(&github, "2", "pull_request", &decided).0, Some(0));
    github.on(&checks, Reply::message(403, "Resource not accessible by integration"));
    let (code, said) = verdict(&github, "2", "pull_request", &decided);
    assert_eq!(code, Some(1));
    assert!(said.contains("checks: read"), "{said}");
    // A first attempt, another event and a run that speaks for no commit ask nothing.
    let before = github.requests().len();
    assert_eq!(verdict(&github, "1", "pull_request", &decided).0, Some(0));
    assert_eq!(verdict(&github, "2", "merge_group", &decided).0, Some(0));
    let silent = [("decides", "false"), ("head_ref", head.as_str())];
    assert_eq!(verdict(&github, "2", "pull_request", &silent).0, Some(0));
    assert_eq!(github.requests().len(), before);
}

#[test]
fn what_blocks_is_said_in_the_verdict() {
    let github = GitHub::new();
    let reason = "The verdict of pull request 12's head `bbbbbbbbb` counts, which is missing.";
    let (code, said) = verdict(&github, "1", "merge_group", &[("blocked", "true"), ("reason", reason)]);
    assert_eq!(code, Some(1));
    assert!(said.contains("head `bbbbbbbbb` counts, which is missing"), "{said}");
}

/// A notice is an annotation of the check, which a later decision finds.
#[test]
fn a_full_sweep_that_passed_is_noted() {
    let github = GitHub::new();
    let noted = |decided: &[(&str, &str)], result: &str| {
        let stands_in = json!({ "reuse-results": { "result": result, "outputs": {} } });
        let decided = [decided, &[("reuse", "true"), ("reuse_reason", "Run 3 stands in.")]].concat();
        judged(&github, "1", "push", &decided, stands_in)
            .1
            .contains("::notice title=Full sweep::")
    };
    let full = [("run", "true"), ("reusable", "true"), ("blocked", "false")];
    assert!(noted(&full, "success"));
    assert!(!noted(&full, "failure"));
    assert!(!noted(&[("run", "true"), ("reusable", "false")], "success"));
    assert!(!noted(
        &[("run", "true"), ("reusable", "true"), ("blocked", "true")],
        "success"
    ));
    let (_, said) = verdict(&github, "1", "pull_request", &[("reusable", "true")]);
    assert!(!said.contains("::notice"), "{said}");
}

/// The same decision as without a pipe: the payload is read once, for the event, its name and the workflow.
#[test]
fn a_payload_without_a_name_comes_through_standard_input() {
    let out = tempfile::tempdir().expect("a folder");
    let built = payload("opened", "full-sweep-enabled", "head=untouched", &HISTORY);
    let path = write(out.path(), "event.json", built.body.to_string());
    let output = decider(HISTORY.folder.path())
        .args(["workflow", "simulate", "--event", "-", "--root"])
        .arg(project())
        .stdin(std::fs::File::open(path).expect("the payload"))
        .output()
        .expect("the binary runs");
    let said = stderr(&output);
    let simulation: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    let jobs = simulation["jobs"].as_array().expect("jobs");
    let running: Vec<&str> = jobs
        .iter()
        .filter(|job| job["runs"] == true)
        .map(|job| job["legs"][0]["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(
        (running, &simulation["result"]),
        (vec!["Decide", "Verdict"], &json!("success")),
        "{said}"
    );
}
