//! What a change may do to the changelog's bytes.
//!
//! Existing bytes stay as they are, but for the value of a `pr-link` that is set right; new entries stand at the end.
//! Bytes and not meanings are compared: a changelog is merged, blamed and read as text, and a re-quoted or moved entry
//! costs every open branch a conflict.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffTag, capture_diff_slices_deadline};

use super::additions::{self, Added};
use super::link::{FIELD_START, Field, PullRequest};
use super::text::{Text, content, forbidden, is_blank};
use crate::config::changelog::{Changelog, Entry};
use crate::config::problem::{Place, Problem, Problems};
use crate::config::source::Source;
use crate::findings::changelog as findings;

/// How long two texts are compared before the difference is told more coarsely.
const PATIENCE: Duration = Duration::from_secs(2);
/// How many lines of one kind of problem are shown.
const SHOWN: usize = 20;

/// What a change does to the changelog.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// What breaks the rules.
    pub problems: Problems,
    /// The added entries, in order, with their places; those that break the schema are among the problems.
    pub entries: Vec<(Entry, Place)>,
    /// How many existing entries had their link set right.
    pub corrected_links: usize,
    /// Whether the base's last line lacked its end and now has it.
    pub ended_last_line: bool,
}

impl Findings {
    /// Whether the change is in order and gives nothing to plan: links were set right, or the last line was ended.
    #[must_use]
    pub(crate) fn is_only_a_correction(&self) -> bool {
        self.problems.0.is_empty() && self.entries.is_empty() && (self.corrected_links > 0 || self.ended_last_line)
    }
}

/// The two sides and what is known of the change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Comparison<'a> {
    /// The changelog at the base; empty where there is none.
    pub base: &'a Text<'a>,
    /// The changelog at the head.
    pub head: &'a Text<'a>,
    /// The hash of the base, for the command that restores text.
    pub base_commit: &'a str,
    /// The pull request that every added entry must link to.
    pub pull_request: Option<&'a PullRequest>,
}

