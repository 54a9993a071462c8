//! Links that were left open until the pull request had a number.

use std::ops::Range;

use super::link::{FIELD, Field, PullRequest, is_placeholder};
use super::text;
use crate::config::changelog::Changelog;
use crate::config::problem::{Problems, Span};
use crate::config::tree::Node;
use crate::findings::changelog;

/// An open link in a changelog's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenLink {
    /// Where it stands.
    pub span: Span,
    /// Its bytes in the text, without quotes.
    pub range: Range<usize>,
    /// What stands there.
    pub placeholder: String,
}

/// The open links of some entries of a changelog, in order.
///
/// # Errors
/// Open links that are not written as one plain or quoted word, and so cannot be replaced byte for byte.
pub(crate) fn open_links(changelog: &Changelog<'_>, entries: &[&Node<'_>]) -> Result<Vec<OpenLink>, Problems> {
    let source = changelog.source();
    let lines = text::lines(source.text.as_bytes());
    let mut problems = Problems::default();
    let mut found: Vec<OpenLink> = Vec::new();
    for field in entries
        .iter()
        .filter_map(|entry| Field::of(entry))
        .filter(|field| is_placeholder(field.text))
    {
        let start = offset(&source.text, &lines, field.value);
        match start.and_then(|start| written(&source.text, start, field.text)) {
            // An anchor's value, met once more through its alias.
            Some(range) if found.iter().any(|link| link.range == range) => {}
            Some(range) => found.push(OpenLink {
                span: field.value,
                range,
                placeholder: field.text.to_owned(),
            }),
            None => problems.push(
                changelog::OPEN_LINK
                    .at(
                        source,
                        field.key,
                        format!("this open `{FIELD}` cannot be replaced as it is written"),
                    )
                    .hint(format!("write it on one line: `{FIELD}: XXX`")),
            ),
        }
    }
    problems.into_result()?;
    Ok(found)
}

/// The byte at which a place begins.
fn offset(text: &str, lines: &[&[u8]], span: Span) -> Option<usize> {
    let before: usize = lines.get(..span.line - 1)?.iter().map(|line| line.len()).sum();
    let (column, _) = text.get(before..)?.char_indices().nth(span.column - 1)?;
    Some(before + column)
}

/// The bytes of a value that is written plainly or in quotes, without these.
fn written(text: &str, start: usize, value: &str) -> Option<Range<usize>> {
    let rest = text.get(start..)?;
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
    let start = start + usize::from(quote.is_some());
    let after = text[start..].strip_prefix(value)?;
    let closed = quote.is_none_or(|quote| after.starts_with(quote));
    closed.then(|| start..start + value.len())
}

/// The text with every open link replaced; all other bytes stay.
#[must_use]
pub(crate) fn filled_in(text: &str, links: &[OpenLink], pull_request: &PullRequest) -> String {
    let link = pull_request.to_string();
    let mut out = String::with_capacity(text.len() + links.len() * link.len());
    let mut at = 0;
    for open in links {
        out.push_str(&text[at..open.range.start]);
        out.push_str(&link);
        at = open.range.end;
    }
    out.push_str(&text[at..]);
    out
}
