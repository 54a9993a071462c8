//! Jobs of a run as GitHub lists them, and their times.

use serde_json::{Value, json};

use super::server::{GitHub, run};

/// The run of these tests.
pub const RUN: &str = "GET /repos/acme/bench/actions/runs/77";

/// A time so many seconds ago, as GitHub writes it.
pub fn ago(seconds: i64) -> String {
    let now = jiff::Timestamp::now().as_second();
    jiff::Timestamp::from_second(now - seconds).expect("a time").to_string()
}

/// A job in a state: `queued`, `in_progress`, `waiting`, or a conclusion.
pub fn job(id: u64, name: &str, state: &str, label: &str) -> Value {
    let is_open = matches!(state, "queued" | "in_progress" | "waiting");
    let took = !matches!(state, "queued" | "waiting" | "skipped");
    json!({
        "id": id, "run_id": 77, "node_id": "CR_x", "name": name,
        "status": if is_open { state } else { "completed" },
        "conclusion": if is_open { Value::Null } else { json!(state) },
        "labels": [label], "runner_name": if took { format!("{label}_0") } else { String::new() },
        "runner_group_name": "gpu", "created_at": ago(5400), "started_at": ago(3600),
        "completed_at": if is_open { Value::Null } else { json!(ago(60)) },
        "html_url": format!("https://github.com/acme/bench/actions/runs/77/job/{id}"),
        "steps": [], "run_attempt": 1, "check_run_url": format!("https://api.github.com/check-runs/{id}"),
    })
}

/// The name of the job on a GPU, of an envelope in a bucket.
pub fn on_gpu(title: &str, envelope: &str) -> String {
    format!("{title} (0) / {envelope} / Benchmark")
}

/// A step.
pub fn step(name: &str, conclusion: &str, from: &str, to: &str) -> Value {
    json!({ "name": name, "status": "completed", "conclusion": conclusion, "number": 1, "started_at": from, "completed_at": to })
}

/// A page of jobs.
pub fn jobs(jobs: &[Value]) -> Value {
    json!({ "total_count": jobs.len(), "jobs": jobs })
}

/// Run 77 with the jobs of its one attempt.
pub fn github(status: &str, conclusion: &str, all: &[Value]) -> GitHub {
    let github = GitHub::new();
    let mut run = run(77, conclusion);
    run["status"] = json!(status);
    if status != "completed" {
        run["conclusion"] = Value::Null;
    }
    run["run_started_at"] = json!(ago(7260));
    run["created_at"] = json!(ago(7260));
    github.on(RUN, run);
    github.on(&attempt(1), jobs(all));
    github
}

/// The jobs of one attempt.
pub fn attempt(number: u64) -> String {
    format!("GET /repos/acme/bench/actions/runs/77/attempts/{number}/jobs")
}
