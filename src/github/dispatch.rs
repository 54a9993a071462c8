//! A sweep that somebody starts from the default branch: of a pull request's exact commit, or of a generator command.
//!
//! A fork's pull request runs the fork's workflow file. A dispatch runs the default branch's, and names a commit that
//! somebody with write access has read: it cannot change under it.

use std::collections::HashSet;
use std::time::Duration;

use indexmap::IndexMap;
use serde::Serialize;

use super::client::answers::{Dispatched, Pull, Review, Run};
use super::client::{Client, Error};
use super::event::Hash;
use super::text::{any_of, code, listed};
use crate::config::asked::Asked;
use crate::config::problem::{Problem, Problems};

/// The workflow that is dispatched.
pub(crate) const WORKFLOW: &str = "e2e-tests.yml";
/// Whose approval counts: those who may write.
const APPROVERS: [&str; 3] = ["OWNER", "MEMBER", "COLLABORATOR"];
/// How often the run is looked for, a second apart: an older server does not say which run a dispatch starts.
const LOOKS: u32 = 10;

/// What is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Request {
    /// The branch whose workflow file runs.
    pub r#ref: String,
    /// The form's inputs; those that are not given are not sent.
    pub inputs: IndexMap<String, String>,
}

impl Request {
    /// The same as a command of GitHub's own client.
    #[must_use]
    pub(crate) fn gh_command(&self, client: &Client) -> String {
        let repository = client.repository().to_string();
        let words = [
            "gh",
            "workflow",
            "run",
            WORKFLOW,
            "--repo",
            &repository,
            "--ref",
            &self.r#ref,
        ];
        let words = words.into_iter().map(quoted);
        let inputs = self.input_words().into_iter().map(|word| format!("-f {word}"));
        words.chain(inputs).collect::<Vec<_>>().join(" ")
    }

    /// Each input as a word of that command.
    #[must_use]
    pub(crate) fn input_words(&self) -> Vec<String> {
        let words = self.inputs.iter();
        words.map(|(name, value)| quoted(&format!("{name}={value}"))).collect()
    }
}

/// A word as a shell takes it for one; nothing of one that none can hold.
fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| String::new(), |word| word.into_owned())
}

/// What of a pull request is swept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// Where it left the branch that it would be merged into.
    pub base: Hash,
    /// Its newest commit.
    pub head: Hash,
    /// The labels that it has.
    pub labels: Vec<String>,
    /// Who approved that commit; `None` where the caller named it.
    pub approved_by: Option<String>,
}

/// What a pull request's dispatch compares.
///
/// # Errors
/// Requests that fail, and what [`approved`] refuses.
pub(crate) fn comparison(client: &Client, number: u64, head: Option<&Hash>) -> Result<Comparison, Problems> {
    let pull = client.pull(number)?;
    let reviews = client.reviews(number)?;
    if !reviews.complete {
        let message = format!(
            "pull request {number} has more than the {} reviews that are read",
            reviews.items.len()
        );
        return Err(Problem::file("", message)
            .hint("dispatch a comparison of two commits with `gh workflow run`")
            .into());
    }
    let approved_by = approved(&pull, &reviews.items, head)?;
    let base = client.merge_base(pull.base.sha.as_str(), pull.head.sha.as_str())?;
    Ok(Comparison {
        base: base.sha,
        head: pull.head.sha,
        labels: pull.labels.into_iter().map(|label| label.name).collect(),
        approved_by,
    })
}

