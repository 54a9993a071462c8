//! What the decision on reuse asks about, fetched as far as it is needed.

use std::collections::hash_map::Entry;

use super::command::{asked, authorization};
use super::judge::{fits, judge};
use super::{AGENTIC, Access, Candidate, EVALS, Facts, PullFacts, Which};
use crate::config::labels::Reuse;
use crate::config::problem::{Problem, Problems};
use crate::github::baseline::{RESULTS, WORKFLOW};
use crate::github::client::answers::{Artifact, Pull, Run};
use crate::github::client::{Client, Error};

/// Runs that are looked into: a request each, and a few more for those with many artifacts. A search that reads further
/// would take what an hour has for everybody else.
const LOOKED_INTO: usize = 300;
/// Pages of runs: GitHub lists 1,000 of a search.
const RUN_PAGES: usize = 10;
/// Pages of one run's artifacts that single agentic results are looked for in.
const ARTIFACT_PAGES: usize = 20;
/// The start of the name of the artifact that says which plan a run had.
const PLAN: &str = "plan-";

/// What is asked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ask {
    /// The commit.
    pub commit: String,
    /// The open pull request whose newest commit it is; `None` for a commit that was pushed to the default branch.
    pub pull: Option<u64>,
    /// The digest of the commit's plan, where that is known.
    pub plan: Option<String>,
    /// Where the repository is shown, `https://github.com/owner/name`.
    pub address: String,
    /// The run that asks; it cannot stand in for itself.
    pub own_run: Option<u64>,
}

/// Fetches what is known of a commit. Where nobody authorizes reuse, runs are not looked at.
///
/// # Errors
/// Requests that fail, and a pull request with more comments than are looked through.
pub(crate) fn facts(client: &Client, ask: &Ask, reuse: &Reuse) -> Result<Facts, Problems> {
    let mut facts = Facts {
        commit: ask.commit.clone(),
        address: ask.address.clone(),
        ..Facts::default()
    };
    let Some(pull) = pull(client, ask, &mut facts)? else {
        return Ok(facts);
    };
    let number = pull.number;
    let comments = client.comments(number)?;
    if !comments.complete {
        let message = format!(
            "pull request {number} has more than the {} comments that are read",
            comments.items.len()
        );
        return Err(Problem::file("", message)
            .hint("delete comments that nobody needs, such as those of bots")
            .into());
    }
    facts.pull = Some(PullFacts {
        number,
        open: ask.pull.is_some(),
        labels: pull.labels.iter().map(|label| label.name.clone()).collect(),
        branch: pull.head.r#ref.clone(),
        repository: pull.head.repo.as_ref().map(|repository| repository.full_name.clone()),
        comments: comments.items,
        ..PullFacts::default()
    });
    permissions(client, &mut facts, reuse)?;
    let which = authorization(&facts, reuse).map(|authorization| authorization.which);
    let Ok(which) = which else { return Ok(facts) };
    if let Some(mut known) = facts.pull.take() {
        let commits = client.commits(number)?.items;
        known.commits = commits.iter().map(|commit| commit.sha.as_str().to_owned()).collect();
        // GitHub lists 250 commits; the newest belongs to it in any case.
        known.commits.push(pull.head.sha.as_str().to_owned());
        let mut search = Search {
            client,
            ask,
            facts: &facts,
            known: &mut known,
            looked_into: 0,
        };
        search.candidates(&which)?;
        facts.pull = Some(known);
    }
    Ok(facts)
}

/// The pull request that is asked about: the one that is named, or the only merged one of the commit.
fn pull(client: &Client, ask: &Ask, facts: &mut Facts) -> Result<Option<Pull>, Error> {
    if let Some(number) = ask.pull {
        facts.pulls = vec![number];
        return client.pull(number).map(Some);
    }
    let pulls = client.pulls_of(&ask.commit)?.items;
    let mut merged: Vec<Pull> = pulls.into_iter().filter(|pull| pull.merged_at.is_some()).collect();
    facts.pulls = merged.iter().map(|pull| pull.number).collect();
    Ok(merged.pop().filter(|_| merged.is_empty()))
}

