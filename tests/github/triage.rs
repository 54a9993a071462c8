//! `sweepctl triage`: why jobs failed, and which are run again.

use std::process::Output;

use serde_json::{Value, json};

use super::run_jobs::{RUN, ago, attempt, github, job, jobs, on_gpu, step};
use super::server::{GitHub, Reply, run};
use crate::support::{assert_none, lines_of_table, misses, stderr, terminal, write};

/// An annotation: an exit code, a text of the runner, or `title: text` of this tool.
fn annotation(text: &str) -> Value {
    let (title, message) = match (text.parse::<i32>(), text.split_once(": ")) {
        (Ok(code), _) => ("", format!("Process completed with exit code {code}.")),
        (_, Some((title, message))) if title.contains('/') => (title, message.to_owned()),
        _ => ("", text.to_owned()),
    };
    json!({
        "path": ".github", "start_line": 1, "end_line": 1, "annotation_level": "failure", "title": title,
        "message": message, "raw_details": "", "blob_href": "",
    })
}

/// A job as a line of the table says it.
fn job_of(name: &str, ended: &str) -> Value {
    let name = match name {
        "gpu" => on_gpu("One node, 8k1k", "m1 c64"),
        other => other.to_owned(),
    };
    if let Some((conclusion, hours)) = ended.split_once(" - ") {
        let hours: i64 = hours.trim().parse().expect("hours");
        let mut job = job(5, &name, conclusion, "h200");
        job["runner_name"] = json!("");
        job["created_at"] = json!(ago(hours * 3600 + 60));
        job["completed_at"] = json!(ago(0));
        return job;
    }
    let (conclusion, failed) = ended.split_once(" / ").unwrap_or((ended, ""));
    let mut job = job(5, &name, conclusion, "h200");
    if !failed.is_empty() {
        let outcome = if conclusion == "cancelled" {
            "cancelled"
        } else {
            "failure"
        };
        job["steps"] = json!([
            step("Something before", "success", &ago(3600), &ago(3500)),
            step(failed, outcome, &ago(3500), &ago(100)),
            step("Something after", "skipped", &ago(100), &ago(100)),
        ]);
    }
    job
}

/// A run of so many attempts at one job.
fn of_line(columns: &[&str]) -> GitHub {
    let failed = job_of(columns[0], columns[1]);
    let attempts: u64 = columns[3].parse().expect("a number");
    let github = github("completed", "failure", std::slice::from_ref(&failed));
    let mut run = run(77, "failure");
    run["run_attempt"] = json!(attempts);
    github.on(RUN, run);
    for number in 1..=attempts {
        let mut of_attempt = failed.clone();
        of_attempt["started_at"] = json!(ago(3600 - i64::try_from(number).expect("small")));
        github.on(&attempt(number), jobs(&[of_attempt]));
    }
    let said: Vec<Value> = columns[2]
        .split(';')
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .map(annotation)
        .collect();
    github.on("GET /repos/acme/bench/check-runs/5/annotations", json!(said));
    github
}

