//! What is wrong with an input: what, where, why, and the way out.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::source::Source;

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
    pub fn problem(&self, message: impl Into<String>) -> Problem {
        Problem::at(&self.source, self.span, message)
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
    /// A problem of a whole file.
    #[must_use]
    pub fn file(file: &str, message: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            span: None,
            message: message.into(),
            hint: None,
            line: String::new(),
            log: Vec::new(),
        }
    }

    /// A problem at a place.
    #[must_use]
    pub fn at(source: &Source, span: Span, message: impl Into<String>) -> Self {
        Self {
            file: source.name.clone(),
            span: Some(span),
            message: message.into(),
            hint: None,
            line: source.line(span.line).to_owned(),
            log: Vec::new(),
        }
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
    /// The message, the place, the offending line with a caret, and the way out, as compilers show it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", printable(&shortened(&self.message)))?;
        if let Some(span) = self.span {
            let gutter = span.line.to_string().len();
            let (text, lead) = excerpt(&self.line, span.column);
            let room = text.chars().count().saturating_sub(lead);
            write!(
                f,
                "\n{:gutter$}--> {}:{}:{}\n{:gutter$} |\n{} | {}\n{:gutter$} | {:lead$}{}",
                "",
                printable(&self.file),
                span.line,
                span.column,
                "",
                span.line,
                text,
                "",
                "",
                "^".repeat(span.length.min(room).max(1)),
            )?;
        } else if !self.file.is_empty() && !self.message.contains(&self.file) {
            write!(f, "\n --> {}", printable(&self.file))?;
        }
        for line in &self.log {
            write!(f, "\n  | {}", printable(line))?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  = help: {}", printable(hint))?;
        }
        Ok(())
    }
}

/// The longest message that is shown, in characters.
const MESSAGE: usize = 1000;

/// A message that an absurdly long name does not fill the screen with.
fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MESSAGE) {
        Some((end, _)) => Cow::Owned(format!("{}...", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// The widest part of an offending line that is shown, in characters.
const EXCERPT: usize = 120;

/// The part of a line around a column, and how many characters of it stand before that column.
fn excerpt(line: &str, column: usize) -> (String, usize) {
    let skip = (column - 1).saturating_sub(EXCERPT / 2);
    let mut text: String = line
        .chars()
        .skip(skip)
        .take(EXCERPT)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let mut lead = column - 1 - skip;
    if skip > 0 {
        text.insert_str(0, "...");
        lead += 3;
    }
    (text, lead)
}

/// Text from an input on one line, safe on a terminal and in a log of the Actions runner: control characters, and those
/// that turn the direction of writing, are shown by their number; a line end in a name would start a line of its own,
/// which the runner may take for a command. Its old form of commands, `##[name]`, counts anywhere and is broken up.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            c if c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') => {
                out.push_str(&format!("\\u{{{:x}}}", u32::from(c)))
            }
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
            count if count < Self::MAX => self.push(problem(Problem::at(source, span, ""))),
            Self::MAX => {
                let message = format!("this file has more problems than the {} that are shown", Self::MAX);
                self.push(Problem::at(source, span, message).hint("correct those, and check again"));
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
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n\n")?;
            }
            write!(f, "{problem}")?;
        }
        if self.0.len() > 1 {
            write!(f, "\n\n{} problems", self.0.len())?;
        }
        Ok(())
    }
}

/// `did you mean ...` for a name that is not one of the known, or the list of the known ones.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    /// How many names a hint lists.
    const SHOWN: usize = 12;
    /// The longest name, in bytes, that is taken for a misspelt one.
    const LONGEST: usize = 200;
    let known: Vec<&str> = known.into_iter().collect();
    let mut close: Vec<(usize, &str)> = known
        .iter()
        .filter(|k| name.len().max(k.len()) <= LONGEST)
        .map(|k| (strsim::damerau_levenshtein(name, k), *k))
        .filter(|(distance, k)| *distance * 3 <= name.chars().count().max(3) || (name.len() > 3 && k.contains(name)))
        .collect();
    close.sort();
    close.dedup();
    let quoted = |names: &[&str]| names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    if !close.is_empty() {
        let names: Vec<&str> = close.into_iter().take(3).map(|(_, k)| k).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_starts_a_line_or_a_command() {
        let problem = Problem::file("a\n::error::x", "b\r\n::add-mask::y").hint("c ##[group]z");
        let text = problem.to_string();
        assert!(text.lines().all(|line| !line.trim_start().starts_with("::")), "{text}");
        assert!(!text.contains("##["), "{text}");
    }
}
