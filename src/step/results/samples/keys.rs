//! The keys of the objects of a line that are open, to find those that stand twice.

use std::borrow::Cow;

use super::super::duplicates;

/// The most bytes that the open keys of a line take together.
const MAX_KEYS: usize = 1 << 20;

/// A list or an object that is open.
#[derive(Debug)]
struct Level {
    is_object: bool,
    /// The number of its first key among those of all.
    first: usize,
}

/// The lists and objects that are open, from the top, with their keys so far.
#[derive(Debug, Default)]
pub(super) struct Keys {
    levels: Vec<Level>,
    /// The keys one after the other, with their quotes, as they are written.
    bytes: Vec<u8>,
    /// Where each starts.
    starts: Vec<usize>,
    /// Whether a key of the line holds an escape: where none does, keys are the same that are written the same.
    escaped: bool,
}

impl Keys {
    pub(super) fn depth(&self) -> usize {
        self.levels.len()
    }

    /// Whether the innermost that is open is an object; none where nothing is.
    pub(super) fn in_object(&self) -> Option<bool> {
        self.levels.last().map(|level| level.is_object)
    }

    pub(super) fn open(&mut self, is_object: bool) {
        let first = self.starts.len();
        self.levels.push(Level { is_object, first });
    }

    /// Begins a key of the innermost object.
    pub(super) fn begin(&mut self) {
        self.starts.push(self.bytes.len());
    }

    /// Adds a part of that key as it is written, its quotes too.
    ///
    /// # Errors
    /// More keys than a line may have, as the end of a sentence about it.
    pub(super) fn extend(&mut self, part: &[u8]) -> Result<(), String> {
        if self.bytes.len() + part.len() > MAX_KEYS {
            return Err("has more than 1 MiB of keys".to_owned());
        }
        self.bytes.extend_from_slice(part);
        Ok(())
    }

    /// Adds a byte of an escape to that key.
    ///
    /// # Errors
    /// As [`Keys::extend`].
    pub(super) fn escape(&mut self, byte: u8) -> Result<(), String> {
        self.escaped = true;
        self.extend(&[byte])
    }

    /// Whether the key that has just ended is this one, given with its quotes.
    pub(super) fn last_is(&self, quoted: &str) -> bool {
        let Some(last) = self.starts.len().checked_sub(1) else {
            return false;
        };
        match self.escaped {
            true => self.key(last) == duplicates::unescaped(quoted),
            false => self.written(last) == quoted.as_bytes(),
        }
    }

    /// The key that has just ended, with its quotes, as it is written.
    pub(super) fn last(&self) -> &[u8] {
        self.starts.last().map_or(&[], |start| &self.bytes[*start..])
    }

    fn written(&self, number: usize) -> &[u8] {
        let end = self.starts.get(number + 1).copied().unwrap_or(self.bytes.len());
        &self.bytes[self.starts[number]..end]
    }

    fn key(&self, number: usize) -> Cow<'_, str> {
        let quoted = std::str::from_utf8(self.written(number)).expect("keys are checked as they are read");
        duplicates::unescaped(quoted)
    }

    /// Closes the innermost that is open.
    ///
    /// # Errors
    /// Keys that stand twice in it, as the end of a sentence about the line.
    pub(super) fn close(&mut self) -> Result<(), String> {
        let Some(Level { first, .. }) = self.levels.pop() else {
            return Ok(());
        };
        let numbers = first..self.starts.len();
        let may_be_twice = match self.escaped {
            _ if numbers.len() < 2 => false,
            true => true,
            false => {
                let written: Vec<&[u8]> = numbers.clone().map(|number| self.written(number)).collect();
                !duplicates::twice(&written).is_empty()
            }
        };
        if may_be_twice {
            let keys: Vec<_> = numbers.map(|number| self.key(number)).collect();
            let twice = duplicates::twice(&keys);
            if !twice.is_empty() {
                let around = self.around(first);
                let named = twice.iter().take(duplicates::NAMED);
                let named: Vec<String> = named.map(|key| format!("{around}{key}")).collect();
                return Err(duplicates::told(&named));
            }
        }
        self.escaped &= !self.levels.is_empty();
        if let Some(start) = self.starts.get(first) {
            self.bytes.truncate(*start);
            self.starts.truncate(first);
        }
        Ok(())
    }

    /// The path to an object that has just ended, whose keys start at `first`: each object around it is told by its
    /// last key.
    fn around(&self, first: usize) -> String {
        let ends = self.levels.iter().skip(1).map(|level| level.first).chain([first]);
        let around = self.levels.iter().zip(ends).filter(|(level, end)| *end > level.first);
        around.map(|(_, end)| format!("{}.", self.key(end - 1))).collect()
    }
}