fn judged(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn every_failure_has_the_class_that_the_table_says() {
    let rows: Vec<_> = lines_of_table(include_str!("triage.txt")).collect();
    assert!(rows.len() >= 50, "{} rows", rows.len());
    let missed = misses(&rows, |(line, text, columns)| {
        let printed = judged(&of_line(columns).run(&["triage", "77"]));
        let found = match &printed["jobs"][0] {
            Value::Null => (String::new(), String::new()),
            job => (
                job["class"].as_str().expect("a class").to_owned(),
                if job["rerun"] == true { "yes" } else { "no" }.to_owned(),
            ),
        };
        let again = columns.get(5).copied().unwrap_or_default();
        let right = found == (columns[4].to_owned(), again.to_owned());
        (!right).then(|| format!("line {line}: {text}\n  found {found:?}: {printed}"))
    });
    assert_none("failures", rows.len(), &missed);
}

/// A run with jobs that failed so: the exit code of each launch.
fn with(codes: &[i32], status: &str) -> GitHub {
    let mut all = vec![job(1, "Decide", "success", "ubuntu-24.04")];
    for (index, _) in codes.iter().enumerate() {
        let mut failed = job_of("gpu", "failure / Launch");
        failed["id"] = json!(10 + index);
        failed["name"] = json!(on_gpu("One node, 8k1k", &format!("m1 c{index}")));
        all.push(failed);
    }
    let mut verdict = job_of("Verdict", "failure / Judge");
    verdict["id"] = json!(9);
    all.push(verdict);
    let github = github(status, "failure", &all);
    github.on("GET /repos/acme/bench/check-runs/9/annotations", json!([]));
    for (index, code) in codes.iter().enumerate() {
        let path = format!("GET /repos/acme/bench/check-runs/{}/annotations", 10 + index);
        github.on(&path, json!([annotation(&code.to_string())]));
        let rerun = format!("POST /repos/acme/bench/actions/jobs/{}/rerun", 10 + index);
        github.on(&rerun, Reply::json(201, &json!({})));
    }
    github.on(
        "POST /repos/acme/bench/actions/runs/77/rerun-failed-jobs",
        Reply::json(201, &json!({})),
    );
    github
}

fn posts(github: &GitHub) -> Vec<String> {
    github
        .requests()
        .into_iter()
        .filter(|what| what.starts_with("POST"))
        .collect()
}

#[test]
fn only_infrastructure_is_run_again_and_only_when_asked() {
    let job = |id: u64| format!("POST /repos/acme/bench/actions/jobs/{id}/rerun");
    let all = "POST /repos/acme/bench/actions/runs/77/rerun-failed-jobs".to_owned();
    for (codes, status, wanted, later) in [
        (&[70][..], "completed", vec![job(10)], Some(0)),
        // All that failed for the infrastructure: one request for all.
        (&[70, 70, 70], "completed", vec![all], None),
        // Another failure beside them would be run again with all.
        (&[72, 70, 70], "completed", vec![job(11)], Some(1)),
        (&[72, 74, 1], "completed", vec![], None),
        (&[], "completed", vec![], None),
        // GitHub takes nothing of a run that goes on.
        (&[70], "in_progress", vec![], None),
    ] {
        let github = with(codes, status);
        let printed = judged(&github.run(&["triage", "77"]));
        assert_eq!((posts(&github), &printed["sent"]), (vec![], &json!(false)), "{codes:?}");
        let printed = judged(&github.run(&["triage", "77", "--rerun"]));
        assert_eq!(posts(&github), wanted, "{codes:?}: {printed}");
        assert_eq!(printed["sent"], !wanted.is_empty(), "{codes:?}");
        assert_eq!(printed["rerun"]["later"].as_u64(), later, "{codes:?}: {printed}");
    }
}

#[test]
fn how_often_a_job_is_started_is_a_setting() {
    let line = ["gpu", "failure / Launch", "70", "2"];
    let folder = tempfile::tempdir().expect("a folder");
    let again = |more: &[&str]| {
        let github = of_line(&line);
        let output = github
            .command(folder.path())
            .args([&["triage", "77"], more].concat())
            .output()
            .expect("it runs");
        judged(&output)["jobs"][0]["rerun"] == true
    };
    assert!(!again(&[]));
    assert!(again(&["--max-attempts", "3"]));
    let settings = std::fs::read_to_string(crate::support::project().join("configs/workflows.yaml")).expect("a file");
    write(
        folder.path(),
        "configs/workflows.yaml",
        settings + "\nmax-attempts: 3\n",
    );
    assert!(again(&[]));
    assert!(!again(&["--max-attempts", "2"]));
}

#[test]
fn a_job_that_an_attempt_did_not_run_was_not_started_again() {
    let github = of_line(&["gpu", "failure / Launch", "70", "2"]);
    // Attempt 2 ran another job; GitHub lists this one as it was.
    let failed = job_of("gpu", "failure / Launch");
    for number in [1, 2] {
        github.on(&attempt(number), jobs(std::slice::from_ref(&failed)));
    }
    let printed = judged(&github.run(&["triage", "77"]));
    assert_eq!(
        (&printed["jobs"][0]["attempts"], &printed["jobs"][0]["rerun"]),
        (&json!(1), &json!(true))
    );
}

#[test]
fn a_token_that_may_not_read_checks_goes_by_the_steps() {
    let github = of_line(&["gpu", "failure / Set up job", "", "1"]);
    let refused = Reply::message(403, "Resource not accessible by integration");
    github.on("GET /repos/acme/bench/check-runs/5/annotations", refused);
    let printed = judged(&github.run(&["triage", "77"]));
    assert_eq!(printed["jobs"][0]["class"], "infrastructure");
    assert!(printed["notes"].to_string().contains("`checks: read`"), "{printed}");
}

#[test]
fn a_refused_rerun_is_sent_once() {
    let github = with(&[70], "completed");
    github.on(
        "POST /repos/acme/bench/actions/jobs/10/rerun",
        Reply::message(502, "Bad gateway"),
    );
    let output = github.run(&["triage", "77", "--rerun"]);
    assert_eq!(
        (output.status.code(), posts(&github).len()),
        (Some(1), 1),
        "{}",
        stderr(&output)
    );
}

#[test]
fn failures_are_shown_on_80_and_120_columns() {
    let github = with(&[72, 70, 70, 74], "completed");
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = github.command(folder.path());
    terminal::held("screen_triage", command.args(["triage", "77"]));
}
