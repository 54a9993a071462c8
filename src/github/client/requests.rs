//! What is asked, a function each, with the permission that a token needs for it.

use axum::body::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Client;
use super::answers::{
    Artifact, ArtifactPage, CheckRun, Comment, Commit, Comparison, DefaultBranch, Dispatched, Job, Permission, Pull,
    Review, Run,
};
use super::error::{Error, told};
use super::transport::Write;
use crate::changelog::link::Slug;

/// Items of one page; GitHub gives no more.
const PAGE: usize = 100;
/// Comments that are looked through, in pages.
const COMMENT_PAGES: usize = 30;
/// Commits of a pull request, in pages: GitHub lists 250.
const COMMIT_PAGES: usize = 3;
/// Reviews that are looked through, in pages.
const REVIEW_PAGES: usize = 10;
/// Pull requests of one commit, in pages.
const PULL_PAGES: usize = 1;
/// Runs that are looked through, in pages.
const RUN_PAGES: usize = 2;
/// Artifacts that are looked through, in pages.
const ARTIFACT_PAGES: usize = 10;
/// Artifacts of a run, in pages: a sweep of 5,000 jobs with four of them each.
const ALL_ARTIFACT_PAGES: usize = 200;
/// Jobs of a run, in pages: a sweep of 5,000.
const JOB_PAGES: usize = 50;
/// Checks of one name on one commit, in pages: each label adds one.
const CHECK_PAGES: usize = 3;

const ACTIONS: &str = "actions: read";
const CHECKS: &str = "checks: read";
const CONTENTS: &str = "contents: read";
const PULLS: &str = "pull-requests: read";

/// Items of several pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing<T> {
    /// The items, in GitHub's order.
    pub items: Vec<T>,
    /// Whether these are all, or as many as are looked through.
    pub complete: bool,
}

impl Client {
    /// The pull requests that a commit of the default branch belongs to.
    ///
    /// # Errors
    /// As every request: see [`Error`].
    pub fn pulls_of(&self, commit: &str) -> Result<Listing<Pull>, Error> {
        let path = self.path(&format!("commits/{}/pulls", encoded(commit)));
        self.pages(&path, PULLS, PULL_PAGES, |page: Vec<Pull>| page)
    }

    /// A pull request.
    ///
    /// # Errors
    /// As every request.
    pub fn pull(&self, number: u64) -> Result<Pull, Error> {
        self.one(&self.path(&format!("pulls/{number}")), PULLS)
    }

    /// The comments on a pull request, the oldest first.
    ///
    /// # Errors
    /// As every request.
    pub fn comments(&self, pull: u64) -> Result<Listing<Comment>, Error> {
        let path = self.path(&format!("issues/{pull}/comments"));
        self.pages(&path, PULLS, COMMENT_PAGES, |page: Vec<Comment>| page)
    }

    /// The commits of a pull request, the oldest first; GitHub lists 250.
    ///
    /// # Errors
    /// As every request.
    pub fn commits(&self, pull: u64) -> Result<Listing<Commit>, Error> {
        let path = self.path(&format!("pulls/{pull}/commits"));
        self.pages(&path, PULLS, COMMIT_PAGES, |page: Vec<Commit>| page)
    }

    /// The reviews of a pull request, the oldest first.
    ///
    /// # Errors
    /// As every request.
    pub fn reviews(&self, pull: u64) -> Result<Listing<Review>, Error> {
        let path = self.path(&format!("pulls/{pull}/reviews"));
        self.pages(&path, PULLS, REVIEW_PAGES, |page: Vec<Review>| page)
    }

    /// The runs of a workflow's file that an event started on a branch, the newest first; with a conclusion, those that
    /// ended so.
    ///
    /// # Errors
    /// As every request.
    pub fn runs(&self, file: &str, event: &str, branch: &str, conclusion: Option<&str>) -> Result<Listing<Run>, Error> {
        let status = conclusion.map(|conclusion| format!("&status={}", encoded(conclusion)));
        let path = self.path(&format!(
            "actions/workflows/{}/runs?event={}&branch={}{}",
            encoded(file),
            encoded(event),
            encoded(branch),
            status.unwrap_or_default()
        ));
        self.pages(&path, ACTIONS, RUN_PAGES, |page: Runs| page.workflow_runs)
    }

