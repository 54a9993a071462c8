//! The point at which something was measured.

use std::fmt;

use indexmap::IndexMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::config::fields::{Field, Parallelism, Size};
use crate::step::results::loose::{Cell, Named};

/// The fields of a published row; of what has a name and a version, the name.
pub(super) type Fields = IndexMap<String, Named>;

/// The longest text of a row that names something, in characters.
const MAX_TEXT: usize = 200;
/// What is said where there is no speculative decoding, and nothing else to tell.
const NONE: &str = "none";
/// What a job without fixed lengths runs.
const AGENTIC: &str = "agentic-coding";

/// What two measurements must have in common to be comparable. Letters count the same, large or small.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Point {
    /// Fields of the row by themselves, as the table of fields has them.
    #[serde(flatten)]
    own: Parts,
    /// `<isl>/<osl>`, or `agentic-coding`.
    pub lengths: String,
    /// Where an agentic job's cache is offloaded to, and by what; empty where it is not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub offload: String,
    /// Sizes, without those that are 1, in a multi-node job of each side.
    pub topology: String,
    /// The concurrency.
    pub conc: u64,
}

/// Fields with their values, in the table's order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Parts(Vec<(&'static str, Part)>);

/// The value of a field.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(untagged)]
enum Part {
    Flag(bool),
    Text(String),
}

impl Serialize for Parts {
    /// As a mapping; what is empty is left out.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let said = |(_, part): &&(&str, Part)| !matches!(part, Part::Text(text) if text.is_empty());
        serializer.collect_map(self.0.iter().filter(said).map(|(name, part)| (name, part)))
    }
}

impl<'de> Deserialize<'de> for Parts {
    /// From that mapping, whatever else it holds.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut said: IndexMap<String, Value> = Deserialize::deserialize(deserializer)?;
        let part = |(_, [name, _]): (Field, [&'static str; 2])| {
            let part = match said.swap_remove(name) {
                Some(Value::Bool(flag)) => Part::Flag(flag),
                Some(Value::String(text)) => Part::Text(text),
                _ => Part::Text(String::new()),
            };
            (name, part)
        };
        Ok(Self(
            Field::of_points()
                .filter(|(field, _)| stands_alone(*field))
                .map(part)
                .collect(),
        ))
    }
}

/// Whether a field is a part of a point by itself; several others make one together.
fn stands_alone(field: Field) -> bool {
    !matches!(
        field,
        Field::Isl | Field::Osl | Field::ScenarioType | Field::KvOffloading | Field::KvOffloadBackend
    )
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = Field::of_points().map(|(field, _)| match field {
            Field::SpecDecoding => self.spec(),
            field => self.text(field).to_owned(),
        });
        for part in own.chain([self.lengths.clone(), self.split()]) {
            if !matches!(part.as_str(), "" | NONE) {
                write!(f, "{part} ")?;
            }
        }
        write!(f, "c{}", self.conc)
    }
}

impl Point {
    /// The point of a row.
    ///
    /// # Errors
    /// Why the row says of none.
    pub(super) fn read(fields: &Fields) -> Result<Self, String> {
        let mut own = Vec::new();
        for (field, names) in Field::of_points().filter(|(field, _)| stands_alone(*field)) {
            let name = said(fields, names);
            let part = match field {
                Field::Disagg => Part::Flag(get(fields, name).flag().unwrap_or(false)),
                Field::SpecDecoding => Part::Text(optional(fields, name)?.unwrap_or_else(|| NONE.to_owned())),
                field if field.is_of_every_shape() => Part::Text(required(fields, name)?),
                _ => Part::Text(optional(fields, name)?.unwrap_or_default()),
            };
            own.push((names[0], part));
        }
        let conc = get(fields, "conc");
        Ok(Self {
            own: Parts(own),
            lengths: lengths(fields)?,
            offload: offload(fields)?,
            topology: topology(fields)?,
            conc: conc
                .integer()
                .filter(|conc| *conc > 0)
                .ok_or_else(|| format!("`conc` is {conc}, it must be a number above 0"))?,
        })
    }

    /// A field of the row that is a text, for people; empty where the point has none.
    #[must_use]
    pub fn text(&self, field: Field) -> &str {
        let of_field = Field::of_points().find(|(own, _)| *own == field);
        let text = of_field.and_then(|(_, [name, _])| {
            self.own.0.iter().find_map(|part| match part {
                (own, Part::Text(text)) if *own == name => Some(text.as_str()),
                _ => None,
            })
        });
        text.unwrap_or_default()
    }

