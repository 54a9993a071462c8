//! What is wrong with an input: what, where, why, and the way out.

use std::fmt;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::draw;
use super::source::Source;
use crate::findings::{Finding, Severity, files, refusals};

/// A place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// Length in characters, at least 1, never past the line's end when shown.
    pub length: usize,
}

impl Span {
    /// The place of the bytes `start..end` of a text.
    #[must_use]
    pub fn of(text: &str, start: usize, end: usize) -> Self {
        let before = &text[..start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Self {
            line: 1 + before.bytes().filter(|b| *b == b'\n').count(),
            column: 1 + before[line_start..].chars().count(),
            length: text[start..end].chars().count().max(1),
        }
    }
}

/// A place that a value keeps, for problems that only show later. Where something stands is no part of what it is:
/// all places are equal.
#[derive(Clone)]
pub struct Place {
    source: Arc<Source>,
    span: Span,
}

impl Place {
    /// A place in a source.
    #[must_use]
    pub fn new(source: &Arc<Source>, span: Span) -> Self {
        Self {
            source: Arc::clone(source),
            span,
        }
    }

    /// A problem here.
    #[must_use]
    #[track_caller]
    #[expect(clippy::disallowed_methods, reason = "it is one of them")]
    pub fn problem(&self, message: impl Into<String>) -> Problem {
        Problem::at(&self.source, self.span, message)
    }

    /// The line, counted from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.span.line
    }

    /// A finding here.
    pub(crate) fn found(&self, finding: &'static Finding, message: impl Into<String>) -> Problem {
        finding.at(&self.source, self.span, message)
    }
}

impl PartialEq for Place {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Place {}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.source.name, self.span.line, self.span.column)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// One problem of one input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What kind of finding it is.
    pub finding: &'static Finding,
    /// How much it weighs here.
    pub severity: Severity,
    /// The file's name.
    pub file: String,
    /// The place, where there is one.
    pub span: Option<Span>,
    /// What is wrong, in one sentence.
    pub message: String,
    /// The way out.
    pub hint: Option<String>,
    /// The offending line.
    pub line: String,
    /// The last lines of a log that says more.
    pub log: Vec<String>,
}

impl Problem {
    /// A problem of a whole file, with the id of the caller's area.
    #[must_use]
    #[track_caller]
    pub fn file(file: &str, message: impl Into<String>) -> Self {
        Self::found(refusals::of_area(Location::caller()), file, message)
    }

    /// A problem at a place, with the id of the caller's area.
    #[must_use]
    #[track_caller]
    pub fn at(source: &Source, span: Span, message: impl Into<String>) -> Self {
        Self::found(refusals::of_area(Location::caller()), &source.name, message).spanning(source, span)
    }

    /// A finding of a whole file.
    pub(crate) fn found(finding: &'static Finding, file: &str, message: impl Into<String>) -> Self {
        Self {
            finding,
            severity: finding.severity,
            file: file.to_owned(),
            span: None,
            message: message.into(),
            hint: None,
            line: String::new(),
            log: Vec::new(),
        }
    }

    pub(crate) fn spanning(mut self, source: &Source, span: Span) -> Self {
        source.line(span.line).clone_into(&mut self.line);
        self.span = Some(span);
        self
    }

    /// Gives it the id of a kind of finding.
    #[must_use]
    pub fn id(mut self, finding: &'static Finding) -> Self {
        self.finding = finding;
        self.severity = finding.severity;
        self
    }

    /// Makes it one that does not fail the command.
    #[must_use]
    pub fn warning(mut self) -> Self {
        // What is no refusal has not the id of one.
        if refusals::is_a_refusal(self.finding) {
            self.finding = &refusals::WARNING;
        }
        self.severity = Severity::Warning;
        self
    }

    /// Makes it one that is worth knowing, and nothing wrong.
    #[must_use]
    pub fn notice(mut self) -> Self {
        self.severity = Severity::Notice;
        self
    }

    /// The way out: the one given here, or that of its kind.
    #[must_use]
    pub fn remedy(&self) -> &str {
        self.hint.as_deref().unwrap_or(self.finding.remedy)
    }

    /// The path of its file in the work tree: a text that came from a commit is named `<ref>:<path>`.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        let in_commit = self.file.split_once(':').map(|(_, path)| Path::new(path));
        let path = in_commit.filter(|path| path.is_file());
        path.unwrap_or(Path::new(&self.file)).to_path_buf()
    }

    /// The column behind a place, within its line.
    #[must_use]
    pub fn end_column(&self, span: Span) -> usize {
        let line = self.line.chars().count() + 1;
        (span.column + span.length).min(line).max(span.column + 1)
    }

    /// Adds the last lines of a log.
    #[must_use]
    pub fn log(mut self, lines: Vec<String>) -> Self {
        self.log = lines;
        self
    }

    /// Adds the way out.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Problem {
    /// The message with its id, the place, the offending line with a caret, and the way out, as compilers show it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&draw::plain(self))
    }
}

