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
pub(crate) struct DefaultBranch {
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
pub(crate) struct Comparison {
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
    /// When its event started it.
    #[serde(default)]
    pub created_at: Option<String>,
    /// When its latest attempt was started.
    #[serde(default)]
    pub run_started_at: Option<String>,
    /// The pull requests of its branch in this repository; none where it is a fork's.
    #[serde(default)]
    pub pull_requests: Vec<PullOfRun>,
    /// The workflows that it calls, each by the commit that it ran at.
    #[serde(default)]
    pub referenced_workflows: Vec<ReferencedWorkflow>,
}

/// A pull request as a run names it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PullOfRun {
    /// Its number.
    pub number: u64,
}

/// A workflow that a run calls.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, serde::Serialize)]
pub struct ReferencedWorkflow {
    /// `owner/name/path@ref`
    pub path: String,
    /// The commit.
    pub sha: String,
}

fn first() -> u64 {
    1
}

/// An artifact of a run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Artifact {
    /// Its number; of two of one name the higher is the newer.
    #[serde(default)]
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Its size, in bytes.
    #[serde(default)]
    pub size_in_bytes: u64,
    /// Whether its content is gone.
    pub expired: bool,
    /// `sha256:` and the digest of its content; `None` where GitHub keeps none.
    #[serde(default)]
    pub digest: Option<String>,
    /// When it was uploaded.
    #[serde(default)]
    pub created_at: Option<String>,
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
    /// Its steps, as far as they are known.
    #[serde(default)]
    pub steps: Vec<Step>,
}

/// A step of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Step {
    /// Its name.
    pub name: String,
    /// How it ended; `None` where it has not.
    #[serde(default)]
    pub conclusion: Option<String>,
    /// When it started.
    #[serde(default)]
    pub started_at: Option<String>,
    /// When it ended.
    #[serde(default)]
    pub completed_at: Option<String>,
}

/// What a job said, on its page.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Annotation {
    /// `failure`, `warning` or `notice`
    pub annotation_level: String,
    /// Its title.
    #[serde(default)]
    pub title: Option<String>,
    /// Its text.
    #[serde(default)]
    pub message: Option<String>,
}

/// A self-hosted runner.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Runner {
    /// Its name.
    pub name: String,
    /// `online` or `offline`
    pub status: String,
    /// Whether a job runs on it.
    pub busy: bool,
    /// Its labels.
    pub labels: Vec<Label>,
}

/// A run that a dispatch started.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Dispatched {
    /// Its number.
    pub workflow_run_id: u64,
    /// Its page.
    pub html_url: String,
}

/// Something that happened to a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct IssueEvent {
    /// `labeled`, `unlabeled`, or another word.
    pub event: String,
    /// When.
    pub created_at: String,
    /// The label, where it is about one.
    #[serde(default)]
    pub label: Option<Label>,
}

/// A file at a commit.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Content {
    /// Its content as base64, in lines.
    pub content: String,
    /// `base64`, or `none` where it is too large to be sent.
    pub encoding: String,
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
