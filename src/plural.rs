//! How many of something, in words.

/// A count with its noun: `1 config`, `2 configs`, `0 entries`.
#[must_use]
pub fn count(number: usize, noun: &str) -> String {
    match (number, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{number} {stem}ies"),
        _ => format!("{number} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn one_is_singular_and_every_other_number_plural() {
        let words = [
            count(1, "config"),
            count(0, "config"),
            count(2, "entry"),
            count(1, "entry"),
            count(3, "day"),
        ];
        assert_eq!(words, ["1 config", "0 configs", "2 entries", "1 entry", "3 days"]);
    }
}
