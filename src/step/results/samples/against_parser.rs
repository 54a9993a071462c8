//! Tests: the scan takes the lines that a whole parser takes.

use super::super::duplicates;
use super::super::json::{BARE, end_of_string};
use super::in_pieces;

/// Whether `serde_json` takes every line, with a list under `resps`; none where it cannot tell.
fn parser_takes(text: &[u8]) -> Option<bool> {
    #[derive(serde::Deserialize)]
    struct Sample {
        #[serde(rename = "resps")]
        _resps: Vec<serde::de::IgnoredAny>,
    }
    let mut some = false;
    for line in text.split(|byte| *byte == b'\n') {
        let Ok(line) = std::str::from_utf8(line) else {
            return Some(false);
        };
        let line = line.trim_matches([' ', '\t', '\r']);
        if line.is_empty() {
            continue;
        }
        let line = without_bare(line);
        match serde_json::from_str::<Sample>(&line) {
            // Half of a pair: in values it passes unread, in a key it does not.
            Err(error) if error.to_string().contains("surrogate") => return None,
            Err(_) => return Some(false),
            Ok(_) if !line.starts_with('{') => return Some(false),
            Ok(_) if !duplicates::find(&line).is_empty() => return Some(false),
            Ok(_) => some = true,
        }
    }
    Some(some)
}

/// The text with `{}` for bare tokens: unlike a string or a number, it is refused where no value may stand.
fn without_bare(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let bare = BARE.iter().find(|bare| rest.starts_with(**bare));
        let (length, written) = match (first, bare) {
            ('"', _) => {
                let end = end_of_string(rest.as_bytes(), 1);
                (end, &rest[..end])
            }
            (_, Some(bare)) => (bare.len(), "{}"),
            _ => (first.len_utf8(), &rest[..first.len_utf8()]),
        };
        out.push_str(written);
        rest = &rest[length..];
    }
    out
}

/// A change of one byte: flipped, deleted or inserted.
fn mutate(text: &mut Vec<u8>, kind: u8, at: usize, byte: u8) {
    let at = at % text.len().max(1);
    match kind {
        _ if text.is_empty() => text.push(byte),
        0 => text[at] = byte,
        1 => drop(text.remove(at)),
        2 => text.insert(at, byte),
        _ => text[at] ^= 1 << (byte % 8),
    }
}

const VALID: [&str; 4] = [
    r#"{"a": 1, "b": -1.5e+3, "": NaN, "resps": [["x", null], ["\ud83d\ude00", "\n"]], "c": {"a": {}, "b": [[]]}}"#,
    r#"{"doc_id": 0, "resps": [[-Infinity, true], [Infinity, false]], "d": "{\"e\": 1}", "\u0065\t": "é文😀"}"#,
    r#" { "k1" : [ { "x" : 0 , "y" : 1E9 } , { "x" : 10.25 } ] , "k2" : "" , "resps" : [ ] } "#,
    "{\"resps\":[[\"\"]]}\r\n\n{\"resps\":[],\"resp\":0}\n",
];

#[test]
fn valid_lines_are_taken() {
    for text in VALID {
        assert_eq!(parser_takes(text.as_bytes()), Some(true), "{text}");
        assert!(in_pieces(text.as_bytes(), 3).is_ok(), "{text}");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(4096))]
    /// Against a whole parser, on lines in which bytes are wrong, in pieces of any size.
    #[test]
    fn the_scan_takes_what_a_parser_takes(
        start in 0..VALID.len(),
        changes in proptest::collection::vec((
            0..4_u8,
            proptest::prelude::any::<usize>(),
            proptest::prop_oneof![
                proptest::prelude::any::<u8>(),
                proptest::sample::select(&b"{}[],:\"\\ \n\r0123-+.eEabtfnurN/"[..]),
            ],
        ), 1..4),
        size in 1_usize..40,
    ) {
        let mut text = VALID[start].as_bytes().to_vec();
        for (kind, at, byte) in changes {
            mutate(&mut text, kind, at, byte);
        }
        let Some(wanted) = parser_takes(&text) else { return Ok(()) };
        let scanned = in_pieces(&text, size);
        proptest::prop_assert_eq!(scanned.is_ok(), wanted, "{:?}: {}", scanned, text.escape_ascii());
    }
}
