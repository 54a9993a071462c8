//! Sample files: one JSON object a line, each with the model's answers under `resps`.
//!
//! A line holds a whole prompt and a whole answer, so files grow to gigabytes and one line may too. They are scanned
//! in pieces, and nothing of a line is kept but which question it is of and whether anything was said. A question has
//! a line for every filter, so shares are of questions. Every line is held against JSON's grammar as Python has it: a
//! bare `NaN`, which it writes into the metrics of a sample, passes; a key that stands twice in an object does not.

#[cfg(test)]
mod against_parser;
mod grammar;
mod keys;
mod letters;
mod scan;
mod tally;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use super::file;
use scan::Scanner;

/// How many questions a sample file holds, and how many of them have no answer that says anything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Answers {
    /// Questions.
    pub total: u64,
    /// Those whose every answer is null or white space.
    pub empty: u64,
}

impl Answers {
    /// The share of empty answers, 0 to 1; 0 where there is no answer.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "counts of lines stay far below 2^53")]
    pub fn share(self) -> f64 {
        if self.total == 0 {
            return 0.0;
        }
        self.empty as f64 / self.total as f64
    }
}

/// Counts the questions of a sample file.
///
/// # Errors
/// A file that cannot be read or is empty, and a line that is cut off, no JSON, no object or without a list of answers,
/// as the end of a sentence about the file.
pub fn count(path: &Path) -> Result<Answers, String> {
    let file = file::open(path).map_err(|error| format!("cannot be read: {error}"))?;
    count_in(file)
}

/// The size of the pieces that are scanned, in bytes.
const PIECE: usize = 1 << 17;

fn count_in(source: impl Read) -> Result<Answers, String> {
    let mut reader = BufReader::with_capacity(PIECE, source);
    let mut scanner = Scanner::default();
    loop {
        let piece = reader.fill_buf().map_err(|error| format!("cannot be read: {error}"))?;
        if piece.is_empty() {
            return scanner.finish();
        }
        let length = piece.len();
        scanner.feed(piece)?;
        reader.consume(length);
    }
}

