//! Links to pull requests, as entries carry them in `pr-link`.

use std::fmt;
use std::str::FromStr;

use super::text;
use crate::config::problem::Span;
use crate::config::tree::{Node, Value};

/// The field of an entry.
pub(crate) const FIELD: &str = "pr-link";
/// The field as a line begins with it.
pub(crate) const FIELD_START: &str = "pr-link:";

const HOST: &str = "https://github.com/";

/// A repository on GitHub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slug {
    owner: String,
    name: String,
}

impl Slug {
    /// The account that owns it.
    #[must_use]
    pub(crate) fn owner(&self) -> &str {
        &self.owner
    }
}

impl FromStr for Slug {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').filter(|(owner, name)| {
            let legal = |part: &str, extra: &[char]| {
                !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || extra.contains(&c))
            };
            legal(owner, &['-', '_']) && legal(name, &['-', '_', '.'])
        });
        let (owner, name) = parts.ok_or_else(|| format!("`{text}` is no repository: write `owner/name`"))?;
        Ok(Self {
            owner: owner.to_owned(),
            name: name.to_owned(),
        })
    }
}

impl fmt::Display for Slug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

/// A pull request; its text form is its canonical link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PullRequest {
    /// Where it was opened.
    pub repository: Slug,
    /// Its number, from 1.
    pub number: u64,
}

impl PullRequest {
    /// Reads a canonical link; anything behind the number (`/files`, `?x`, `#y`) makes it none.
    #[must_use]
    pub(crate) fn from_link(link: &str) -> Option<Self> {
        let (repository, number) = link.strip_prefix(HOST)?.split_once("/pull/")?;
        let plain = !number.starts_with('0') && number.bytes().all(|b| b.is_ascii_digit());
        Some(Self {
            repository: repository.parse().ok()?,
            number: number.parse().ok().filter(|_| plain)?,
        })
    }
}

impl fmt::Display for PullRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{HOST}{}/pull/{}", self.repository, self.number)
    }
}

/// Whether a link was left open until its pull request has a number: `XXX`, `TBD`, or a pull request's link that ends
/// in one of them, in any case.
#[must_use]
pub(crate) fn is_placeholder(link: &str) -> bool {
    let open = |text: &str| text.eq_ignore_ascii_case("XXX") || text.eq_ignore_ascii_case("TBD");
    let lower = link.to_ascii_lowercase();
    let number = lower
        .strip_prefix(HOST)
        .and_then(|rest| rest.split_once("/pull/"))
        .filter(|(repository, _)| repository.parse::<Slug>().is_ok())
        .map(|(_, number)| number);
    open(link) || number.is_some_and(open)
}

/// The repository of the last link of a changelog, which need not be readable as a whole.
#[must_use]
pub(crate) fn last_repository(changelog: &[u8]) -> Option<Slug> {
    text::lines(changelog).into_iter().rev().find_map(|line| {
        let line = std::str::from_utf8(line).ok()?.trim();
        let value = line
            .strip_prefix("- ")
            .unwrap_or(line)
            .trim()
            .strip_prefix(FIELD_START)?;
        let link = value.trim().trim_matches(['"', '\'']);
        PullRequest::from_link(link).map(|found| found.repository)
    })
}

/// The link of an entry, with its places.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field<'a> {
    /// Where the field's name stands.
    pub key: Span,
    /// Where its value stands.
    pub value: Span,
    /// The value.
    pub text: &'a str,
}

impl<'a> Field<'a> {
    /// The link of an entry; `None` where it has none, or one that is no text.
    #[must_use]
    pub(crate) fn of(entry: &'a Node<'_>) -> Option<Self> {
        let Value::Map(pairs) = &entry.value else { return None };
        let (key, value) = pairs.iter().find(|(key, _)| key.text() == FIELD)?;
        let Value::Scalar { text, .. } = &value.value else {
            return None;
        };
        Some(Self {
            key: key.span,
            value: value.span,
            text,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_canonical_or_none() {
        let link = "https://github.com/some-org/re.po_1/pull/42";
        assert_eq!(PullRequest::from_link(link).expect("canonical").to_string(), link);
        for wrong in [
            "https://github.com/some-org/repo/pull/42/files",
            "https://github.com/some-org/repo/pull/042",
            "https://github.com/some-org/repo/pull/+42",
            "https://github.com/some-org/repo/pull/",
            "https://github.com/some-org/repo/pull/0",
            "https://github.com/a/b/c/pull/1",
            "https://github.com/$(id)/b/pull/1",
            "http://github.com/a/b/pull/1",
            "https://example.com/a/b/pull/1",
        ] {
            assert_eq!(PullRequest::from_link(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn placeholders_are_known_in_any_case() {
        for open in [
            "XXX",
            "xxx",
            "Tbd",
            "https://github.com/o/r/pull/XXX",
            "https://GitHub.com/o/r/pull/tbd",
        ] {
            assert!(is_placeholder(open), "{open}");
        }
        for closed in [
            "",
            "XXXX",
            "https://github.com/o/r/pull/1",
            "https://github.com/o/r/issues/XXX",
        ] {
            assert!(!is_placeholder(closed), "{closed}");
        }
    }
}
