//! A command of a cluster: a list of arguments with placeholders, never a text for a shell.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::config::decode::Decoder;
use crate::config::problem::nearest;
use crate::config::tree::Node;
use crate::findings::config;

/// What an argument may ask for: a job's variable in lower case with `-` for `_`, the server's port, and the folder
/// that results go to.
pub const PLACEHOLDERS: [&str; 18] = [
    "port",
    "conc",
    "dcp-size",
    "duration",
    "ep-size",
    "gpu-count",
    "isl",
    "max-model-len",
    "model",
    "model-name",
    "model-path",
    "osl",
    "pcp-size",
    "pp-size",
    "precision",
    "result-filename",
    "tp",
    "workspace",
];

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command(Vec<Vec<Part>>);

/// A piece of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Placeholder(&'static str),
}

/// Placeholders that a job has no value for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this job has no value for {}", .0.iter().map(|name| format!("`{{{name}}}`")).collect::<Vec<_>>().join(", "))]
pub struct NoValue(pub Vec<&'static str>);

/// The variable whose value a placeholder stands for.
#[must_use]
pub fn variable(placeholder: &str) -> String {
    match placeholder {
        "workspace" => "INFMAX_WORKSPACE".to_owned(),
        other => other.to_ascii_uppercase().replace('-', "_"),
    }
}

impl Command {
    /// The program; no placeholder stands in it.
    #[must_use]
    pub fn program(&self) -> &str {
        match self.0.first().map(Vec::as_slice) {
            Some([Part::Text(text)]) => text,
            _ => "",
        }
    }

    /// The argument vector: each placeholder becomes the value of its [`variable`]. A value stays inside its argument,
    /// whatever it holds.
    ///
    /// # Errors
    /// Every placeholder whose variable is unset or empty.
    pub fn fill(&self, value: impl Fn(&str) -> Option<String>) -> Result<Vec<String>, NoValue> {
        let mut missing = Vec::new();
        let mut fill = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Placeholder(name) => value(&variable(name)).filter(|v| !v.is_empty()).unwrap_or_else(|| {
                missing.push(*name);
                String::new()
            }),
        };
        let filled = self.0.iter().map(|argument| argument.iter().map(&mut fill).collect());
        let arguments = filled.collect();
        missing.dedup();
        if missing.is_empty() {
            Ok(arguments)
        } else {
            Err(NoValue(missing))
        }
    }

    /// Reads a list of arguments.
    pub(super) fn decode(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<Self> {
        let arguments = d.list(node, name, 1, |d, item| {
            let text = d.string(item, name)?;
            match parts(&text) {
                Ok(parts) => Some(parts),
                Err(unknown) => {
                    let message = format!("`{{{unknown}}}` is no placeholder of `{name}`");
                    d.refuse(
                        &config::UNKNOWN_NAME,
                        item.span,
                        message,
                        nearest(unknown, PLACEHOLDERS),
                    );
                    None
                }
            }
        })?;
        if !matches!(arguments.first()?.as_slice(), [Part::Text(_)]) {
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

/// Splits an argument at its placeholders, `{name}`; other braces stand for themselves, so JSON needs no escapes.
fn parts(text: &str) -> Result<Vec<Part>, &str> {
    let mut parts = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        plain.push_str(before);
        match after.split_once('}') {
            Some((name, tail)) if is_name(name) => {
                let known = PLACEHOLDERS.iter().find(|known| **known == name).ok_or(name)?;
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
