//! What GitHub answers about the event of a row, on a loopback server and in process.

use serde_json::{Value, json};
use sweepctl::config::labels::Labels;
use sweepctl::github::checks::{HeadVerdict, Standing};
use sweepctl::github::decide::Facts;

use super::payload::{has, set};
use super::{HISTORY, Row};
use crate::github::server::{GitHub, pull, sha};

/// A check as a workflow's job reports it.
pub fn check(id: u64, run: u64, conclusion: Option<&str>, annotations: usize) -> Value {
    json!({
        "id": id, "node_id": "CR_x", "name": "Verdict", "head_sha": sha('b'), "external_id": "x",
        "status": if conclusion.is_some() { "completed" } else { "in_progress" }, "conclusion": conclusion,
        "details_url": format!("https://github.com/acme/bench/actions/runs/{run}/job/{id}"),
        "app": { "id": 15368, "slug": "github-actions", "name": "GitHub Actions" },
        "output": { "title": null, "summary": null, "annotations_count": annotations },
        "check_suite": { "id": run }, "pull_requests": [],
    })
}

/// The same of another app, which may call its checks as it likes.
fn of_another_app(id: u64) -> Value {
    let mut other = check(id, 1, Some("success"), 1);
    other["app"] = json!({ "id": 7, "slug": "somebody", "name": "Somebody" });
    other["details_url"] = json!("https://example.com/1");
    other
}

pub fn listed(checks: Vec<Value>) -> Value {
    json!({ "total_count": checks.len(), "check_runs": checks })
}

fn annotated(titles: &[&str]) -> Value {
    let one = |title: &&str| {
        json!({
            "path": ".github", "start_line": 1, "end_line": 1, "annotation_level": "notice", "title": title,
            "message": "All 9 planned jobs ran and succeeded.", "raw_details": "", "blob_href": "x",
        })
    };
    titles.iter().map(one).collect()
}

/// A row's word for a conclusion; `None` where the check goes on.
fn conclusion(word: &str) -> Option<&str> {
    (word != "open").then_some(word)
}

impl Row {
    /// GitHub as the row has it; `None` where it is not asked.
    pub fn github(&self) -> Option<GitHub> {
        let also = self.column(2);
        let (verdict, full) = (set(also, "verdict"), set(also, "full"));
        if verdict.is_none() && full.is_none() {
            return None;
        }
        let github = GitHub::new();
        if let Some(verdict) = verdict {
            // Newer is what has the greater number, wherever it stands; the newest of another app does not count.
            let mut checks = vec![of_another_app(90)];
            if verdict != "missing" {
                let older = if verdict == "success" { "failure" } else { "success" };
                checks.extend([check(30, 3, conclusion(verdict), 0), check(20, 2, Some(older), 0)]);
            }
            github.on("GET /repos/acme/bench/pulls/12", pull(&[]));
            github.on(
                &format!("GET /repos/acme/bench/commits/{}/check-runs", sha('b')),
                listed(checks),
            );
        }
        if let Some(full) = full {
            let head = HISTORY.commit(if has(also, "marked") { "marked" } else { "topic" });
            let checks = vec![
                check(20, 2, Some("success"), 1),
                check(30, 3, Some("failure"), 2),
                check(40, 4, Some("success"), 0),
                of_another_app(90),
            ];
            let titles: &[&str] = if full == "yes" {
                &["x", "Full sweep"]
            } else {
                &["A full sweep"]
            };
            github.on(
                &format!("GET /repos/acme/bench/commits/{head}/check-runs"),
                listed(checks),
            );
            github.on("GET /repos/acme/bench/check-runs/20/annotations", annotated(titles));
            // A sweep that failed is none, whatever it says.
            github.on(
                "GET /repos/acme/bench/check-runs/30/annotations",
                annotated(&["Full sweep"]),
            );
            github.on(
                "GET /repos/acme/bench/check-runs/90/annotations",
                annotated(&["Full sweep"]),
            );
        }
        Some(github)
    }

    /// Adds GitHub's answer to what is known.
    pub fn answer(&self, facts: &mut Facts) {
        facts.full_sweep = set(self.column(2), "full").map(|full| full == "yes");
        facts.head_verdict = set(self.column(2), "verdict").map(|verdict| HeadVerdict {
            head: sha('b'),
            standing: match (verdict, conclusion(verdict)) {
                ("missing", _) => Standing::Missing,
                (_, None) => Standing::Open,
                (_, Some(conclusion)) => Standing::Ended(conclusion.to_owned()),
            },
        });
    }

    /// The labels file of the row.
    pub fn labels(&self, labels: &Labels) -> Labels {
        Labels {
            require_sweep: has(self.column(2), "require-sweep"),
            ..labels.clone()
        }
    }
}
