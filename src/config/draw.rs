//! Problems as people read them: with their id, the line and a caret, as compilers show them.

use std::borrow::Cow;
use std::fmt::Write;

use super::problem::{Problem, Problems, is_hidden, printable};
use crate::findings::Severity;

/// A problem without colours.
#[must_use]
pub(crate) fn plain(problem: &Problem) -> String {
    draw(problem, ("", ""))
}

/// All problems without colours, and how many they are.
#[must_use]
pub(crate) fn all_plain(problems: &Problems) -> String {
    all(problems, plain)
}

/// A problem with colours, for a stream that takes them away where they are not wanted.
#[must_use]
pub(crate) fn styled(problem: &Problem) -> String {
    let start = match problem.severity {
        Severity::Error => "\u{1b}[1;31m",
        Severity::Warning => "\u{1b}[1;33m",
        Severity::Notice => "\u{1b}[1;34m",
    };
    draw(problem, (start, "\u{1b}[0m"))
}

/// All problems with colours, and how many they are.
#[must_use]
pub(crate) fn all_styled(problems: &Problems) -> String {
    all(problems, styled)
}

fn all(problems: &Problems, draw: fn(&Problem) -> String) -> String {
    let mut drawn: Vec<String> = problems.0.iter().map(draw).collect();
    if drawn.len() > 1 {
        drawn.push(format!("{} problems", drawn.len()));
    }
    drawn.join("\n\n")
}

/// Draws a problem; its name and its caret stand between the two marks of a colour.
fn draw(problem: &Problem, (start, end): (&str, &str)) -> String {
    let (severity, id) = (problem.severity.name(), problem.finding.id);
    let message = printable(&shortened(&problem.message));
    let mut out = format!("{start}{severity}[{id}]{end}: {message}");
    if let Some(span) = problem.span {
        let gutter = span.line.to_string().len();
        let (text, lead) = excerpt(&problem.line, span.column);
        let room = text.chars().count().saturating_sub(lead);
        // A `String` takes whatever is written to it.
        let _ = write!(
            out,
            "\n{:gutter$}--> {}:{}:{}\n{:gutter$} |\n{} | {}\n{:gutter$} | {:lead$}{start}{}{end}",
            "",
            printable(&problem.file),
            span.line,
            span.column,
            "",
            span.line,
            text,
            "",
            "",
            "^".repeat(span.length.min(room).max(1)),
        );
    } else if !problem.file.is_empty() && !problem.message.contains(&problem.file) {
        out.push_str(&format!("\n --> {}", printable(&problem.file)));
    }
    for line in &problem.log {
        out.push_str(&format!("\n  | {}", printable(line)));
    }
    if let Some(hint) = &problem.hint {
        out.push_str(&format!("\n  = help: {}", printable(hint)));
    }
    out
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
        .map(|c| if is_hidden(c) { ' ' } else { c })
        .collect();
    let mut lead = column - 1 - skip;
    if skip > 0 {
        text.insert_str(0, "...");
        lead += 3;
    }
    (text, lead)
}
