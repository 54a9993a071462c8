//! Tables for people on a terminal, JSON for machines.

use std::io::{IsTerminal, Write};

use serde::Serialize;

use crate::config::problem::printable;

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

/// Prints a table, for people; control characters of its cells are shown by their number.
///
/// # Errors
/// As [`write`].
pub fn table(header: &[&str], rows: Vec<Vec<String>>) -> anyhow::Result<()> {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED);
    table.set_header(header);
    for row in rows {
        table.add_row(row.iter().map(|cell| printable(cell).replace('\n', "\\u{a}")));
    }
    write(format!("{table}\n").as_bytes())
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
