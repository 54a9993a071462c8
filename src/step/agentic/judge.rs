//! Whether a replay counts, by what its client left.

use std::path::Path;

use serde::Deserialize;

use super::record::Record;
use super::target::MetricsEndpoint;
use crate::config::problem::{Problem, Problems};
use crate::step::replay::files::{self, SERVER_METRICS};
use crate::step::results::file::{self, shown};
use crate::step::results::json;

/// What the client says of its own run.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Summary {
    was_cancelled: Option<bool>,
    metadata: Metadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    submission_valid: Option<bool>,
    submission_invalid_reasons: Vec<String>,
}

/// What the client says of the endpoints whose metrics it read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Export {
    summary: Endpoints,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Endpoints {
    endpoints_configured: Vec<String>,
    endpoints_successful: Vec<String>,
}

/// What the client says of a replay as a submission.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Submission {
    /// Whether it is one; `None` where the client does not say.
    pub is_valid: Option<bool>,
    /// Why it is none.
    pub reasons: Vec<String>,
}

/// Reads what the client says of its own run.
///
/// # Errors
/// A summary that is missing or cannot be read, and a run that was cut short.
pub(crate) fn summary(folder: &Path) -> Result<Submission, Problem> {
    let path = files::find(folder)?.summary;
    let name = shown(&path);
    let failed = |why: String| Problem::file(&name, format!("{name} {why}")).hint("see benchmark.log beside it");
    let bytes = file::read(&path).map_err(|error| failed(format!("cannot be read: {error}")))?;
    let summary: Summary = json::parse_object(&bytes).map_err(failed)?;
    if summary.was_cancelled == Some(true) {
        return Err(failed("says that the replay was cut short".to_owned()));
    }
    Ok(Submission {
        is_valid: summary.metadata.submission_valid,
        reasons: summary.metadata.submission_invalid_reasons,
    })
}

/// Notes which endpoints were read during a replay; its required ones must have been.
///
/// # Errors
/// Every endpoint that was required and not read.
pub(crate) fn metrics(folder: &Path, record: &mut Record) -> Result<(), Problems> {
    let told = export(folder);
    let mut problems = Problems::default();
    for metrics in &mut record.metrics {
        let missing = missing(&told, &metrics.endpoint);
        metrics.read = Some(missing.is_none());
        problems.0.extend(missing.filter(|_| metrics.required));
    }
    problems.into_result()
}

/// Whether some endpoints were read during a replay.
///
/// # Errors
/// Every one that was not.
pub(crate) fn unread(folder: &Path, endpoints: &[MetricsEndpoint]) -> Result<(), Problems> {
    if endpoints.is_empty() {
        return Ok(());
    }
    let told = export(folder);
    Problems(
        endpoints
            .iter()
            .filter_map(|endpoint| missing(&told, endpoint))
            .collect(),
    )
    .into_result()
}

/// Why the metrics of an endpoint are missing; `None` where they are not.
fn missing(told: &Result<Endpoints, String>, endpoint: &MetricsEndpoint) -> Option<Problem> {
    let why = match told {
        Err(why) => why.clone(),
        Ok(told) if told.endpoints_successful.contains(&endpoint.url) => return None,
        Ok(told) if told.endpoints_configured.contains(&endpoint.url) => "the client could not read it".to_owned(),
        Ok(_) => "the client was not told of it".to_owned(),
    };
    let message = format!(
        "the server metrics at {} ({}) are missing: {why}",
        endpoint.url, endpoint.from
    );
    let hint = "a replay without the metrics of every server looks healthier than it is: correct the endpoint; \
                `agentic run` takes --metrics-optional where a server has none";
    Some(Problem::file("", message).hint(hint))
}

fn export(folder: &Path) -> Result<Endpoints, String> {
    let found = files::find(folder).map_err(|problem| problem.message)?.server_metrics;
    if found.symlink_metadata().is_err() {
        return Err(format!("the client left no {SERVER_METRICS}"));
    }
    let bytes = file::read(&found).map_err(|error| format!("{SERVER_METRICS} cannot be read: {error}"))?;
    let export: Export = json::parse_object(&bytes).map_err(|why| format!("{SERVER_METRICS} {why}"))?;
    Ok(export.summary)
}