impl Comparison<'_> {
    /// Judges the change by every rule.
    #[must_use]
    pub(crate) fn judge(&self) -> Findings {
        let Self { base, head, .. } = self;
        let changes = Changes::between(base, head);
        let mut problems = Problems::default();
        problems.extend(self.forbidden_bytes(&changes));
        for hunk in &changes.hunks {
            problems.extend(self.altered(hunk));
        }
        problems.0.extend(self.other_ends(&changes));
        let mut findings = Findings {
            ended_last_line: !base.is_terminated() && head.is_terminated(),
            ..Findings::default()
        };
        match (read(base), read(head)) {
            (Ok(base_source), Ok(head_source)) => {
                problems.extend(self.entries(&changes, &base_source, &head_source, &mut findings));
            }
            // Bytes that are new and no text were reported where they stand.
            (base, head) => {
                let known = !problems.0.is_empty();
                problems.0.extend(base.err());
                problems.0.extend(head.err().filter(|_| !known));
            }
        }
        problems.extend(additions::ending(head, changes.appended));
        findings.problems.extend(problems);
        findings
    }

    fn forbidden_bytes(&self, changes: &Changes) -> Problems {
        let inserted = changes.hunks.iter().flat_map(|hunk| hunk.new.clone());
        let lines = inserted.map(|line| (line, self.head.lines[line])).chain(
            // Whether its end changed is judged with the correction.
            changes
                .links
                .iter()
                .map(|(_, line)| (*line, content(self.head.lines[*line]))),
        );
        let mut found = lines.filter_map(|(line, bytes)| Some((line, forbidden(bytes)?)));
        let mut problems = Problems::default();
        for (line, (start, end, name)) in found.by_ref().take(SHOWN) {
            let problem = self.head.finding(
                &findings::FORBIDDEN_BYTES,
                line,
                (start, end),
                format!("{name} is added"),
            );
            problems.push(problem.hint("remove it: new text is UTF-8, indented by spaces, and its lines end in `\\n`"));
        }
        let more = found.count();
        if more > 0 {
            problems.push(
                findings::FORBIDDEN_BYTES
                    .file(
                        self.head.name,
                        format!("such characters stand in {}", crate::plural::count(more, "more line")),
                    )
                    .hint("remove them too"),
            );
        }
        problems
    }

    /// A difference in the existing text; the end of the text is where additions belong.
    fn altered(&self, hunk: &Hunk) -> Problems {
        let Self { base, head, .. } = self;
        let (old, new) = (hunk.old.len(), hunk.new.len());
        let restore = format!("existing text stays: {}", self.restore());
        let problem = match (old, new) {
            (0, _) if hunk.old.start == base.lines.len() => return Problems::default(),
            (0, _) => {
                let message = format!(
                    "{} before the end of the existing text",
                    count(new, "line is", "lines are", "added")
                );
                head.line_finding(&findings::INSERTED, shown(head, &hunk.new), message)
                    .hint("move them to the end of the file, after one empty line")
            }
            (_, 0) => {
                let message = count(old, "existing line is", "existing lines are", "removed");
                base.line_finding(&findings::REMOVED, shown(base, &hunk.old), message)
                    .hint(restore)
            }
            _ => {
                let (was, is) = (base.lines[hunk.old.start], head.lines[hunk.new.start]);
                let same = was.iter().zip(is).take_while(|(a, b)| a == b).count();
                let message = count(old, "existing line is", "existing lines are", "altered");
                let was = String::from_utf8_lossy(content(was)).trim().to_owned();
                let hint = match old {
                    1 if (1..=120).contains(&was.len()) => {
                        format!("line {} was `{was}`; {restore}", hunk.old.start + 1)
                    }
                    _ => restore,
                };
                head.finding(&findings::ALTERED, hunk.new.start, (same, content(is).len()), message)
                    .hint(hint)
            }
        };
        problem.into()
    }

    /// Existing lines whose ends are altered, told once: an editor alters all of them.
    fn other_ends(&self, changes: &Changes) -> Option<Problem> {
        let (_, first) = changes.ends.first()?;
        let line = self.head.lines[*first];
        let message = count(
            changes.ends.len(),
            "existing line ends",
            "existing lines end",
            "in another way",
        );
        let hint = format!(
            "keep line ends as they are: {}; see `git config core.autocrlf` and your editor's settings",
            self.restore()
        );
        let end = (content(line).len(), line.len());
        Some(self.head.finding(&findings::LINE_ENDS, *first, end, message).hint(hint))
    }

    fn restore(&self) -> String {
        let commit = self.base_commit.get(..12).unwrap_or(self.base_commit);
        format!("`git checkout {commit} -- perf-changelog.yaml` restores the file; then append what is new again")
    }

    /// What needs both changelogs as trees.
    fn entries(
        &self,
        changes: &Changes,
        base_source: &Arc<Source>,
        head_source: &Arc<Source>,
        findings: &mut Findings,
    ) -> Problems {
        let (base, head) = match (Changelog::parse(base_source), Changelog::parse(head_source)) {
            (Ok(base), Ok(head)) => (base, head),
            (base, head) => {
                let mut problems = base.err().unwrap_or_default();
                problems.extend(head.err().unwrap_or_default());
                return problems;
            }
        };
        let mut problems = self.corrections(changes, &base, &head);
        findings.corrected_links = changes.links.len() - problems.0.len();
        let items = head.items();
        let items: Vec<_> = items
            .into_iter()
            .filter(|item| changes.adds(self.head.entry_line(item)))
            .collect();
        let added = Added {
            text: self.head,
            source: head_source,
            items: &items,
        };
        if let Some(from) = changes.appended {
            problems.extend(added.separation(from));
        }
        if let Some(pull_request) = self.pull_request {
            problems.extend(added.links(pull_request));
        }
        match head.decode(&items) {
            Ok(entries) => {
                let place = |(entry, span)| (entry, Place::new(head_source, span));
                findings.entries = entries.into_iter().map(place).collect();
            }
            Err(more) => problems.extend(more),
        }
        problems
    }

    /// The changed `pr-link` lines that are no correction: the line must be that field of an entry at both sides, on
    /// its own, and now hold a pull request's link.
    fn corrections(&self, changes: &Changes, base: &Changelog<'_>, head: &Changelog<'_>) -> Problems {
        let (old, new) = (fields(base), fields(head));
        let mut problems = Problems::default();
        for (was, is) in &changes.links {
            let link = new.get(is).filter(|_| old.contains_key(was)).map(|field| field.text);
            let problem = |message: &str| self.head.line_finding(&findings::ALTERED_LINK, *is, message);
            match link {
                None => problems.push(
                    problem("an existing line is altered, which is no entry's `pr-link`")
                        .id(&findings::ALTERED)
                        .hint("restore it: only the link of an entry may be set right"),
                ),
                Some(link) if PullRequest::from_link(link).is_none() => problems.push(
                    problem(
                        "the `pr-link` of an existing entry is altered to something that is no pull request's link",
                    )
                    .hint("write `pr-link: https://github.com/<owner>/<repository>/pull/<number>`, or restore it"),
                ),
                Some(_) => {}
            }
        }
        problems
    }
}

