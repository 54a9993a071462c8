//! Problems as people read them: with their id, the line and a caret, as compilers show them.

use std::borrow::Cow;

use annotate_snippets::{Annotation, AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};

use super::problem::{Problem, Problems, Span, printable};
use crate::findings::Severity;

/// How wide the drawing of a place may be, in columns.
const WIDTH: usize = 140;

/// A problem without colours.
#[must_use]
pub fn plain(problem: &Problem) -> String {
    draw(problem, &Renderer::plain())
}

/// All problems without colours, and how many they are.
#[must_use]
pub fn all_plain(problems: &Problems) -> String {
    all(problems, &Renderer::plain())
}

/// A problem with colours, for a stream that takes them away where they are not wanted.
#[must_use]
pub fn styled(problem: &Problem) -> String {
    draw(problem, &Renderer::styled())
}

/// All problems with colours, and how many they are.
#[must_use]
pub fn all_styled(problems: &Problems) -> String {
    all(problems, &Renderer::styled())
}

fn all(problems: &Problems, renderer: &Renderer) -> String {
    let mut drawn: Vec<String> = problems.0.iter().map(|problem| draw(problem, renderer)).collect();
    if drawn.len() > 1 {
        drawn.push(format!("{} problems", drawn.len()));
    }
    drawn.join("\n\n")
}

fn draw(problem: &Problem, renderer: &Renderer) -> String {
    let (level, name) = match problem.severity {
        Severity::Error => (Level::ERROR, None),
        Severity::Warning => (Level::WARNING, None),
        Severity::Notice => (Level::NOTE, Some(Severity::Notice.name())),
    };
    let level = match name {
        Some(name) => level.with_name(name),
        None => level,
    };
    let title = level
        .primary_title(printable(&shortened(&problem.message)))
        .id(problem.finding.id);
    let mut group = Group::with_title(title);
    let file = printable(&problem.file);
    if let Some(span) = problem.span {
        group = group.element(Origin::path(file).line(span.line).char_column(span.column));
        group = group.element(snippet(&problem.line, span));
    } else if !problem.file.is_empty() && !problem.message.contains(&problem.file) {
        group = group.element(Origin::path(file));
    }
    group = group.elements(
        problem
            .log
            .iter()
            .map(|line| Element::from(Level::NOTE.no_name().message(printable(line)))),
    );
    if let Some(hint) = &problem.hint {
        group = group.element(Level::HELP.message(printable(hint)));
    }
    renderer.clone().term_width(WIDTH).render(&[group])
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

/// The offending line around a place, with the place marked.
fn snippet(line: &str, span: Span) -> Snippet<'static, Annotation<'static>> {
    let skip = (span.column - 1).saturating_sub(EXCERPT / 2);
    let shown = line.chars().skip(skip).take(EXCERPT);
    let lead = if skip > 0 { "..." } else { "" };
    let mut text: String = lead
        .chars()
        .chain(shown.map(|c| if c.is_control() { ' ' } else { c }))
        .collect();
    // The runner takes `##[name]` for a command wherever it stands.
    text = text.replace("##[", "# [");
    let byte = |at: usize| text.char_indices().nth(at).map_or(text.len(), |(byte, _)| byte);
    let at = span.column - 1 - skip + lead.len();
    let marked = byte(at)..byte(at + span.length);
    Snippet::source(text)
        .line_start(span.line)
        .annotation(AnnotationKind::Primary.span(marked))
}
