//! `meta_env.json`: which job a set of eval results comes from.

use std::fmt;
use std::path::Path;

use indexmap::IndexMap;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::answers::Answers;
use super::loose::{Cell, List, Map};
use super::{file, json};
use crate::config::fields::{Field, Parallelism, Side, Size};
use crate::files;
use crate::matrix::envelope::Envelope;
use crate::matrix::row::FieldValue;

/// The file's name.
pub const NAME: &str = "meta_env.json";
/// The largest that is read, in bytes (1 MiB): a batch of a thousand concurrencies takes some ten thousand.
const MAX_BYTES: u64 = 1 << 20;
/// What writers put where they know nothing.
pub const UNKNOWN: &str = "unknown";

/// Why the file says nothing, as the end of a sentence about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetaError {
    /// There is none.
    #[error("does not exist")]
    Missing,
    /// It cannot be read, or is no such JSON.
    #[error("{0}")]
    Unreadable(String),
}

/// The file's fields; writers differ in whether a number is a string.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MetaEnv {
    /// The concurrencies of a batch: those asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eval_concs: Option<List<Cell>>,
    /// Those that succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_eval_concs: Option<List<Cell>>,
    /// Those that did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_eval_concs: Option<List<Cell>>,
    /// What became of the answers, where the framework counts them.
    #[serde(skip_serializing_if = "Map::is_none")]
    pub answers: Map<Answers>,
    #[serde(flatten)]
    fields: IndexMap<String, Cell>,
}

/// Reads the fields in one pass; what `serde(flatten)` makes keeps a copy of each until all are read.
struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = MetaEnv;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<MetaEnv, A::Error> {
        let mut meta = MetaEnv::default();
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "eval_concs" => meta.eval_concs = map.next_value()?,
                "completed_eval_concs" => meta.completed_eval_concs = map.next_value()?,
                "failed_eval_concs" => meta.failed_eval_concs = map.next_value()?,
                "answers" => meta.answers = map.next_value()?,
                _ => {
                    let cell = map.next_value()?;
                    meta.fields.insert(name, cell);
                }
            }
        }
        Ok(meta)
    }
}

impl<'de> Deserialize<'de> for MetaEnv {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields)
    }
}

/// Whose results a set is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// The job's: nothing contradicts it.
    Job,
    /// The job's, by a writer that gets these fields wrong.
    JobMisdescribed(Vec<Contradiction>),
    /// Another job's, or nobody can tell: why.
    Other(Vec<Contradiction>),
}

