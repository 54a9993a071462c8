//! What is asked about a run that goes on or is over, and what may be done to one.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::Client;
use super::answers::{Annotation, Content, IssueEvent, Run, Runner};
use super::error::Error;
use super::requests::{Listing, encoded};
use super::transport::Write;

/// Annotations of one job, in pages: a job makes 50 at most.
const ANNOTATION_PAGES: usize = 1;
/// Runners, in pages.
const RUNNER_PAGES: usize = 20;
/// Events of a pull request, in pages.
const EVENT_PAGES: usize = 10;
/// Runs of one commit, in pages.
const RUN_PAGES: usize = 1;

impl Client {
    /// What a job said on its page. Its number is that of its check, too.
    ///
    /// # Errors
    /// As every request.
    pub fn annotations(&self, job: u64) -> Result<Vec<Annotation>, Error> {
        let path = self.path(&format!("check-runs/{job}/annotations"));
        let listing = self.pages(&path, "checks: read", ANNOTATION_PAGES, |page: Vec<Annotation>| page)?;
        Ok(listing.items)
    }

    /// The end of a job's log. GitHub has one only of a job that ended.
    ///
    /// # Errors
    /// As every request.
    pub fn log_end(&self, job: u64) -> Result<Vec<u8>, Error> {
        let path = self.path(&format!("actions/jobs/{job}/logs"));
        self.transport.tail(&path, "actions: read")
    }

    /// The self-hosted runners of the repository.
    ///
    /// # Errors
    /// As every request.
    pub fn runners(&self) -> Result<Listing<Runner>, Error> {
        let path = self.path("actions/runners");
        self.pages(&path, "administration: read", RUNNER_PAGES, |page: Runners| {
            page.runners
        })
    }

    /// The self-hosted runners of the organization that owns the repository.
    ///
    /// # Errors
    /// As every request; of an account that is no organization, that there is none.
    pub fn runners_of_owner(&self) -> Result<Listing<Runner>, Error> {
        let path = format!("/orgs/{}/actions/runners", encoded(self.repository.owner()));
        let permission = "organization_self_hosted_runners: read";
        self.pages(&path, permission, RUNNER_PAGES, |page: Runners| page.runners)
    }

    /// The runs of a workflow's file on one commit, the newest first.
    ///
    /// # Errors
    /// As every request.
    pub fn runs_of_commit(&self, file: &str, commit: &str) -> Result<Listing<Run>, Error> {
        let (file, commit) = (encoded(file), encoded(commit));
        let path = self.path(&format!("actions/workflows/{file}/runs?head_sha={commit}"));
        self.pages(&path, "actions: read", RUN_PAGES, |page: Runs| page.workflow_runs)
    }

    /// What happened to a pull request, the oldest first.
    ///
    /// # Errors
    /// As every request.
    pub fn events(&self, pull: u64) -> Result<Listing<IssueEvent>, Error> {
        let path = self.path(&format!("issues/{pull}/events"));
        self.pages(&path, "pull-requests: read", EVENT_PAGES, |page: Vec<IssueEvent>| page)
    }

    /// A file at a commit; `None` where there is none, or it is no text.
    ///
    /// # Errors
    /// As every request.
    pub fn file(&self, path: &str, commit: &str) -> Result<Option<String>, Error> {
        let parts: Vec<String> = path.split('/').map(encoded).collect();
        let path = self.path(&format!("contents/{}?ref={}", parts.join("/"), encoded(commit)));
        let content: Content = match self.one(&path, "contents: read") {
            Err(error) if error.is_not_found() => return Ok(None),
            answer => answer?,
        };
        if content.encoding != "base64" {
            return Ok(None);
        }
        let text: String = content.content.split_whitespace().collect();
        let bytes = STANDARD.decode(text).ok();
        Ok(bytes.and_then(|bytes| String::from_utf8(bytes).ok()))
    }

    /// Runs one job of a run that ended again, and the jobs that wait for it.
    ///
    /// # Errors
    /// As every request; it is not repeated.
    pub fn rerun_job(&self, job: u64) -> Result<(), Error> {
        self.rerun(&format!("actions/jobs/{job}/rerun"))
    }

    /// Runs all jobs of a run that failed again, and those that wait for them.
    ///
    /// # Errors
    /// As every request; it is not repeated.
    pub fn rerun_failed_jobs(&self, run: u64) -> Result<(), Error> {
        self.rerun(&format!("actions/runs/{run}/rerun-failed-jobs"))
    }

    fn rerun(&self, path: &str) -> Result<(), Error> {
        let body = serde_json::json!({});
        self.transport
            .write(Write::Post, &self.path(path), &body, "actions: write")
            .map(drop)
    }
}

#[derive(Deserialize)]
struct Runners {
    runners: Vec<Runner>,
}

#[derive(Deserialize)]
struct Runs {
    workflow_runs: Vec<Run>,
}
