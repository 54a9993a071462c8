//! Whether a text says anything: white space of any alphabet, and what no reader sees, says nothing.

/// Letters that Unicode does not call white space, and that show nothing: fillers, joiners, marks of direction.
const UNSEEN: [char; 13] = [
    '\u{ad}', '\u{34f}', '\u{115f}', '\u{1160}', '\u{180e}', '\u{200b}', '\u{200c}', '\u{200d}', '\u{2060}',
    '\u{2800}', '\u{3164}', '\u{feff}', '\u{ffa0}',
];

/// Whether a letter says nothing.
#[must_use]
pub(crate) fn is_blank(letter: char) -> bool {
    let direction = matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    letter.is_whitespace() || letter.is_control() || direction || UNSEEN.contains(&letter)
}

/// A text that arrives byte by byte.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Text {
    spoken: bool,
    /// The letter that is begun, and how many bytes of it are to come.
    code: u32,
    left: u8,
}

impl Text {
    /// The next byte of UTF-8; what is none says something.
    pub(crate) fn byte(&mut self, byte: u8) {
        // Most of a long answer comes after its first word.
        if self.spoken {
            return;
        }
        match (byte, self.left) {
            (0x80..=0xbf, 1..) => {
                self.code = self.code << 6 | u32::from(byte & 0x3f);
                self.left -= 1;
                if self.left == 0 {
                    self.code(self.code);
                }
            }
            (0..=0x7f, 0) => self.code(u32::from(byte)),
            (0xc0..=0xdf, 0) => (self.code, self.left) = (u32::from(byte & 0x1f), 1),
            (0xe0..=0xef, 0) => (self.code, self.left) = (u32::from(byte & 0x0f), 2),
            // No letter of four bytes is blank.
            _ => self.spoken = true,
        }
    }

    /// The next letter, by its number; half of a pair is part of a letter that is seen.
    pub(crate) fn code(&mut self, code: u32) {
        self.spoken = self.spoken || !char::from_u32(code).is_some_and(is_blank);
    }

    /// Whether anything was said: nothing that follows changes that. Of a text that ends within a letter it is not known.
    #[must_use]
    pub(crate) fn is_spoken(self) -> bool {
        self.spoken
    }
}