impl MetaEnv {
    /// Reads the file.
    ///
    /// # Errors
    /// A file that is missing, cannot be read, is too large, or is no such JSON.
    pub fn read(path: &Path) -> Result<Self, MetaError> {
        let bytes = file::read_up_to(path, MAX_BYTES).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => MetaError::Missing,
            _ => MetaError::Unreadable(format!("cannot be read: {error}")),
        })?;
        json::parse_object(&bytes).map_err(MetaError::Unreadable)
    }

    /// Writes the file into a folder, whole or not at all.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub fn write(&self, folder: &Path) -> std::io::Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(std::io::Error::other)?;
        files::write_atomic(&folder.join(NAME), format!("{text}\n").as_bytes())
    }

    /// Sets a field.
    pub fn set(&mut self, name: &str, value: Cell) {
        self.fields.insert(name.to_owned(), value);
    }

    /// A field; null where it is missing.
    #[must_use]
    pub fn cell(&self, name: &str) -> &Cell {
        self.fields.get(name).unwrap_or(&Cell::Null)
    }

    /// The model's short name, where the writer knew it.
    #[must_use]
    pub fn model_prefix(&self) -> Option<&str> {
        self.cell("infmax_model_prefix")
            .text()
            .filter(|prefix| *prefix != UNKNOWN)
    }

    /// The job that the set comes from.
    #[must_use]
    pub fn job(&self) -> Option<&str> {
        self.cell("job_id").text()
    }

    /// Run and attempt: of two, the newer is the larger.
    #[must_use]
    pub fn attempt(&self) -> (u64, u64) {
        (
            self.cell("run_id").integer().unwrap_or(0),
            self.cell("run_attempt").integer().unwrap_or(0),
        )
    }

    /// Whether several concurrencies were evaluated against one server.
    #[must_use]
    pub fn is_batch(&self) -> bool {
        self.eval_concs.is_some()
    }

    /// Whose results these are, held against the envelope of a job. `run` is the run and its attempt, empty where they
    /// are not known; `younger` is whether the set was written since the job's launch, where that is known.
    ///
    /// A set with a `job_id` was written by this tool, which gets nothing wrong. Another's is the job's by the recipe's
    /// fingerprint or, where that is empty, by its age, and some of its fields are wrong as its writers are known to
    /// get them.
    #[must_use]
    pub fn owner(&self, envelope: &Envelope, run: (&str, &str), younger: Option<bool>) -> Owner {
        let found = self.contradictions(envelope, run);
        if self.job().is_some() {
            return match found.is_empty() {
                true => Owner::Job,
                false => Owner::Other(found),
            };
        }
        let named = says_something(self.cell("recipe_fingerprint"));
        if !named && younger == Some(false) {
            return Owner::Other(vec![Contradiction {
                name: NAME.to_owned(),
                sentence: "it is older than the launch, and names neither job nor recipe".to_owned(),
            }]);
        }
        let multinode = envelope.row.topology.shape().multinode;
        let (forgiven, real): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|one| is_often_wrong(&one.name, multinode));
        match (real.is_empty(), forgiven.is_empty()) {
            (false, _) => Owner::Other(real),
            (true, false) => Owner::JobMisdescribed(forgiven),
            (true, true) => Owner::Job,
        }
    }

    /// Every field in which the file contradicts the envelope of its job. Fields that it lacks, and those that are empty
    /// or `unknown`, say nothing.
    fn contradictions(&self, envelope: &Envelope, run: (&str, &str)) -> Vec<Contradiction> {
        let row = &envelope.row;
        let t = &*row.topology;
        let mut found = Contradictions {
            meta: self,
            found: Vec::new(),
        };
        for (name, wanted) in [
            ("job_id", envelope.id.as_str()),
            ("run_id", run.0),
            ("run_attempt", run.1),
        ] {
            if !wanted.is_empty() {
                found.id(name, wanted);
            }
        }
        found.flag("is_multinode", t.shape().multinode);
        for (field, name) in Field::of_meta() {
            match (field, row.field(field)) {
                (Field::Model, _) => found.model(&t.model),
                (Field::Runner, _) => found.hardware(name, [&t.runner, &envelope.runs_on]),
                (_, FieldValue::Int(number)) => found.number(name, number),
                (_, FieldValue::Text(text)) => found.text(name, text),
                (Field::Isl | Field::Osl, _) => found.number(name, 0),
                (Field::RecipeFingerprint, _) => found.text(name, ""),
                _ => {}
            }
        }
        found.sizes(
            "",
            t.roles().map_or_else(|| t.single(), |roles| Some(&roles.prefill.sizes)),
        );
        for side in Side::ALL {
            let role = t.roles().map(|roles| roles.side(side));
            let start = format!("{}_", side.name());
            // One node is its own prefill and decode side.
            found.sizes(&start, role.map_or_else(|| t.single(), |role| Some(&role.sizes)));
            found.number(&format!("{start}num_workers"), role.map_or(1, |role| role.num_worker));
        }
        found.concurrencies(envelope);
        found.found
    }
}

/// What other writers are known to get wrong: the sizes of one node's sides, expert and data parallelism there, on
/// several nodes every size, and the model's name, which may be a path or the name that the server goes by.
fn is_often_wrong(name: &str, multinode: bool) -> bool {
    let of_side = Side::ALL
        .iter()
        .any(|side| name.starts_with(&format!("{}_", side.name())));
    let size = Size::ALL.iter().any(|size| size.names().published == name);
    matches!(name, "is_multinode" | "model" | "ep" | "dp_attention") || of_side || (multinode && size)
}

