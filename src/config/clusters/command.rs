//! A command of a cluster: a list of arguments with placeholders, never a text for a shell.

use std::borrow::Cow;
use std::sync::LazyLock;

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::config::decode::Decoder;
use crate::config::fields::Field;
use crate::config::problem::nearest;
use crate::config::tree::Node;
use crate::findings::config;

/// What an argument may ask for beside the fields of a row: a job's variable in lower case with `-` for `_`, and what only
/// a launch knows: the server's port, the folder of its files, the folder that results go to.
const OWN: [&str; 33] = [
    "aiperf-experimental-fast",
    "conc",
    "conc-list",
    "context",
    "disagg",
    "dram-gb-per-gpu",
    "eval-conc",
    "eval-limit",
    "eval-max-model-len",
    "eval-only",
    "files",
    "github-run-attempt",
    "github-run-id",
    "gpu-count",
    "is-agentic",
    "is-multinode",
    "kv-offload-backend",
    "kv-offload-backend-metadata",
    "kv-offloading",
    "model-name",
    "model-path",
    "port",
    "random-range-ratio",
    "result-dir",
    "result-filename",
    "run-eval",
    "runner-name",
    "scenario-subdir",
    "scenario-type",
    "total-cpu-dram-bytes",
    "total-cpu-dram-gb",
    "warmups",
    "workspace",
];

/// Every placeholder with the variable whose value it stands for. A field of a row has two where its own name is not
/// that of its variable: `{ep}` and `{ep-size}`.
static PLACEHOLDERS: LazyLock<IndexMap<String, String>> = LazyLock::new(|| {
    let upper = |name: &str| name.to_ascii_uppercase().replace('-', "_");
    let own = OWN.iter().map(|name| match *name {
        "workspace" => (name.to_string(), "INFMAX_WORKSPACE".to_owned()),
        name => (name.to_owned(), upper(name)),
    });
    let fields = Field::of_rows().filter_map(|field| Some((field.name(), field.variable()?)));
    let of_fields = fields.flat_map(|(name, variable)| {
        let lower = variable.to_ascii_lowercase().replace('_', "-");
        [(name, variable.to_owned()), (lower, variable.to_owned())]
    });
    own.chain(of_fields).collect()
});

/// Every placeholder.
pub fn placeholders() -> impl Iterator<Item = &'static str> {
    PLACEHOLDERS.keys().map(String::as_str)
}

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command(pub Vec<Template>);

/// A text with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Part>);

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Placeholder(&'static str),
}

/// Placeholders that a job has no value for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this job has no value for {}", .0.iter().map(|name| format!("`{{{name}}}`")).collect::<Vec<_>>().join(", "))]
pub struct NoValue(pub Vec<&'static str>);

/// The variable whose value a placeholder stands for; empty for what is none.
#[must_use]
pub fn variable(placeholder: &str) -> &'static str {
    PLACEHOLDERS.get(placeholder).map_or("", String::as_str)
}

/// Fills texts, each on its own.
///
/// # Errors
/// Every placeholder of any of them whose variable is unset or empty.
pub fn fill<'a>(
    templates: impl IntoIterator<Item = &'a Template>,
    value: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<String>, NoValue> {
    let mut missing: Vec<&'static str> = Vec::new();
    let mut filled = Vec::new();
    for template in templates {
        match template.fill(value) {
            Ok(text) => filled.push(text),
            Err(NoValue(more)) => missing.extend(more),
        }
    }
    let mut seen = std::collections::HashSet::new();
    missing.retain(|name| seen.insert(*name));
    if missing.is_empty() {
        Ok(filled)
    } else {
        Err(NoValue(missing))
    }
}

impl Template {
    /// The text of a program's own, such as a default.
    ///
    /// # Errors
    /// The name between braces that is no placeholder.
    pub fn parse(text: &str) -> Result<Self, &str> {
        parts(text).map(Self)
    }

    /// The text: each placeholder becomes the value of its [`variable`], which is not read again.
    ///
    /// # Errors
    /// Every placeholder whose variable is unset or empty.
    pub fn fill(&self, value: &dyn Fn(&str) -> Option<String>) -> Result<String, NoValue> {
        let mut missing = Vec::new();
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Text(plain) => text.push_str(plain),
                Part::Placeholder(name) => match value(variable(name)).filter(|v| !v.is_empty()) {
                    Some(value) => text.push_str(&value),
                    None => missing.push(*name),
                },
            }
        }
        if missing.is_empty() {
            Ok(text)
        } else {
            Err(NoValue(missing))
        }
    }

    /// The placeholders in it.
    pub fn placeholders(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Placeholder(name) => Some(*name),
        })
    }

    /// Reads a text.
    pub(crate) fn decode(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<Self> {
        let text = d.string(node, name)?;
        match parts(&text) {
            Ok(parts) => Some(Self(parts)),
            Err(unknown) => {
                let message = format!("`{{{unknown}}}` is no placeholder of `{name}`");
                d.refuse(
                    &config::UNKNOWN_NAME,
                    node.span,
                    message,
                    nearest(unknown, placeholders()),
                );
                None
            }
        }
    }
}

impl Command {
    /// The program; no placeholder stands in it.
    #[must_use]
    pub fn program(&self) -> &str {
        program(&self.0).unwrap_or_default()
    }

    /// The argument vector. A value stays inside its argument, whatever it holds.
    ///
    /// # Errors
    /// Every placeholder whose variable is unset or empty.
    pub fn fill(&self, value: impl Fn(&str) -> Option<String>) -> Result<Vec<String>, NoValue> {
        fill(&self.0, &value)
    }

    /// Reads a list of arguments.
    pub(crate) fn decode(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<Self> {
        let arguments = d.list(node, name, 1, |d, item| Template::decode(d, item, name))?;
        arguments.first()?;
        if program(&arguments).is_none() {
            let message = format!("the program of `{name}` depends on the job");
            d.refuse(
                &config::CONFLICT,
                node.span,
                message,
                "write the first item without placeholders",
            );
            return None;
        }
        Some(Self(arguments))
    }
}

/// The program of an argument list, where it does not depend on the job.
#[must_use]
pub fn program(arguments: &[Template]) -> Option<&str> {
    match arguments.first()?.0.as_slice() {
        [Part::Text(text)] => Some(text),
        _ => None,
    }
}

impl JsonSchema for Template {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Template".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "minLength": 1})
    }
}

/// Splits an argument at its placeholders, `{name}`; other braces stand for themselves, so JSON needs no escapes.
fn parts(text: &str) -> Result<Vec<Part>, &str> {
    let mut parts = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        plain.push_str(before);
        match after.split_once('}') {
            Some((name, tail)) if is_name(name) => {
                let (known, _) = PLACEHOLDERS.get_key_value(name).ok_or(name)?;
                if !plain.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut plain)));
                }
                parts.push(Part::Placeholder(known));
                rest = tail;
            }
            _ => {
                plain.push('{');
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        parts.push(Part::Text(plain));
    }
    Ok(parts)
}

/// Whether braces around a text make a placeholder of it.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphabetic() || matches!(c, '-' | '_'))
}

impl JsonSchema for Command {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Command".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}})
    }
}
