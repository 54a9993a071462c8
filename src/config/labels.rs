//! `configs/labels.yaml`: what labels, markers and comments on pull requests mean.

use std::sync::Arc;

use indexmap::IndexMap;
use schemars::JsonSchema;

use super::asked::{self, Asked};
use super::decode::Decoder;
use super::problem::{Problems, nearest};
use super::source::Source;
use super::tree::Node;
use crate::findings::config;

/// The copy that serves a repository without labels of its own.
pub const BUILT_IN: &str = include_str!("../../configs/labels.yaml");

/// The labels file.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Labels {
    /// Labels that start a sweep; a pull request carries at most one.
    pub primary: IndexMap<String, Primary>,
    /// Labels that change the sweep that a primary one started.
    pub modifiers: IndexMap<String, Modifier>,
    /// The text in a head commit's message that skips a pull request's benchmarks.
    pub skip_marker: String,
    /// Whether a pull request that adds changelog entries may merge only after a full sweep of its newest commit passed,
    /// whatever labels it has then.
    #[schemars(default)]
    pub require_sweep: bool,
    /// When a push may take over a pull request's sweep.
    pub reuse: Reuse,
}

/// How a primary label sweeps.
#[derive(Debug, Clone, PartialEq, Eq, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Primary {
    /// What it asks for.
    #[schemars(flatten)]
    pub asked: Asked,
    /// One job first; the rest only if it succeeds.
    #[schemars(default)]
    pub canary: bool,
}

impl Primary {
    /// Whether it asks for all that a sweep may measure.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.asked.narrowing().is_empty()
    }
}

/// What a modifier label changes.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields, extend("minProperties" = 2))]
pub struct Modifier {
    /// What it asks for besides.
    #[schemars(flatten)]
    pub asked: Asked,
    /// Whether the run may still be reused by a push.
    pub reusable: bool,
}

/// When a push to the default branch may take over a pull request's sweep.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Reuse {
    /// The comment that authorizes it, at the start of a line, followed by nothing or by a run's number or address.
    pub command: String,
    /// Whose comment counts.
    #[schemars(length(min = 1))]
    pub author_associations: Vec<String>,
    /// What its writer must be allowed in the repository, by the name of a permission (`admin`, `write`, `read`) or of a
    /// role; an empty list asks for nothing. Where the token may not see it, the association counts alone.
    #[schemars(default = "permissions")]
    pub permissions: Vec<String>,
    /// What a merge without authorization does.
    pub unauthorized_merge: UnauthorizedMerge,
}

/// Those who may write.
fn permissions() -> Vec<String> {
    ["admin", "write"].map(str::to_owned).into()
}

/// What a merge without authorization does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub enum UnauthorizedMerge {
    /// It sweeps.
    Sweep,
    /// It is refused.
    Refuse,
}

/// Who may stand in a comment's author association (GitHub's `CommentAuthorAssociation`).
const ASSOCIATIONS: &[&str] = &[
    "OWNER",
    "MEMBER",
    "COLLABORATOR",
    "CONTRIBUTOR",
    "FIRST_TIME_CONTRIBUTOR",
    "FIRST_TIMER",
    "MANNEQUIN",
    "NONE",
];

impl Labels {
    /// Reads a labels file.
    ///
    /// # Errors
    /// Every problem of the file.
    pub fn load(source: &Arc<Source>) -> Result<Self, Problems> {
        super::load(source, Self::decode)
    }

