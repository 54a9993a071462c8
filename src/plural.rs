//! How many of something, in words.

use std::fmt::Display;

/// A count with its noun: `1 config`, `2 configs`, `0 entries`.
#[must_use]
pub(crate) fn count<N: Display + From<u8> + PartialEq>(number: N, noun: &str) -> String {
    match (number, noun.strip_suffix('y')) {
        (number, _) if number == N::from(1) => format!("1 {noun}"),
        (number, Some(stem)) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{number} {stem}ies"),
        (number, _) => format!("{number} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn one_is_singular_and_every_other_number_plural() {
        let words = [
            count(1_usize, "config"),
            count(0_u64, "config"),
            count(2_u32, "entry"),
            count(1_u64, "entry"),
            count(3_usize, "day"),
        ];
        assert_eq!(words, ["1 config", "0 configs", "2 entries", "1 entry", "3 days"]);
    }
}
