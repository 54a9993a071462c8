//! The run that new results are compared with.

use serde::Serialize;

use super::client::{Client, Error};

/// The workflow that sweeps.
pub(crate) const WORKFLOW: &str = "run-sweep.yml";
/// The artifact that holds a sweep's throughput results.
pub(crate) const RESULTS: &str = "results_bmk";
/// Runs whose artifacts are looked at: one request each.
const LOOKED_AT: usize = 20;

/// The newest run of the default branch whose results can be fetched.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Baseline {
    /// Its number; `None` where there is none.
    pub run_id: Option<u64>,
    /// Its page; empty where there is none.
    pub url: String,
    /// Its commit; empty where there is none.
    pub commit: String,
    /// Which it is, or why there is none, in a sentence.
    pub reason: String,
}

/// Finds the newest successful run of [`WORKFLOW`] on a push to a branch, else to the default branch, with a
/// [`RESULTS`] artifact that has not expired.
///
/// # Errors
/// Requests that fail.
pub(crate) fn find(client: &Client, branch: Option<&str>) -> Result<Baseline, Error> {
    let branch = match branch {
        Some(branch) => branch.to_owned(),
        None => client.default_branch()?,
    };
    let runs = client.runs(WORKFLOW, "push", &branch, Some("success"))?.items;
    let looked_at = runs.len().min(LOOKED_AT);
    for run in runs.iter().take(LOOKED_AT) {
        let artifacts = client.artifacts(run.id, Some(RESULTS))?.items;
        if artifacts
            .iter()
            .any(|artifact| artifact.name == RESULTS && !artifact.expired)
        {
            return Ok(Baseline {
                run_id: Some(run.id),
                url: run.html_url.clone(),
                commit: run.head_sha.as_str().to_owned(),
                reason: format!("Run {} of {} is the newest with results.", run.id, run.head_sha.short()),
            });
        }
    }
    let reason = match looked_at {
        0 => "No sweep of the branch succeeded yet.".to_owned(),
        1 => "The one sweep that succeeded has no results that are still kept.".to_owned(),
        count => format!("None of the {count} newest sweeps that succeeded has results that are still kept."),
    };
    Ok(Baseline {
        reason,
        ..Baseline::default()
    })
}

impl Baseline {
    /// The outputs of a step.
    #[must_use]
    pub(crate) fn outputs(&self) -> Vec<(String, String)> {
        let run_id = self.run_id.map(|id| id.to_string()).unwrap_or_default();
        vec![
            ("run_id".to_owned(), run_id),
            ("reason".to_owned(), self.reason.clone()),
        ]
    }
}