    fn decode(d: &mut Decoder, node: &Node<'_>) -> Option<Self> {
        let mut f = d.fields(node, "the labels file")?;
        let primary = f.required(d, "primary", |d, node, name| named(d, node, name, primary));
        let modifiers = f.required(d, "modifiers", |d, node, name| named(d, node, name, modifier));
        if let (Some(primary), Some(modifiers)) = (&primary, &modifiers) {
            for label in modifiers.keys().filter(|label| primary.contains_key(*label)) {
                let message = format!("`{label}` is a primary label and a modifier");
                d.refuse(
                    &config::NAMED_TWICE,
                    f.at("modifiers"),
                    message,
                    "give each label one meaning",
                );
            }
        }
        let skip_marker = f.required(d, "skip-marker", Decoder::string);
        let require_sweep = f.optional(d, "require-sweep", Decoder::boolean).unwrap_or(false);
        let reuse = f.required(d, "reuse", reuse);
        f.finish(d);
        Some(Self {
            primary: primary?,
            modifiers: modifiers?,
            skip_marker: skip_marker?,
            require_sweep,
            reuse: reuse?,
        })
    }
}

/// A mapping of names to items, each through `item`. Wrong items are left out.
pub(super) fn named<T>(
    d: &mut Decoder,
    node: &Node<'_>,
    name: &str,
    mut item: impl FnMut(&mut Decoder, &Node<'_>, &str) -> Option<T>,
) -> Option<IndexMap<String, T>> {
    let mut all = IndexMap::new();
    for (key, value) in d.entries(node, name) {
        if let Some(value) = item(d, value, key.text()) {
            all.insert(key.text().to_owned(), value);
        }
    }
    Some(all)
}

fn primary(d: &mut Decoder, node: &Node<'_>, label: &str) -> Option<Primary> {
    let mut f = d.fields(node, &format!("label `{label}`"))?;
    let primary = Primary {
        asked: Asked::decode(d, &mut f),
        canary: f.optional(d, "canary", Decoder::boolean).unwrap_or(false),
    };
    f.finish(d);
    Some(primary)
}

fn modifier(d: &mut Decoder, node: &Node<'_>, label: &str) -> Option<Modifier> {
    let mut f = d.fields(node, &format!("label `{label}`"))?;
    let asked = Asked::decode(d, &mut f);
    let switches: Vec<String> = asked::fields()
        .into_iter()
        .filter(|field| field.is_switch)
        .map(|field| field.name)
        .collect();
    if !switches.iter().any(|name| f.has(name)) {
        let hint = format!("give it one of `{}`, with the value `true`", switches.join("`, `"));
        d.report(f.span, format!("the modifier `{label}` asks for nothing"), hint);
    }
    let reusable = f.required(d, "reusable", Decoder::boolean);
    f.finish(d);
    Some(Modifier {
        asked,
        reusable: reusable?,
    })
}

fn reuse(d: &mut Decoder, node: &Node<'_>, name: &'static str) -> Option<Reuse> {
    let mut f = d.fields(node, &format!("`{name}`"))?;
    let command = f.required(d, "command", |d, node, name| {
        let command = d.string(node, name)?;
        if !command.starts_with('/') || command.contains(char::is_whitespace) {
            d.refuse(
                &config::MALFORMED,
                node.span,
                format!("`{command}` is not a command"),
                "write one word that starts with `/`",
            );
        }
        Some(command)
    });
    let author_associations = f.required(d, "author-associations", |d, node, name| {
        d.list(node, name, 1, |d, node| {
            let who = d.string(node, name)?;
            if !ASSOCIATIONS.contains(&who.as_str()) {
                let hint = nearest(&who, ASSOCIATIONS.iter().copied());
                d.refuse(
                    &config::UNKNOWN_VALUE,
                    node.span,
                    format!("`{who}` is no author association"),
                    hint,
                );
            }
            Some(who)
        })
    });
    let permissions = f.optional(d, "permissions", |d, node, name| {
        d.list(node, name, 0, |d, node| d.string(node, name))
    });
    let unauthorized_merge = f.required(d, "unauthorized-merge", |d, n, name| {
        let choices = [
            ("sweep", UnauthorizedMerge::Sweep),
            ("refuse", UnauthorizedMerge::Refuse),
        ];
        d.choice(n, name, &choices)
    });
    f.finish(d);
    Some(Reuse {
        command: command?,
        author_associations: author_associations?,
        permissions: permissions.unwrap_or_else(self::permissions),
        unauthorized_merge: unauthorized_merge?,
    })
}
