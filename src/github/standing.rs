//! Which runs speak for a commit, and which runs end others.
//!
//! GitHub reads both before any job runs: the concurrency group when a run is queued, and the name of a job from its
//! expression. So both stand in the workflow as expressions, which must say exactly what these functions say; the tests
//! hold them together, event by event.

use super::event::{Action, Event, PullRequest};
use crate::config::labels::Labels;

/// The check that branches require.
pub const VERDICT: &str = "Verdict";
/// The name of the same job in a run that does not decide about its commit.
pub const NO_VERDICT: &str = "No verdict";

/// The concurrency group of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Whether the run cancels what runs in it; else it waits.
    pub cancels: bool,
}

/// The labels whose coming or going restarts a pull request's sweep.
pub fn sweep_labels(labels: &Labels) -> impl Iterator<Item = &str> {
    labels.primary.keys().chain(labels.modifiers.keys()).map(String::as_str)
}

/// The concurrency group of an event's run.
///
/// GitHub claims a workflow's group before it evaluates any `if`, so a run that will do nothing cancels a sweep if it
/// shares its group. Therefore:
/// - `sweep-pr-<number>` for what [`restarts`] or ends a pull request's sweep;
/// - `sweep-run-<run id>`, which no other run has, for everything else: another label, another action, a merge group,
///   and every push, because merges neither cancel each other nor wait.
///
/// A run that is started again keeps its event as it was: nothing in it says whether the pull request has gone on since.
/// It stays in its group, so that a new commit or a close ends it too, and waits there, so that it ends nothing itself.
#[must_use]
pub fn group(event: &Event, labels: &Labels, run_id: u64, attempt: u64) -> Group {
    let name = match event {
        Event::PullRequest(pull) if restarts(pull, labels) => format!("sweep-pr-{}", pull.number),
        _ => format!("sweep-run-{run_id}"),
    };
    Group {
        name,
        cancels: attempt == 1,
    }
}

/// Whether a run takes the place of the pull request's running sweep: where what is swept may have changed, and where
/// the pull request was closed without a merge. After a merge the sweep goes on: its results may be reused.
#[must_use]
pub fn restarts(pull: &PullRequest, labels: &Labels) -> bool {
    match &pull.action {
        Action::Closed => !pull.merged,
        _ => pull.open && is_about_sweeps(&pull.action, labels),
    }
}

/// Whether a run reports as [`VERDICT`]. The newest check of a name is the one that branches see, so a run that learns
/// nothing about its commit must not report under it: it would cover a failure, or a sweep that runs.
///
/// A label decides only where it leaves one that asks for a sweep. Taking the last one off ends the sweep, whose own
/// verdict is then a failure; a verdict of "nothing was asked" over it would be green. It is no failure either: a sweep
/// that had succeeded before is still one.
#[must_use]
pub fn decides(event: &Event, labels: &Labels) -> bool {
    match event {
        Event::Push(push) => push.is_to_default_branch(),
        Event::MergeGroup(_) => true,
        Event::PullRequest(pull) => {
            let asks = || has_primary(&pull.labels, labels);
            let by_label = matches!(pull.action, Action::Labeled(_) | Action::Unlabeled(_));
            pull.open && !pull.draft && is_about_sweeps(&pull.action, labels) && (!by_label || asks())
        }
        Event::WorkflowDispatch(_) | Event::Other(_) => false,
    }
}

fn is_about_sweeps(action: &Action, labels: &Labels) -> bool {
    match action {
        Action::Opened | Action::Reopened | Action::ReadyForReview | Action::Synchronize => true,
        Action::Labeled(label) | Action::Unlabeled(label) => sweep_labels(labels).any(|known| is_same(known, label)),
        Action::Closed | Action::Other(_) => false,
    }
}

fn has_primary(carried: &[String], labels: &Labels) -> bool {
    let mut known = labels.primary.keys();
    known.any(|known| carried.iter().any(|label| is_same(known, label)))
}

/// GitHub keeps the case of a label's name and ignores it otherwise; its `contains` ignores it too.
pub(super) fn is_same(known: &str, label: &str) -> bool {
    known.eq_ignore_ascii_case(label)
}
