//! How added entries stand at the end of the changelog, and where they link to.

use std::ops::Range;
use std::sync::Arc;

use super::link::{Field, PullRequest, is_placeholder};
use super::text::{Text, content, is_blank, is_comment};
use crate::config::problem::Problems;
use crate::config::source::Source;
use crate::config::tree::Node;
use crate::findings::changelog;

/// The entries that a change adds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Added<'a, 's> {
    /// The changelog that has them.
    pub text: &'a Text<'a>,
    /// The same as text.
    pub source: &'a Arc<Source>,
    /// The entries, in order.
    pub items: &'a [&'a Node<'s>],
}

impl Added<'_, '_> {
    /// One empty line stands between entries; the text from line `from` (counted from 0) on is new.
    #[must_use]
    pub(crate) fn separation(&self, from: usize) -> Problems {
        let lines = &self.text.lines;
        let starts: Vec<usize> = self.items.iter().map(|item| self.text.entry_line(item)).collect();
        let mut problems = Problems::default();
        let first = (from..lines.len()).find(|line| !is_blank(lines[*line]) && !is_comment(lines[*line]));
        match first {
            Some(first) if !starts.contains(&first) => problems.push(
                self.text
                    .line_finding(&changelog::CONTINUED, first, "the added text begins with no entry of its own, it goes on with the last one")
                    .hint("leave existing entries as they are; begin each new one with `- config-keys:` after one empty line"),
            ),
            Some(_) => {}
            None => {
                problems.push(self.text.line_finding(&changelog::NO_ENTRY, from, "text is added, but no entry").hint("append an entry, or remove it"));
            }
        }
        for start in starts.into_iter().filter(|start| *start >= from) {
            self.separated(start, from, &mut problems);
        }
        problems
    }

    /// Checks the empty lines above an entry, and above the comments that stand between it and what precedes it.
    fn separated(&self, entry: usize, from: usize, problems: &mut Problems) {
        let lines = &self.text.lines;
        let mut at = entry;
        loop {
            while at > from && is_comment(lines[at - 1]) {
                at -= 1;
            }
            let blank = lines[..at].iter().rev().take_while(|line| is_blank(line)).count();
            self.gap(at - blank..at, from, problems);
            at -= blank;
            if at <= from || !is_comment(lines[at - 1]) {
                return;
            }
        }
    }

    /// Checks a run of empty lines, of which those before line `from` were there.
    fn gap(&self, blank: Range<usize>, from: usize, problems: &mut Problems) {
        let Range { start, end } = blank;
        let own = start.max(from)..end;
        // At the start of the file, and behind empty lines that were there, no further one is needed.
        let wanted = usize::from(start > 0 && start >= from);
        let message = match own.len() {
            found if found == wanted => {
                let spaced = own.filter(|line| content(self.text.lines[*line]).contains(&b' '));
                problems.0.extend(spaced.map(|line| {
                    let length = content(self.text.lines[line]).len();
                    let problem = self.text.finding(
                        &changelog::SEPARATION,
                        line,
                        (0, length),
                        "the line between two entries holds spaces",
                    );
                    problem.hint("remove the spaces: it is empty")
                }));
                return;
            }
            0 => "no empty line stands above this entry".to_owned(),
            1 => "an empty line stands above this entry, and none belongs there".to_owned(),
            found => format!("{found} empty lines stand above this entry"),
        };
        let hint = match (own.len(), wanted) {
            (0, _) => format!("insert one empty line above line {}", end + 1),
            (_, 0) => format!(
                "remove the empty lines above line {}: what precedes has its own",
                end + 1
            ),
            (found, _) => format!("remove {} of them: one empty line separates entries", found - 1),
        };
        problems.push(self.text.line_finding(&changelog::SEPARATION, end, message).hint(hint));
    }

    /// Every entry links to the pull request that adds it.
    #[must_use]
    pub(crate) fn links(&self, pull_request: &PullRequest) -> Problems {
        let own = pull_request.to_string();
        let wrong = self
            .items
            .iter()
            .filter_map(|item| Field::of(item))
            .filter(|field| field.text != own);
        let problem = |field: Field<'_>| {
            let number = pull_request.number;
            if is_placeholder(field.text) {
                return changelog::OPEN_LINK
                    .at(self.source, field.value, "the link of this entry is still open")
                    .hint(format!(
                        "run `sweepctl changelog canonicalize --pr {number} --repo {}` and commit the file",
                        pull_request.repository
                    ));
            }
            let message = format!("the link of this entry is not that of its own pull request, {number}");
            changelog::WRONG_LINK
                .at(self.source, field.value, message)
                .hint(format!("write `pr-link: {own}`"))
        };
        Problems(wrong.map(problem).collect())
    }
}

/// The text ends in one line end. Where nothing is appended only a missing one counts: what stands there may not be
/// removed.
#[must_use]
pub(crate) fn ending(head: &Text<'_>, appended: Option<usize>) -> Problems {
    let Some(last) = head.lines.len().checked_sub(1) else {
        return Problems::default();
    };
    if !head.is_terminated() {
        let end = head.lines[last].len();
        let problem = head.finding(&changelog::LAST_LINE, last, (end, end), "the last line has no line end");
        return problem.hint("add it: `echo >> perf-changelog.yaml`").into();
    }
    let empty = head.lines.iter().rev().take_while(|line| is_blank(line)).count();
    let first = head.lines.len() - empty;
    match appended {
        Some(from) if empty > 0 && first > from => {
            let problem = head.line_finding(&changelog::LAST_LINE, first, "the file ends in empty lines");
            problem
                .hint(format!("remove them: the file ends with line {first}"))
                .into()
        }
        _ => Problems::default(),
    }
}
