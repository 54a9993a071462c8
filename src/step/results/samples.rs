//! Sample files: one JSON object a line, each with the model's answers under `resps`.
//!
//! A line holds a whole prompt and a whole answer, so files grow to gigabytes and one line may too. They are scanned
//! in pieces, and nothing of a line is kept but which question it is of and whether anything was said. A question has
//! a line for every filter, so shares are of questions. A bare `NaN`, which Python writes into the metrics of a
//! sample, passes.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use super::blank;
use super::file;

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
/// The deepest nesting of a line.
const MAX_DEPTH: usize = 256;

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

/// What is open, and what comes next in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    List,
    Key,
    Value,
}

/// The keys of a line that count.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Field {
    #[default]
    Other,
    Answers,
    Question,
    Filter,
}

impl Field {
    fn of(key: &[u8]) -> Self {
        match key {
            b"resps" => Self::Answers,
            b"doc_id" => Self::Question,
            b"filter" => Self::Filter,
            _ => Self::Other,
        }
    }
}

/// The longest key that counts, in bytes, and one more.
const KEY: usize = 7;

/// What one line says.
#[derive(Debug, Default, Clone, Copy)]
struct Line {
    /// Whether it holds anything yet.
    begun: bool,
    /// Whether it has a list of answers.
    answered: bool,
    /// Whether an answer holds anything but white space.
    spoken: bool,
    /// The hash of its question's id.
    question: Option<u64>,
    /// The hash of its filter's name.
    filter: u64,
}

/// Where a scan stands.
#[derive(Debug, Default)]
struct Scanner {
    /// Whether something was said, by question.
    questions: HashMap<(bool, u64), bool>,
    /// Lines without a question's id, by filter.
    unnamed: HashMap<u64, u64>,
    /// Lines ended so far.
    lines: u64,
    line: Line,
    place: Place,
    levels: Vec<Level>,
    /// Whether the string is a key of the line's object.
    in_key: bool,
    key: [u8; KEY],
    key_length: usize,
    /// Whose value is read.
    field: Field,
    /// The hash of that value so far.
    hash: u64,
    in_word: bool,
    text: blank::Text,
    digits: u8,
    code: u32,
}

/// FNV-1a, 64 bit: ids are told apart by it, and nobody gains by making two collide.
const HASH_START: u64 = 0xcbf2_9ce4_8422_2325;

