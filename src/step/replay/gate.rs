//! The client's own summary, and whether its replay counts.

use std::path::Path;

use serde_json::{Map, Value};

use crate::config::problem::{Problem, Problems};
use crate::step::results::file::{self, shown};
use crate::step::results::json::{self, BARE};
use crate::step::throughput::check::MAX_ERROR_RATE;

/// The client's summary.
#[derive(Debug, Clone)]
pub(super) struct Summary {
    name: String,
    fields: Map<String, Value>,
}

impl Summary {
    /// Reads a summary.
    ///
    /// # Errors
    /// A file that cannot be read or is no JSON object.
    pub(super) fn read(path: &Path) -> Result<Self, Problem> {
        let name = shown(path);
        let failed = |reason: String| {
            Problem::file(&name, format!("{name} {reason}")).hint("the client did not finish: see its log")
        };
        let bytes = file::read(path).map_err(|error| failed(format!("cannot be read: {error}")))?;
        let fields = json::parse_object(&bytes).map_err(failed)?;
        Ok(Self { name, fields })
    }

    /// Whether enough requests succeeded. The summary's counts decide, not the records.
    ///
    /// # Errors
    /// Counts that are missing or none, nothing completed, and too many errors.
    pub(super) fn passes(&self) -> Result<(), Problems> {
        self.passes_at(MAX_ERROR_RATE).map(drop)
    }

    /// Whether at most a share of its requests failed. Gives how many of how many.
    ///
    /// # Errors
    /// As [`Self::passes`].
    pub(super) fn passes_at(&self, most: f64) -> Result<(f64, f64), Problems> {
        let mut problems = Problems::default();
        let mut count = |name: &str| match self.average(name) {
            Ok(count) => Some(count),
            Err(problem) => {
                problems.push(problem);
                None
            }
        };
        let (successes, errors) = (count("request_count"), count("error_request_count"));
        let completed = count("completed_request_count");
        if successes == Some(None) {
            problems.push(self.problem("`request_count.avg` is missing".to_owned()));
        }
        problems.into_result()?;
        let successes = successes.flatten().unwrap_or(0.0);
        let errors = errors.flatten().unwrap_or(0.0);
        let completed = completed.flatten().unwrap_or(successes + errors);
        if completed <= 0.0 {
            return Err(self.problem("no request completed".to_owned()).into());
        }
        match more_than(most, errors, completed) {
            Some(message) => Err(self.problem(message).into()),
            None => Ok((errors, completed)),
        }
    }

    /// The average of a count; `None` where it is missing or null.
    fn average(&self, name: &str) -> Result<Option<f64>, Problem> {
        let found = match self.fields.get(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Object(fields)) => fields.get("avg").unwrap_or(&Value::Null),
            Some(other) => return Err(self.problem(format!("`{name}` is {}, no object with `avg`", short(other)))),
        };
        match found {
            Value::Null => Ok(None),
            Value::Number(number) => match number.as_f64().filter(|n| n.is_finite() && *n >= 0.0) {
                Some(count) => Ok(Some(count)),
                None => Err(self.problem(format!("`{name}.avg` is {number}, it must be at least 0"))),
            },
            other => Err(self.problem(format!("`{name}.avg` is {}, it must be a finite number", short(other)))),
        }
    }

    fn problem(&self, message: String) -> Problem {
        Problem::file(&self.name, format!("{}: {message}", self.name)).hint("see the logs of the client and the server")
    }

    /// The share of prompt tokens that a perfect prefix cache would have held.
    pub(super) fn theoretical_cache_hit_rate(&self) -> Option<f64> {
        let hit = self.fields.get("theoretical_prefix_cache_hit")?.as_object()?;
        let number = |name: &str| hit.get(name).and_then(Value::as_f64).filter(|value| value.is_finite());
        if let (Some(sum), Some(count)) = (number("sum"), number("count"))
            && count > 0.0
        {
            return Some(sum / count);
        }
        let percent = hit.get("unit").and_then(Value::as_str) == Some("%");
        number("avg").map(|average| if percent { average / 100.0 } else { average })
    }

    /// What was replayed, as the client says it; bare NaN and infinities, which JSON does not know, are null.
    pub(super) fn dataset(&self) -> Option<Value> {
        let mut dataset = self.fields.get("metadata")?.get("dataset")?.clone();
        without_bare(&mut dataset);
        dataset.is_object().then_some(dataset)
    }
}

/// Why so many errors are too many.
pub(super) fn too_many(errors: f64, completed: f64) -> Option<String> {
    more_than(MAX_ERROR_RATE, errors, completed)
}

fn more_than(most: f64, errors: f64, completed: f64) -> Option<String> {
    let rate = errors / completed;
    (rate > most).then(|| {
        format!(
            "{errors} of {completed} requests failed, {:.1} %; at most {:.0} % may",
            rate * 100.0,
            most * 100.0
        )
    })
}

fn without_bare(value: &mut Value) {
    match value {
        Value::String(text) if BARE.contains(&text.as_str()) => *value = Value::Null,
        Value::Array(items) => items.iter_mut().for_each(without_bare),
        Value::Object(fields) => fields.values_mut().for_each(without_bare),
        _ => {}
    }
}

fn short(value: &Value) -> String {
    const SHOWN: usize = 80;
    value.to_string().chars().take(SHOWN).collect()
}
