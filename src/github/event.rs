//! Events: the part of GitHub's webhook payloads that a decision is made of.
//!
//! Payloads hold hundreds of fields and gain new ones: what is not used is not looked at, and what is used must be
//! there and of its kind. Field names are those of GitHub's "Webhook events and payloads".

use serde::{Deserialize, Deserializer};

use super::text::code;
use crate::config::asked::{Asked, Refs, boolean, text};
use crate::config::problem::{Problem, nearest};

/// The branch that merges go to where a payload does not name it.
const MAIN: &str = "main";

/// An event, as far as it is known here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Something happened to a pull request.
    PullRequest(PullRequest),
    /// Commits, or their removal, on a branch or tag.
    Push(Push),
    /// Somebody, or a command, asked for a run.
    WorkflowDispatch(Inputs),
    /// Any other event, by its name.
    Other(String),
}

/// What happened to a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    /// What happened.
    pub action: Action,
    /// Its number.
    pub number: u64,
    /// Whether it is open.
    pub open: bool,
    /// Whether it is a draft.
    pub draft: bool,
    /// The labels that it carries now: with one that was just added, without one that was just removed.
    pub labels: Vec<String>,
    /// The tip of the branch that it would be merged into, as the event saw it.
    pub base: Hash,
    /// Its own newest commit.
    pub head: Hash,
    /// Whether its commits come from another repository, or from one that is gone.
    pub fork: bool,
}

/// What happened to a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// `opened`
    Opened,
    /// `reopened`
    Reopened,
    /// `ready_for_review`: it is no draft any more.
    ReadyForReview,
    /// `synchronize`: its commits changed.
    Synchronize,
    /// `labeled`, with the label.
    Labeled(String),
    /// `unlabeled`, with the label.
    Unlabeled(String),
    /// `closed`, merged or not.
    Closed,
    /// Any other action, by its name: none of them changes what is swept.
    Other(String),
}

/// Commits on a branch or tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Push {
    /// The ref in full: `refs/heads/main`.
    pub r#ref: String,
    /// The branch that merges go to.
    pub default_branch: String,
    /// The ref's commit until then; `None` where GitHub writes zeros, because there was none.
    pub before: Option<Hash>,
    /// The ref's commit from then on; `None` where it was deleted.
    pub after: Option<Hash>,
    /// Whether commits were thrown away.
    pub forced: bool,
}

impl Push {
    /// Whether it is to the branch that merges go to.
    #[must_use]
    pub fn is_to_default_branch(&self) -> bool {
        self.r#ref.strip_prefix("refs/heads/") == Some(&self.default_branch)
    }
}

/// A commit's full hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hash(String);

impl Hash {
    /// Takes 40 (SHA-1) or 64 (SHA-256) hex digits; nothing else can name a commit in an event, and no revision syntax
    /// reaches git.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let is_hash = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hash.then(|| Self(text.to_owned()))
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its first digits, for people.
    #[must_use]
    pub fn short(&self) -> &str {
        &self.0[..9]
    }

    fn is_zero(&self) -> bool {
        self.0.bytes().all(|byte| byte == b'0')
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(&text).ok_or_else(|| serde::de::Error::custom(format!("{} is no commit's full hash", code(&text))))
    }
}

/// The inputs of a dispatch. Forms send every value as text, an empty one where nothing was entered; the API may send
/// booleans and numbers as such.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Inputs {
    /// What is compared.
    #[serde(flatten)]
    pub refs: Refs,
    /// The generator's arguments, instead of a comparison.
    #[serde(deserialize_with = "text")]
    pub generate_cli_command: Option<String>,
    /// What is asked of the sweep.
    #[serde(flatten)]
    pub asked: Asked,
    /// One job first; the rest only if it succeeds.
    #[serde(deserialize_with = "boolean")]
    pub canary: bool,
}

impl Event {
    /// Reads an event's payload. Without a name the payload is taken for what it looks like.
    ///
    /// # Errors
    /// Text that is no JSON, an event of an unknown kind, and fields that are missing or of another kind; `place` is
    /// where the payload stands.
    pub fn parse(name: Option<&str>, payload: &str, place: &str) -> Result<Self, Problem> {
        let name = match name {
            Some(name) => name.to_owned(),
            None => look(payload, place)?.to_owned(),
        };
        let failed = |error: serde_json::Error| {
            let message = format!("this is no {} event: {error}", code(&name));
            Problem::file(place, message)
                .hint("take the payload that GitHub wrote to GITHUB_EVENT_PATH, or check its name")
        };
        match name.as_str() {
            "pull_request" => serde_json::from_str::<PullRequestPayload>(payload)
                .map_err(failed)?
                .event(place),
            "push" => Ok(serde_json::from_str::<PushPayload>(payload).map_err(failed)?.event()),
            "workflow_dispatch" => {
                let payload: DispatchPayload = serde_json::from_str(payload).map_err(failed)?;
                Ok(Self::WorkflowDispatch(payload.inputs.unwrap_or_default()))
            }
            "pull_request_target" => {
                let message = "`pull_request_target` runs with this repository's secrets on code that anybody wrote";
                Err(Problem::file(place, message).hint("start the workflow with `pull_request`"))
            }
            _ => Ok(Self::Other(name)),
        }
    }
}

/// The name of the event that a payload looks like.
///
/// # Errors
/// A payload that looks like none.
pub fn look(payload: &str, place: &str) -> Result<&'static str, Problem> {
    #[derive(Deserialize)]
    struct Marks {
        pull_request: Option<serde::de::IgnoredAny>,
        before: Option<serde::de::IgnoredAny>,
        #[serde(default, deserialize_with = "present")]
        inputs: bool,
    }
    let marks: Marks = serde_json::from_str(payload).map_err(|error| {
        Problem::file(place, format!("this is no event: {error}"))
            .hint("take the payload that GitHub wrote to GITHUB_EVENT_PATH")
    })?;
    match marks {
        Marks { inputs: true, .. } => Ok("workflow_dispatch"),
        Marks {
            pull_request: Some(_), ..
        } => Ok("pull_request"),
        Marks { before: Some(_), .. } => Ok("push"),
        _ => Err(Problem::file(place, "the payload does not say what event it is of")
            .hint("name the event with --event-name, or set GITHUB_EVENT_NAME")),
    }
}

/// A dispatch without inputs has `"inputs": null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    serde::de::IgnoredAny::deserialize(deserializer).map(|_| true)
}

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
    labels: Vec<Named>,
    base: Side,
    head: Side,
}

#[derive(Deserialize)]
struct PullRequestPayload {
    action: String,
    label: Option<Named>,
    pull_request: PullRequestFields,
}

impl PullRequestPayload {
    fn event(self, place: &str) -> Result<Event, Problem> {
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
struct PushPayload {
    r#ref: String,
    before: Hash,
    after: Hash,
    #[serde(default)]
    forced: bool,
    repository: Option<PushRepository>,
}

impl PushPayload {
    fn event(self) -> Event {
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
struct DispatchPayload {
    inputs: Option<Inputs>,
}
