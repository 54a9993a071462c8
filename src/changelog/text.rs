//! A changelog as bytes on lines: it may be anything, also no text at all.

use crate::config::problem::{Problem, Span};
use crate::config::tree::Node;
use crate::findings::Finding;

/// The lines of a text with their ends. A line ends in `\n`, `\r\n` or a lone `\r`, as YAML counts them.
#[must_use]
pub(crate) fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    let mut rest = bytes;
    let mut lines = Vec::new();
    while !rest.is_empty() {
        let end = match rest.iter().position(|b| matches!(b, b'\n' | b'\r')) {
            Some(at) if rest[at..].starts_with(b"\r\n") => at + 2,
            Some(at) => at + 1,
            None => rest.len(),
        };
        let (line, more) = rest.split_at(end);
        lines.push(line);
        rest = more;
    }
    lines
}

/// A line without its end.
#[must_use]
pub(crate) fn content(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Whether a line shows nothing.
#[must_use]
pub(crate) fn is_blank(line: &[u8]) -> bool {
    line.trim_ascii().is_empty()
}

/// Whether a line is a comment that belongs to no entry's inside.
#[must_use]
pub(crate) fn is_comment(line: &[u8]) -> bool {
    line.starts_with(b"#")
}

/// A changelog's bytes under the name that messages give it.
#[derive(Debug)]
pub(crate) struct Text<'a> {
    /// The name.
    pub name: &'a str,
    /// The bytes as they are.
    pub bytes: &'a [u8],
    /// Its lines, with their ends.
    pub lines: Vec<&'a [u8]>,
}

impl<'a> Text<'a> {
    /// Bytes under a name.
    #[must_use]
    pub(crate) fn new(name: &'a str, bytes: &'a [u8]) -> Self {
        Self {
            name,
            bytes,
            lines: lines(bytes),
        }
    }

    /// Whether the last line has its end; an empty text has.
    #[must_use]
    pub(crate) fn is_terminated(&self) -> bool {
        self.bytes.is_empty() || self.bytes.ends_with(b"\n")
    }

    /// A finding at the bytes `start..end` of a line, which is counted from 0.
    #[must_use]
    pub(crate) fn finding(
        &self,
        finding: &'static Finding,
        index: usize,
        (start, end): (usize, usize),
        message: impl Into<String>,
    ) -> Problem {
        let line = self.lines.get(index).copied().unwrap_or_default();
        let characters = |part: &[u8]| String::from_utf8_lossy(part).chars().count();
        let start = start.min(line.len());
        let end = end.clamp(start, line.len());
        let mut problem = finding.file(self.name, message);
        problem.span = Some(Span {
            line: index + 1,
            column: characters(&line[..start]) + 1,
            length: characters(&line[start..end]).max(1),
        });
        problem.line = String::from_utf8_lossy(content(line)).into_owned();
        problem
    }

    /// A finding of a whole line, which is counted from 0.
    #[must_use]
    pub(crate) fn line_finding(&self, finding: &'static Finding, index: usize, message: impl Into<String>) -> Problem {
        let line = self.lines.get(index).copied().unwrap_or_default();
        let text = content(line);
        let indent = text.len() - text.trim_ascii_start().len();
        self.finding(finding, index, (indent, text.trim_ascii_end().len()), message)
    }

    /// The line, counted from 0, on which an entry's dash stands: the one of its first field, or one before it.
    #[must_use]
    pub(crate) fn entry_line(&self, entry: &Node<'_>) -> usize {
        let first_field = entry.span.line - 1;
        let dash = |line: &&[u8]| line.trim_ascii_start().starts_with(b"-");
        let above = self.lines[..=first_field.min(self.lines.len() - 1)]
            .iter()
            .rev()
            .position(dash);
        first_field - above.unwrap_or(0)
    }
}

/// The first part of a line that no new text may hold: its bytes `start..end`, and its name.
#[must_use]
pub(crate) fn forbidden(line: &[u8]) -> Option<(usize, usize, String)> {
    let text = match std::str::from_utf8(line) {
        Ok(text) => text,
        Err(error) => {
            let at = error.valid_up_to();
            let end = at + error.error_len().unwrap_or(line.len() - at);
            let name = format!("the byte 0x{:02X}, which is not UTF-8,", line[at]);
            // What stands before it may be forbidden too, and is met first.
            return forbidden(&line[..at]).or(Some((at, end, name)));
        }
    };
    let (at, c) = text
        .char_indices()
        .find(|(_, c)| (c.is_control() && *c != '\n') || *c == '\u{FEFF}')?;
    let name = match c {
        '\r' => "a carriage return".to_owned(),
        '\t' => "a tab".to_owned(),
        '\0' => "a NUL".to_owned(),
        '\u{FEFF}' => "a byte order mark".to_owned(),
        c => format!("the control character U+{:04X}", u32::from(c)),
    };
    Some((at, at + c.len_utf8(), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_as_yaml_counts_them() {
        let text = b"a\nb\r\nc\rd";
        assert_eq!(lines(text), [&b"a\n"[..], b"b\r\n", b"c\r", b"d"]);
        assert_eq!(lines(text).concat(), text);
        assert!(lines(b"").is_empty());
    }

    #[test]
    fn the_first_forbidden_character_is_found() {
        assert_eq!(forbidden("fine: ü\n".as_bytes()), None);
        assert_eq!(forbidden(b"a\tb\xff").map(|(start, end, _)| (start, end)), Some((1, 2)));
        assert_eq!(forbidden(b"a\xffb").map(|(start, end, _)| (start, end)), Some((1, 2)));
        assert_eq!(forbidden(b"ab\r\n").map(|(start, ..)| start), Some(2));
    }
}
