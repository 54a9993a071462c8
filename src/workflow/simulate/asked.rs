//! What a job is asked before it starts: in which order, whether it is to run, and under which name it does.

use std::collections::HashSet;

use indexmap::IndexMap;

use super::Leg;
use super::evaluate::{EvalError, Scope, Status};
use super::template::{self, Condition};
use super::value::Value;
use crate::config::problem::{Problems, nearest};
use crate::config::tree::Node;
use crate::findings::workflow;
use crate::github::needs::{JobResult, Need};
use crate::workflow::tree::{File, Job, get};

/// A job that was asked.
pub(super) struct State {
    pub(super) result: JobResult,
    pub(super) outputs: IndexMap<String, String>,
}

impl State {
    /// What `needs.<id>` is.
    pub(super) fn value(&self) -> Value {
        let outputs = self.outputs.iter().map(|(name, value)| (name, value.as_str().into()));
        [("result", self.result.as_str().into()), ("outputs", outputs.collect())]
            .into_iter()
            .collect()
    }

    pub(super) fn need(&self) -> Need {
        Need {
            result: self.result,
            outputs: self.outputs.clone(),
        }
    }
}

/// A concurrency group; empty where there is none.
#[derive(Debug, Default)]
pub(super) struct Concurrency {
    pub(super) group: String,
    pub(super) cancels: bool,
}

/// What `concurrency` says: a group's name, or a group and whether it cancels.
pub(super) fn concurrency(node: Option<&Node<'_>>, scope: &Scope) -> Result<Concurrency, EvalError> {
    let Some(node) = node else {
        return Ok(Concurrency::default());
    };
    let group = template::value(get(node, "group").unwrap_or(node), scope)?;
    let cancels = get(node, "cancel-in-progress").map(|node| template::value(node, scope));
    Ok(Concurrency {
        group: group.text().to_string(),
        cancels: cancels.transpose()?.is_some_and(|value| value.is_truthy()),
    })
}

/// The name, the runner and the group of one run of a job.
pub(super) fn head(job: &Job<'_, '_>, scope: &Scope, suffix: &str) -> Result<Leg, EvalError> {
    let at = |key: &'static str| move |error: EvalError| EvalError::Shape(format!("`{key}`: {error}"));
    let name = match job.get("name") {
        Some(node) if node.text().contains("${{") => {
            template::value(node, scope).map_err(at("name"))?.text().to_string()
        }
        Some(node) => format!("{}{suffix}", node.text()),
        None => format!("{}{suffix}", job.id.text()),
    };
    let runs_on = match job
        .get("runs-on")
        .map(|node| template::value(get(node, "labels").unwrap_or(node), scope))
    {
        None => Vec::new(),
        Some(value) => match value.map_err(at("runs-on"))? {
            Value::Array(list) => list.items.iter().map(|label| label.text().to_string()).collect(),
            one => vec![one.text().to_string()],
        },
    };
    if runs_on.iter().any(String::is_empty) {
        return Err(EvalError::Shape("`runs-on` is empty".to_owned()));
    }
    let group = concurrency(job.get("concurrency"), scope)
        .map_err(at("concurrency"))?
        .group;
    Ok(Leg {
        name,
        runs_on,
        group,
        jobs: Vec::new(),
    })
}

/// Why a job is not to run; `None` where it is.
pub(super) fn condition(
    file: &File<'_>,
    job: &Job<'_, '_>,
    scope: &Scope,
    states: &IndexMap<&str, State>,
    cancelled: bool,
) -> Result<Option<String>, EvalError> {
    let before = file.ancestors(job.id.text());
    let results = || before.iter().filter_map(|id| Some((*id, states.get(id)?.result)));
    let status = Status {
        success: !cancelled && results().all(|(_, result)| result == JobResult::Success),
        failure: results().any(|(_, result)| result == JobResult::Failure),
        cancelled,
    };
    let condition = Condition::parse(job.condition())?;
    let asks_status = condition.as_ref().is_some_and(Condition::asks_status);
    if !asks_status && !status.success {
        let needs = job.needs();
        let missed =
            |direct: bool| results().find(|(id, result)| *result != JobResult::Success && needs.contains(id) == direct);
        let without = if condition.is_some() {
            "its condition has no status function"
        } else {
            "it has no condition"
        };
        return Ok(Some(match missed(true).or_else(|| missed(false)) {
            Some((id, result)) => format!("`{id}` {}, and {without}", ended_as(result)),
            None => format!("the run is cancelled, and {without}"),
        }));
    }
    let Some(condition) = condition else { return Ok(None) };
    let scope = scope.clone().in_status(status);
    Ok(match condition.holds(&scope)? {
        true => None,
        false => Some(condition.blame(&scope)),
    })
}

pub(super) fn ended_as(result: JobResult) -> &'static str {
    match result {
        JobResult::Success => "succeeded",
        JobResult::Failure => "failed",
        JobResult::Cancelled => "was cancelled",
        JobResult::Skipped => "was skipped",
    }
}

/// The result of several together.
pub(super) fn worst(results: impl IntoIterator<Item = JobResult>) -> JobResult {
    let rank = |result: &JobResult| match result {
        JobResult::Skipped => 0,
        JobResult::Success => 1,
        JobResult::Cancelled => 2,
        JobResult::Failure => 3,
    };
    results.into_iter().max_by_key(rank).unwrap_or(JobResult::Skipped)
}

/// The jobs of a file, each behind those that it waits for.
pub(super) fn in_order<'f, 's>(file: &'f File<'s>) -> Result<Vec<Job<'f, 's>>, Problems> {
    let mut open: Vec<Job<'f, 's>> = file.jobs().collect();
    let known: HashSet<&str> = open.iter().map(|job| job.id.text()).collect();
    let mut problems = Problems::default();
    for job in &open {
        for need in job.needs().into_iter().filter(|need| !known.contains(need)) {
            let problem = file.finding(
                &workflow::UNKNOWN_NEED,
                job.id.span,
                format!("`{}` waits for `{need}`, which is not there", job.id.text()),
            );
            problems.push(problem.hint(nearest(need, known.iter().copied())));
        }
    }
    problems.into_result()?;
    let mut done: HashSet<&str> = HashSet::new();
    let mut order = Vec::new();
    while !open.is_empty() {
        let (ready, rest): (Vec<_>, Vec<_>) = open
            .into_iter()
            .partition(|job| job.needs().iter().all(|need| done.contains(need)));
        if ready.is_empty() {
            let waiting: Vec<&str> = rest.iter().map(|job| job.id.text()).collect();
            let problem = file.finding(
                &workflow::NEEDS_CYCLE,
                file.start(),
                format!("jobs wait for each other: {}", waiting.join(", ")),
            );
            return Err(problem.hint("remove one of their `needs`").into());
        }
        done.extend(ready.iter().map(|job| job.id.text()));
        order.extend(ready);
        open = rest;
    }
    Ok(order)
}
