//! The few fields of GitHub's answers that are used. What is named here must be there and of its kind; all else is
//! passed over.

use serde::Deserialize;

use crate::github::event::Hash;

/// A user, a bot or an app.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct User {
    /// Its name.
    pub login: String,
}

/// A label.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Label {
    /// Its name.
    pub name: String,
}

/// A repository.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Repository {
    /// `owner/name`
    pub full_name: String,
}

/// The branch that merges go to.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct DefaultBranch {
    /// Its name.
    pub default_branch: String,
}

/// One side of a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Side {
    /// The branch's name.
    pub r#ref: String,
    /// Its newest commit.
    pub sha: Hash,
    /// Where it is; `None` where the repository is gone.
    pub repo: Option<Repository>,
}

/// A pull request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Pull {
    /// Its number.
    pub number: u64,
    /// `open` or `closed`
    pub state: String,
    /// When it was merged; `None` where it was not.
    pub merged_at: Option<String>,
    /// Its labels.
    pub labels: Vec<Label>,
    /// What it would be merged into.
    pub base: Side,
    /// Its own branch.
    pub head: Side,
}

/// A comment on a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Comment {
    /// Its number.
    pub id: u64,
    /// Its text; `None` where there is none.
    pub body: Option<String>,
    /// Who wrote it; `None` where the account is gone.
    pub user: Option<User>,
    /// What the writer is to the repository.
    pub author_association: String,
}

/// A review of a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Review {
    /// `APPROVED`, `CHANGES_REQUESTED`, `COMMENTED`, `DISMISSED` or `PENDING`
    pub state: String,
    /// Who wrote it; `None` where the account is gone.
    pub user: Option<User>,
    /// What the writer is to the repository.
    pub author_association: String,
    /// The commit that was reviewed; `None` where it is gone.
    pub commit_id: Option<Hash>,
}

/// A commit of a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Commit {
    /// Its hash.
    pub sha: Hash,
}

/// Two commits compared.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Comparison {
    /// Their best common ancestor.
    pub merge_base_commit: Commit,
}

/// A run of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Run {
    /// Its number.
    pub id: u64,
    /// How often it was started.
    #[serde(default = "first")]
    pub run_attempt: u64,
    /// The workflow's file, from the repository's root.
    pub path: String,
    /// What it started on.
    pub event: String,
    /// `completed`, or how far it is.
    pub status: Option<String>,
    /// How it ended; `None` where it has not.
    pub conclusion: Option<String>,
    /// The newest commit of what it ran on.
    pub head_sha: Hash,
    /// Its page.
    pub html_url: String,
    /// Its name, as its workflow's `run-name` makes it.
    #[serde(default)]
    pub display_title: String,
    /// The branch that it ran on; `None` where that is gone.
    #[serde(default)]
    pub head_branch: Option<String>,
    /// The repository of that branch; `None` where it is gone.
    #[serde(default)]
    pub head_repository: Option<Repository>,
}

fn first() -> u64 {
    1
}

/// An artifact of a run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Artifact {
    /// Its name.
    pub name: String,
    /// Whether its content is gone.
    pub expired: bool,
    /// Its number.
    #[serde(default)]
    pub id: u64,
    /// `sha256:` and the hex digits of its archive; `None` of artifacts before 2025.
    #[serde(default)]
    pub digest: Option<String>,
}

/// Some of the artifacts of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct ArtifactPage {
    /// How many there are in all.
    pub total_count: usize,
    /// Those of the page.
    pub artifacts: Vec<Artifact>,
}

/// What a user may do in a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Permission {
    /// `admin`, `write`, `read` or `none`; `maintain` counts as `write`, `triage` as `read`.
    pub permission: String,
    /// The name of the role, which may be a repository's own.
    #[serde(default)]
    pub role_name: String,
}

/// A job of a run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Job {
    /// Its number.
    pub id: u64,
    /// Its name, with those of the jobs that called it.
    pub name: String,
    /// `completed`, or how far it is.
    pub status: String,
    /// How it ended; `None` where it has not.
    pub conclusion: Option<String>,
    /// The labels that it asked for.
    #[serde(default)]
    pub labels: Vec<String>,
    /// The runner that took it; empty or `None` where none did.
    pub runner_name: Option<String>,
    /// When it was queued.
    pub created_at: Option<String>,
    /// When a runner took it.
    pub started_at: Option<String>,
    /// When it ended.
    pub completed_at: Option<String>,
    /// Its page.
    pub html_url: Option<String>,
}

/// An app.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct App {
    /// Its name in addresses.
    pub slug: String,
}

/// A check of a commit, as a job of a workflow reports one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CheckRun {
    /// Its number: newer ones are greater.
    pub id: u64,
    /// `completed`, or how far it is.
    pub status: String,
    /// How it ended; `None` where it has not.
    pub conclusion: Option<String>,
    /// The page of its job.
    pub details_url: Option<String>,
    /// Who reported it; `None` where the app is gone.
    pub app: Option<App>,
    /// What it said.
    pub output: CheckOutput,
}

/// What a check said.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CheckOutput {
    /// How many annotations it left.
    pub annotations_count: u64,
}

/// An annotation of a check.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Annotation {
    /// Its title; `None` where it has none.
    pub title: Option<String>,
}