/// Asks what the writers of commands may do, the latest first, up to the first whose word counts.
fn permissions(client: &Client, facts: &mut Facts, reuse: &Reuse) -> Result<(), Error> {
    if reuse.permissions.is_empty() {
        return Ok(());
    }
    let comments = facts.pull.iter().flat_map(|pull| pull.comments.iter().rev());
    let counting = comments.filter(|comment| asked(comment, facts, reuse).is_some());
    let logins = counting.filter_map(|comment| Some(comment.user.as_ref()?.login.clone()));
    let logins: Vec<String> = logins.collect();
    for login in logins {
        if let Entry::Vacant(entry) = facts.access.entry(login) {
            let access = match client.permission(entry.key()) {
                Ok(found) => Access::Has(vec![found.permission, found.role_name]),
                Err(error) if error.is_forbidden() => Access::Unseen("the token may not ask".to_owned()),
                // No such user any more, or none of this repository.
                Err(error) if error.is_not_found() => Access::Has(Vec::new()),
                Err(error) => return Err(error),
            };
            entry.insert(access);
        }
        let asked = |by: &String| facts.access.contains_key(by);
        if authorization(facts, reuse).is_ok_and(|authorization| asked(&authorization.by)) {
            break;
        }
    }
    Ok(())
}

/// A search for a run that can stand in.
struct Search<'s> {
    client: &'s Client,
    ask: &'s Ask,
    facts: &'s Facts,
    known: &'s mut PullFacts,
    looked_into: usize,
}

impl Search<'_> {
    /// Adds the pinned run, and, unless it is good, the runs of the branch, the newest first, up to the first good one.
    fn candidates(&mut self, which: &Which) -> Result<(), Error> {
        let pin = match which {
            Which::Newest => None,
            Which::Pinned(id) => Some(*id),
            Which::Unclear(_) => return Ok(()),
        };
        let pinned = match pin.map(|id| self.client.run(id)).transpose() {
            Err(error) if error.is_not_found() => None,
            pinned => pinned?,
        };
        if let Some(run) = pinned
            && self.add(run, true)?
        {
            return Ok(());
        }
        match self.of_branch(pin) {
            // What was found so far may do, and the way out is a pin.
            Err(error) if error.is_budget() => {
                self.known.stopped = Some("the hour's requests are used up".to_owned());
                Ok(())
            }
            other => other,
        }
    }

    fn of_branch(&mut self, pin: Option<u64>) -> Result<(), Error> {
        for page in 1..=RUN_PAGES {
            let branch = self.known.branch.clone();
            let (runs, last) = self.client.runs_page(WORKFLOW, "pull_request", &branch, page)?;
            for run in runs {
                if Some(run.id) == pin || Some(run.id) == self.ask.own_run {
                    continue;
                }
                if self.looked_into == LOOKED_INTO {
                    self.known.stopped = Some(format!("{LOOKED_INTO} runs were looked into"));
                    return Ok(());
                }
                if self.add(run, false)? {
                    return Ok(());
                }
            }
            if last {
                return Ok(());
            }
        }
        self.known.stopped = Some("GitHub lists no more than 1,000 runs".to_owned());
        Ok(())
    }

    /// Adds a run, with its artifacts where they matter; whether it can stand in.
    fn add(&mut self, run: Run, pinned: bool) -> Result<bool, Error> {
        let mut candidate = Candidate {
            run,
            artifacts: Vec::new(),
            same_plan: None,
        };
        if let Ok(needs_plan) = fits(&candidate.run, self.known, true) {
            self.looked_into += 1;
            let id = candidate.run.id;
            if let (true, Some(plan)) = (needs_plan, &self.ask.plan) {
                let named = self.client.artifacts(id, Some(&format!("{PLAN}{plan}")))?;
                candidate.same_plan = Some(!named.items.is_empty());
            }
            if !needs_plan || candidate.same_plan == Some(true) {
                candidate.artifacts = results_of(self.client, id)?;
            }
        }
        let good = judge(&candidate, self.facts, self.known, pinned).is_ok();
        self.known.candidates.push(candidate);
        Ok(good)
    }
}

/// The artifacts of a run that hold results. A run that swept nothing has few, and one request tells. A large one has
/// thousands: its collections are asked for by name, and single agentic results looked for where there is no collection
/// of throughput, whatever there is of evals.
fn results_of(client: &Client, run: u64) -> Result<Vec<Artifact>, Error> {
    let first = client.artifacts_page(run, 1)?;
    let is_all = first.artifacts.len() >= first.total_count;
    let mut found = first.artifacts;
    if is_all {
        return Ok(found);
    }
    for name in [RESULTS, EVALS] {
        found.extend(client.artifacts(run, Some(name))?.items);
    }
    let has = |found: &[Artifact], is: &dyn Fn(&str) -> bool| found.iter().any(|a| !a.expired && is(&a.name));
    let mut page = 2;
    while page <= ARTIFACT_PAGES && !has(&found, &|name| name == RESULTS || name.starts_with(AGENTIC)) {
        let next = client.artifacts_page(run, page)?.artifacts;
        if next.is_empty() {
            break;
        }
        found.extend(next);
        page += 1;
    }
    Ok(found)
}
