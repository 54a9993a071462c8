//! How the report of an evaluator is read.

use indexmap::IndexMap;
use regex::Regex;
use schemars::JsonSchema;

use super::{is_name, valid};
use crate::config::decode::Decoder;
use crate::config::tree::Node;

/// How a report is read. Places are JSON pointers, numbers at several places are added up, and a missing one is 0.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct ReportMap {
    /// The report's name, in `{out}`.
    pub file: String,
    /// How many checks there were.
    #[schemars(length(min = 1))]
    pub checks: Vec<String>,
    /// How many of them passed.
    #[schemars(length(min = 1))]
    pub passed: Vec<String>,
    /// What the passed ones are a share of, where that is not all checks.
    #[schemars(default)]
    pub of: Vec<String>,
    /// How many requests were never served.
    #[schemars(default)]
    pub unserved: Vec<String>,
    /// Rows that were never served, known by their text.
    pub unserved_rows: Option<UnservedRows>,
    /// A count that is above 0 where the program was asked not to score: then there is no score, and no fault either.
    pub unscored: Option<String>,
    /// The filter that the score stands under; `none` where none is given.
    pub filter: Option<String>,
    /// More shares, by name.
    #[schemars(default)]
    pub shares: IndexMap<String, Share>,
}

/// Rows whose text says that no answer came.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct UnservedRows {
    /// Where the list of rows is.
    pub rows: String,
    /// Where the text is, in a row.
    pub text: String,
    /// The expression that finds them.
    pub pattern: String,
    /// An expression that takes some of them out again.
    pub except: Option<String>,
}

/// A share.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Share {
    /// The part.
    #[schemars(length(min = 1))]
    pub passed: Vec<String>,
    /// The whole.
    #[schemars(length(min = 1))]
    pub of: Vec<String>,
}

impl UnservedRows {
    /// Whether a row's text says that no answer came.
    #[must_use]
    pub(crate) fn is_one(&self, text: &str) -> bool {
        let found = |pattern: &str| Regex::new(pattern).is_ok_and(|regex| regex.is_match(text));
        found(&self.pattern) && !self.except.as_deref().is_some_and(found)
    }
}

pub(super) fn report_map(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<ReportMap> {
    let mut f = d.fields(node, &format!("`{name}`"))?;
    let file = f.required(d, "file", |d, node, name| {
        let file = d.string(node, name)?;
        let staged = file.strip_suffix("_report.json").is_some_and(is_name);
        valid(
            d,
            node,
            staged,
            "a report is staged under a name that ends in _report.json",
        )?;
        Some(file)
    });
    let checks = f.required(d, "checks", pointers);
    let passed = f.required(d, "passed", pointers);
    let of = f.optional(d, "of", pointers).unwrap_or_default();
    let unserved = f.optional(d, "unserved", pointers).unwrap_or_default();
    let unscored = f.optional(d, "unscored", pointer);
    let filter = f.optional(d, "filter", |d, node, name| {
        let text = d.string(node, name)?;
        valid(d, node, is_name(&text), "write letters, digits, - and _")?;
        Some(text)
    });
    let unserved_rows = f.optional(d, "unserved-rows", |d, node, name| {
        let mut f = d.fields(node, &format!("`{name}`"))?;
        let rows = f.required(d, "rows", pointer);
        let text = f.required(d, "text", pointer);
        let pattern = f.required(d, "pattern", expression);
        let except = f.optional(d, "except", expression);
        f.finish(d);
        Some(UnservedRows {
            rows: rows?,
            text: text?,
            pattern: pattern?,
            except,
        })
    });
    let shares = f.optional(d, "shares", |d, node, name| {
        let mut all = IndexMap::new();
        for (key, value) in d.entries(node, name) {
            let mut f = d.fields(value, &format!("`{}`", key.text()))?;
            let (passed, of) = (f.required(d, "passed", pointers), f.required(d, "of", pointers));
            f.finish(d);
            all.extend(
                passed
                    .zip(of)
                    .map(|(passed, of)| (key.text().to_owned(), Share { passed, of })),
            );
        }
        Some(all)
    });
    f.finish(d);
    Some(ReportMap {
        file: file?,
        checks: checks?,
        passed: passed?,
        of,
        unserved,
        unserved_rows,
        unscored,
        filter,
        shares: shares.unwrap_or_default(),
    })
}

fn pointers(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<Vec<String>> {
    d.list(node, name, 1, |d, node| pointer(d, node, name))
}

fn pointer(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<String> {
    let text = d.string(node, name)?;
    valid(
        d,
        node,
        text.starts_with('/'),
        "a JSON pointer starts with /, such as /summary/total",
    )?;
    Some(text)
}

fn expression(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<String> {
    let text = d.string(node, name)?;
    if let Err(error) = Regex::new(&text) {
        d.report(
            node.span,
            format!("`{name}` is no regular expression: {error}"),
            "see the syntax of the crate regex",
        );
        return None;
    }
    Some(text)
}
