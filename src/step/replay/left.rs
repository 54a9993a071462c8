//! An aggregate that a job's script already left: it is checked, and then taken as it is.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::gate::too_many;
use crate::config::problem::{Problem, Problems};
use crate::matrix::row::Row;
use crate::step::results::file::{self, shown};
use crate::step::results::json;
use crate::step::results::loose::{Cell, Map};

/// A file with an aggregate.
#[derive(Debug)]
pub(crate) struct Left {
    name: String,
    bytes: Vec<u8>,
    fields: Fields,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Fields {
    conc: Cell,
    model: Cell,
    framework: Cell,
    precision: Cell,
    recipe_fingerprint: Cell,
    num_requests_total: Cell,
    num_requests_successful: Cell,
    request_accounting: Option<Map<Accounting>>,
    request_metrics: Map<Value>,
    server_metrics: Map<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Accounting {
    records_total: Cell,
    records_profiled: Cell,
    records_dropped_total: Cell,
    records_warmup_dropped: Cell,
}

/// The part of a text that is compared.
type Part<'p> = &'p dyn Fn(&str) -> String;

impl Left {
    /// Reads a file; `None` where it is no aggregate, which has `request_accounting`.
    ///
    /// # Errors
    /// A file that cannot be read or is no JSON object.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>, Problem> {
        let name = shown(path);
        let failed =
            |reason: String| Problem::file(&name, format!("{name} {reason}")).hint("see the log of the replay");
        let bytes = file::read(path).map_err(|error| failed(format!("cannot be read: {error}")))?;
        let fields: Fields = json::parse_object(&bytes).map_err(failed)?;
        Ok(fields
            .request_accounting
            .is_some()
            .then_some(Self { name, bytes, fields }))
    }

    /// Whether it is whole, of a row's job, and of a replay that counts.
    ///
    /// # Errors
    /// Every way in which it is not.
    pub(crate) fn check(&self, row: &Row) -> Result<(), Problems> {
        let mut problems = Problems::default();
        let mut push = |message: String| problems.push(self.problem(message));
        for contradiction in self.contradictions(row) {
            push(format!("it is of another job: {contradiction}"));
        }
        // It is published as it is, and a bare NaN would break every reader.
        if let Err(error) = serde_json::from_slice::<serde::de::IgnoredAny>(&self.bytes) {
            push(format!("it is no strict JSON: {error}"));
        }
        for (part, missing) in [
            ("request_metrics", self.fields.request_metrics.0.is_none()),
            ("server_metrics", self.fields.server_metrics.0.is_none()),
        ] {
            if missing {
                push(format!("`{part}` is missing or no object"));
            }
        }
        match self.counts() {
            Err(messages) => messages.into_iter().for_each(push),
            Ok((0.0, failed)) => push(format!("no request completed, {failed} failed")),
            Ok((good, failed)) => too_many(failed, good + failed).into_iter().for_each(push),
        }
        problems.into_result()
    }

    /// The fields that name another job. Words count the same in any case, a model by its part after the last `/`;
    /// what is empty or unknown contradicts nothing, but the concurrency must be there.
    fn contradictions(&self, row: &Row) -> Vec<String> {
        let (found, topology) = (&self.fields, &row.topology);
        let mut list = Vec::new();
        if found
            .conc
            .integer()
            .is_none_or(|conc| !row.conc.points().contains(&conc))
        {
            let planned: Vec<String> = row.conc.points().iter().map(u64::to_string).collect();
            list.push(format!("`conc` is {}, the job's is {}", found.conc, planned.join(", ")));
        }
        let last = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
        let whole = |name: &str| name.to_owned();
        let fingerprint = row.recipe_fingerprint.as_deref().unwrap_or_default();
        let words: [(&str, &Cell, &str, Part<'_>); 4] = [
            ("model", &found.model, &topology.model, &last),
            ("framework", &found.framework, &topology.framework, &whole),
            ("precision", &found.precision, &topology.precision, &whole),
            ("recipe_fingerprint", &found.recipe_fingerprint, fingerprint, &whole),
        ];
        for (field, cell, planned, part) in words {
            let differs = match cell {
                Cell::Null => false,
                Cell::Text(text) if text.is_empty() || text.eq_ignore_ascii_case("unknown") => false,
                Cell::Text(text) => !planned.is_empty() && part(text).to_lowercase() != part(planned).to_lowercase(),
                _ => true,
            };
            if differs {
                list.push(format!("`{field}` is {cell}, the job's is {planned:?}"));
            }
        }
        list
    }

    /// How many requests succeeded and failed, without those of the warm-up.
    fn counts(&self) -> Result<(f64, f64), Vec<String>> {
        let Some(accounting) = self.fields.request_accounting.as_ref().and_then(|map| map.0.as_ref()) else {
            return Err(vec!["`request_accounting` is no object".to_owned()]);
        };
        let mut messages = Vec::new();
        let mut count = |name: &str, cell: &Cell| match cell {
            Cell::Number(_) if cell.integer().is_some() => cell.number().unwrap_or_default(),
            _ => {
                messages.push(format!("`{name}` is {cell}, it must be a count"));
                0.0
            }
        };
        let total = count("request_accounting.records_total", &accounting.records_total);
        let good = count("request_accounting.records_profiled", &accounting.records_profiled);
        let dropped = count(
            "request_accounting.records_dropped_total",
            &accounting.records_dropped_total,
        );
        let warm_up = count(
            "request_accounting.records_warmup_dropped",
            &accounting.records_warmup_dropped,
        );
        let told = count("num_requests_total", &self.fields.num_requests_total);
        let successful = count("num_requests_successful", &self.fields.num_requests_successful);
        if messages.is_empty() && (good + dropped != total || warm_up > dropped || told != total || successful != good)
        {
            messages.push(format!(
                "its counts contradict each other: {total} records, {good} good, {dropped} dropped, {warm_up} of the \
                 warm-up, {told} requests, {successful} successful"
            ));
        }
        if messages.is_empty() {
            Ok((good, dropped - warm_up))
        } else {
            Err(messages)
        }
    }

    fn problem(&self, message: String) -> Problem {
        Problem::file(&self.name, format!("{}: {message}", self.name)).hint("see the logs of the replay and the server")
    }

    /// The file's bytes.
    #[must_use]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