    /// A page of those runs, counted from 1, whatever their conclusion; one that is not full is the last. GitHub lists
    /// 1,000 of a search.
    ///
    /// # Errors
    /// As every request.
    pub fn runs_page(&self, file: &str, event: &str, branch: &str, page: usize) -> Result<(Vec<Run>, bool), Error> {
        let path = self.path(&format!(
            "actions/workflows/{}/runs?event={}&branch={}&per_page={PAGE}&page={page}",
            encoded(file),
            encoded(event),
            encoded(branch),
        ));
        let runs: Runs = self.one(&path, ACTIONS)?;
        let last = runs.workflow_runs.len() < PAGE;
        Ok((runs.workflow_runs, last))
    }

    /// A run.
    ///
    /// # Errors
    /// As every request.
    pub fn run(&self, id: u64) -> Result<Run, Error> {
        self.one(&self.path(&format!("actions/runs/{id}")), ACTIONS)
    }

    /// The artifacts of a run; with a name, those called so.
    ///
    /// # Errors
    /// As every request.
    pub fn artifacts(&self, run: u64, name: Option<&str>) -> Result<Listing<Artifact>, Error> {
        let name = name.map(|name| format!("?name={}", encoded(name))).unwrap_or_default();
        let path = self.path(&format!("actions/runs/{run}/artifacts{name}"));
        self.pages(&path, ACTIONS, ARTIFACT_PAGES, |page: Artifacts| page.artifacts)
    }

    /// All artifacts of a run, of every attempt at it.
    ///
    /// # Errors
    /// As every request.
    pub(crate) fn all_artifacts(&self, run: u64) -> Result<Listing<Artifact>, Error> {
        let path = self.path(&format!("actions/runs/{run}/artifacts"));
        self.pages(&path, ACTIONS, ALL_ARTIFACT_PAGES, |page: Artifacts| page.artifacts)
    }

    /// A page of the artifacts of a run, counted from 1.
    ///
    /// # Errors
    /// As every request.
    pub fn artifacts_page(&self, run: u64, page: usize) -> Result<ArtifactPage, Error> {
        let path = format!("actions/runs/{run}/artifacts?per_page={PAGE}&page={page}");
        self.one(&self.path(&path), ACTIONS)
    }

    /// What a user may do in the repository.
    ///
    /// # Errors
    /// As every request.
    pub fn permission(&self, login: &str) -> Result<Permission, Error> {
        let path = self.path(&format!("collaborators/{}/permission", encoded(login)));
        self.one(&path, "metadata: read")
    }

    /// The jobs of one attempt at a run.
    ///
    /// # Errors
    /// As every request.
    pub fn jobs(&self, run: u64, attempt: u64) -> Result<Listing<Job>, Error> {
        let path = self.path(&format!("actions/runs/{run}/attempts/{attempt}/jobs"));
        self.pages(&path, ACTIONS, JOB_PAGES, |page: Jobs| page.jobs)
    }

    /// The checks of a name on a commit, of each workflow run the newest.
    ///
    /// # Errors
    /// As every request.
    pub fn check_runs(&self, commit: &str, name: &str) -> Result<Listing<CheckRun>, Error> {
        let path = format!("commits/{}/check-runs?check_name={}", encoded(commit), encoded(name));
        self.pages(&self.path(&path), CHECKS, CHECK_PAGES, |page: CheckRuns| {
            page.check_runs
        })
    }

    /// The branch that merges go to.
    ///
    /// # Errors
    /// As every request.
    pub fn default_branch(&self) -> Result<String, Error> {
        let answer: DefaultBranch = self.one(&format!("/repos/{}", self.repository), "metadata: read")?;
        Ok(answer.default_branch)
    }

