//! What the decision on reuse asks about, fetched as far as it is needed.

use super::{AGENTIC, Candidate, EVALS, Facts, PullFacts, Which, authorization, fits};
use crate::config::labels::Reuse;
use crate::config::problem::{Problem, Problems};
use crate::github::baseline::{RESULTS, WORKFLOW};
use crate::github::client::answers::{Artifact, Pull, Run};
use crate::github::client::{Client, Error};

/// Runs whose artifacts are asked for: two requests each, and a few more for one without a collection.
const LOOKED_AT: usize = 20;

/// Fetches what is known of a commit. Where nobody authorizes reuse, runs are not looked at.
///
/// # Errors
/// Requests that fail, and a pull request with more comments than are looked through.
pub fn facts(client: &Client, commit: &str, reuse: &Reuse) -> Result<Facts, Problems> {
    let pulls = client.pulls_of(commit)?.items;
    let mut merged: Vec<Pull> = pulls.into_iter().filter(|pull| pull.merged_at.is_some()).collect();
    let mut facts = Facts {
        commit: commit.to_owned(),
        pulls: merged.iter().map(|pull| pull.number).collect(),
        pull: None,
    };
    let (Some(pull), true) = (merged.pop(), merged.is_empty()) else {
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
        labels: pull.labels.iter().map(|label| label.name.clone()).collect(),
        comments: comments.items,
        ..PullFacts::default()
    });
    let which = authorization(&facts, reuse).map(|authorization| authorization.which);
    if let (Ok(which), Some(known)) = (which, &mut facts.pull) {
        let commits = client.commits(number)?.items;
        known.commits = commits.iter().map(|commit| commit.sha.as_str().to_owned()).collect();
        // GitHub lists 250 commits; the newest belongs to it in any case.
        known.commits.push(pull.head.sha.as_str().to_owned());
        candidates(client, &pull, known, &which)?;
    }
    Ok(facts)
}

/// Adds the pinned run, and, unless it is good, the runs of the branch, the newest first, up to the first good one.
fn candidates(client: &Client, pull: &Pull, known: &mut PullFacts, which: &Which) -> Result<(), Error> {
    let pin = match which {
        Which::Newest => None,
        Which::Pinned(id) => Some(*id),
        Which::Unclear(_) => return Ok(()),
    };
    let pinned = match pin.map(|id| client.run(id)) {
        None => None,
        Some(Err(error)) if error.is_not_found() => None,
        Some(run) => Some(run?),
    };
    let mut looked_at = 0;
    if let Some(run) = pinned
        && add(client, known, run, true, &mut looked_at)?
    {
        return Ok(());
    }
    for run in client.runs(WORKFLOW, "pull_request", &pull.head.r#ref, None)?.items {
        if Some(run.id) != pin && add(client, known, run, false, &mut looked_at)? {
            break;
        }
    }
    Ok(())
}

/// Adds a run, with its artifacts where they matter; whether it can stand in.
fn add(client: &Client, known: &mut PullFacts, run: Run, pinned: bool, looked_at: &mut usize) -> Result<bool, Error> {
    let mut artifacts = Vec::new();
    if fits(&run, known, true).is_ok() {
        if *looked_at == LOOKED_AT {
            return Ok(false);
        }
        *looked_at += 1;
        artifacts = results_of(client, run.id)?;
    }
    let candidate = Candidate { run, artifacts };
    let good = super::judge(&candidate, known, pinned).is_ok();
    known.candidates.push(candidate);
    Ok(good)
}

/// The artifacts of a run that hold results. Single ones are looked for where there is no collection: a large run has
/// thousands.
fn results_of(client: &Client, run: u64) -> Result<Vec<Artifact>, Error> {
    let mut found = client.artifacts(run, Some(RESULTS))?.items;
    found.extend(client.artifacts(run, Some(EVALS))?.items);
    if found.iter().all(|artifact| artifact.expired) {
        let all = client.artifacts(run, None)?.items;
        found.extend(all.into_iter().filter(|artifact| artifact.name.starts_with(AGENTIC)));
    }
    Ok(found)
}
