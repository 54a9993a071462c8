//! Which rows a part of an engine is for.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::config::decode::Decoder;
use crate::config::fields::Field;
use crate::config::problem::nearest;
use crate::config::scalar::Scalar;
use crate::config::tree::{Node, Value};
use crate::findings::config;

/// What a condition looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A field of the row's topology.
    Field(Field),
    /// The row's concurrency.
    Conc,
    /// The config that the row comes from.
    ConfigKey,
    /// Whether the job only evaluates.
    EvalOnly,
    /// The name of what a KV cache is offloaded with.
    KvOffloadBackend,
}

impl Subject {
    /// What is no field of a topology, with its name in a row.
    const OTHERS: [(&'static str, Self); 4] = [
        ("conc", Self::Conc),
        ("config-key", Self::ConfigKey),
        ("eval-only", Self::EvalOnly),
        ("kv-offload-backend", Self::KvOffloadBackend),
    ];

    /// Every subject by its name; those of a side are left out: engines serve one node.
    fn choices() -> impl Iterator<Item = (String, Self)> {
        let fields = Field::of_groups().map(|field| (field.name(), Self::Field(field)));
        let others = Self::OTHERS
            .iter()
            .map(|(name, subject)| ((*name).to_owned(), *subject));
        fields.filter(|(name, _)| !name.contains('.')).chain(others)
    }
}

/// What a value must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// One of these, as text.
    OneOf(Vec<String>),
    /// A number above this one.
    Above(u64),
}

/// Conditions, all of which a row must meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conditions(pub Vec<(Subject, Condition)>);

impl Conditions {
    pub(super) fn decode(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<Self> {
        let mut all = Vec::new();
        let pairs = d.entries(node, name);
        if pairs.is_empty() && matches!(node.value, Value::Map(_)) {
            d.refuse(
                &config::UNKNOWN_NAME,
                node.span,
                format!("`{name}` takes every row"),
                "name a field of the row",
            );
            return None;
        }
        for (key, value) in pairs {
            let subject = Subject::choices().find(|(name, _)| *name == key.text());
            let Some((_, subject)) = subject else {
                let message = format!("`{}` is no field of a row on one node", key.text());
                let known: Vec<String> = Subject::choices().map(|(name, _)| name).collect();
                let hint = nearest(key.text(), known.iter().map(String::as_str));
                d.refuse(&config::UNKNOWN_NAME, key.span, message, hint);
                continue;
            };
            if let Some(condition) = condition(d, value, key.text()) {
                all.push((subject, condition));
            }
        }
        Some(Self(all))
    }
}

fn condition(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<Condition> {
    match &node.value {
        Value::Map(_) => {
            let mut f = d.fields(node, &format!("the condition on `{name}`"))?;
            let above = f.required(d, "above", |d, n, name| d.integer(n, name, 0));
            f.finish(d);
            above.map(Condition::Above)
        }
        Value::Seq(_) => d
            .list(node, name, 1, |d, item| word(d, item, name))
            .map(Condition::OneOf),
        _ => word(d, node, name).map(|word| Condition::OneOf(vec![word])),
    }
}

/// A value as its text: `true`, `8`, `mtp`.
fn word(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<String> {
    match node.scalar() {
        Some(Scalar::Bool(value)) => Some(value.to_string()),
        Some(Scalar::Int(value)) => Some(value.to_string()),
        _ => d.string(node, name),
    }
}

impl JsonSchema for Conditions {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Conditions".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<String> = Subject::choices().map(|(name, _)| name).collect();
        json_schema!({
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"enum": names},
            "additionalProperties": {
                "anyOf": [
                    {"type": ["string", "integer", "boolean"]},
                    {"type": "array", "minItems": 1, "items": {"type": ["string", "integer", "boolean"]}},
                    {
                        "type": "object",
                        "properties": {"above": {"type": "integer", "minimum": 0}},
                        "required": ["above"],
                        "additionalProperties": false,
                    },
                ],
            },
        })
    }
}
