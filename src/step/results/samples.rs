//! Sample files: one JSON object a line, each with the model's answers under `resps`.
//!
//! A line holds a whole prompt and a whole answer, so files grow to gigabytes and one line may too. They are scanned
//! in pieces, and nothing of a line is kept: what is asked is only whether an answer is empty. A bare `NaN`, which
//! Python writes into the metrics of a sample, passes.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use super::file;

/// How many answers a sample file holds, and how many of them are empty or only spaces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Answers {
    /// Answers.
    pub total: u64,
    /// Empty ones.
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

/// Counts the answers of a sample file.
///
/// # Errors
/// A file that cannot be read, and a line that is cut off or no object, as the end of a sentence about the file.
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

/// The key under which a line holds its answers.
const RESPS: &[u8] = b"resps";

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Outside of strings.
    #[default]
    Plain,
    /// In a string.
    Text,
    /// Behind a backslash.
    Escape,
    /// In the four digits of `\uXXXX`.
    Unicode,
}

/// Where a scan stands; of what it passed, it keeps only this.
#[derive(Debug, Default)]
struct Scanner {
    answers: Answers,
    /// Lines ended so far.
    lines: u64,
    place: Place,
    depth: u64,
    /// Whether the line holds anything yet.
    begun: bool,
    /// Whether the string is a key of the line's object.
    in_key: bool,
    /// How much of `RESPS` the key matches; `None` once it differs.
    key: Option<usize>,
    /// Whether a key comes next at depth 1.
    key_next: bool,
    /// Whether the value is that of `resps`.
    in_answers: bool,
    /// Whether the last byte was part of a bare word or a number.
    in_word: bool,
    /// Whether the string holds anything but space.
    spoken: bool,
    digits: u8,
    code: u32,
}

impl Scanner {
    fn feed(&mut self, piece: &[u8]) -> Result<(), String> {
        let mut at = 0;
        while at < piece.len() {
            // The bulk of a file is the inside of strings that nobody asks about.
            if self.place == Place::Text && !self.in_key && (self.spoken || !self.in_answers) {
                match memchr::memchr3(b'"', b'\\', b'\n', &piece[at..]) {
                    Some(step) => at += step,
                    None => return Ok(()),
                }
            }
            self.step(piece[at])?;
            at += 1;
        }
        Ok(())
    }

    fn step(&mut self, byte: u8) -> Result<(), String> {
        if byte == b'\n' {
            return self.end_line();
        }
        match self.place {
            Place::Plain => return self.plain(byte),
            Place::Text => match byte {
                b'"' => self.end_text(),
                b'\\' => self.place = Place::Escape,
                byte => self.letter(byte),
            },
            Place::Escape if byte == b'u' => {
                self.place = Place::Unicode;
                (self.digits, self.code) = (0, 0);
            }
            Place::Escape => {
                self.place = Place::Text;
                self.letter(if matches!(byte, b'n' | b't' | b'r' | b'f') {
                    b' '
                } else {
                    byte
                });
            }
            Place::Unicode => {
                self.digits += 1;
                self.code = self.code * 16 + char::from(byte).to_digit(16).unwrap_or(15);
                if self.digits == 4 {
                    self.place = Place::Text;
                    self.letter(u8::try_from(self.code).unwrap_or(u8::MAX));
                }
            }
        }
        Ok(())
    }

    fn plain(&mut self, byte: u8) -> Result<(), String> {
        if byte.is_ascii_whitespace() {
            return Ok(());
        }
        if self.depth == 0 && (self.begun || byte != b'{') {
            return Err(self.not_an_object());
        }
        let word_starts = !self.in_word;
        self.in_word = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
        match byte {
            b'{' | b'[' => {
                self.depth += 1;
                self.key_next = self.depth == 1;
                self.begun = true;
            }
            b'}' | b']' => {
                self.depth -= 1;
                self.in_answers &= self.depth > 1;
            }
            b',' if self.depth == 1 => (self.key_next, self.in_answers) = (true, false),
            b'"' => {
                self.place = Place::Text;
                self.in_key = self.depth == 1 && self.key_next;
                self.key = Some(0);
                self.spoken = false;
            }
            // An answer that is `null` is none. `Infinity` has an `n` too, further on.
            b'n' if self.in_answers && word_starts => self.answer(false),
            _ => {}
        }
        Ok(())
    }

