//! The inside of strings: no control characters, and UTF-8, in pieces of any size.

/// What is wrong with a string as far as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Control(u8),
    Utf8,
}

/// The letter that the end of a piece cut off.
#[derive(Debug, Default)]
pub(super) struct Letters {
    begun: [u8; 4],
    length: usize,
}

impl Letters {
    /// Reads on in a string.
    pub(super) fn read(&mut self, span: &[u8]) -> Result<(), Fault> {
        // A smallest byte and the union of all are what compilers make vector code of; a search that stops early is not.
        let (lowest, union) = span
            .iter()
            .fold((u8::MAX, 0), |(lowest, union), byte| (lowest.min(*byte), union | byte));
        if lowest < b' ' {
            let found = span.iter().find(|byte| **byte < b' ');
            return Err(Fault::Control(found.copied().unwrap_or(lowest)));
        }
        if union.is_ascii() && self.length == 0 {
            return Ok(());
        }
        self.decode(span)
    }

    fn decode(&mut self, mut span: &[u8]) -> Result<(), Fault> {
        while self.length > 0
            && let Some((byte, rest)) = span.split_first()
        {
            self.begun[self.length] = *byte;
            self.length += 1;
            span = rest;
            match std::str::from_utf8(&self.begun[..self.length]) {
                Ok(_) => self.length = 0,
                // More bytes of it are to come: of four there are none.
                Err(error) if error.error_len().is_none() => {}
                Err(_) => return Err(Fault::Utf8),
            }
        }
        let Err(error) = simdutf8::compat::from_utf8(span) else {
            return Ok(());
        };
        if error.error_len().is_some() {
            return Err(Fault::Utf8);
        }
        let cut = &span[error.valid_up_to()..];
        self.begun[..cut.len()].copy_from_slice(cut);
        self.length = cut.len();
        Ok(())
    }

    /// Ends a string, or begins an escape in it.
    pub(super) fn end(&self) -> Result<(), Fault> {
        match self.length {
            0 => Ok(()),
            _ => Err(Fault::Utf8),
        }
    }
}
