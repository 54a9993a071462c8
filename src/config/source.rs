//! A text that configuration is read from, bounded in size.

use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::OnceLock;

use super::problem::{Problem, Span};
use crate::findings::files;

/// The largest configuration file that is read, in bytes (64 MiB).
///
/// A hundred times a fleet of ten thousand lines stays under it; a sparse or endless file does not.
pub const MAX_BYTES: u64 = 64 << 20;

/// One text with the name that messages give it.
#[derive(Debug, Clone)]
pub struct Source {
    /// The path as the user knows it, with `<ref>:` before it where the text came from a commit.
    pub name: String,
    /// The whole text; UTF-8 without control characters other than tab and line ends.
    pub text: String,
    /// Where lines start, in bytes; found when the first line is asked for.
    starts: OnceLock<Vec<usize>>,
}

impl Source {
    /// A text that needs no reading.
    #[must_use]
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            text: text.into(),
            starts: OnceLock::new(),
        }
    }

    /// Reads a file of at most [`MAX_BYTES`]. What refuses a file shows parts of it, so links are not followed: in a
    /// relative path, which a checkout may hold, in no part of it.
    ///
    /// # Errors
    /// A missing or unreadable file, a link, one over the limit, and everything that [`Source::from_bytes`] refuses.
    pub fn read(path: &Path) -> Result<Self, Problem> {
        Self::read_as(path, &path.display().to_string())
    }

    /// [`Source::read`] under another name than the path's.
    ///
    /// # Errors
    /// As [`Source::read`].
    pub fn read_as(path: &Path, name: &str) -> Result<Self, Problem> {
        let failed = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => files::MISSING
                .file(name, format!("`{name}` does not exist"))
                .hint("check the path, or run from the repository's root"),
            _ => files::UNREADABLE.file(name, format!("`{name}` cannot be read: {error}")),
        };
        if let Some(link) = link(path) {
            let link = link.display();
            return Err(files::NOT_REGULAR
                .file(
                    name,
                    format!("`{link}` is a symbolic link, which could show any file of this machine"),
                )
                .hint("put the file itself there"));
        }
        let metadata = std::fs::metadata(path).map_err(failed)?;
        // The writer of a named pipe may never come; what a shell passes by /dev is on its way.
        if metadata.file_type().is_fifo() && !path.starts_with("/dev") && !path.starts_with("/proc") {
            return Err(files::NOT_REGULAR
                .file(name, format!("`{name}` is not a regular file"))
                .hint("replace it by a file"));
        }
        let file = std::fs::File::open(path).map_err(failed)?;
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
        Self::from_bytes(name, bytes)
    }

    /// Takes bytes as text.
    ///
    /// # Errors
    /// Over [`MAX_BYTES`], bytes that are not UTF-8, and control characters; each is located.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Self, Problem> {
        if bytes.len() as u64 > MAX_BYTES {
            return Err(Self::too_large(name));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let line = 1 + error.as_bytes()[..at].iter().filter(|b| **b == b'\n').count();
            files::NOT_TEXT
                .file(name, format!("byte {at}, on line {line}, is not UTF-8"))
                .hint("save the file as UTF-8")
        })?;
        let source = Self::new(name, text);
        match source.text.char_indices().find(|(_, c)| is_control(*c)) {
            None => Ok(source),
            Some((at, c)) => Err(files::NOT_TEXT
                .at(
                    &source,
                    Span::of(&source.text, at, at + c.len_utf8()),
                    format!("control character U+{:04X}", u32::from(c)),
                )
                .hint("remove it: only tab and line ends are allowed")),
        }
    }

    /// The problem of a text over [`MAX_BYTES`].
    #[must_use]
    pub fn too_large(name: &str) -> Problem {
        files::TOO_LARGE
            .file(name, format!("the file is larger than {} MiB", MAX_BYTES >> 20))
            .hint("split it: several master files are merged")
    }

    /// The text of a line, counted from 1, without its line end.
    #[must_use]
    pub fn line(&self, line: usize) -> &str {
        let starts = self.starts.get_or_init(|| {
            let ends = self.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
            std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect()
        });
        let start = starts.get(line.saturating_sub(1)).copied().unwrap_or(self.text.len());
        self.text[start..].lines().next().unwrap_or("")
    }
}

/// The part of a path that is a link, where links are refused. What a shell passes by /dev and /proc are links.
fn link(path: &Path) -> Option<&Path> {
    if path.starts_with("/dev") || path.starts_with("/proc") {
        return None;
    }
    let parts = if path.is_absolute() { 1 } else { usize::MAX };
    let mut parts = path.ancestors().take(parts);
    parts.find(|part| std::fs::symlink_metadata(part).is_ok_and(|part| part.is_symlink()))
}

fn is_control(c: char) -> bool {
    c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{85}')
}
