//! The envelope that a step is given, as a file.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::config::problem::{Problem, Problems, Span};
use crate::config::source::{MAX_BYTES, Source};
use crate::matrix::envelope::Envelope;

/// Reads an envelope from a file, or from standard input for `-`.
///
/// # Errors
/// A file that cannot be read, and a text that is no envelope, with its place.
pub(crate) fn read(path: &Path) -> Result<Envelope, Problems> {
    /// The name of standard input in messages.
    const STDIN: &str = "<stdin>";
    let source = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin()
            .take(MAX_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| Problem::file(STDIN, format!("standard input cannot be read: {error}")))?;
        Source::from_bytes(STDIN, bytes)?
    } else {
        Source::read(path)?
    };
    serde_json::from_str(&source.text).map_err(|error| {
        // The parser's message ends in its place, which the problem shows itself.
        let said = error.to_string();
        let what = said.rsplit_once(" at line ").map_or(said.as_str(), |(what, _)| what);
        let span = Span {
            line: error.line().max(1),
            column: error.column().max(1),
            length: 1,
        };
        Problem::at(&source, span, format!("this is no envelope: {what}"))
            .hint("give it one element of a matrix, as `sweepctl shard` prints them")
            .into()
    })
}

/// The envelope of the job that this process is part of: the file that SWEEPCTL_ENVELOPE names, if it is there. In a
/// container the path may be the host's.
#[must_use]
pub(crate) fn of_job() -> Option<PathBuf> {
    let file = std::env::var_os("SWEEPCTL_ENVELOPE").filter(|file| !file.is_empty());
    file.map(PathBuf::from).filter(|file| file.is_file())
}
