//! Variables that a repository adds to its jobs, and the names that none may have.
//!
//! One list for all who give a job variables: `env` of workflows, clusters and engines, and the `additional-settings`
//! of workers.

use std::borrow::Cow;

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::clusters::command::Template;
use super::decode::Decoder;
use super::tree::Node;
use crate::findings::config;

/// Names that decide what code a process loads or runs, whatever the job is.
const CODE: [&str; 23] = [
    "BASHOPTS",
    "BASH_ENV",
    "CDPATH",
    "ENV",
    "GCONV_PATH",
    "GLOBIGNORE",
    "HOME",
    "IFS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PATH",
    "PERL5LIB",
    "PERL5OPT",
    "PROMPT_COMMAND",
    "PS4",
    "PYTHONHOME",
    "PYTHONINSPECT",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "SHELL",
    "SHELLOPTS",
    "ZDOTDIR",
];

/// Names that lead a job elsewhere: to another hub, proxy or package index, past a check of certificates, or to another
/// place for its state.
const REDIRECTS: [&str; 20] = [
    "ALL_PROXY",
    "CURL_CA_BUNDLE",
    "DOCKER_CONFIG",
    "DOCKER_HOST",
    "CONTAINER_HOST",
    "FTP_PROXY",
    "HF_ENDPOINT",
    "HF_INFERENCE_ENDPOINT",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "KUBECONFIG",
    "NODE_EXTRA_CA_CERTS",
    "NODE_TLS_REJECT_UNAUTHORIZED",
    "NO_PROXY",
    "OPENAI_API_BASE",
    "OPENAI_BASE_URL",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "XDG_STATE_HOME",
];

/// Starts of names that belong to the loader, to exported shell functions, to git, to package indexes,
/// to evals and to the runner.
const KEPT: [&str; 12] = [
    "ACTIONS_",
    "BASH_FUNC_",
    "DYLD_",
    "EVAL_",
    "GIT_",
    "GITHUB_",
    "LD_",
    "NPM_CONFIG_",
    "PIP_",
    "RUNNER_",
    "SWEEPCTL_",
    "UV_",
];

/// Names with such a start that launch scripts read: the recipe of an eval-only job, in place of CONFIG_FILE.
const OF_SCRIPTS: [&str; 1] = ["EVAL_CONFIG_FILE"];

/// Why a variable of this name may not be given to a job; `None` where it may. Whether the row itself sets it is asked
/// elsewhere.
#[must_use]
pub(crate) fn refusal(name: &str) -> Option<&'static str> {
    let legal = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !legal {
        return Some("its name is not made of letters, digits and `_`, or starts with a digit");
    }
    // Letter case does not tell names apart everywhere: to zsh `path` is PATH, and the runner compares without it.
    let upper = name.to_ascii_uppercase();
    let kept = KEPT.iter().any(|start| upper.starts_with(start)) && !OF_SCRIPTS.contains(&upper.as_str());
    if CODE.contains(&upper.as_str()) || kept {
        return Some("such a variable decides what code runs on the host, or belongs to the runner");
    }
    if REDIRECTS.contains(&upper.as_str()) {
        return Some("such a variable leads the job to another hub, proxy, index, certificate or folder");
    }
    None
}

/// How variables are written, for schemas.
pub(super) enum Variables {}

impl JsonSchema for Variables {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Variables".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
            "additionalProperties": {"type": ["string", "number", "boolean"]},
        })
    }
}

/// Reads variables: names and texts with placeholders.
pub(super) fn decode(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<IndexMap<String, Template>> {
    let mut variables = IndexMap::new();
    for (key, value) in d.entries(node, name) {
        let variable = key.text();
        if let Some(reason) = refusal(variable) {
            let shown: String = variable.chars().take(60).flat_map(char::escape_debug).collect();
            let message = format!("the variable `{shown}` of `{name}` cannot be used: {reason}");
            d.refuse(
                &config::CONFLICT,
                key.span,
                message,
                "remove it, or set it on the runner itself",
            );
            continue;
        }
        // A number or a flag is meant as it is written.
        let text = match value.scalar() {
            Some(super::scalar::Scalar::Bool(_)) => Template::parse(value.text()).ok(),
            _ => Template::decode(d, value, variable),
        };
        if let Some(text) = text {
            variables.insert(variable.to_owned(), text);
        }
    }
    Some(variables)
}
