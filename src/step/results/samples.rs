//! Sample files: one JSON object a line, each with the model's answers under `resps`.
//!
//! A line holds a whole prompt and a whole answer, so files grow to gigabytes and one line may too. They are scanned
//! in pieces, and nothing of a line is kept but which question it is of and whether anything was said. A question has
//! a line for every filter, so shares are of questions. A bare `NaN`, which Python writes into the metrics of a
//! sample, passes.

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
/// A file that cannot be read or is empty, and a line that is cut off, no object or without a list of answers, as the
/// end of a sentence about the file.
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
mod tests {
    use super::*;

    fn counted(text: &str) -> Result<(u64, u64), String> {
        let whole = count_in(text.as_bytes());
        // The answer does not depend on where the pieces end.
        for size in [1, 3] {
            let mut scanner = Scanner::default();
            let fed = text.as_bytes().chunks(size).try_for_each(|piece| scanner.feed(piece));
            assert_eq!(fed.and_then(|()| scanner.finish()), whole, "in pieces of {size}");
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
        // Half a letter is none that shows nothing.
        let cut = count_in(&b"{\"resps\": [[\"\xe3\x80\"]]}"[..]);
        assert_eq!(cut, Ok(Answers { total: 1, empty: 0 }));
        // What is no JSON is no answer either.
        assert_eq!(counted(r#"{"resps": [[?]]}"#), silent);
        for said in ["\\u0041", "\\\"", "\\\\", "\\u6587", "文", "\\ud83d\\ude00", "😀", " x"] {
            assert_eq!(counted(&format!("{{\"resps\": [[\"{said}\"]]}}")), spoken, "{said}");
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
            counted(&ids.iter().map(line).collect::<String>()).map(|(total, _)| total)
        };
        assert_eq!(questions(&["1", "-1", "1.5", "15", "\"a\"", "\"b\""]), Ok(6));
        assert_eq!(
            questions(&[r#""x\u00e9""#, r#""x\u00e8""#, r#""\u0065""#, "\"e\""]),
            Ok(3)
        );
        // An empty id is none: such questions are counted by their place.
        assert_eq!(questions(&["\"\"", "\"\""]), Ok(2));
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
            counted(&format!("{good}\n{{\"resps\": [[\"a")),
            Err("is cut off in line 2".into())
        );
        assert_eq!(counted("{\"a\": 1\n}"), Err("is cut off in line 1".into()));
        assert_eq!(
            counted(&format!("{good}\n[]\n")),
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
            assert_eq!(counted(&format!("{good}\n{lacking}\n")), wanted, "{lacking}");
        }
        for (text, why) in [
            (
                r#"{"resps": [["a"}]}"#,
                "is no JSON: its brackets do not match in line 1",
            ),
            (r#"{"resps": [[""]], "resps": [["a"]]}"#, "has a key twice in line 1"),
            (
                r#"{"doc_id": 1, "doc_id": 2, "resps": [["a"]]}"#,
                "has a key twice in line 1",
            ),
            ("", "is empty: it holds no sample"),
            ("\n \n", "is empty: it holds no sample"),
        ] {
            assert_eq!(counted(text), Err(why.into()), "{text}");
        }
        assert!(counted(&"[".repeat(9)).is_err());
        assert!(counted(&format!("{{\"a\": {}", "[".repeat(5000))).is_err());
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
            let mut scanner = Scanner::default();
            for piece in format!("{line}\n{line}").as_bytes().chunks(size) {
                scanner.feed(piece).expect("whole lines");
            }
            let wanted = Answers { total: 2, empty: if empty { 2 } else { 0 } };
            proptest::prop_assert_eq!(scanner.finish(), Ok(wanted));
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
