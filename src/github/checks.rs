//! What the checks of a commit say: the verdicts of earlier runs.
//!
//! Rules over what was fetched, and the few requests that fetch it.

use super::client::answers::CheckRun;
use super::client::{Client, Error};
use super::standing::VERDICT;
use super::text::code;
use crate::config::problem::Problem;

/// The title of the notice by which a verdict says that a full sweep passed. It stays with the check as an annotation,
/// where a later run of the commit finds it: neither the names of runs nor their artifacts say what was swept.
pub const FULL_SWEEP: &str = "Full sweep";
/// The app whose checks are those of workflows.
const ACTIONS_APP: &str = "github-actions";
/// Verdicts whose annotations are read: one request each.
const LOOKED_AT: usize = 20;

/// How a commit's newest verdict stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// No run reported one.
    Missing,
    /// Its run goes on.
    Open,
    /// It ended, as GitHub names it: `success`, `failure`, `cancelled`, ...
    Ended(String),
}

impl Standing {
    /// Whether a branch that requires it lets the commit in.
    #[must_use]
    pub fn passed(&self) -> bool {
        matches!(self, Self::Ended(conclusion) if conclusion == "success")
    }

    /// How it stands, as the end of a sentence about a verdict.
    #[must_use]
    pub fn said(&self) -> String {
        match self {
            Self::Missing => "is missing".to_owned(),
            Self::Open => "has not ended yet".to_owned(),
            Self::Ended(conclusion) => format!("is {}", code(conclusion)),
        }
    }
}

/// The newest verdict of a pull request's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadVerdict {
    /// The head.
    pub head: String,
    /// Its verdict.
    pub standing: Standing,
}

/// Asks for the newest verdict of a pull request's head, in two requests.
///
/// # Errors
/// Requests that fail.
pub fn head_verdict(client: &Client, pull: u64) -> Result<HeadVerdict, Error> {
    let head = client.pull(pull)?.head.sha;
    let verdicts = verdicts(client, head.as_str())?;
    Ok(HeadVerdict {
        head: head.as_str().to_owned(),
        standing: verdicts.last().map_or(Standing::Missing, standing),
    })
}

/// Asks whether a verdict of a commit says that a full sweep passed: a request, and one for each verdict that may.
///
/// # Errors
/// Requests that fail.
pub fn full_sweep_passed(client: &Client, commit: &str) -> Result<bool, Error> {
    let verdicts = verdicts(client, commit)?;
    let may = |check: &&CheckRun| standing(check).passed() && check.output.annotations_count > 0;
    for check in verdicts.iter().rev().filter(may).take(LOOKED_AT) {
        let annotations = client.annotations(check.id)?;
        if annotations.iter().any(|it| it.title.as_deref() == Some(FULL_SWEEP)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Asks what stands against the verdict of a run that was started again: a later run's verdict on the same commit that
/// did not pass. The check of the older run would be the newest, and cover it.
///
/// # Errors
/// Requests that fail.
pub fn later_verdict(client: &Client, commit: &str, run: u64) -> Result<Option<Problem>, Error> {
    let verdicts = verdicts(client, commit)?;
    let runs = verdicts
        .iter()
        .filter_map(|check| Some((run_of(check)?, standing(check))));
    Ok(covered(run, runs))
}

/// The problem of a run's verdict that would cover a later run's: the verdicts of a commit by run, the oldest first.
#[must_use]
pub fn covered(run: u64, verdicts: impl IntoIterator<Item = (u64, Standing)>) -> Option<Problem> {
    let later = verdicts.into_iter().filter(|(other, _)| *other > run);
    let (newest, standing) = later.max_by_key(|(other, _)| *other)?;
    (!standing.passed()).then(|| {
        let message = format!(
            "run {newest} decided about this commit after this run, and its verdict {}",
            standing.said()
        );
        Problem::file("", message).hint(format!("start run {newest} again instead: this run is older"))
    })
}

/// The verdicts of a commit that workflows reported, the oldest first.
fn verdicts(client: &Client, commit: &str) -> Result<Vec<CheckRun>, Error> {
    let mut checks = client.check_runs(commit, VERDICT)?.items;
    checks.retain(|check| check.app.as_ref().is_some_and(|app| app.slug == ACTIONS_APP));
    // Numbers only grow, also with attempts; GitHub's order is not documented.
    checks.sort_by_key(|check| check.id);
    Ok(checks)
}

fn standing(check: &CheckRun) -> Standing {
    match (&check.conclusion, check.status.as_str()) {
        (Some(conclusion), "completed") => Standing::Ended(conclusion.clone()),
        _ => Standing::Open,
    }
}

/// The run of a check, which only its page's address names: `.../actions/runs/<run>/job/<job>`.
fn run_of(check: &CheckRun) -> Option<u64> {
    let (_, rest) = check.details_url.as_deref()?.split_once("/actions/runs/")?;
    rest.split('/').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_run_covers_no_later_verdict_that_did_not_pass() {
        let ended = |conclusion: &str| Standing::Ended(conclusion.to_owned());
        let said = |run, verdicts: &[(u64, Standing)]| covered(run, verdicts.to_vec()).map(|problem| problem.message);
        assert_eq!(said(5, &[]), None);
        assert_eq!(said(5, &[(3, ended("failure")), (5, ended("failure"))]), None);
        assert_eq!(said(5, &[(5, ended("failure")), (7, ended("success"))]), None);
        // The newest run counts, whichever of them reported last.
        assert_eq!(said(5, &[(8, ended("success")), (7, ended("failure"))]), None);
        let message = said(5, &[(7, ended("success")), (8, ended("failure"))]).expect("a problem");
        assert!(
            message.starts_with("run 8 ") && message.ends_with("its verdict is `failure`"),
            "{message}"
        );
        for open in [Standing::Open, ended("cancelled"), ended("skipped"), ended("neutral")] {
            assert!(said(5, &[(6, open)]).is_some());
        }
    }
}