    fn letter(&mut self, byte: u8) {
        if self.in_key {
            self.key = self.key.filter(|at| RESPS.get(*at) == Some(&byte)).map(|at| at + 1);
        }
        self.spoken |= !byte.is_ascii_whitespace();
    }

    fn end_text(&mut self) {
        self.place = Place::Plain;
        if self.in_key {
            self.in_answers = self.key == Some(RESPS.len());
            (self.in_key, self.key_next) = (false, false);
        } else if self.in_answers {
            self.answer(self.spoken);
        }
    }

    fn answer(&mut self, spoken: bool) {
        self.answers.total += 1;
        self.answers.empty += u64::from(!spoken);
    }

    fn end_line(&mut self) -> Result<(), String> {
        if self.depth > 0 || self.place != Place::Plain {
            return Err(format!("is cut off in line {}", self.lines + 1));
        }
        self.lines += 1;
        self.begun = false;
        Ok(())
    }

    fn not_an_object(&self) -> String {
        format!("holds no JSON object in line {}", self.lines + 1)
    }

    fn finish(mut self) -> Result<Answers, String> {
        self.end_line()?;
        Ok(self.answers)
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
        assert_eq!(
            counted(r#"{"resps": [["42"]], "filtered_resps": ["[invalid]"]}"#),
            Ok((1, 0))
        );
        assert_eq!(counted(r#"{"resps": [[""]], "exact_match": NaN}"#), Ok((1, 1)));
        assert_eq!(counted(r#"{"resps": [[" \n\t\u0020\u000a"]]}"#), Ok((1, 1)));
        assert_eq!(
            counted(r#"{"resps": [["\u0041"], ["\""], ["\\"], ["\u6587"]]}"#),
            Ok((4, 0))
        );
        assert_eq!(counted(r#"{"resps": [["a", ""], [null]]}"#), Ok((3, 2)));
        assert_eq!(counted("{\"resps\": [[\"\"]]}\n\n{\"resps\": [[\"x\"]]}\n"), Ok((2, 1)));
    }

    #[test]
    fn only_the_answers_of_the_line_itself_count() {
        let text =
            r#"{"doc": {"resps": [""]}, "a": "resps", "b": [""], "resps": [["x"]], "target": "", "xresps": [""]}"#;
        assert_eq!(counted(text), Ok((1, 0)));
        assert_eq!(
            counted(r#"{"resps": [[[-1.5, false], [-Infinity, true]]], "target": ""}"#),
            Ok((0, 0))
        );
        assert_eq!(counted(r#"{"resps": "", "target": ""}"#), Ok((1, 1)));
    }

    #[test]
    fn a_cut_line_is_named() {
        assert_eq!(counted("{}\n{\"resps\": [[\"a"), Err("is cut off in line 2".into()));
        assert_eq!(counted("{\"a\": 1\n}"), Err("is cut off in line 1".into()));
        assert_eq!(counted("{}\n[]\n"), Err("holds no JSON object in line 2".into()));
        assert_eq!(counted("{}{}"), Err("holds no JSON object in line 1".into()));
        assert_eq!(counted(""), Ok((0, 0)));
    }

    proptest::proptest! {
        /// Against a whole parser, on lines of any text, in pieces of any size.
        #[test]
        fn the_scan_counts_as_a_parser_does(
            noise in ".*",
            answers in proptest::collection::vec(proptest::collection::vec(proptest::option::of("[ \\t\\n\\\\\"xé文]{0,3}"), 0..3), 0..4),
            size in 1_usize..40,
        ) {
            let key = format!("k{noise}");
            let line = serde_json::json!({
                "doc": {"resps": [noise], "x": ["", null]}, key: "", "resps": answers, "resps_": [""],
            });
            let all: Vec<_> = answers.iter().flatten().collect();
            let blank = |text: &String| text.chars().all(|c| c.is_ascii_whitespace());
            let empty = all.iter().filter(|answer| answer.as_ref().is_none_or(blank)).count();
            let mut scanner = Scanner::default();
            for piece in format!("{line}\n{line}").as_bytes().chunks(size) {
                scanner.feed(piece).expect("whole lines");
            }
            let wanted = Answers { total: 2 * all.len() as u64, empty: 2 * empty as u64 };
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