fn hash(state: u64, byte: u8) -> u64 {
    (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
}

impl Scanner {
    fn feed(&mut self, piece: &[u8]) -> Result<(), String> {
        let mut at = 0;
        while at < piece.len() {
            // The bulk of a file is the inside of strings that nobody asks about.
            let idle = match self.field {
                Field::Other => true,
                Field::Answers => self.line.spoken,
                Field::Question | Field::Filter => false,
            };
            if self.place == Place::Text && !self.in_key && idle {
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
                b'"' => self.end_text()?,
                b'\\' => self.place = Place::Escape,
                byte => self.letter(byte),
            },
            Place::Escape if byte == b'u' => {
                self.place = Place::Unicode;
                (self.digits, self.code) = (0, 0);
            }
            Place::Escape => {
                self.place = Place::Text;
                self.letter(match byte {
                    b'n' | b't' | b'r' | b'f' | b'b' => b' ',
                    byte => byte,
                });
            }
            Place::Unicode => {
                self.digits += 1;
                self.code = self.code * 16 + char::from(byte).to_digit(16).unwrap_or(15);
                if self.digits == 4 {
                    self.place = Place::Text;
                    self.escaped(self.code);
                }
            }
        }
        Ok(())
    }

    fn plain(&mut self, byte: u8) -> Result<(), String> {
        if byte.is_ascii_whitespace() {
            self.in_word = false;
            return Ok(());
        }
        if self.levels.is_empty() && (self.line.begun || byte != b'{') {
            return Err(self.here("holds no JSON object"));
        }
        let word_starts = !self.in_word;
        self.in_word = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
        match byte {
            b'{' => self.open(Level::Key)?,
            b'[' => self.open(Level::List)?,
            b'}' => self.close(Level::List)?,
            b']' => self.close(Level::Value)?,
            b',' => self.next(),
            b':' => {
                if let Some(level @ Level::Key) = self.levels.last_mut() {
                    *level = Level::Value;
                }
            }
            b'"' => self.begin_text(),
            _ if self.in_word => self.word(byte, word_starts),
            _ => {}
        }
        Ok(())
    }

    fn open(&mut self, level: Level) -> Result<(), String> {
        if self.levels.len() == MAX_DEPTH {
            return Err(self.here("is nested too deep"));
        }
        if self.levels.len() == 1 && self.field == Field::Answers && level == Level::List {
            self.line.answered = true;
        }
        self.levels.push(level);
        self.line.begun = true;
        Ok(())
    }

    /// Closes a list or an object; `other` is a level that the bracket does not fit.
    fn close(&mut self, other: Level) -> Result<(), String> {
        let closed = self.levels.pop();
        let fits = match other {
            Level::List => closed != Some(Level::List),
            _ => closed == Some(Level::List),
        };
        match fits {
            true => Ok(()),
            false => Err(self.here("is no JSON: its brackets do not match")),
        }
    }

    /// Behind a comma.
    fn next(&mut self) {
        if let Some(level @ Level::Value) = self.levels.last_mut() {
            *level = Level::Key;
        }
        if self.levels.len() == 1 {
            self.end_value();
        }
    }

    /// A field of the line is read whole.
    fn end_value(&mut self) {
        match self.field {
            Field::Question if self.hash != HASH_START => self.line.question = Some(self.hash),
            Field::Filter => self.line.filter = self.hash,
            _ => {}
        }
        self.field = Field::Other;
    }

    fn word(&mut self, byte: u8, starts: bool) {
        match self.field {
            Field::Question | Field::Filter => self.hash = hash(self.hash, byte),
            // An answer that is `null` is none; a number or a flag is one.
            Field::Answers if self.levels.len() > 1 && starts => self.line.spoken |= byte != b'n',
            _ => {}
        }
    }

    fn begin_text(&mut self) {
        self.place = Place::Text;
        self.in_key = self.levels.last() == Some(&Level::Key);
        self.key_length = 0;
        self.text = blank::Text::default();
    }

    fn letter(&mut self, byte: u8) {
        if self.in_key {
            if self.key_length < KEY {
                self.key[self.key_length] = byte;
                self.key_length += 1;
            }
            return;
        }
        match self.field {
            Field::Answers => self.text.byte(byte),
            Field::Question | Field::Filter => self.hash = hash(self.hash, byte),
            Field::Other => {}
        }
    }

    /// A character by its number.
    fn escaped(&mut self, code: u32) {
        match u8::try_from(code) {
            Ok(byte) if byte.is_ascii() => self.letter(byte),
            _ if self.in_key => self.letter(u8::MAX),
            _ if self.field == Field::Answers => self.text.code(code),
            _ => code.to_le_bytes().into_iter().for_each(|byte| self.letter(byte)),
        }
    }

    fn end_text(&mut self) -> Result<(), String> {
        self.place = Place::Plain;
        if self.in_key {
            self.in_key = false;
            if self.levels.len() == 1 {
                self.field = Field::of(&self.key[..self.key_length]);
                self.hash = HASH_START;
                let twice = match self.field {
                    Field::Answers => self.line.answered,
                    Field::Question => self.line.question.is_some(),
                    Field::Other | Field::Filter => false,
                };
                if twice {
                    return Err(self.here("has a key twice"));
                }
            }
        } else if self.field == Field::Answers && self.levels.len() > 1 {
            self.line.spoken |= self.text.is_spoken();
        }
        Ok(())
    }

    fn end_line(&mut self) -> Result<(), String> {
        if !self.levels.is_empty() || self.place != Place::Plain {
            return Err(self.here("is cut off"));
        }
        self.end_value();
        let line = std::mem::take(&mut self.line);
        if line.begun {
            if !line.answered {
                return Err(self.here("has no list of answers (`resps`)"));
            }
            let question = match line.question {
                Some(id) => (true, id),
                None => {
                    let count = self.unnamed.entry(line.filter).or_default();
                    *count += 1;
                    (false, *count)
                }
            };
            *self.questions.entry(question).or_default() |= line.spoken;
        }
        self.lines += 1;
        self.in_word = false;
        Ok(())
    }

    fn here(&self, what: &str) -> String {
        format!("{what} in line {}", self.lines + 1)
    }

    fn finish(mut self) -> Result<Answers, String> {
        self.end_line()?;
        if self.questions.is_empty() {
            return Err("is empty: it holds no sample".to_owned());
        }
        let count = |silent: bool| self.questions.values().filter(|spoken| silent != **spoken).count() as u64;
        Ok(Answers {
            total: self.questions.len() as u64,
            empty: count(true),
        })
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
    fn only_the_answers_of_the_line_itself_count() {
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