/// Whether a field says anything.
fn says_something(cell: &Cell) -> bool {
    match cell {
        Cell::Null => false,
        Cell::Text(text) => !text.trim().is_empty() && !text.trim().eq_ignore_ascii_case(UNKNOWN),
        _ => true,
    }
}

/// A field that says something else than the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// The field.
    pub name: String,
    /// What it says, and what it should, as a sentence.
    pub sentence: String,
}

/// Several as one sentence.
#[must_use]
pub fn sentences(found: &[Contradiction]) -> String {
    let sentences: Vec<&str> = found.iter().map(|one| one.sentence.as_str()).collect();
    sentences.join("; ")
}

struct Contradictions<'m> {
    meta: &'m MetaEnv,
    found: Vec<Contradiction>,
}

impl Contradictions<'_> {
    /// Reports a field that says something for which `fits` does not hold.
    fn check(&mut self, name: &str, wanted: impl std::fmt::Display, fits: impl FnOnce(&Cell) -> bool) {
        let cell = self.meta.cell(name);
        if says_something(cell) && !fits(cell) {
            self.found.push(Contradiction {
                name: name.to_owned(),
                sentence: format!("`{name}` is {cell}, the job's is {wanted}"),
            });
        }
    }

    /// Case aside: writers spell hardware and frameworks in both.
    fn text(&mut self, name: &str, wanted: &str) {
        self.check(name, format_args!("\"{wanted}\""), |cell| {
            let said = cell.text().map(str::trim);
            said.is_some_and(|said| said.eq_ignore_ascii_case(wanted))
        });
    }

    /// A label; a launch on one of its runners may name that runner.
    fn hardware(&mut self, name: &str, wanted: [&str; 2]) {
        self.check(name, format_args!("\"{}\"", wanted[0]), |cell| {
            let said = cell.text().map(|said| said.trim().to_lowercase());
            let fits = |said: &str, label: &str| said == label || may_be_runner_of(said, label);
            said.is_some_and(|said| wanted.iter().any(|label| fits(&said, &label.to_lowercase())))
        });
    }

    /// An id, which may be written as a number.
    fn id(&mut self, name: &str, wanted: &str) {
        self.check(name, format_args!("\"{wanted}\""), |cell| match cell {
            Cell::Text(text) => text.trim() == wanted,
            cell => cell.integer().is_some_and(|number| number.to_string() == wanted),
        });
    }

    /// A model by the last part of its name: writers know it under its organisation, or as a path.
    fn model(&mut self, wanted: &str) {
        self.check("model", format_args!("\"{wanted}\""), |cell| is_model(cell, wanted));
    }

    fn number(&mut self, name: &str, wanted: u64) {
        self.check(name, wanted, |cell| whole(cell) == Some(wanted));
    }

    fn flag(&mut self, name: &str, wanted: bool) {
        self.check(name, wanted, |cell| cell.flag() == Some(wanted));
    }

    fn sizes(&mut self, start: &str, wanted: Option<&Parallelism>) {
        for (size, wanted) in Size::ALL.iter().filter_map(|size| Some((size, wanted?.get(*size)))) {
            let name = format!("{start}{}", size.names().published);
            match size.is_flag() {
                true => self.flag(&name, wanted != 0),
                false => self.number(&name, wanted),
            }
        }
    }

    /// The concurrency, and those of a batch: each must be one of the job's.
    fn concurrencies(&mut self, envelope: &Envelope) {
        let row = &envelope.row;
        let planned = |cell: &Cell| whole(cell).is_some_and(|conc| row.conc.points().contains(&conc));
        let points: Vec<String> = row.conc.points().iter().map(u64::to_string).collect();
        let points = points.join(", ");
        self.check("conc", &points, planned);
        let other = self
            .meta
            .eval_concs
            .iter()
            .flat_map(List::items)
            .filter(|cell| !planned(cell));
        let found: Vec<Contradiction> = other
            .map(|cell| Contradiction {
                name: "eval_concs".to_owned(),
                sentence: format!("`eval_concs` has {cell}, the job's are {points}"),
            })
            .collect();
        self.found.extend(found);
    }
}

