//! What the token of a job may do.

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Value, json};

use crate::config::decode::Decoder;
use crate::config::problem::nearest;
use crate::config::tree::Node;
use crate::findings::config;

/// What a token may do, by scope.
pub(crate) type Permissions = IndexMap<String, Access>;

/// How far a scope goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Nothing.
    None,
    /// Reading.
    Read,
    /// Reading and writing.
    Write,
}

impl Access {
    /// Every name with its access.
    pub const NAMES: &'static [(&'static str, Self)] =
        &[("none", Self::None), ("read", Self::Read), ("write", Self::Write)];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES
            .iter()
            .find(|(_, access)| *access == self)
            .map_or("", |(name, _)| name)
    }
}

/// The scopes of a token (GitHub's `permissions` key).
pub(crate) const SCOPES: &[&str] = &[
    "actions",
    "attestations",
    "checks",
    "contents",
    "deployments",
    "discussions",
    "id-token",
    "issues",
    "models",
    "packages",
    "pages",
    "pull-requests",
    "security-events",
    "statuses",
];

/// The schema of permissions by job: scopes are GitHub's.
pub(super) fn scopes(schema: &mut Schema) {
    if let Some(of_job) = schema.get_mut("additionalProperties").and_then(Value::as_object_mut) {
        of_job.insert("propertyNames".to_owned(), json!({ "enum": SCOPES }));
    }
}

pub(super) fn permissions(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<Permissions> {
    let mut all = Permissions::new();
    for (key, value) in d.entries(node, name) {
        if !SCOPES.contains(&key.text()) {
            let hint = nearest(key.text(), SCOPES.iter().copied());
            d.refuse(
                &config::UNKNOWN_VALUE,
                key.span,
                format!("`{}` is no scope of a token", key.text()),
                hint,
            );
            continue;
        }
        if let Some(access) = d.choice(value, key.text(), Access::NAMES) {
            all.insert(key.text().to_owned(), access);
        }
    }
    Some(all)
}