/// Whether a character shows nothing of itself: a control character, one that turns the direction of writing, or one that
/// is invisible. With them a text reads as another.
#[must_use]
pub(crate) fn is_hidden(c: char) -> bool {
    // Soft hyphen, the marks of direction and joining, line separators, invisible operators, byte order mark and tags.
    let formats = matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}');
    let unseen =
        matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    c.is_control() || formats || unseen
}

/// Text from an input on one line, safe on a terminal and in a log of the Actions runner: control characters, and those
/// that are invisible or turn the direction of writing, are shown by their number; a line end in a name would start a line of its own,
/// which the runner may take for a command. Its old form of commands, `##[name]`, counts anywhere and is broken up.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            c if is_hidden(c) => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.replace("##[", "# #[")
}

/// Everything wrong with the inputs of a command, ordered by place; never empty as an error.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    /// How many problems of one text are said; beyond them a list helps nobody, and costs the reader's time.
    pub const MAX: usize = 100;

    /// Whether no more problems of a text are said.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.0.len() > Self::MAX
    }

    /// Adds a problem of a text, unless there are enough; the last one says that there are more.
    pub fn push_at(&mut self, source: &Source, span: Span, problem: impl FnOnce(Problem) -> Problem) {
        match self.0.len() {
            count if count < Self::MAX => self.push(problem(files::TOO_MANY.at(source, span, ""))),
            Self::MAX => {
                let message = format!("this file has more problems than the {} that are shown", Self::MAX);
                self.push(
                    files::TOO_MANY
                        .at(source, span, message)
                        .hint("correct those, and check again"),
                );
            }
            _ => {}
        }
    }

    /// Adds a problem.
    pub fn push(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    /// Adds all of another list.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// What is wrong, without places and ways out.
    #[must_use]
    pub fn messages(&self) -> Vec<&str> {
        self.0.iter().map(|problem| problem.message.as_str()).collect()
    }

    /// `Ok` when there is none.
    ///
    /// # Errors
    /// The problems, ordered by file (in the order first met), line and column, each said once.
    pub fn into_result(mut self) -> Result<(), Self> {
        if self.0.is_empty() {
            return Ok(());
        }
        self.sort();
        Err(self)
    }

    fn sort(&mut self) {
        let mut files: Vec<String> = Vec::new();
        for problem in &self.0 {
            if !files.contains(&problem.file) {
                files.push(problem.file.clone());
            }
        }
        let place = |p: &Problem| (files.iter().position(|f| *f == p.file), p.span);
        self.0.sort_by_key(place);
        self.0.dedup();
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&draw::all_plain(self))
    }
}

/// The known names that a name may be a misspelling of, the nearest first.
#[must_use]
pub(crate) fn close_to<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    /// The longest name, in bytes, that is taken for a misspelt one.
    const LONGEST: usize = 200;
    let mut close: Vec<(usize, &str)> = known
        .into_iter()
        .filter(|k| name.len().max(k.len()) <= LONGEST)
        .map(|k| (strsim::damerau_levenshtein(name, k), k))
        .filter(|(distance, k)| *distance * 3 <= name.chars().count().max(3) || (name.len() > 3 && k.contains(name)))
        .collect();
    close.sort();
    close.dedup();
    close.into_iter().map(|(_, known)| known).collect()
}

/// `did you mean ...` for a name that is not one of the known, or the list of the known ones.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    /// How many names a hint lists.
    const SHOWN: usize = 12;
    let known: Vec<&str> = known.into_iter().collect();
    let close = close_to(name, known.iter().copied());
    let quoted = |names: &[&str]| names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    if !close.is_empty() {
        let names: Vec<&str> = close.into_iter().take(3).collect();
        return format!("did you mean {}?", quoted(&names));
    }
    if known.is_empty() {
        return "there is none to choose from".to_owned();
    }
    let more = known.len().saturating_sub(SHOWN);
    let tail = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!("known: {}{tail}", quoted(&known[..known.len().min(SHOWN)]))
}

/// As [`nearest`], with all of the known names behind a guess.
#[must_use]
pub(crate) fn nearest_of_all<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match close_to(name, known.iter().copied()).is_empty() {
        true => format!("known: {}", known.join(", ")),
        false => format!("{} known: {}", nearest(name, known.iter().copied()), known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_starts_a_line_or_a_command() {
        let problem = files::MISSING
            .file("a\n::error::x", "b\r\n::add-mask::y")
            .hint("c ##[group]z");
        let text = problem.to_string();
        assert!(text.lines().all(|line| !line.trim_start().starts_with("::")), "{text}");
        assert!(!text.contains("##["), "{text}");
    }
}