#[cfg(test)]
fn in_pieces(text: &[u8], size: usize) -> Result<Answers, String> {
    let mut scanner = Scanner::default();
    text.chunks(size).try_for_each(|piece| scanner.feed(piece))?;
    scanner.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(text: impl AsRef<[u8]>) -> Result<(u64, u64), String> {
        let text = text.as_ref();
        let whole = count_in(text);
        // The answer does not depend on where the pieces end.
        for size in [1, 2, 3, 7] {
            assert_eq!(in_pieces(text, size), whole, "in pieces of {size}");
        }
        whole.map(|answers| (answers.total, answers.empty))
    }

    #[test]
    fn silence_is_told_from_a_wrong_answer() {
        let silent = Ok((1, 1));
        let spoken = Ok((1, 0));
        assert_eq!(
            counted(r#"{"resps": [["42"]], "filtered_resps": ["[invalid]"]}"#),
            spoken
        );
        assert_eq!(counted(r#"{"resps": [[""]], "exact_match": NaN}"#), silent);
        assert_eq!(counted(r#"{"resps": [[" \n\t\u0020\u000a"]]}"#), silent);
        assert_eq!(
            counted("{\"resps\": [[\"\u{3000}\u{a0}\u{2003}\u{200b}\u{feff}\"]]}"),
            silent
        );
        assert_eq!(counted(r#"{"resps": [["\u3000\u00a0\u2028\u200b"]]}"#), silent);
        assert_eq!(counted(r#"{"resps": [["", null, " "], []]}"#), silent);
        assert_eq!(counted(r#"{"resps": []}"#), silent);
        assert_eq!(counted(r#"{"resps": [{"content": ""}]}"#), silent);
        for said in ["\\u0041", "\\\"", "\\\\", "\\u6587", "文", "\\ud83d\\ude00", "😀", " x"] {
            assert_eq!(counted(format!("{{\"resps\": [[\"{said}\"]]}}")), spoken, "{said}");
        }
        assert_eq!(counted(r#"{"resps": [["a", ""], [null]]}"#), spoken);
        assert_eq!(counted("{\"resps\": [[\"\"]]}\n\n{\"resps\": [[\"x\"]]}\n"), Ok((2, 1)));
    }

    #[test]
    fn shares_are_of_questions_and_not_of_filtered_lines() {
        let line = |id: &str, filter: &str, answer: &str| {
            format!("{{\"doc_id\": {id}, \"resps\": [[\"{answer}\"]], \"filter\": \"{filter}\"}}\n")
        };
        let both = line("0", "strict", "") + &line("1", "strict", "x") + &line("0", "flexible", "");
        assert_eq!(counted(&(both.clone() + &line("1", "flexible", "x"))), Ok((2, 1)));
        // One filter's line of a question that holds an answer is enough.
        assert_eq!(counted(&(both + &line("\"0\"", "third", "x"))), Ok((2, 0)));
        let unnamed = |filter: &str| format!("{{\"resps\": [[\"\"]], \"filter\": \"{filter}\"}}\n");
        assert_eq!(counted(&(unnamed("a") + &unnamed("b") + &unnamed("a"))), Ok((2, 2)));
    }

    #[test]
    fn questions_are_told_apart_by_any_id() {
        let questions = |ids: &[&str]| {
            let line = |id: &&str| format!("{{\"doc_id\": {id}, \"resps\": [[\"x\"]]}}\n");
            counted(ids.iter().map(line).collect::<String>()).map(|(total, _)| total)
        };
        assert_eq!(questions(&["1", "-1", "1.5", "15", "\"a\"", "\"b\""]), Ok(6));
        assert_eq!(
            questions(&[r#""x\u00e9""#, r#""x\u00e8""#, r#""\u0065""#, "\"e\""]),
            Ok(3)
        );
        assert_eq!(
            questions(&[
                "0",
                "[0]",
                "[[0]]",
                "[0,1]",
                "[1]",
                "[]",
                "{}",
                "{\"a\":0}",
                "{\"b\":0}"
            ]),
            Ok(9)
        );
        assert_eq!(questions(&["[0, 1]", "[0,1]", "[ 0 , 1 ]"]), Ok(1));
        assert_eq!(
            questions(&[r#"["a"]"#, r#"["a",""]"#, r#"["a\n"]"#, r#"["a "]"#]),
            Ok(4)
        );
        // No id, an empty one and `null` are none: such questions are counted by their place.
        assert_eq!(questions(&["\"\"", "\"\""]), Ok(2));
        assert_eq!(questions(&["null", "null", "null"]), Ok(3));
        assert_eq!(questions(&["\"null\"", "\"null\"", "[null]", "[null]"]), Ok(2));
    }

    #[test]
    fn only_the_answers_of_the_line_itself_count() {
        // A key is the same however it is escaped.
        assert_eq!(counted(r#"{"\u0072es\u0070s": [["x"]]}"#), Ok((1, 0)));
        let text =
            r#"{"doc": {"resps": [""]}, "a": "resps", "b": [""], "resps": [["x"]], "target": "", "xresps": [""]}"#;
        assert_eq!(counted(text), Ok((1, 0)));
        assert_eq!(
            counted(r#"{"resps": [[[-1.5, false], [-Infinity, true]]], "target": ""}"#),
            Ok((1, 0))
        );
    }

    #[test]
    fn a_bad_line_is_named() {
        let good = r#"{"resps": [["a"]]}"#;
        assert_eq!(
            counted(format!("{good}\n{{\"resps\": [[\"a")),
            Err("is cut off in line 2".into())
        );
        assert_eq!(counted("{\"a\": 1\n}"), Err("is cut off in line 1".into()));
        assert_eq!(
            counted(format!("{good}\n[]\n")),
            Err("holds no JSON object in line 2".into())
        );
        assert_eq!(counted("{}{}"), Err("holds no JSON object in line 1".into()));
        for lacking in [
            "{}",
            r#"{"resps": "x"}"#,
            r#"{"resps": null}"#,
            r#"{"resps": {"a": ["x"]}}"#,
            r#"{"Resps": [["x"]]}"#,
            r#"{"doc": {"resps": [["x"]]}}"#,
        ] {
            let wanted = Err("has no list of answers (`resps`) in line 2".into());
            assert_eq!(counted(format!("{good}\n{lacking}\n")), wanted, "{lacking}");
        }
        for (text, why) in [
            (
                r#"{"resps": [["a"}]}"#,
                "is no JSON: its brackets do not match in line 1",
            ),
            ("", "is empty: it holds no sample"),
            ("\n \n", "is empty: it holds no sample"),
        ] {
            assert_eq!(counted(text), Err(why.into()), "{text}");
        }
        assert!(counted("[".repeat(9)).is_err());
        assert!(counted(format!("{{\"a\": {}", "[".repeat(5000))).is_err());
    }

    /// A line with this among its answers.
    fn with(answer: &[u8]) -> Vec<u8> {
        [b"{\"resps\": [[", answer, b"]]}"].concat()
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for (answer, why) in [
            (&b"x"[..], "is no JSON: `x` is no value"),
            (b"nan", "is no JSON: `nan` is no value"),
            (b"-NaN", "is no JSON: `-NaN` is no value"),
            (b"NaNs", "is no JSON: `NaNs` is no value"),
            (b"+1", "is no JSON: `+1` is no value"),
            (b"01", "is no JSON: `01` is no value"),
            (b"1.", "is no JSON: `1.` is no value"),
            (b"-", "is no JSON: `-` is no value"),
            (b"1e+", "is no JSON: `1e+` is no value"),
            (b"True", "is no JSON: `True` is no value"),
            (b"nul", "is no JSON: `nul` is no value"),
            (b"\"b\" \"c\"", "is no JSON: a comma is missing"),
            (b"1 2", "is no JSON: a comma is missing"),
            (b"null[]", "is no JSON: a comma is missing"),
            (b"[1]2", "is no JSON: a comma is missing"),
            (b"1_0", "is no JSON: a comma is missing"),
            (b"\"a\": 1", "is no JSON: a comma is missing"),
            (b"\"b\",", "is no JSON: a value is missing"),
            (b",", "is no JSON: a value is missing"),
            (b"1,,2", "is no JSON: a value is missing"),
            (b"'b'", "is no JSON: a value is missing"),
            (b"// b", "is no JSON: a value is missing"),
            (b"\xa0", "is no JSON: a value is missing"),
            (b"{\"a\" 1}", "is no JSON: a colon is missing"),
            (b"{\"a\", 1}", "is no JSON: a colon is missing"),
            (b"{\"a\"}", "is no JSON: a colon is missing"),
            (b"{\"a\":}", "is no JSON: a value is missing"),
            (b"{\"a\"::1}", "is no JSON: a value is missing"),
            (b"{\"a\":1,}", "is no JSON: a key is missing"),
            (b"{,}", "is no JSON: a key is missing"),
            (b"{NaN: 1}", "is no JSON: a key is missing"),
            (b"{1: 1}", "is no JSON: a key is missing"),
            (b"{[]: 1}", "is no JSON: a key is missing"),
            (b"{\"a\":1 \"b\":2}", "is no JSON: a comma is missing"),
            (b"\"\\q\"", "is no JSON: `\\q` is no escape"),
            (b"\"\\\xc3\xa9\"", "is no JSON: a backslash begins no escape"),
            (b"\"\\u12G4\"", "is no JSON: `\\u` without four hexadecimal digits"),
            (b"\"\\u12\"", "is no JSON: `\\u` without four hexadecimal digits"),
            (b"{\"\\q\": 1}", "is no JSON: `\\q` is no escape"),
            (b"{\"a\0\": 1}", "is no JSON: it holds a control character (0x00)"),
            (b"\"a\tb\"", "is no JSON: it holds a control character (0x09)"),
            (b"\"a\x1fb\"", "is no JSON: it holds a control character (0x1f)"),
            (b"\"\\\0\"", "is no JSON: it holds a control character (0x00)"),
            (b"\"\\u\0\"", "is no JSON: it holds a control character (0x00)"),
            (b"\0", "is no JSON: it holds a control character (0x00)"),
            (b"\x0c1", "is no JSON: it holds a control character (0x0c)"),
            (b"\"a\nb\"", "is cut off"),
            (b"\"a\\\nb\"", "is cut off"),
            (b"1\n", "is cut off"),
            (b"\"\xff\"", "is not UTF-8"),
            (b"\"a\xe6\x96\"", "is not UTF-8"),
            (b"\"a\xe6\x96b\"", "is not UTF-8"),
            (b"\"a\xe6\\n\"", "is not UTF-8"),
            // Longer than need be, half of a pair, and beyond what there is.
            (b"\"\xc0\x80\"", "is not UTF-8"),
            (b"\"\xed\xa0\x80\"", "is not UTF-8"),
            (b"\"\xf4\x90\x80\x80\"", "is not UTF-8"),
            (b"{\"\xff\": 1}", "is not UTF-8"),
        ] {
            let text = [&with(b"1")[..], b"\n", &with(answer), b"\n", &with(b"2")].concat();
            let told = format!("{why} in line 2");
            assert_eq!(counted(text), Err(told), "{}", answer.escape_ascii());
        }
        let hole = [&b"\"an answer "[..], &[0; 5000], b" goes on\""].concat();
        let why = "is no JSON: it holds a control character (0x00) in line 1";
        assert_eq!(counted(with(&hole)), Err(why.into()));
        assert_eq!(counted(hole.repeat(2)), Err("holds no JSON object in line 1".into()));
        assert_eq!(counted([0; 9]), Err(why.into()));
        for behind in ["x", "{}", "\"\"", ",", "]", "}", "\u{feff}"] {
            let text = format!("{{\"resps\": []}} {behind}");
            assert_eq!(counted(text), Err("holds no JSON object in line 1".into()), "{behind}");
        }
        assert_eq!(counted("\u{feff}{}"), Err("holds no JSON object in line 1".into()));
    }

    #[test]
    fn what_python_takes_passes() {
        for answer in [
            "NaN",
            "Infinity",
            "-Infinity",
            "-0",
            "0.5e-7",
            "1E5",
            "1e999",
            "true",
            "\t[ ]\r, { } , false",
            r#"{"a": {"a": [{"a": 1}, {"a": 2}]}, "A": NaN}"#,
            r#""\"\\\/\b\f\n\r\t\u00e9\uFFff\ud83d\ude00\ud800""#,
            "\"é文😀\u{7f}\u{10ffff}\"",
            r#"{"\u0061\n\"": "", "é文😀": "", "a": "", "\\u0061": ""}"#,
            "\"// no comment, 'no' {text}\"",
        ] {
            let text = String::from_utf8(with(format!("\"x\", {answer}").as_bytes())).expect("UTF-8");
            assert_eq!(counted(format!("{text}\r\n \t\r\n{text}\n")), Ok((2, 0)), "{answer}");
        }
        assert_eq!(counted(with("1".repeat(4301).as_bytes())), Ok((1, 0)));
        assert!(counted(with("1".repeat(4302).as_bytes())).is_err());
    }

    #[test]
    fn nesting_ends_somewhere() {
        // Three levels are around what is nested.
        let nested = |open: &str, close: &str, depth: usize| {
            let inside = open.repeat(depth - 3) + "1" + &close.repeat(depth - 3);
            counted(with(inside.as_bytes()))
        };
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"a\":", "}]")] {
            let each = open.matches(['[', '{']).count();
            assert_eq!(nested(open, close, 3 + 253 / each), Ok((1, 0)));
            let told = Err("is nested too deep in line 1".into());
            assert_eq!(nested(open, close, 3 + 253 / each + 1), told);
        }
    }

    #[test]
    fn a_key_that_stands_twice_is_named_with_its_path() {
        for (line, named) in [
            (r#"{"resps": [[""]], "resps": [["a"]]}"#, "`resps`"),
            (r#"{"doc_id": null, "resps": [], "doc_id": 0}"#, "`doc_id`"),
            (r#"{"x": 1, "resps": [], "x": 1, "y": 0}"#, "`x`"),
            (r#"{"a": 1, "resps": [], "\u0061": 1}"#, "`a`"),
            (
                r#"{"doc": {"target": 1, "q": {}, "target": 2}, "resps": []}"#,
                "`doc.target`",
            ),
            (
                r#"{"resps": [], "doc": {"b": 1, "c": [{"d": 1}, {"é\n": {"": 1, "": 2}}]}}"#,
                "`doc.c.é\n.`",
            ),
            (
                r#"{"resps": [[{"z": 1, "y": 1, "z": 2, "y": 2, "z": 3}]]}"#,
                "`resps.y`, `resps.z`",
            ),
        ] {
            let text = format!("{{\"resps\": []}}\n{line}\n");
            assert_eq!(counted(text), Err(format!("has {named} twice in one object in line 2")));
        }
        let many = |count: usize| (0..count).map(|at| format!("\"k{at}\": 1, ")).collect::<String>();
        let line = |keys: &str| counted(format!("{{{keys}\"resps\": []}}"));
        assert_eq!(line(&many(500)), Ok((1, 1)));
        assert_eq!(
            line(&(many(500) + "\"k77\": 1, ")),
            Err("has `k77` twice in one object in line 1".into())
        );
    }

    #[test]
    fn the_keys_of_a_line_are_bounded() {
        let told = Err("has more than 1 MiB of keys in line 1".to_owned());
        // With its quotes, and the ten of `resps`, its quotes and the empty key.
        let long = |length: usize| counted_whole(&format!("{{\"resps\": [{{\"{}\": 1}}]}}", "k".repeat(length)));
        assert_eq!(long((1 << 20) - 9), Ok((1, 0)));
        assert_eq!(long((1 << 20) - 8), told);
        let many = (0..150_000).map(|at| format!("\"{at:06}\":0,")).collect::<String>();
        assert_eq!(counted_whole(&format!("{{{many}\"resps\": []}}")), told);
        // Those of objects that have ended count no more.
        let ended = format!("{{\"{}\": 0}}, ", "k".repeat(1000)).repeat(3000);
        assert_eq!(counted_whole(&format!("{{\"resps\": [{ended} 0]}}")), Ok((1, 0)));
    }

    fn counted_whole(text: &str) -> Result<(u64, u64), String> {
        in_pieces(text.as_bytes(), PIECE).map(|answers| (answers.total, answers.empty))
    }

    proptest::proptest! {
        /// Against a whole parser, on lines of any text, in pieces of any size.
        #[test]
        fn the_scan_counts_as_a_parser_does(
            noise in ".*",
            answers in proptest::collection::vec(proptest::collection::vec(
                proptest::option::of("[ \\t\\n\\\\\"xé文\u{3000}\u{a0}]{0,3}"), 0..3), 0..4),
            size in 1_usize..40,
        ) {
            let key = format!("k{noise}");
            let line = serde_json::json!({
                "doc": {"resps": [noise], "x": ["", null]}, key: "", "resps": answers, "resps_": [""],
            });
            let blank = |text: &String| text.chars().all(char::is_whitespace);
            let empty = answers.iter().flatten().all(|answer| answer.as_ref().is_none_or(blank));
            let wanted = Answers { total: 2, empty: if empty { 2 } else { 0 } };
            proptest::prop_assert_eq!(in_pieces(format!("{line}\n{line}").as_bytes(), size), Ok(wanted));
        }
    }

    #[test]
    fn a_line_of_any_length_passes_in_pieces() {
        let text = std::io::Cursor::new(b"{\"resps\": [[\"".to_vec())
            .chain(std::io::repeat(b' ').take(8 << 20))
            .chain(&b"\"]]}"[..]);
        assert_eq!(count_in(text), Ok(Answers { total: 1, empty: 1 }));
    }
}
