//! What was planned, as a step reads it: one envelope, or the envelopes of a whole plan.

use std::collections::HashSet;
use std::path::Path;

use indexmap::IndexMap;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::results::file;
use crate::config::problem::Problem;
use crate::matrix::envelope::Envelope;
use crate::matrix::row::Row;

/// Reads the envelope of one job.
///
/// # Errors
/// A file that cannot be read or is no envelope.
pub fn read_envelope(path: &Path) -> Result<Envelope, Problem> {
    parse(
        path,
        "an envelope: an object with id, name, runs-on, timeout-minutes and row",
    )
}

#[derive(Deserialize)]
struct PlanFile {
    envelopes: Box<RawValue>,
}

/// Reads the envelopes of a plan: a list of them, or an object whose `envelopes` holds a list, or lists by bucket.
///
/// # Errors
/// A file that cannot be read or is no plan, and an id that stands in it twice.
pub fn read_plan(path: &Path) -> Result<Vec<Envelope>, Problem> {
    let form = "a plan: a list of envelopes, or an object with `envelopes`, a list or lists by bucket";
    let raw: Box<RawValue> = parse(path, form)?;
    let name = path.display().to_string();
    let envelopes = envelopes(&raw).map_err(|error| {
        Problem::file(&name, format!("`{name}` cannot be read: {error}")).hint(format!("the file holds {form}"))
    })?;
    let mut seen = HashSet::new();
    match envelopes.iter().find(|envelope| !seen.insert(&envelope.id)) {
        None => Ok(envelopes),
        Some(twice) => {
            let message = format!("the plan holds the job `{}` ({}) twice", twice.id, twice.name);
            Err(Problem::file(&name, message).hint("plan again: ids are unique in a plan"))
        }
    }
}

/// The forms are told apart by their first character, so that an error is about the form that is there.
fn envelopes(raw: &RawValue) -> serde_json::Result<Vec<Envelope>> {
    if raw.get().starts_with('[') {
        return serde_json::from_str(raw.get());
    }
    let PlanFile { envelopes } = serde_json::from_str(raw.get())?;
    if envelopes.get().starts_with('[') {
        return serde_json::from_str(envelopes.get());
    }
    let buckets: IndexMap<String, Vec<Envelope>> = serde_json::from_str(envelopes.get())?;
    Ok(buckets.into_values().flatten().collect())
}

fn parse<T: DeserializeOwned>(path: &Path, form: &str) -> Result<T, Problem> {
    let name = path.display().to_string();
    let failed = |reason: String| {
        Problem::file(&name, format!("`{name}` cannot be read: {reason}")).hint(format!("the file holds {form}"))
    };
    let bytes = file::read(path).map_err(|error| failed(error.to_string()))?;
    serde_json::from_slice(&bytes).map_err(|error| failed(error.to_string()))
}

/// The concurrencies that the eval of a row runs at; none for a row without one.
#[must_use]
pub fn eval_concs(row: &Row) -> Vec<u64> {
    match (row.runs_eval(), row.eval.eval_all_concs, row.eval.eval_conc) {
        (false, ..) => Vec::new(),
        (true, true, _) => row.conc.points().to_vec(),
        (true, false, Some(conc)) => vec![conc],
        (true, false, None) => vec![row.conc.highest()],
    }
}
