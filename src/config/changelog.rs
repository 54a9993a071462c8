//! `perf-changelog.yaml`: what changed, and so what is measured again.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::decode::Decoder;
use super::problem::{Place, Problems, Span};
use super::scalar::Scalar;
use super::source::Source;
use super::tree::{self, Node, Value};
use super::types::ScenarioType;
use crate::findings::{changelog, config};

/// A changelog as it is written.
#[derive(Debug, JsonSchema)]
#[schemars(transparent)]
pub struct ChangelogFile(#[allow(dead_code, reason = "the shape of the JSON Schema")] Vec<Entry>);

/// One entry. It is written to a plan with the flags always there, and the rest where it was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Entry {
    /// The configs: exact keys, or patterns in which `*` stands for anything.
    #[schemars(length(min = 1))]
    pub config_keys: Vec<String>,
    /// What changed, in sentences.
    #[schemars(length(min = 1))]
    pub description: Vec<String>,
    /// The pull request.
    pub pr_link: String,
    /// No throughput.
    #[serde(default)]
    pub evals_only: bool,
    /// Every eligible eval, and no throughput.
    #[serde(default)]
    pub all_evals: bool,
    /// No evals.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_evals: bool,
    /// Only the points that the configs gained.
    #[serde(default)]
    pub append_only: bool,
    /// Drops multi-node evals whose prefill side has fewer expert parallel ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub eval_min_prefill_ep: Option<u64>,
    /// The scenarios; all, where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub scenario_type: Option<Vec<ScenarioType>>,
    /// Where each of the config keys stands, for problems that only show later.
    #[serde(skip)]
    pub key_places: Vec<Place>,
}

impl Entry {
    /// The scenarios that it covers.
    #[must_use]
    pub fn scenarios(&self) -> Vec<ScenarioType> {
        self.scenario_type
            .clone()
            .unwrap_or_else(|| ScenarioType::CHOICES.iter().map(|(_, s)| *s).collect())
    }
}

/// A changelog as a tree: a list whose items are compared by meaning and decoded only when they are new.
#[derive(Debug)]
pub struct Changelog<'s> {
    source: &'s Arc<Source>,
    items: Vec<Node<'s>>,
}

impl<'s> Changelog<'s> {
    /// Parses a changelog. An empty text is an empty list.
    ///
    /// # Errors
    /// A text that is not YAML, or not a list.
    pub fn parse(source: &'s Arc<Source>) -> Result<Self, Problems> {
        let root = tree::parse(source)?;
        let items = match root.value {
            Value::Seq(items) => items,
            _ if matches!(root.scalar(), Some(Scalar::Null)) => Vec::new(),
            _ => {
                let message = format!("a changelog is a list of entries, not {}", root.kind());
                return Err(changelog::NOT_A_LIST
                    .at(source, root.span, message)
                    .hint("start each entry with `- config-keys:`")
                    .into());
            }
        };
        Ok(Self { source, items })
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The number of entries that begin before a line.
    fn entries_before(&self, line: usize) -> usize {
        self.items.partition_point(|item| item.span.line < line)
    }

    /// The entries that this changelog has beyond an earlier one.
    ///
    /// Entries are compared as a multiset of parsed values: comments, quotes, blank lines and places do not count,
    /// and an identical entry that is added once more does.
    ///
    /// # Errors
    /// Entries of the earlier one that are missing here, or altered.
    pub fn added<'a>(&'a self, earlier: &Changelog<'_>) -> Result<Vec<&'a Node<'s>>, Problems> {
        let added = beyond(&self.items, &earlier.items);
        let lost = beyond(&earlier.items, &self.items);
        let problems = lost.into_iter().map(|item| {
            changelog::ALTERED_ENTRY
                .at(
                    earlier.source,
                    item.span,
                    "an entry that exists at the base is missing or altered at the head",
                )
                .hint("entries are only added: restore it, and describe the change in a new entry")
        });
        Problems(problems.collect()).into_result()?;
        Ok(added)
    }

    /// The entries beyond those of a text that this one starts with, without parsing that text.
    ///
    /// `None` when the earlier text is not a prefix that ends where an entry ends.
    #[must_use]
    pub fn added_to_prefix(&self, earlier: &str) -> Option<Vec<&Node<'s>>> {
        // Without its last line end a text may end inside a value that this one goes on with.
        if !earlier.is_empty() && !earlier.ends_with('\n') {
            return None;
        }
        let rest = self.source.text.strip_prefix(earlier)?;
        let lines = earlier.lines().count();
        let first = self.entries_before(lines + 1);
        let at_entry = match self.items.get(first) {
            None => rest.trim().is_empty(),
            // The next entry must begin on the first line that the rest has, or the earlier text could end inside
            // something that this one closes.
            Some(next) => {
                let blank = rest.lines().take_while(|line| line.trim().is_empty()).count();
                let begins = rest.lines().nth(blank).is_some_and(|line| line.starts_with("- "));
                begins && next.span.line == lines + blank + 1
            }
        };
        at_entry.then(|| self.items[first..].iter().collect())
    }

    /// Decodes entries of this changelog.
    ///
    /// # Errors
    /// Every problem of every entry.
    pub fn decode(&self, items: &[&Node<'_>]) -> Result<Vec<(Entry, Span)>, Problems> {
        let mut d = Decoder::new(self.source);
        let entries = items
            .iter()
            .filter_map(|item| Some((entry(&mut d, item)?, item.span)))
            .collect();
        d.problems.into_result()?;
        Ok(entries)
    }

    /// Every item.
    #[must_use]
    pub fn items(&self) -> Vec<&Node<'s>> {
        self.items.iter().collect()
    }

    /// The text that it came from.
    #[must_use]
    pub fn source(&self) -> &'s Arc<Source> {
        self.source
    }
}

