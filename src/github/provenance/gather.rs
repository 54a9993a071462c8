//! What a record is made of, fetched. What the token may not see, or is gone, is a note and no failure.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::{Attempt, Pinned, PlanRecord, Provenance, RunRecord, Tool, labels_at, reused_run};
use crate::config::problem::Problems;
use crate::config::source::Source;
use crate::config::workflows::Workflows;
use crate::github::client::answers::{Job, Run};
use crate::github::client::{Client, Error};
use crate::github::recover;
use crate::github::run_jobs::{self, Execution, State};
use crate::plan_files;

/// The settings of workflows.
const SETTINGS: &str = "configs/workflows.yaml";
/// The job that takes over the results of an earlier run.
const TAKES_OVER: &str = "Take over the results";
/// The jobs whose log may say which run that is.
const DECIDES: [&str; 2] = ["Look for a sweep to reuse", "Decide"];

/// The record of a run; `plan` is its plan, where that is known.
///
/// # Errors
/// A plan that cannot be read, and requests that fail for another reason than the token's permissions.
pub(crate) fn provenance(client: &Client, run: Run, plan: Option<&Path>) -> Result<Provenance, Problems> {
    let mut notes = Vec::new();
    let artifacts = recover::gather::artifacts(client, run.id)?;
    let (executions, _) = run_jobs::executions(client, run.id, run.run_attempt)?;
    let (planned, compared) = match plan {
        Some(path) => read_plan(path)?,
        None => {
            notes.push("its plan is not known: it kept none, or it has expired; name a copy with --plan".to_owned());
            (None, None)
        }
    };
    // A dispatch runs on the default branch; what was swept stands in its plan.
    let commit = compared
        .as_ref()
        .map_or_else(|| run.head_sha.as_str().to_owned(), |(_, head)| head.clone());
    let pull_request = pull_request(client, &run, &mut notes)?;
    let labels = match pull_request {
        Some(number) => labels(client, number, &run, &mut notes)?,
        None => None,
    };
    let settings = settings(client, run.head_sha.as_str(), &mut notes)?;
    let tool = settings
        .as_ref()
        .map(|settings| Tool::of(settings, run.head_sha.as_str(), &artifacts));
    let actions = settings.map(|settings| settings.actions).unwrap_or_default();
    let pinned = |(name, pin): (String, crate::config::workflows::Pin)| {
        let (version, sha) = (pin.version, pin.sha);
        (name, Pinned { version, sha })
    };
    let mut artifacts: Vec<super::ArtifactRecord> = artifacts.into_iter().map(Into::into).collect();
    artifacts.sort_by_key(|artifact| artifact.id);
    Ok(Provenance {
        commit,
        base: compared.map(|(base, _)| base).filter(|base| !base.is_empty()),
        pull_request,
        labels,
        plan: planned,
        tool,
        actions: actions.into_iter().map(pinned).collect(),
        reused_run: taken_over(client, &executions, &mut notes)?,
        attempts: attempts(&executions, run.run_attempt),
        artifacts,
        workflows: run.referenced_workflows.clone(),
        run: record(client, run),
        notes,
    })
}

fn record(client: &Client, run: Run) -> RunRecord {
    RunRecord {
        repository: client.repository().to_string(),
        id: run.id,
        url: run.html_url,
        title: run.display_title,
        workflow: run.path,
        event: run.event,
        branch: run.head_branch,
        created_at: run.created_at,
        status: run.status,
        conclusion: run.conclusion,
    }
}

/// A plan's record, and the two commits that it compared, where it came from a changelog.
type Planned = (Option<PlanRecord>, Option<(String, String)>);

fn read_plan(path: &Path) -> Result<Planned, Problems> {
    let (index, envelopes) = (plan_files::index(path)?, plan_files::envelopes(path)?);
    let compared = plan_files::changelog(path)?;
    Ok((Some(PlanRecord::of(&envelopes, &index.asked)), compared))
}

