//! The fields of payloads, as GitHub names them.

use serde::Deserialize;

use super::{Action, Event, Hash, Inputs, MergeGroup, PullRequest, Push};
use crate::config::problem::{Problem, nearest};
use crate::github::text::code;

/// The branch that merges go to where a payload does not name it.
const MAIN: &str = "main";

#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
struct Repository {
    full_name: String,
}

#[derive(Deserialize)]
struct Side {
    sha: Hash,
    /// `null` where the repository is gone.
    #[serde(deserialize_with = "Option::deserialize")]
    repo: Option<Repository>,
}

#[derive(Deserialize)]
struct PullRequestFields {
    number: u64,
    state: String,
    draft: bool,
    #[serde(default)]
    merged: bool,
    labels: Vec<Named>,
    base: Side,
    head: Side,
}

#[derive(Deserialize)]
pub(super) struct PullRequestPayload {
    action: String,
    label: Option<Named>,
    pull_request: PullRequestFields,
}

impl PullRequestPayload {
    pub(super) fn event(self, place: &str) -> Result<Event, Problem> {
        let pull = self.pull_request;
        let label = |label: Option<Named>| {
            label.map(|label| label.name).ok_or_else(|| {
                Problem::file(place, format!("the event {} names no label", code(&self.action)))
                    .hint("its field `label.name` is missing")
            })
        };
        let action = match self.action.as_str() {
            "opened" => Action::Opened,
            "reopened" => Action::Reopened,
            "ready_for_review" => Action::ReadyForReview,
            "synchronize" => Action::Synchronize,
            "labeled" => Action::Labeled(label(self.label)?),
            "unlabeled" => Action::Unlabeled(label(self.label)?),
            "closed" => Action::Closed,
            other => Action::Other(other.to_owned()),
        };
        let open = match pull.state.as_str() {
            "open" => true,
            "closed" => false,
            other => {
                let message = format!("{} is no state of a pull request", code(other));
                return Err(Problem::file(place, message).hint(nearest(other, ["open", "closed"])));
            }
        };
        let fork = match (&pull.base.repo, &pull.head.repo) {
            (Some(base), Some(head)) => !base.full_name.eq_ignore_ascii_case(&head.full_name),
            _ => true,
        };
        Ok(Event::PullRequest(PullRequest {
            action,
            number: pull.number,
            open,
            merged: pull.merged,
            draft: pull.draft,
            labels: pull.labels.into_iter().map(|label| label.name).collect(),
            base: pull.base.sha,
            head: pull.head.sha,
            fork,
        }))
    }
}

#[derive(Deserialize)]
struct PushRepository {
    default_branch: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct PushPayload {
    r#ref: String,
    before: Hash,
    after: Hash,
    #[serde(default)]
    forced: bool,
    repository: Option<PushRepository>,
}

impl PushPayload {
    pub(super) fn event(self) -> Event {
        let some = |hash: Hash| (!hash.is_zero()).then_some(hash);
        Event::Push(Push {
            r#ref: self.r#ref,
            default_branch: self
                .repository
                .and_then(|repository| repository.default_branch)
                .unwrap_or_else(|| MAIN.to_owned()),
            before: some(self.before),
            after: some(self.after),
            forced: self.forced,
        })
    }
}

#[derive(Deserialize)]
pub(super) struct DispatchPayload {
    pub(super) inputs: Option<Inputs>,
}

#[derive(Deserialize)]
struct MergeGroupFields {
    head_ref: String,
    head_sha: Hash,
}

#[derive(Deserialize)]
pub(super) struct MergeGroupPayload {
    merge_group: MergeGroupFields,
}

impl MergeGroupPayload {
    pub(super) fn event(self) -> Event {
        Event::MergeGroup(MergeGroup {
            r#ref: self.merge_group.head_ref,
            head: self.merge_group.head_sha,
        })
    }
}
