//! JSON as Python writes it: a bare `NaN`, `Infinity` or `-Infinity` is legal there.
//!
//! The parser is `serde_json`. The bare tokens, which it refuses, become strings before it sees them, and strings are
//! no scores. A JSON5 parser would take them as they are, but also comments, single quotes and trailing commas, and
//! is many times slower.

use std::borrow::Cow;

use serde::de::DeserializeOwned;

use super::duplicates;
use super::loose::Map;

/// Reads one JSON value; bare `NaN`, `Infinity` and `-Infinity` read as those strings.
///
/// # Errors
/// What is wrong and where, as the end of a sentence about the file; a key that stands twice in an object is.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let text = std::str::from_utf8(bytes).map_err(|e| format!("is not UTF-8 at byte {}", e.valid_up_to()))?;
    if text.trim().is_empty() {
        return Err("is empty".to_owned());
    }
    let (written, text) = (text, quote_bare(text));
    let parsed = serde_json::from_str(&text);
    // A text that is no JSON has no keys to speak of.
    if parsed.as_ref().err().is_none_or(serde_json::Error::is_data) {
        let twice = duplicates::find(&text);
        if !twice.is_empty() {
            return Err(duplicates::told(&twice));
        }
    }
    parsed.map_err(|error| {
        if error.is_eof() {
            format!("is cut off in line {}", error.line())
        } else if error.is_syntax() && error.to_string().starts_with(OUT_OF_RANGE) {
            let (line, column) = (error.line(), column_of(written, &text, error.line(), error.column()));
            format!("holds a number that no double holds, such as 1e999, which ends in line {line}, column {column}")
        } else {
            format!("is no JSON: {error}")
        }
    })
}

/// What `serde_json` says of a number beyond the range of a double, which JSON allows.
const OUT_OF_RANGE: &str = "number out of range";

/// The column of a text as it was written, by its column in the text with quotes.
fn column_of(written: &str, quoted: &str, line: usize, column: usize) -> usize {
    let lines = written.lines().zip(quoted.lines());
    let (written, quoted) = lines
        .skip(line - 1)
        .map(|(a, b)| (a.as_bytes(), b.as_bytes()))
        .next()
        .unwrap_or_default();
    let mut at = 0;
    for byte in quoted.iter().take(column) {
        // What is not in the text as it was written is a quote.
        at += usize::from(written.get(at) == Some(byte));
    }
    at
}

/// [`parse`] for a value that is an object.
///
/// # Errors
/// As [`parse`], and any other value: a struct would take a list for its fields in order.
pub(crate) fn parse_object<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    parse::<Map<T>>(bytes)?.0.ok_or_else(|| "is no JSON object".to_owned())
}

/// The tokens that Python writes and JSON does not know.
pub(crate) const BARE: [&str; 3] = ["NaN", "Infinity", "-Infinity"];

fn quote_bare(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let mut kept = 0;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = end_of_string(bytes, at + 1),
            b'N' | b'I' | b'-' => match BARE.iter().find(|token| bytes[at..].starts_with(token.as_bytes())) {
                Some(token) => {
                    out.push_str(&text[kept..at]);
                    out.push('"');
                    out.push_str(token);
                    out.push('"');
                    at += token.len();
                    kept = at;
                }
                None => at += 1,
            },
            _ => at += 1,
        }
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[kept..]);
    Cow::Owned(out)
}

/// The place behind the quote that ends a string.
pub(super) fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(step) = memchr::memchr2(b'"', b'\\', &bytes[at.min(bytes.len())..]) {
        at += step;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use indexmap::IndexMap;

    use super::super::loose::Cell;
    use super::*;

    #[test]
    fn only_bare_tokens_are_quoted() {
        let text = r#"{"NaN": NaN, "a": "x \" NaN", "b": [-Infinity, Infinity, -1], "c": "Infinity\\"}"#;
        let wanted = r#"{"NaN": "NaN", "a": "x \" NaN", "b": ["-Infinity", "Infinity", -1], "c": "Infinity\\"}"#;
        assert_eq!(quote_bare(text), wanted);
        assert!(matches!(quote_bare(r#"{"a": "NaN"}"#), Cow::Borrowed(_)));
    }

    #[test]
    fn an_open_string_ends_with_the_text() {
        for text in ["\"", "\"\\", "\"abc\\\"", "\"NaN"] {
            assert_eq!(quote_bare(text), text);
        }
    }

    #[test]
    fn each_failure_says_what_it_is() {
        let fails = |bytes: &[u8]| parse::<Vec<u64>>(bytes).expect_err("refused");
        assert_eq!(fails(b" \n"), "is empty");
        assert_eq!(fails(b"[1,\n2"), "is cut off in line 2");
        assert_eq!(fails(b"[\xff]"), "is not UTF-8 at byte 1");
        assert!(fails(b"[NaN]").contains("line 1"), "{}", fails(b"[NaN]"));
        let beyond = "holds a number that no double holds, such as 1e999, which ends in";
        let fails = |text: &str| parse::<IndexMap<String, Cell>>(text.as_bytes()).expect_err("refused");
        assert_eq!(
            fails("{\n\"a\": NaN, \"b\": -1e999, \"c\": 1}"),
            format!("{beyond} line 2, column 21")
        );
        assert_eq!(fails("{\"a\": 1e400"), format!("{beyond} line 1, column 11"));
    }
}
