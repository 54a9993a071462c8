//! The grammar of JSON, held against lines in pieces of any size: what Python's parser takes, but for keys that stand
//! twice and nesting without end.

use serde::de::IgnoredAny;

use super::super::json::BARE;
use super::keys::Keys;
use super::letters::{Fault, Letters};

/// The deepest nesting of a line.
const MAX_DEPTH: usize = 256;

/// The longest number, in bytes: Python reads no whole number of more than 4300 digits.
const MAX_WORD: usize = 4301;

/// The most bytes of a word that a message shows.
const SHOWN: usize = 20;

/// Where a line is read, or what comes next in it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before the object of a line.
    #[default]
    Line,
    /// Behind it.
    End,
    /// Behind `{`: a key, or the end.
    FirstKey,
    Key,
    Colon,
    /// Behind `[`: a value, or the end.
    FirstValue,
    Value,
    /// Behind a value.
    Comma,
    /// In a string.
    Text,
    /// Behind a backslash.
    Escape,
    /// In the four digits of `\uXXXX`.
    Unicode,
    /// In a number, or in a value without quotes.
    Word,
}

/// What was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part<'p> {
    /// Nothing that has a meaning of its own.
    Nothing,
    /// A bracket or a comma, once it is open, closed or passed.
    Mark(u8),
    /// The end of a key.
    Key,
    /// A part of a string that is a value, without escapes.
    Text(&'p [u8]),
    /// A letter of such a string that is escaped, by its number.
    Letter(u32),
    /// The end of such a string.
    TextEnd,
    /// The end of a number or of a value without quotes.
    Word,
    /// The end of a line.
    Line,
}

/// Where a line is read.
#[derive(Debug, Default)]
pub(super) struct Grammar {
    place: Place,
    keys: Keys,
    /// Whether the string is a key.
    in_key: bool,
    letters: Letters,
    /// The digits of an escape so far, and their value.
    digits: u8,
    code: u32,
    word: Vec<u8>,
}

