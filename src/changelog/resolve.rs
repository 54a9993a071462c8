//! A merge conflict in the changelog: main's text, then what the other side added.
//!
//! Two branches that append to one file always conflict, and the answer is always the same. Main's bytes are kept,
//! because they are published; the other side's entries follow it with their own bytes.

use std::ops::Range;
use std::sync::Arc;

use super::canonicalize::{filled_in, open_links};
use super::link::{Field, PullRequest, is_placeholder};
use super::text::{Text, is_blank, is_comment};
use crate::config::changelog::{Changelog, beyond};
use crate::config::problem::Problems;
use crate::config::source::Source;
use crate::config::tree::Node;
use crate::findings::changelog;

/// The three texts of a conflict.
#[derive(Debug, Clone)]
pub(crate) struct Stages {
    /// The common ancestor; empty where there was no file.
    pub ancestor: Arc<Source>,
    /// Main's side.
    pub main: Arc<Source>,
    /// The other side: the branch that adds entries.
    pub other: Arc<Source>,
}

/// A settled conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resolution {
    /// The whole text.
    pub text: String,
    /// How many entries follow main's.
    pub appended: usize,
    /// How many entries of the other side main gained as well.
    pub known: usize,
    /// How many open links were filled in.
    pub filled_in: usize,
}

impl Stages {
    /// Settles the conflict; open links of the other side's entries are filled in where the pull request is known.
    ///
    /// # Errors
    /// Sides that are no changelogs, and another side that altered or removed entries of the ancestor.
    pub(crate) fn resolve(&self, pull_request: Option<&PullRequest>) -> Result<Resolution, Problems> {
        let (ancestor, main) = (Changelog::parse(&self.ancestor)?, Changelog::parse(&self.main)?);
        let (other, filled_in) = self.other_filled_in(&ancestor, pull_request)?;
        let other = Changelog::parse(&other)?;
        lost(&ancestor, &main, &other).into_result()?;

        let gained = beyond(other.items(), ancestor.items());
        let main_gained = beyond(main.items(), ancestor.items());
        let added = beyond(gained.iter().copied(), main_gained);
        let mut text = self.main.text.clone();
        for block in blocks(&other, &added) {
            append(&mut text, block);
        }
        Ok(Resolution {
            text,
            appended: added.len(),
            known: gained.len() - added.len(),
            filled_in,
        })
    }

    fn other_filled_in(
        &self,
        ancestor: &Changelog<'_>,
        pull_request: Option<&PullRequest>,
    ) -> Result<(Arc<Source>, usize), Problems> {
        let other = Changelog::parse(&self.other)?;
        let Some(pull_request) = pull_request else {
            return Ok((Arc::clone(&self.other), 0));
        };
        let gained = beyond(other.items(), ancestor.items());
        let links = open_links(&other, &gained)?;
        let source = Source::new(
            self.other.name.clone(),
            filled_in(&self.other.text, &links, pull_request),
        );
        Ok((Arc::new(source), links.len()))
    }
}

/// The ancestor's entries that the other side altered or removed.
///
/// An entry whose link was still open and that main has not is the branch's own, set right by a later commit.
fn lost(ancestor: &Changelog<'_>, main: &Changelog<'_>, other: &Changelog<'_>) -> Problems {
    let lost = beyond(ancestor.items(), other.items());
    let unpublished = beyond(lost.iter().copied(), main.items());
    let own = |item: &Node<'_>| {
        Field::of(item).is_some_and(|field| is_placeholder(field.text))
            && unpublished.iter().any(|other| other.span == item.span)
    };
    let problem = |item: &Node<'_>| {
        let message = "the branch altered or removed this entry, which existed before it";
        changelog::ALTERED_ENTRY.at(ancestor.source(), item.span, message).hint(format!(
            "existing entries stay: restore it on the branch first, or resolve by hand (`git show {}` shows the branch's \
             file) and run `git add perf-changelog.yaml`",
            other.source().name
        ))
    };
    Problems(lost.into_iter().filter(|item| !own(item)).map(problem).collect())
}

/// The text of entries, with the comments directly above each, without the empty lines around.
fn blocks<'s>(changelog: &Changelog<'s>, entries: &[&Node<'_>]) -> Vec<&'s str> {
    let source: &'s Source = changelog.source();
    let text = Text::new(&source.name, source.text.as_bytes());
    let starts: Vec<usize> = changelog
        .items()
        .into_iter()
        .map(|item| {
            let line = text.entry_line(item);
            line - text.lines[..line]
                .iter()
                .rev()
                .take_while(|line| is_comment(line))
                .count()
        })
        .collect();
    let bytes = |lines: Range<usize>| {
        let length = |lines: &[&[u8]]| -> usize { lines.iter().map(|line| line.len()).sum() };
        let start = length(&text.lines[..lines.start]);
        &source.text[start..start + length(&text.lines[lines])]
    };
    let is_wanted = |item: &Node<'_>| entries.iter().any(|entry| entry.span == item.span);
    let mut blocks = Vec::new();
    for (index, _) in changelog.items().iter().enumerate().filter(|(_, item)| is_wanted(item)) {
        let end = starts.get(index + 1).copied().unwrap_or(text.lines.len());
        let own = &text.lines[starts[index]..end];
        let empty = own.iter().rev().take_while(|line| is_blank(line)).count();
        blocks.push(bytes(starts[index]..end - empty));
    }
    blocks
}

/// Appends an entry after one empty line; empty lines that are there already count.
fn append(text: &mut String, block: &str) {
    if text.trim() == "[]" {
        text.clear();
    }
    if !text.is_empty() {
        if !text.ends_with('\n') {
            text.push('\n');
        }
        let has_empty_line = Text::new("", text.as_bytes())
            .lines
            .last()
            .is_some_and(|line| is_blank(line));
        if !has_empty_line {
            text.push('\n');
        }
    }
    text.push_str(block);
    if !block.ends_with('\n') {
        text.push('\n');
    }
}
