//! A child's output as lines that can be shown.

use std::borrow::Cow;
use std::io::Read;

use memchr::{memchr, memchr2};

use crate::secrets::Mask;

/// The longest line that is handed on, in bytes; the rest of a longer one is dropped, and said to be.
const MAX_LINE: usize = 64 << 10;

/// Reads until the end, or until nobody takes the lines any more: the whole lines of each read in one text, each with
/// its end. Empty ones are left out, secrets are masked, and of very long ones the beginning is given.
pub fn read(mut from: impl Read, mask: &Mask, mut take: impl FnMut(String) -> bool) {
    let mut line = Line::default();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let mut whole = Vec::with_capacity(count + 1);
        let mut rest = &buffer[..count];
        while let Some(at) = memchr2(b'\n', b'\r', rest) {
            line.push(&rest[..at]);
            line.finish(mask, &mut whole);
            rest = &rest[at + 1..];
        }
        line.push(rest);
        if !whole.is_empty() && !take(mask.text(whole)) {
            return;
        }
    }
    let mut whole = Vec::new();
    line.finish(mask, &mut whole);
    if !whole.is_empty() {
        take(mask.text(whole));
    }
}

/// A line that grows.
#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    dropped: usize,
}

impl Line {
    fn push(&mut self, bytes: &[u8]) {
        let kept = bytes.len().min(MAX_LINE - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..kept]);
        self.dropped += bytes.len() - kept;
    }

    /// Moves the line with its end into a text. Of a cut one the end is left out, where half a secret could stand.
    fn finish(&mut self, mask: &Mask, into: &mut Vec<u8>) {
        if self.dropped > 0 {
            let text = mask.text(std::mem::take(&mut self.bytes));
            let mut end = text.len().saturating_sub(mask.longest());
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            let more = self.dropped + mask.longest();
            into.extend_from_slice(format!("{} [{more} bytes more]\n", &text[..end]).as_bytes());
        } else if !self.bytes.is_empty() {
            into.extend_from_slice(&self.bytes);
            into.push(b'\n');
        }
        self.bytes.clear();
        self.dropped = 0;
    }
}

/// A line that the runner takes for text: `::command` at its start and `##[command]` anywhere are broken up.
#[must_use]
pub fn harmless(line: &str) -> Cow<'_, str> {
    // Most lines have no such character at all.
    let line = match memchr(b'#', line.as_bytes()).is_some() && line.contains("##[") {
        true => Cow::Owned(line.replace("##[", "# #[")),
        false => Cow::Borrowed(line),
    };
    let start = line.len() - line.trim_start().len();
    match line[start..].starts_with("::") {
        true => Cow::Owned(format!("{}: :{}", &line[..start], &line[start + 2..])),
        false => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8], secrets: &[&str]) -> Vec<String> {
        let mut all = Vec::new();
        read(bytes, &Mask::new(secrets), |text| {
            all.extend(text.lines().map(str::to_owned));
            true
        });
        all
    }

    #[test]
    fn carriage_returns_end_lines_and_bad_bytes_are_replaced() {
        assert_eq!(lines(b"10%\r20%\r\n\nlast\xff", &[]), ["10%", "20%", "last\u{fffd}"]);
    }

    #[test]
    fn no_part_of_a_secret_passes_even_where_a_line_is_cut() {
        let secret = "s3cr3t-token-of-the-hub";
        let text = format!("{}{secret} tail", "x".repeat(MAX_LINE - 9));
        let all = lines(text.as_bytes(), &[secret]);
        assert_eq!(all.len(), 1);
        assert!(!all[0].contains("s3cr"), "{}", &all[0][MAX_LINE - 60..]);
        assert!(all[0].ends_with("bytes more]"));
    }

    #[test]
    fn no_line_is_a_command() {
        assert_eq!(harmless("  ::add-mask::x"), "  : :add-mask::x");
        assert_eq!(harmless("\u{2003}::error::x"), "\u{2003}: :error::x");
        assert_eq!(harmless("text ##[error]x"), "text # #[error]x");
        assert_eq!(harmless("std::io::Error"), "std::io::Error");
    }
}