impl Grammar {
    /// Reads the start of a piece that is not empty: how many bytes, and what they are.
    ///
    /// # Errors
    /// What is no JSON, as the end of a sentence about the line.
    pub(super) fn read<'p>(&mut self, piece: &'p [u8]) -> Result<(usize, Part<'p>), String> {
        match self.place {
            Place::Text => self.text(piece, 0),
            Place::Escape => Ok((1, self.escape(piece[0])?)),
            Place::Unicode => Ok((1, self.unicode(piece[0])?)),
            Place::Word => self.word_on(piece, 0),
            _ => self.between(piece),
        }
    }

    /// How many lists and objects are open.
    pub(super) fn depth(&self) -> usize {
        self.keys.depth()
    }

    /// The keys of the objects that are open.
    pub(super) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The number, or the value without quotes, that has just ended.
    pub(super) fn word(&self) -> &[u8] {
        &self.word
    }

    /// Ends the last line.
    ///
    /// # Errors
    /// A line that goes on.
    pub(super) fn end(&self) -> Result<(), String> {
        match self.place {
            Place::Line | Place::End => Ok(()),
            _ => Err(CUT_OFF.to_owned()),
        }
    }

    /// Outside of strings and words.
    fn between<'p>(&mut self, piece: &'p [u8]) -> Result<(usize, Part<'p>), String> {
        let spaces = piece.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r'));
        let spaces = spaces.count();
        let Some(byte) = piece.get(spaces).copied() else {
            return Ok((spaces, Part::Nothing));
        };
        let part = match (byte, self.place) {
            (b'\n', Place::Line | Place::End) => {
                self.place = Place::Line;
                Part::Line
            }
            (b'{', Place::Line | Place::FirstValue | Place::Value) => self.open(byte, Place::FirstKey)?,
            (b'[', Place::FirstValue | Place::Value) => self.open(byte, Place::FirstValue)?,
            (b'}' | b']', Place::FirstKey | Place::FirstValue | Place::Comma) => self.close(byte)?,
            (b',', Place::Comma) => {
                self.place = match self.keys.in_object() {
                    Some(true) => Place::Key,
                    _ => Place::Value,
                };
                Part::Mark(byte)
            }
            (b':', Place::Colon) => {
                self.place = Place::Value;
                Part::Nothing
            }
            (b'"', Place::FirstKey | Place::Key) => {
                self.keys.begin();
                self.keys.extend(b"\"")?;
                (self.place, self.in_key) = (Place::Text, true);
                return self.text(piece, spaces + 1);
            }
            (b'"', Place::FirstValue | Place::Value) => {
                (self.place, self.in_key) = (Place::Text, false);
                Part::Nothing
            }
            (_, Place::FirstValue | Place::Value) if is_of_word(byte) => {
                self.place = Place::Word;
                self.word.clear();
                return self.word_on(piece, spaces);
            }
            _ => return Err(self.unexpected(byte)),
        };
        Ok((spaces + 1, part))
    }

    fn unexpected(&self, byte: u8) -> String {
        if byte < b' ' {
            return control(byte);
        }
        let missing = match self.place {
            Place::Line | Place::End => return "holds no JSON object".to_owned(),
            Place::FirstKey | Place::Key => "a key",
            Place::Colon => "a colon",
            Place::Comma => "a comma",
            _ => "a value",
        };
        format!("is no JSON: {missing} is missing")
    }

    fn open(&mut self, bracket: u8, place: Place) -> Result<Part<'static>, String> {
        if self.keys.depth() == MAX_DEPTH {
            return Err("is nested too deep".to_owned());
        }
        self.keys.open(bracket == b'{');
        self.place = place;
        Ok(Part::Mark(bracket))
    }

    fn close(&mut self, bracket: u8) -> Result<Part<'static>, String> {
        if self.keys.in_object() != Some(bracket == b'}') {
            return Err("is no JSON: its brackets do not match".to_owned());
        }
        self.keys.close()?;
        self.place = match self.keys.depth() {
            0 => Place::End,
            _ => Place::Comma,
        };
        Ok(Part::Mark(bracket))
    }

    /// In a string, from `start` on.
    fn text<'p>(&mut self, piece: &'p [u8], start: usize) -> Result<(usize, Part<'p>), String> {
        let rest = &piece[start..];
        let length = match rest.first() {
            Some(b'"' | b'\\') => 0,
            _ => memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len()),
        };
        let span = &rest[..length];
        let end = start + length;
        if length > 0 {
            self.letters.read(span).map_err(told)?;
            if !self.in_key {
                return Ok((end, Part::Text(span)));
            }
            self.keys.extend(span)?;
        }
        let Some(byte) = rest.get(length) else {
            return Ok((end, Part::Nothing));
        };
        self.letters.end().map_err(told)?;
        let part = match (byte, self.in_key) {
            (b'"', true) => {
                self.keys.extend(b"\"")?;
                self.place = Place::Colon;
                Part::Key
            }
            (b'"', false) => {
                self.place = Place::Comma;
                Part::TextEnd
            }
            (byte, _) => {
                self.of_key(*byte)?;
                self.place = Place::Escape;
                Part::Nothing
            }
        };
        Ok((end + 1, part))
    }

    /// Keeps a byte of an escape where it is one of a key.
    fn of_key(&mut self, byte: u8) -> Result<(), String> {
        match self.in_key {
            true => self.keys.escape(byte),
            false => Ok(()),
        }
    }

    fn letter(&self, code: u32) -> Part<'static> {
        match self.in_key {
            true => Part::Nothing,
            false => Part::Letter(code),
        }
    }

    fn escape(&mut self, byte: u8) -> Result<Part<'static>, String> {
        let letter = match byte {
            b'"' | b'\\' | b'/' => byte,
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'b' => 8,
            b'f' => 12,
            b'u' => {
                self.of_key(byte)?;
                self.place = Place::Unicode;
                (self.digits, self.code) = (0, 0);
                return Ok(Part::Nothing);
            }
            0..=0x1f => return Err(control(byte)),
            0x21..=0x7e => return Err(format!("is no JSON: `\\{}` is no escape", char::from(byte))),
            _ => return Err("is no JSON: a backslash begins no escape".to_owned()),
        };
        self.of_key(byte)?;
        self.place = Place::Text;
        Ok(self.letter(u32::from(letter)))
    }

    fn unicode(&mut self, byte: u8) -> Result<Part<'static>, String> {
        let Some(digit) = char::from(byte).to_digit(16) else {
            return Err(match byte {
                0..=0x1f => control(byte),
                _ => "is no JSON: `\\u` without four hexadecimal digits".to_owned(),
            });
        };
        self.of_key(byte)?;
        self.code = self.code * 16 + digit;
        self.digits += 1;
        if self.digits < 4 {
            return Ok(Part::Nothing);
        }
        self.place = Place::Text;
        Ok(self.letter(self.code))
    }

    /// In a word, from `start` on.
    fn word_on<'p>(&mut self, piece: &'p [u8], start: usize) -> Result<(usize, Part<'p>), String> {
        let rest = &piece[start..];
        let end = rest.iter().position(|byte| !is_of_word(*byte));
        let length = end.unwrap_or(rest.len());
        if self.word.len() + length > MAX_WORD {
            return Err(format!("is no JSON: a number of more than {MAX_WORD} bytes"));
        }
        self.word.extend_from_slice(&rest[..length]);
        if end.is_none() {
            return Ok((piece.len(), Part::Nothing));
        }
        let is_bare = BARE.iter().any(|bare| bare.as_bytes() == self.word);
        if !is_bare && serde_json::from_slice::<IgnoredAny>(&self.word).is_err() {
            let shown = String::from_utf8_lossy(&self.word[..self.word.len().min(SHOWN)]);
            return Err(format!("is no JSON: `{shown}` is no value"));
        }
        self.place = Place::Comma;
        Ok((start + length, Part::Word))
    }
}

/// Whether numbers and values without quotes may hold a byte.
fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
}

const CUT_OFF: &str = "is cut off";

/// What is wrong with a line that holds a control character; a line that ends where it should go on is cut off.
fn control(byte: u8) -> String {
    match byte {
        b'\n' => CUT_OFF.to_owned(),
        byte => format!("is no JSON: it holds a control character (0x{byte:02x})"),
    }
}

fn told(fault: Fault) -> String {
    match fault {
        Fault::Control(byte) => control(byte),
        Fault::Utf8 => "is not UTF-8".to_owned(),
    }
}
