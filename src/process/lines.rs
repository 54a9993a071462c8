//! A child's output as lines that can be shown.

use std::io::Read;

/// The longest line that is handed on, in bytes; the rest of a longer one is dropped, and said to be.
const MAX_LINE: usize = 64 << 10;
/// What stands in place of a secret.
const MASK: &str = "***";
/// Shorter values are no secrets, and masking them would hide ordinary text.
const MIN_SECRET: usize = 5;

/// Reads lines until the end, or until nobody takes them any more. Empty ones are left out, secrets are masked, and of
/// very long ones the beginning is given.
pub fn read(mut from: impl Read, secrets: &[String], mut take: impl FnMut(String) -> bool) {
    let longest = secrets.iter().map(String::len).max().unwrap_or(0);
    let (mut line, mut dropped) = (Vec::new(), 0_usize);
    let mut buffer = [0; 16 << 10];
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        for byte in &buffer[..count] {
            match byte {
                b'\n' | b'\r' => {
                    if !line.is_empty() && !take(finish(&line, dropped, secrets, longest)) {
                        return;
                    }
                    line.clear();
                    dropped = 0;
                }
                _ if line.len() < MAX_LINE => line.push(*byte),
                _ => dropped += 1,
            }
        }
    }
    if !line.is_empty() {
        take(finish(&line, dropped, secrets, longest));
    }
}

/// The text of a line. Of a cut one the end is left out, where half a secret could stand.
fn finish(line: &[u8], dropped: usize, secrets: &[String], longest: usize) -> String {
    let text = mask(&String::from_utf8_lossy(line), secrets);
    if dropped == 0 {
        return text;
    }
    let mut end = text.len().saturating_sub(longest);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{} [{} bytes more]", &text[..end], dropped + longest)
}

/// A text without secrets: the longest first, so that none leaves a rest of another.
#[must_use]
pub fn mask(text: &str, secrets: &[String]) -> String {
    let mut parts: Vec<&str> = secrets
        .iter()
        .flat_map(|secret| secret.lines())
        .map(str::trim)
        .filter(|part| part.len() >= MIN_SECRET)
        .collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
    parts
        .iter()
        .fold(text.to_owned(), |text, part| text.replace(part, MASK))
}

/// A line that the runner takes for text: `::command` at its start and `##[command]` anywhere are broken up.
#[must_use]
pub fn harmless(line: &str) -> String {
    let line = line.replace("##[", "# #[");
    let start = line.len() - line.trim_start().len();
    if line[start..].starts_with("::") {
        return format!("{}: :{}", &line[..start], &line[start + 2..]);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8], secrets: &[&str]) -> Vec<String> {
        let secrets: Vec<String> = secrets.iter().map(|s| (*s).to_owned()).collect();
        let mut all = Vec::new();
        read(bytes, &secrets, |line| {
            all.push(line);
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
        assert_eq!(
            lines(b"a token-1234-long b", &["token-1234", "token-1234-long"]),
            ["a *** b"]
        );
        assert_eq!(lines(b"the key is EMPTY", &["", "abc"]), ["the key is EMPTY"]);
    }

    #[test]
    fn no_line_is_a_command() {
        assert_eq!(harmless("  ::add-mask::x"), "  : :add-mask::x");
        assert_eq!(harmless("\u{2003}::error::x"), "\u{2003}: :error::x");
        assert_eq!(harmless("text ##[error]x"), "text # #[error]x");
        assert_eq!(harmless("std::io::Error"), "std::io::Error");
    }
}
