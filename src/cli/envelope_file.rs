//! The envelope that a step is given, as a file.

use std::path::Path;

use crate::config::problem::{Problem, Problems};
use crate::config::source::Source;
use crate::matrix::envelope::Envelope;

/// Reads one.
///
/// # Errors
/// A file that cannot be read, or is no envelope.
pub fn read(file: &Path) -> Result<Envelope, Problems> {
    let source = Source::read(file)?;
    serde_json::from_str(&source.text).map_err(|error| {
        Problem::file(&source.name, format!("it is no envelope: {error}"))
            .hint("a plan's matrices hold envelopes: write `toJson(matrix.row)` to the file")
            .into()
    })
}
