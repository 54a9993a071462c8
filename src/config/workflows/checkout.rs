//! How a job on a GPU checks out the repository.

use schemars::JsonSchema;
use serde::Serialize;

use super::secret;
use crate::config::decode::Decoder;
use crate::config::tree::Node;

/// The checkout of jobs on a GPU: what their launch scripts need of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
#[serde(rename_all = "kebab-case")]
pub struct Checkout {
    /// Whether git submodules come along; none unless given.
    #[schemars(default)]
    pub submodules: Submodules,
    /// The secret with a token that may read them; the job's own token unless given.
    #[schemars(default)]
    pub token_secret: Option<String>,
    /// Whether the whole history comes along, not the one commit alone; `false` unless given.
    #[schemars(default)]
    pub whole_history: bool,
}

/// Which submodules a checkout brings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum Submodules {
    /// None.
    #[default]
    None,
    /// The repository's own.
    Direct,
    /// Theirs too.
    Recursive,
}

/// Reads it.
pub(super) fn checkout(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<Checkout> {
    let mut f = d.fields(node, &format!("`{name}`"))?;
    let choices = [
        ("none", Submodules::None),
        ("direct", Submodules::Direct),
        ("recursive", Submodules::Recursive),
    ];
    let submodules = f.optional(d, "submodules", |d, n, name| d.choice(n, name, &choices));
    let token_secret = f.optional(d, "token-secret", |d, n, _| secret(d, n));
    let whole_history = f.optional(d, "whole-history", Decoder::boolean);
    f.finish(d);
    Some(Checkout {
        submodules: submodules.unwrap_or_default(),
        token_secret,
        whole_history: whole_history.unwrap_or(false),
    })
}
