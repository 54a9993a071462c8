//! Tables for people on a terminal, JSON for machines.

use std::io::{IsTerminal, Write};

use serde::Serialize;

use super::table;

/// Whether to print JSON: asked for, or standard output is no terminal.
#[must_use]
pub fn wants_json(asked: bool) -> bool {
    asked || !std::io::stdout().is_terminal()
}

/// Prints a value as one line of JSON.
///
/// # Errors
/// A closed pipe is none; any other failure to write.
pub fn json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_vec(value)?;
    text.push(b'\n');
    write(&text)
}

/// Writes to standard output. A reader that went away ends the output, not the command.
///
/// # Errors
/// Any failure but a closed pipe.
pub fn write(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// A table of text in the width of the terminal, what does not fit is left out or wrapped.
#[must_use]
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    table::table(head, rows, table::Screen::of_stdout())
}

/// Text for people with every line cut to the width of the terminal, but for those that hold an address; and how many rows
/// of the terminal it takes.
#[must_use]
pub fn fitted(text: &str) -> (String, usize) {
    let width = usize::from(table::Screen::of_stdout().width);
    let (mut out, mut rows) = (String::with_capacity(text.len()), 0);
    for line in text.lines() {
        let length = line.chars().count();
        match length > width && !line.contains("://") {
            true => {
                out.extend(line.chars().take(width.saturating_sub(1)).chain(['…']));
                rows += 1;
            }
            false => {
                out.push_str(line);
                rows += length.div_ceil(width).max(1);
            }
        }
        out.push('\n');
    }
    (out, rows)
}

/// Prints text for people.
///
/// # Errors
/// As [`write`].
pub fn text(text: &str) -> anyhow::Result<()> {
    write(text.as_bytes())
}
