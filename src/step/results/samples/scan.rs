//! Sample lines as bytes: which of their keys and values count, in pieces of any size.

use super::super::blank;
use super::Answers;
use super::grammar::{Grammar, Part};
use super::keys::Keys;
use super::tally::{Line, Tally};

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
    /// Whose key has just ended.
    fn of(keys: &Keys) -> Self {
        match () {
            () if keys.last_is("\"resps\"") => Self::Answers,
            () if keys.last_is("\"doc_id\"") => Self::Question,
            () if keys.last_is("\"filter\"") => Self::Filter,
            () => Self::Other,
        }
    }
}

/// Where a scan stands.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    tally: Tally,
    line: Line,
    grammar: Grammar,
    /// Whose value is read.
    field: Field,
    /// The hash of that value so far.
    hash: u64,
    /// An answer so far.
    text: blank::Text,
}

/// FNV-1a, 64 bit: ids are told apart by it, and nobody gains by making two collide.
const HASH_START: u64 = 0xcbf2_9ce4_8422_2325;

fn hash(state: u64, bytes: &[u8]) -> u64 {
    let add = |state: u64, byte: &u8| (state ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(state, add)
}

impl Scanner {
    /// Reads on.
    ///
    /// # Errors
    /// A line that is no JSON or no object with answers, with its number.
    pub(super) fn feed(&mut self, mut piece: &[u8]) -> Result<(), String> {
        while !piece.is_empty() {
            let (length, part) = self.grammar.read(piece).map_err(|what| self.here(&what))?;
            match part {
                Part::Nothing => {}
                Part::Mark(byte) => self.mark(byte),
                Part::Key => self.key(),
                Part::Text(span) => self.span(span),
                Part::Letter(code) => self.letter(code),
                Part::TextEnd => self.end_text(),
                Part::Word => self.word(),
                Part::Line => self.end_line()?,
            }
            piece = &piece[length..];
        }
        Ok(())
    }

    /// Behind a bracket or a comma.
    fn mark(&mut self, byte: u8) {
        match (byte, self.grammar.depth()) {
            (b'{', 1) => self.line.begun = true,
            (b'}', 0) | (b',', 1) => self.end_value(),
            (b'[', 2) if self.field == Field::Answers => self.line.answered = true,
            _ => {}
        }
        // `[0]` is another id than `0`.
        self.identify(&[byte]);
    }

    /// Adds to what an id or a filter's name is told by.
    fn identify(&mut self, bytes: &[u8]) {
        if matches!(self.field, Field::Question | Field::Filter) {
            self.hash = hash(self.hash, bytes);
        }
    }

    fn key(&mut self) {
        if self.grammar.depth() == 1 {
            self.field = Field::of(self.grammar.keys());
            self.hash = HASH_START;
        } else if matches!(self.field, Field::Question | Field::Filter) {
            self.hash = hash(self.hash, self.grammar.keys().last());
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

    fn word(&mut self) {
        let word = self.grammar.word();
        let is_null = word == b"null";
        match self.field {
            // A question whose id is `null` has none.
            Field::Question if is_null && self.grammar.depth() == 1 => {}
            Field::Question | Field::Filter => self.hash = hash(self.hash, word),
            // An answer that is `null` is none; a number or a flag is one.
            Field::Answers => self.line.spoken |= !is_null,
            Field::Other => {}
        }
    }

    /// A part of a string.
    fn span(&mut self, span: &[u8]) {
        if self.field != Field::Answers {
            return self.identify(span);
        }
        for byte in span {
            // Most of a long answer comes after its first word.
            if self.line.spoken || self.text.is_spoken() {
                return;
            }
            self.text.byte(*byte);
        }
    }

    /// A letter of a string by its number.
    fn letter(&mut self, code: u32) {
        match self.field {
            Field::Answers => self.text.code(code),
            _ => match u8::try_from(code) {
                Ok(byte) if byte.is_ascii() => self.identify(&[byte]),
                _ => self.identify(&code.to_le_bytes()),
            },
        }
    }

    fn end_text(&mut self) {
        if self.field == Field::Answers {
            self.line.spoken |= self.text.is_spoken();
            self.text = blank::Text::default();
        }
        if self.grammar.depth() > 1 {
            self.identify(b"\"");
        }
    }

    fn end_line(&mut self) -> Result<(), String> {
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
        self.grammar.end().map_err(|what| self.here(&what))?;
        self.end_line()?;
        self.tally.finish()
    }
}
