//! The secrets that launch scripts are given.

use indexmap::IndexMap;
use schemars::JsonSchema;

use crate::config::decode::Decoder;
use crate::config::environment;
use crate::config::tree::{Node, Value};
use crate::findings::config;

/// How launch secrets are written.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code, reason = "it only describes the file")]
pub(super) enum LaunchSecrets {
    Names(Vec<String>),
    ByVariable(environment::Variables),
}

/// The secrets of the launch step, by the variable that holds each.
pub(super) fn launch_secrets(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<IndexMap<String, String>> {
    let mut secrets = IndexMap::new();
    if !matches!(node.value, Value::Map(_)) {
        let names = d.list(node, name, 0, secret)?;
        secrets.extend(names.into_iter().map(|name| (name.clone(), name)));
        return Some(secrets);
    }
    for (key, value) in d.entries(node, name) {
        let variable = key.text();
        let shown: String = variable.chars().take(60).flat_map(char::escape_debug).collect();
        if let Some(reason) = environment::refusal(variable) {
            let message = format!("the variable `{shown}` of `{name}` cannot be used: {reason}");
            d.refuse(&config::CONFLICT, key.span, message, "give the secret another variable");
            continue;
        }
        if let Some(secret) = secret(d, value) {
            secrets.insert(variable.to_owned(), secret);
        }
    }
    Some(secrets)
}

/// The name of a secret (GitHub: letters, digits and `_`, no digit first, no `GITHUB_`).
pub(super) fn secret(d: &mut Decoder, node: &Node<'_>) -> Option<String> {
    let name = d.string(node, "a secret")?;
    let is_name =
        !name.starts_with(|c: char| c.is_ascii_digit()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !is_name {
        let message = format!("`{name}` is not the name of a secret");
        d.refuse(&config::MALFORMED, node.span, message, "use letters, digits and `_`");
        return None;
    }
    if name.to_ascii_uppercase().starts_with("GITHUB_") {
        let message = format!("`{name}` is GitHub's own");
        d.refuse(
            &config::MALFORMED,
            node.span,
            message,
            "secrets cannot start with GITHUB_",
        );
        return None;
    }
    Some(name)
}