/// The entries that one list has beyond another, as multisets of what they say, in order. Of equal entries the first
/// ones are taken as the other's.
#[must_use]
pub fn beyond<'a, 's: 'a, 'b, 'o: 'b>(
    items: impl IntoIterator<Item = &'a Node<'s>>,
    others: impl IntoIterator<Item = &'b Node<'o>>,
) -> Vec<&'a Node<'s>> {
    let mut known: std::collections::HashMap<Meaning, usize> = std::collections::HashMap::new();
    for item in others {
        *known.entry(meaning(item)).or_default() += 1;
    }
    let is_new = |item: &&'a Node<'s>| match known.get_mut(&meaning(item)) {
        Some(left) if *left > 0 => {
            *left -= 1;
            false
        }
        _ => true,
    };
    items.into_iter().filter(is_new).collect()
}

/// A node by meaning.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Meaning {
    Null,
    Bool(bool),
    Int(i128),
    Text(String),
    Seq(Vec<Meaning>),
    Map(std::collections::BTreeMap<String, Meaning>),
}

/// What an entry says. Where the schema asks for text, `1.10` and `"1.10"` are the same.
fn meaning(node: &Node<'_>) -> Meaning {
    match &node.value {
        Value::Seq(items) => Meaning::Seq(items.iter().map(meaning).collect()),
        Value::Map(pairs) => Meaning::Map(
            pairs
                .iter()
                .map(|(key, value)| (key.text().to_owned(), field_meaning(key.text(), value)))
                .collect(),
        ),
        Value::Scalar { .. } => match node.scalar() {
            Some(Scalar::Bool(value)) => Meaning::Bool(value),
            Some(Scalar::Int(value)) => Meaning::Int(value),
            Some(Scalar::Float(text)) => Meaning::Text(text),
            Some(Scalar::Str(text)) => Meaning::Text(text.into_owned()),
            Some(Scalar::Null) | None => Meaning::Null,
        },
    }
}

fn field_meaning(field: &str, node: &Node<'_>) -> Meaning {
    let textual = matches!(field, "config-keys" | "description" | "pr-link" | "scenario-type");
    match &node.value {
        Value::Scalar { text, .. } if textual && !matches!(node.scalar(), Some(Scalar::Null)) => {
            Meaning::Text(text.to_string())
        }
        Value::Seq(items) if textual => Meaning::Seq(items.iter().map(|i| field_meaning(field, i)).collect()),
        _ => meaning(node),
    }
}

fn entry(d: &mut Decoder, node: &Node<'_>) -> Option<Entry> {
    let mut f = d.fields(node, "a changelog entry")?;
    let config_keys = f.required(d, "config-keys", |d, n, name| {
        d.list(n, name, 1, |d, item| {
            let key = d.string(item, name)?;
            Some((key, d.place(item.span)))
        })
    });
    let description = f.required(d, "description", |d, n, name| d.strings(n, name, 1));
    let pr_link = f.required(d, "pr-link", Decoder::string);
    let evals_only = f.optional(d, "evals-only", Decoder::boolean).unwrap_or(false);
    let all_evals = f.optional(d, "all-evals", Decoder::boolean).unwrap_or(false);
    let no_evals = f.optional(d, "no-evals", Decoder::boolean).unwrap_or(false);
    let append_only = f.optional(d, "append-only", Decoder::boolean).unwrap_or(false);
    let eval_min_prefill_ep = f.optional(d, "eval-min-prefill-ep", |d, n, name| d.integer(n, name, 1));
    let scenario_type = f.optional(d, "scenario-type", |d, n, name| {
        d.list(n, name, 1, |d, n| d.choice(n, name, &ScenarioType::CHOICES))
    });
    let modifiers = [
        ("evals-only", evals_only),
        ("all-evals", all_evals),
        ("eval-min-prefill-ep", eval_min_prefill_ep.is_some()),
    ];
    for (field, set) in [("append-only", append_only), ("no-evals", no_evals)] {
        for (other, _) in modifiers.iter().filter(|(_, other_set)| set && *other_set) {
            let message = format!("`{field}` cannot stand with `{other}`");
            d.refuse(&config::CONFLICT, f.at(field), message, "keep one of the two");
        }
    }
    f.finish(d);
    let (config_keys, key_places) = config_keys?.into_iter().unzip();
    Some(Entry {
        config_keys,
        description: description?,
        pr_link: pr_link?,
        evals_only,
        all_evals,
        no_evals,
        append_only,
        eval_min_prefill_ep,
        scenario_type,
        key_places,
    })
}