    /// The best common ancestor of two commits.
    ///
    /// # Errors
    /// As every request.
    pub fn merge_base(&self, base: &str, head: &str) -> Result<Commit, Error> {
        // Of the files and commits of a comparison nothing is used.
        let path = format!("compare/{}...{}?per_page=1&page=2", encoded(base), encoded(head));
        let answer: Comparison = self.one(&self.path(&path), CONTENTS)?;
        Ok(answer.merge_base_commit)
    }

    /// Starts a workflow of a branch by its file; the run, where the answer says which it is.
    ///
    /// # Errors
    /// As every request; it is not repeated.
    pub fn dispatch_workflow(&self, file: &str, dispatch: &impl Serialize) -> Result<Option<Dispatched>, Error> {
        let path = self.path(&format!("actions/workflows/{}/dispatches", encoded(file)));
        let body = self.transport.write(Write::Post, &path, dispatch, "actions: write")?;
        // It was sent: an answer that says nothing of a run is no failure.
        Ok(serde_json::from_slice(&body).ok())
    }

    /// Sends an event to a repository, which may be another one.
    ///
    /// # Errors
    /// As every request; it is not repeated.
    pub fn dispatch_event(&self, repository: &Slug, event: &impl Serialize) -> Result<(), Error> {
        let path = format!("/repos/{repository}/dispatches");
        self.transport.send(&path, event, "contents: write")
    }

    /// Writes a comment on a pull request.
    ///
    /// # Errors
    /// As every request; it is not repeated.
    pub fn add_comment(&self, pull: u64, body: &str) -> Result<(), Error> {
        let path = self.path(&format!("issues/{pull}/comments"));
        let body = serde_json::json!({ "body": body });
        self.transport
            .write(Write::Post, &path, &body, "pull-requests: write")
            .map(drop)
    }

    /// Changes a comment.
    ///
    /// # Errors
    /// As every request; it is not repeated.
    pub fn change_comment(&self, id: u64, body: &str) -> Result<(), Error> {
        let path = self.path(&format!("issues/comments/{id}"));
        let body = serde_json::json!({ "body": body });
        self.transport
            .write(Write::Patch, &path, &body, "pull-requests: write")
            .map(drop)
    }

    pub(super) fn path(&self, rest: &str) -> String {
        format!("/repos/{}/{rest}", self.repository)
    }

    pub(super) fn one<T: DeserializeOwned>(&self, path: &str, permission: &str) -> Result<T, Error> {
        decoded(path, &self.transport.get(path, permission)?)
    }

    /// All items of at most so many pages. Pages are counted here: an answer's links are not followed.
    pub(super) fn pages<P: DeserializeOwned, T>(
        &self,
        path: &str,
        permission: &str,
        most: usize,
        items: fn(P) -> Vec<T>,
    ) -> Result<Listing<T>, Error> {
        let sign = if path.contains('?') { '&' } else { '?' };
        let mut listing = Listing {
            items: Vec::new(),
            complete: false,
        };
        for page in 1..=most {
            let path = format!("{path}{sign}per_page={PAGE}&page={page}");
            let found = items(decoded(&path, &self.transport.get(&path, permission)?)?);
            let last = found.len() < PAGE;
            listing.items.extend(found);
            if last {
                listing.complete = true;
                break;
            }
        }
        Ok(listing)
    }
}

fn decoded<T: DeserializeOwned>(path: &str, body: &Bytes) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(|error| Error::Answer {
        request: format!("GET {path}"),
        reason: told(&error.to_string(), None),
    })
}

#[derive(Deserialize)]
struct Runs {
    workflow_runs: Vec<Run>,
}

#[derive(Deserialize)]
struct Artifacts {
    artifacts: Vec<Artifact>,
}

#[derive(Deserialize)]
struct CheckRuns {
    check_runs: Vec<CheckRun>,
}

#[derive(Deserialize)]
struct Jobs {
    jobs: Vec<Job>,
}

/// Text as a part of a path or a query.
pub(super) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte.into()),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}
