//! Tables for people on a terminal, JSON for machines.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use super::table;

/// Whether to print JSON: asked for, or standard output is no terminal.
#[must_use]
pub(crate) fn wants_json(asked: bool) -> bool {
    asked || !std::io::stdout().is_terminal()
}

/// Whether standard output has a JSON document: a second one would make it none.
static HAS_DOCUMENT: AtomicBool = AtomicBool::new(false);

/// Whether a command printed a JSON document of its own.
#[must_use]
pub(crate) fn has_document() -> bool {
    HAS_DOCUMENT.load(Ordering::Relaxed)
}

/// Prints a value as one line of JSON.
///
/// # Errors
/// A closed pipe is none; any other failure to write.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_vec(value)?;
    text.push(b'\n');
    HAS_DOCUMENT.store(true, Ordering::Relaxed);
    write(&text)
}

/// Writes to standard output. A reader that went away ends the output, not the command.
///
/// # Errors
/// Any failure but a closed pipe.
pub(crate) fn write(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(anyhow::anyhow!("standard output cannot be written: {error}"))
        }
        _ => Ok(()),
    }
}

/// A table of text in the width of the terminal, what does not fit is left out or wrapped.
#[must_use]
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    table::table(head, rows, table::Screen::of_stdout())
}

/// The start of a line that quotes another program: it is cut, not wrapped.
pub(crate) const QUOTED: &str = "  | ";

/// Text for people in the width of the terminal, and how many rows of it that takes. Sentences are wrapped; lines that
/// quote are cut; a word that is wider, such as an address, is left whole.
#[must_use]
pub(crate) fn fitted(text: &str) -> (String, usize) {
    let width = usize::from(table::Screen::of_stdout().width).max(1);
    let (mut out, mut rows) = (String::with_capacity(text.len()), 0);
    for line in text.lines() {
        let fits = line.chars().count() <= width;
        let lines = match fits {
            true => vec![line.to_owned()],
            false if line.starts_with(QUOTED) => {
                vec![line.chars().take(width.saturating_sub(1)).chain(['…']).collect()]
            }
            false => wrapped(line, width),
        };
        for line in lines {
            rows += line.chars().count().div_ceil(width).max(1);
            out.push_str(&line);
            out.push('\n');
        }
    }
    (out, rows)
}

/// A line in words, each line as full as they allow.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in line.split(' ') {
        match lines.last_mut() {
            Some(last) if last.chars().count() + 1 + word.chars().count() <= width => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Prints text for people, in the width of the terminal.
///
/// # Errors
/// As [`write`].
pub(crate) fn prose(text: &str) -> anyhow::Result<()> {
    self::text(&fitted(text).0)
}

/// Prints text for people.
///
/// # Errors
/// As [`write`].
pub(crate) fn text(text: &str) -> anyhow::Result<()> {
    write(text.as_bytes())
}
