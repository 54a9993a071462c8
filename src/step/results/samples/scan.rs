//! Sample lines as bytes: which keys and values they hold, in pieces of any size.

use super::super::blank;
use super::Answers;
use super::tally::{Line, Tally};

/// The deepest nesting of a line.
const MAX_DEPTH: usize = 256;

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

/// Where a scan stands.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    tally: Tally,
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
    /// Reads on.
    ///
    /// # Errors
    /// A line that is no object with answers, with its number.
    pub(super) fn feed(&mut self, piece: &[u8]) -> Result<(), String> {
        let mut at = 0;
        while at < piece.len() {
            // The bulk of a file is the inside of strings that nobody asks about.
            let idle = match self.field {
                Field::Other => true,
                Field::Answers => self.line.spoken || self.text.is_settled(),
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
            Field::Answers if starts => self.line.spoken |= byte != b'n',
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
            _ if self.field == Field::Answers => self.text.code(code),
            _ => code.to_le_bytes().into_iter().for_each(|byte| self.letter(byte)),
        }
    }

    fn end_text(&mut self) -> Result<(), String> {
        self.place = Place::Plain;
        if self.in_key {
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
        } else if self.field == Field::Answers {
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
        self.tally.add(line).map_err(|what| self.here(what))
    }

    fn here(&self, what: &str) -> String {
        format!("{what} in line {}", self.tally.lines() + 1)
    }

    /// Ends the last line, and counts.
    ///
    /// # Errors
    /// A last line that is cut off or holds no answers, and a file without a sample.
    pub(super) fn finish(mut self) -> Result<Answers, String> {
        self.end_line()?;
        self.tally.finish()
    }
}
