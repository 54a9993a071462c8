//! Tables for people on a terminal, JSON for machines.

use std::io::{IsTerminal, Write};

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