/// The line that stands for others: the first that shows something.
fn shown(text: &Text<'_>, lines: &Range<usize>) -> usize {
    lines
        .clone()
        .find(|line| !is_blank(text.lines[*line]))
        .unwrap_or(lines.start)
}

/// `1 line is added`, `3 lines are added`.
fn count(number: usize, one: &str, many: &str, verb: &str) -> String {
    format!("{number} {} {verb}", if number == 1 { one } else { many })
}

fn read(text: &Text<'_>) -> Result<Arc<Source>, Problem> {
    Source::from_bytes(text.name, text.bytes.to_vec()).map(Arc::new)
}

/// The links that stand on one line with their field's name, by line counted from 0.
fn fields<'a>(changelog: &'a Changelog<'_>) -> HashMap<usize, Field<'a>> {
    let links = changelog.items().into_iter().filter_map(Field::of);
    links
        .filter(|field| field.key.line == field.value.line)
        .map(|field| (field.key.line - 1, field))
        .collect()
}

/// A place where the sides differ, in lines.
#[derive(Debug)]
struct Hunk {
    old: Range<usize>,
    new: Range<usize>,
}

/// How two texts differ by lines.
#[derive(Debug)]
struct Changes {
    /// Lines that begin with the same `pr-link:` and go on differently: at the base, and at the head.
    links: Vec<(usize, usize)>,
    /// Lines that end differently.
    ends: Vec<(usize, usize)>,
    hunks: Vec<Hunk>,
    /// The first line at the head that stands behind all of the base.
    appended: Option<usize>,
}

