//! `sweepctl fetch`: artifacts from the runner's service and over REST, and the action that hands over the access.

mod action;
mod client;
mod hostile;
mod rest;
mod runner;
mod service;
pub mod zips;

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use self::service::{Artifact, Service, token};
use crate::fixture::{envelope, read_json};
use crate::support::{stderr, stdout, write};

/// Runs fetch in a folder. No secret is in anything that it says, or in any file that it leaves.
fn fetch(service: &Service, folder: &Path, args: &[&str]) -> Output {
    let output = service
        .command(folder)
        .arg("fetch")
        .args(args)
        .output()
        .expect("it runs");
    let secrets = [token(), "aVerySecretSignature".to_owned()];
    for said in [stdout(&output), stderr(&output)] {
        assert!(!secrets.iter().any(|secret| said.contains(secret)), "{said}");
    }
    for file in files(folder) {
        let text = std::fs::read(folder.join(&file)).expect("a file");
        let text = String::from_utf8_lossy(&text);
        assert!(!secrets.iter().any(|secret| text.contains(secret)), "{file}");
    }
    output
}

/// The JSON of a fetch that succeeds.
#[track_caller]
fn fetched(service: &Service, folder: &Path, args: &[&str]) -> Value {
    let output = fetch(service, folder, args);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The files below a folder, by path; links are none.
fn files(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![root.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let entry = entry.expect("an entry");
            let kind = entry.file_type().expect("a type");
            if kind.is_dir() {
                pending.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path().strip_prefix(root).expect("below").display().to_string());
            }
        }
    }
    found.sort();
    found
}

/// The files of artifacts below a folder, without what fetch remembers and reports.
fn arrived(out: &Path) -> Vec<String> {
    let mut files = files(out);
    files.retain(|file| !file.starts_with(".fetch/") && file != "fetch.json");
    files
}

/// State and reason of an artifact in the report.
fn state(out: &Path, name: &str) -> (String, String) {
    let report = read_json(&out.join("fetch.json"));
    let artifacts = report["artifacts"].as_array().expect("a list");
    let artifact = artifacts
        .iter()
        .find(|artifact| artifact["name"] == name)
        .expect("reported");
    let text = |field: &str| artifact[field].as_str().unwrap_or_default().to_owned();
    (text("state"), text("reason"))
}

/// A plan of so many throughput jobs, and the names of their artifacts.
fn plan(folder: &Path, jobs: usize) -> Vec<String> {
    let job = |number: usize| {
        let mut job = envelope(&format!("{number:012x}"), 64);
        job["row"]["eval-only"] = json!(false);
        job["row"]["run-eval"] = json!(false);
        job
    };
    let jobs: Vec<Value> = (1..=jobs).map(job).collect();
    write(folder, "plan.json", json!(jobs).to_string());
    let name = |job: &Value| {
        format!(
            "bmk_{}_{}",
            job["row"]["exp-name"].as_str().expect("a name"),
            job["id"].as_str().expect("an id")
        )
    };
    jobs.iter().map(name).collect()
}

/// An artifact of one small file.
fn small(id: u64, name: &str) -> Artifact {
    Artifact::new(id, name, zips::zip(&[("agg_r.json", format!("{{\"id\": {id}}}"))]))
}
