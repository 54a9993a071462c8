//! Events: the part of GitHub's webhook payloads that a decision is made of.
//!
//! Payloads hold hundreds of fields and gain new ones: what is not used is not looked at, and what is used must be
//! there and of its kind. Field names are those of GitHub's "Webhook events and payloads".

mod payload;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use super::text::code;
use crate::config::asked::{Asked, Refs, boolean, text};
use crate::config::problem::Problem;
use payload::{DispatchPayload, MergeGroupPayload, PullRequestPayload, PushPayload};

/// An event, as far as it is known here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Something happened to a pull request.
    PullRequest(PullRequest),
    /// Commits, or their removal, on a branch or tag.
    Push(Push),
    /// A merge queue asks for the checks of a merge group.
    MergeGroup(MergeGroup),
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
    /// Whether it was merged.
    pub merged: bool,
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

/// What a merge queue is about to merge: the base with one pull request, and with those before it in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeGroup {
    /// The group's ref in full: `refs/heads/gh-readonly-queue/<base>/pr-<number>-<hash>`.
    pub r#ref: String,
    /// The commit that would become the base's.
    pub head: Hash,
}

impl MergeGroup {
    /// The pull request that the group was made for, which only the ref names. Those before it in the queue have groups
    /// of their own.
    ///
    /// # Errors
    /// A ref of another form.
    pub fn pull(&self) -> Result<u64, Problem> {
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let number = |text: &str| text.parse().ok().filter(|number| *number > 0 && is_number(text));
        let found = self
            .r#ref
            .strip_prefix("refs/heads/gh-readonly-queue/")
            .and_then(|rest| {
                // A branch's name may hold slashes, and may look like a pull request: the last part counts.
                let (number_text, hash) = rest.rsplit_once('/')?.1.strip_prefix("pr-")?.split_once('-')?;
                Hash::new(hash).and(number(number_text))
            });
        found.ok_or_else(|| {
            let message = format!("{} does not name the pull request of a merge group", code(&self.r#ref));
            Problem::file("", message).hint("its form is refs/heads/gh-readonly-queue/BASE/pr-NUMBER-HASH")
        })
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
            "merge_group" => {
                let payload: MergeGroupPayload = serde_json::from_str(payload).map_err(failed)?;
                Ok(payload.event())
            }
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
        pull_request: Option<IgnoredAny>,
        merge_group: Option<IgnoredAny>,
        before: Option<IgnoredAny>,
        #[serde(default, deserialize_with = "present")]
        inputs: bool,
        #[serde(default, deserialize_with = "present")]
        client_payload: bool,
        comment: Option<IgnoredAny>,
        issue: Option<IgnoredAny>,
        schedule: Option<IgnoredAny>,
    }
    let marks: Marks = serde_json::from_str(payload).map_err(|error| {
        Problem::file(place, format!("this is no event: {error}"))
            .hint("take the payload that GitHub wrote to GITHUB_EVENT_PATH")
    })?;
    match marks {
        Marks { inputs: true, .. } => Ok("workflow_dispatch"),
        Marks {
            client_payload: true, ..
        } => Ok("repository_dispatch"),
        Marks {
            pull_request: Some(_), ..
        } => Ok("pull_request"),
        Marks {
            merge_group: Some(_), ..
        } => Ok("merge_group"),
        Marks { before: Some(_), .. } => Ok("push"),
        Marks {
            comment: Some(_),
            issue: Some(_),
            ..
        } => Ok("issue_comment"),
        Marks { schedule: Some(_), .. } => Ok("schedule"),
        _ => Err(Problem::file(place, "the payload does not say what event it is of")
            .hint("name the event with --event-name, or set GITHUB_EVENT_NAME")),
    }
}

/// A dispatch without inputs has `"inputs": null`, one of a repository may have `"client_payload": null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(deserializer).map(|_| true)
}
