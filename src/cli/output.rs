//! Tables for people on a terminal, JSON for machines.

use std::io::{IsTerminal, Write};

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;

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

/// A table without borders, its numbers to the right, in the width of the terminal.
///
/// Text from inputs is made printable: no control character reaches a terminal.
#[must_use]
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let is_number = |text: &String| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b',');
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(head.iter().map(|name| Cell::new(name.to_uppercase())));
    for row in rows {
        table.add_row(row.iter().map(|text| {
            let cell = Cell::new(crate::config::problem::printable(text));
            if is_number(text) {
                cell.set_alignment(CellAlignment::Right)
            } else {
                cell
            }
        }));
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n") + "\n"
}

/// Prints text for people.
///
/// # Errors
/// As [`write`].
pub fn text(text: &str) -> anyhow::Result<()> {
    write(text.as_bytes())
}