    /// Its speculative decoding, and whether prefill and decode are apart, for people.
    #[must_use]
    pub fn spec(&self) -> String {
        let spec = self.text(Field::SpecDecoding);
        match self.own.0.contains(&("disagg", Part::Flag(true))) {
            true => format!("{spec} disagg"),
            false => spec.to_owned(),
        }
    }

    /// Its topology and what is offloaded, for people.
    #[must_use]
    pub fn split(&self) -> String {
        match self.offload.is_empty() {
            true => self.topology.clone(),
            false => format!("{} kv {}", self.topology, self.offload),
        }
    }
}

/// The name under which a row says a field.
fn said(fields: &Fields, [name, other]: [&'static str; 2]) -> &'static str {
    match get(fields, name) {
        Cell::Null => other,
        _ => name,
    }
}

/// A field; one that is not there is null.
pub(super) fn get<'f>(fields: &'f Fields, name: &str) -> &'f Cell {
    fields.get(name).map_or(&Cell::Null, |named| &named.0)
}

/// A text of bounded length in small letters; `None` where there is none.
pub(super) fn optional(fields: &Fields, name: &str) -> Result<Option<String>, String> {
    let cell = get(fields, name);
    match cell.text() {
        Some(text) if text.chars().count() > MAX_TEXT => Err(format!("`{name}` is longer than {MAX_TEXT} characters")),
        Some(text) => Ok(Some(text.to_lowercase())),
        None if *cell == Cell::Null || *cell == Cell::Text(String::new()) => Ok(None),
        None => Err(format!("`{name}` is {cell}, it must be a text")),
    }
}

pub(super) fn required(fields: &Fields, name: &str) -> Result<String, String> {
    optional(fields, name)?.ok_or_else(|| format!("`{name}` is {}, it must be a text", get(fields, name)))
}

/// Eval rows give jobs without lengths 0 for both; throughput rows say which scenario it is.
fn lengths(fields: &Fields) -> Result<String, String> {
    let (isl, osl) = (get(fields, "isl"), get(fields, "osl"));
    let agentic = get(fields, "scenario_type")
        .text()
        .is_some_and(|scenario| scenario.eq_ignore_ascii_case(AGENTIC));
    match (isl.integer(), osl.integer()) {
        _ if agentic => Ok(AGENTIC.to_owned()),
        (Some(0), Some(0)) => Ok(AGENTIC.to_owned()),
        (Some(isl), Some(osl)) if isl > 0 && osl > 0 => Ok(format!("{isl}/{osl}")),
        _ => Err(format!("`isl` is {isl} and `osl` is {osl}, and no scenario is named")),
    }
}

fn offload(fields: &Fields) -> Result<String, String> {
    let mode = optional(fields, "kv_offloading")?.filter(|mode| mode != "none");
    // The backend's name: which point it is does not depend on its version.
    let backend = match get(fields, "kv_offload_backend") {
        Cell::Nested => None,
        _ => optional(fields, "kv_offload_backend")?,
    };
    let parts: Vec<String> = mode.into_iter().chain(backend).collect();
    Ok(parts.join(" "))
}

fn topology(fields: &Fields) -> Result<String, String> {
    match get(fields, "is_multinode").flag() {
        Some(true) => Ok(format!("{}, {}", side(fields, "prefill")?, side(fields, "decode")?)),
        _ => sizes(fields, ""),
    }
}

fn side(fields: &Fields, name: &str) -> Result<String, String> {
    let workers = size(fields, &format!("{name}_num_workers"), Some(1))?;
    let sizes = sizes(fields, &format!("{name}_"))?;
    let hardware = optional(fields, &format!("{name}_hw"))?.map(|hw| format!(" on {hw}"));
    Ok(format!("{name} {workers}x {sizes}{}", hardware.unwrap_or_default()))
}

fn sizes(fields: &Fields, prefix: &str) -> Result<String, String> {
    let mut sizes = Parallelism::default();
    for part in Size::ALL {
        let name = format!("{prefix}{}", part.names().published);
        let number = match part {
            flag if flag.is_flag() => u64::from(get(fields, &name).flag() == Some(true)),
            part => size(fields, &name, (*part != Size::Tp).then_some(1))?,
        };
        sizes.set(*part, number);
    }
    Ok(sizes.shown())
}

fn size(fields: &Fields, name: &str, or: Option<u64>) -> Result<u64, String> {
    let cell = get(fields, name);
    let absent = if *cell == Cell::Null { or } else { None };
    cell.integer()
        .or(absent)
        .ok_or_else(|| format!("`{name}` is {cell}, it must be a whole number"))
}