/// A line as it is compared, without its end: of a link, what stands before its value.
#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Token<'a> {
    Link(&'a [u8]),
    Line(&'a [u8]),
}

impl<'a> Token<'a> {
    fn all(text: &Text<'a>) -> Vec<Self> {
        text.lines.iter().map(|line| Self::of(line)).collect()
    }

    fn of(line: &'a [u8]) -> Self {
        let text = line.trim_ascii_start();
        let text = text.strip_prefix(b"- ").unwrap_or(text);
        if text.starts_with(FIELD_START.as_bytes()) {
            return Self::Link(&line[..line.len() - text.len()]);
        }
        Self::Line(content(line))
    }

    fn begins_entry(&self) -> bool {
        let (Self::Link(text) | Self::Line(text)) = self;
        text.starts_with(b"- ")
    }

    fn is_blank(&self) -> bool {
        matches!(self, Self::Line(text) if is_blank(text))
    }
}

/// The lines at the base, the lines at the head, and whether they are the same.
type Difference = (Range<usize>, Range<usize>, bool);

/// How two texts differ: by entries first, and by lines where entries were replaced. By lines alone a removed entry
/// and an added one of the same shape would look like edits of all between.
fn differences(old: &[Token<'_>], new: &[Token<'_>]) -> Vec<Difference> {
    let deadline = Instant::now() + PATIENCE;
    let (old_chunks, new_chunks) = (chunks(old), chunks(new));
    let lines = |chunks: &[&[Token<'_>]], range: Range<usize>| {
        let length = |chunks: &[&[Token<'_>]]| -> usize { chunks.iter().map(|chunk| chunk.len()).sum() };
        let start = length(&chunks[..range.start]);
        start..start + length(&chunks[range])
    };
    let mut found = Vec::new();
    for op in capture_diff_slices_deadline(Algorithm::Myers, &old_chunks, &new_chunks, Some(deadline)) {
        let (was, is) = (lines(&old_chunks, op.old_range()), lines(&new_chunks, op.new_range()));
        if op.tag() != DiffTag::Replace {
            found.push((was, is, op.tag() == DiffTag::Equal));
            continue;
        }
        let inner = capture_diff_slices_deadline(Algorithm::Myers, &old[was.clone()], &new[is.clone()], Some(deadline));
        let shifted = |range: Range<usize>, by: usize| range.start + by..range.end + by;
        found.extend(inner.into_iter().map(|op| {
            let (old_range, new_range) = (shifted(op.old_range(), was.start), shifted(op.new_range(), is.start));
            (old_range, new_range, op.tag() == DiffTag::Equal)
        }));
    }
    found
}

/// Entries, each with the empty lines above it.
fn chunks<'t, 'a>(tokens: &'t [Token<'a>]) -> Vec<&'t [Token<'a>]> {
    tokens
        .chunk_by(|one, next| one.is_blank() || !(next.is_blank() || next.begins_entry()))
        .collect()
}

impl Changes {
    fn between(base: &Text<'_>, head: &Text<'_>) -> Self {
        // An empty list cannot be appended to as text.
        let old = if base.bytes.trim_ascii() == b"[]" {
            Vec::new()
        } else {
            Token::all(base)
        };
        let new = Token::all(head);
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        let mut hunks = Vec::new();
        if new.starts_with(&old) {
            // A difference could show a repeated entry as put before its first copy.
            pairs = (0..old.len()).map(|line| (line, line)).collect();
            if new.len() > old.len() {
                hunks.push(Hunk {
                    old: base.lines.len()..base.lines.len(),
                    new: old.len()..new.len(),
                });
            }
        } else {
            for (was, is, same) in differences(&old, &new) {
                match same {
                    true => pairs.extend(was.zip(is)),
                    false => hunks.push(Hunk { old: was, new: is }),
                }
            }
        }
        let sides = |(was, is): &(usize, usize)| (base.lines[*was], head.lines[*is]);
        let ends = pairs.iter().copied().filter(|pair| {
            let (was, is) = sides(pair);
            ends_differ(was, is)
        });
        let ends = ends.collect();
        pairs.retain(|pair| {
            let (was, is) = sides(pair);
            content(was) != content(is)
        });
        let last = hunks.last().filter(|hunk| hunk.old.end == base.lines.len());
        let appended = last.map(Hunk::first_added).filter(|line| *line < new.len());
        Self {
            links: pairs,
            ends,
            hunks,
            appended,
        }
    }

    /// Whether a line of the head is new.
    fn adds(&self, line: usize) -> bool {
        self.hunks
            .iter()
            .any(|hunk| (hunk.first_added()..hunk.new.end).contains(&line))
    }
}

/// Whether two lines end differently; one that has no end yet may get one.
fn ends_differ(was: &[u8], is: &[u8]) -> bool {
    let (was, is) = (&was[content(was).len()..], &is[content(is).len()..]);
    was != is && !was.is_empty() && !is.is_empty()
}

impl Hunk {
    /// The first line that takes no old line's place.
    fn first_added(&self) -> usize {
        (self.new.start + self.old.len()).min(self.new.end)
    }
}