/// Whether the newest commit of a pull request may be swept: nobody who may write asks for changes, and somebody who may has
/// approved just that commit, which gives the name, or the caller has named it.
///
/// # Errors
/// A pull request that is closed, a request for changes, another commit than the newest, and one that nobody approved.
pub(crate) fn approved(pull: &Pull, reviews: &[Review], head: Option<&Hash>) -> Result<Option<String>, Problem> {
    let (number, newest) = (pull.number, &pull.head.sha);
    if pull.state != "open" {
        let message = format!("pull request {number} is {}", code(&pull.state));
        return Err(Problem::file("", message).hint("dispatch a comparison of two commits with `gh workflow run`"));
    }
    // What somebody said last counts, comments aside.
    let mut last: IndexMap<&str, &Review> = IndexMap::new();
    let counts =
        |review: &&Review| APPROVERS.contains(&review.author_association.as_str()) && review.state != "COMMENTED";
    for review in reviews.iter().filter(counts) {
        if let Some(user) = &review.user {
            last.insert(&user.login, review);
        }
    }
    let asks = |(login, review): (&&str, &&Review)| (review.state == "CHANGES_REQUESTED").then(|| (*login).to_owned());
    let asking: Vec<String> = last.iter().filter_map(asks).collect();
    if !asking.is_empty() {
        let verb = if asking.len() == 1 { "asks" } else { "ask" };
        let message = format!("{} {verb} for changes of pull request {number}", listed(&asking));
        return Err(Problem::file("", message)
            .hint("make the changes, then have the review approved or dismissed on the pull request's page"));
    }
    if let Some(head) = head {
        if head == newest {
            return Ok(None);
        }
        let message = format!(
            "the newest commit of pull request {number} is {}, not {}",
            newest.as_str(),
            head.as_str()
        );
        return Err(Problem::file("", message).hint("read what was pushed since, then name that commit"));
    }
    let of_newest = |review: &Review| review.state == "APPROVED" && review.commit_id.as_ref() == Some(newest);
    let approver = last.iter().find(|(_, review)| of_newest(review));
    approver.map(|(login, _)| Some((*login).to_owned())).ok_or_else(|| {
        let message = format!(
            "no {} has approved {}, the newest commit of pull request {number}",
            any_of(&APPROVERS),
            newest.as_str()
        );
        let older = last
            .values()
            .find(|review| review.state == "APPROVED")
            .and_then(|review| review.commit_id.as_ref());
        let older = older.map(|commit| format!("{} was approved, and commits came after it; ", commit.short()));
        Problem::file("", message).hint(format!(
            "{}read the commit and approve it, or name what you have read: --head {}",
            older.unwrap_or_default(),
            newest.as_str()
        ))
    })
}

/// The form's inputs: what is asked of a sweep one by one, or, where a server takes fewer than that, in the one input
/// `asked`, as flags; and then the pull request's labels too, of which the priority of its jobs is made.
#[must_use]
pub(crate) fn inputs(
    given: IndexMap<String, String>,
    asked: &Asked,
    labels: &[String],
    most: Option<u64>,
) -> IndexMap<String, String> {
    let mut inputs = given;
    if most.is_none() {
        inputs.extend(asked.inputs());
        return inputs;
    }
    if !labels.is_empty() {
        inputs.insert("pr-labels-json".to_owned(), serde_json::json!(labels).to_string());
    }
    let flags = asked.flags();
    if !flags.is_empty() {
        let words: Vec<String> = flags.iter().map(|flag| quoted(flag)).collect();
        inputs.insert("asked".to_owned(), words.join(" "));
    }
    inputs
}

/// A request that asks which run it starts.
#[derive(Serialize)]
struct Asking<'r> {
    #[serde(flatten)]
    request: &'r Request,
    return_run_details: bool,
}

/// Sends a request, once. GitHub answers with the run that it starts; an older server does not, and may refuse to be asked,
/// which starts nothing: then the run is looked for by its name. `None` where it has not shown up in time.
///
/// # Errors
/// Requests that fail before and while it is sent. After that only the run's page is missing.
pub(crate) fn send(client: &Client, request: &Request) -> Result<Option<Dispatched>, Error> {
    let runs = || client.runs(WORKFLOW, "workflow_dispatch", &request.r#ref, None);
    let known: HashSet<u64> = runs()?.items.iter().map(|run| run.id).collect();
    let asking = Asking {
        request,
        return_run_details: true,
    };
    let started = match client.dispatch_workflow(WORKFLOW, &asking) {
        Err(Error::Status {
            status: 400 | 422,
            message,
            ..
        }) if message.contains("return_run_details") => client.dispatch_workflow(WORKFLOW, request)?,
        answer => answer?,
    };
    if started.is_some() {
        return Ok(started);
    }
    let name = request.inputs.get("test-name");
    let is_it = |run: &Run| !known.contains(&run.id) && name.is_none_or(|name| run.display_title == *name);
    for look in 0..LOOKS {
        if look > 0 {
            std::thread::sleep(Duration::from_secs(1));
        }
        match runs() {
            Ok(listing) => {
                if let Some(run) = listing.items.into_iter().find(is_it) {
                    return Ok(Some(Dispatched {
                        workflow_run_id: run.id,
                        html_url: run.html_url,
                    }));
                }
            }
            Err(_) => return Ok(None),
        }
    }
    Ok(None)
}