/// Answers `None`, with a note, where the token may not look or there is nothing to see.
fn seen<T>(answer: Result<T, Error>, what: &str, notes: &mut Vec<String>) -> Result<Option<T>, Error> {
    match answer {
        Err(error @ Error::Status { status: 403 | 404, .. }) => {
            notes.push(format!("{what} is not known: {error}"));
            Ok(None)
        }
        answer => answer.map(Some),
    }
}

fn pull_request(client: &Client, run: &Run, notes: &mut Vec<String>) -> Result<Option<u64>, Error> {
    if let Some(pull) = run.pull_requests.first() {
        return Ok(Some(pull.number));
    }
    if !matches!(run.event.as_str(), "pull_request" | "push") {
        return Ok(None);
    }
    // GitHub names none for a run of a fork's, nor for a push.
    let pulls = seen(client.pulls_of(run.head_sha.as_str()), "its pull request", notes)?;
    let pulls = pulls.map(|pulls| pulls.items).unwrap_or_default();
    Ok(match pulls.as_slice() {
        [only] => Some(only.number),
        _ => None,
    })
}

fn labels(client: &Client, number: u64, run: &Run, notes: &mut Vec<String>) -> Result<Option<Vec<String>>, Error> {
    let Some(time) = run_jobs::time(run.created_at.as_ref()) else {
        return Ok(None);
    };
    let Some(events) = seen(client.events(number), "which labels its pull request had", notes)? else {
        return Ok(None);
    };
    if !events.complete {
        notes.push("which labels its pull request had is not known: too much happened to it".to_owned());
        return Ok(None);
    }
    Ok(Some(labels_at(&events.items, time)))
}

fn settings(client: &Client, commit: &str, notes: &mut Vec<String>) -> Result<Option<Workflows>, Error> {
    let Some(text) = seen(client.file(SETTINGS, commit), "which actions it used", notes)?.flatten() else {
        notes.push(format!(
            "where its binary came from is not known: {SETTINGS} is not at its commit"
        ));
        return Ok(None);
    };
    let source = Source::from_bytes(SETTINGS, text.into_bytes()).map_err(Problems::from);
    match source.and_then(|source| Workflows::load(&Arc::new(source))) {
        Ok(settings) => Ok(Some(settings)),
        Err(_) => {
            notes.push(format!(
                "where its binary came from is not known: {SETTINGS} of its commit is of another form"
            ));
            Ok(None)
        }
    }
}

fn attempts(executions: &[Execution], count: u64) -> Vec<Attempt> {
    let mut of: HashMap<u64, Attempt> = HashMap::new();
    let ran = executions
        .iter()
        .filter(|execution| State::of(&execution.job) != State::Skipped);
    for execution in ran {
        let attempt = of.entry(execution.attempt).or_insert(Attempt {
            attempt: execution.attempt,
            jobs: 0,
            not_successful: 0,
        });
        attempt.jobs += 1;
        attempt.not_successful += usize::from(State::of(&execution.job) != State::Done);
    }
    let none = |attempt| Attempt {
        attempt,
        jobs: 0,
        not_successful: 0,
    };
    (1..=count)
        .map(|attempt| of.remove(&attempt).unwrap_or_else(|| none(attempt)))
        .collect()
}

/// The run whose results were taken over: only the log of the job that found it says which.
fn taken_over(client: &Client, executions: &[Execution], notes: &mut Vec<String>) -> Result<Option<u64>, Error> {
    let is = |job: &Job, names: &[&str]| names.contains(&job.name.as_str()) && State::of(job) == State::Done;
    if !executions.iter().any(|execution| is(&execution.job, &[TAKES_OVER])) {
        return Ok(None);
    }
    let deciding = executions.iter().filter(|execution| is(&execution.job, &DECIDES));
    for execution in deciding {
        let log = seen(client.log_end(execution.job.id), "which run it reused", notes)?;
        if let Some(run) = log.as_deref().and_then(reused_run) {
            return Ok(Some(run));
        }
    }
    notes.push("it took over an earlier run; no log says which".to_owned());
    Ok(None)
}
