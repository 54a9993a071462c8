//! The point at which something was measured.

use std::fmt;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::config::fields::{Parallelism, Size};
use crate::step::results::loose::{Cell, Named};

/// The fields of a published row; of what has a name and a version, the name.
pub(super) type Fields = IndexMap<String, Named>;

/// The longest text of a row that names something, in characters.
const MAX_TEXT: usize = 200;
/// What a job without fixed lengths runs.
const AGENTIC: &str = "agentic-coding";

/// What two measurements must have in common to be comparable. Letters count the same, large or small.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Point {
    /// The model's short name.
    pub model_prefix: String,
    /// The runner label.
    pub hw: String,
    /// The framework.
    pub framework: String,
    /// The precision.
    pub precision: String,
    /// The speculative decoding.
    pub spec_decoding: String,
    /// Whether prefill and decode are apart.
    pub disagg: bool,
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

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            model_prefix,
            hw,
            framework,
            precision,
            ..
        } = self;
        write!(f, "{model_prefix} {hw} {framework} {precision}")?;
        for part in [self.spec(), self.lengths.clone(), self.split()] {
            if part != "none" {
                write!(f, " {part}")?;
            }
        }
        write!(f, " c{}", self.conc)
    }
}

impl Point {
    /// The point of a row.
    ///
    /// # Errors
    /// Why the row says of none.
    pub(super) fn read(fields: &Fields) -> Result<Self, String> {
        let prefix = match get(fields, "model_prefix") {
            Cell::Null => "infmax_model_prefix",
            _ => "model_prefix",
        };
        let conc = get(fields, "conc");
        Ok(Self {
            model_prefix: required(fields, prefix)?,
            hw: required(fields, "hw")?,
            framework: required(fields, "framework")?,
            precision: required(fields, "precision")?,
            spec_decoding: optional(fields, "spec_decoding")?.unwrap_or_else(|| "none".to_owned()),
            disagg: get(fields, "disagg").flag().unwrap_or(false),
            lengths: lengths(fields)?,
            offload: offload(fields)?,
            topology: topology(fields)?,
            conc: conc
                .integer()
                .filter(|conc| *conc > 0)
                .ok_or_else(|| format!("`conc` is {conc}, it must be a number above 0"))?,
        })
    }

    /// Its speculative decoding, and whether prefill and decode are apart, for people.
    #[must_use]
    pub fn spec(&self) -> String {
        match self.disagg {
            true => format!("{} disagg", self.spec_decoding),
            false => self.spec_decoding.clone(),
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