/// Whether a file names a model, which it may know by the last part of its name alone, and in other case.
#[must_use]
pub(crate) fn is_model(said: &Cell, wanted: &str) -> bool {
    let last = |name: &str| {
        let last = name.trim_end_matches('/').rsplit('/').next();
        last.unwrap_or_default().to_lowercase()
    };
    said.text().is_some_and(|said| last(said.trim()) == last(wanted))
}

/// Whether a name may be that of a runner of a label: `<fleet>_<nn>`, of a fleet that is not named after other
/// hardware, such as `h200-dgx_03` of `h200`.
fn may_be_runner_of(name: &str, label: &str) -> bool {
    let Some((fleet, number)) = name.rsplit_once('_') else {
        return false;
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let hardware = fleet.split('-').next().unwrap_or_default();
    let names_hardware = hardware.bytes().any(|byte| byte.is_ascii_digit());
    is_number(number) && (!names_hardware || label.split([':', '-', '_']).any(|word| word == hardware))
}

/// A number as a field.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "JSON numbers are doubles to their readers")]
pub fn number(value: u64) -> Cell {
    Cell::Number(value as f64)
}

/// The whole number that a cell is or spells.
fn whole(cell: &Cell) -> Option<u64> {
    match cell {
        Cell::Text(text) => text
            .trim()
            .parse()
            .ok()
            .and_then(|number| Cell::Number(number).integer()),
        cell => cell.integer(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(text: &str) -> MetaEnv {
        json::parse_object(text.as_bytes()).expect("metadata")
    }

    #[test]
    fn a_set_without_a_job_is_told_by_its_recipe_or_else_by_its_age() {
        let row = r#"{"image": "i", "model": "org/m", "model-prefix": "m", "precision": "fp8", "framework": "vllm",
            "runner": "h200", "isl": 1024, "osl": 1024, "tp": 8, "pp": 1, "dcp-size": 1, "pcp-size": 1, "ep": 1,
            "dp-attn": false, "spec-decoding": "none", "conc": 4, "max-model-len": 2304, "exp-name": "m_1k1k",
            "disagg": false, "run-eval": true, "recipe-fingerprint": "0123"}"#;
        let job =
            format!(r#"{{"id": "0123456789ab", "name": "m", "runs-on": "h200", "timeout-minutes": 9, "row": {row}}}"#);
        let job: Envelope = serde_json::from_str(&job).expect("an envelope");
        let named = meta(r#"{"recipe_fingerprint": "0123"}"#);
        let unnamed = meta(r#"{"recipe_fingerprint": " "}"#);
        for younger in [None, Some(true)] {
            assert_eq!(named.owner(&job, ("", ""), younger), Owner::Job);
            assert_eq!(unnamed.owner(&job, ("", ""), younger), Owner::Job);
        }
        assert_eq!(named.owner(&job, ("", ""), Some(false)), Owner::Job);
        let Owner::Other(why) = unnamed.owner(&job, ("", ""), Some(false)) else {
            panic!("it is older, and names nothing");
        };
        assert_eq!(
            sentences(&why),
            "it is older than the launch, and names neither job nor recipe"
        );
        let other = meta(r#"{"recipe_fingerprint": "4567"}"#).owner(&job, ("", ""), Some(true));
        assert!(matches!(other, Owner::Other(_)), "{other:?}");
    }

    #[test]
    fn only_what_is_known_is_written() {
        let text = serde_json::to_string(&MetaEnv::default()).expect("JSON");
        assert_eq!(text, "{}");
        let counted = meta(r#"{"answers": {"asked": 3}}"#);
        assert!(serde_json::to_string(&counted).expect("JSON").contains("\"asked\":3"));
    }
}
