//! Markdown for step summaries, in which no text from a file can pass for markup.

use std::fmt::Write;

use crate::config::problem::{is_hidden, printable};

/// Text as one cell of a table: on one line, and only text.
#[must_use]
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '`' | '|' | '[' | ']' | '*' | '~' => out.extend(['\\', c]),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            c if c.is_control() => out.push(' '),
            // A backslash before a letter is one in Markdown too.
            c if is_hidden(c) => out.push_str(&printable(c.encode_utf8(&mut [0; 4]))),
            c => out.push(c),
        }
    }
    out
}

/// A table; every cell is escaped.
#[must_use]
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let escaped = |row: &Vec<String>| row.iter().map(|cell| escape(cell)).collect();
    table_of_markup(header, &rows.iter().map(escaped).collect::<Vec<_>>())
}

/// A table of cells that are markup already.
#[must_use]
pub(crate) fn table_of_markup(header: &[&str], rows: &[Vec<String>]) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "| {} |", header.join(" | "));
    let _ = writeln!(out, "|{}", " --- |".repeat(header.len()));
    for cells in rows {
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out
}

/// A bulleted list; every item is escaped.
#[must_use]
pub(crate) fn list(items: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    items
        .into_iter()
        .map(|item| format!("- {}\n", escape(item.as_ref())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_stays_in_its_cell() {
        let rows = [vec!["a|b`c`\n| x |".to_owned(), "<img src=x> [l](u)".to_owned()]];
        let text = table(&["A", "B"], &rows);
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(text.contains(r"a\|b\`c\` \| x \|"), "{text}");
        assert!(text.contains(r"&lt;img src=x&gt; \[l\](u)"), "{text}");
        assert_eq!(escape("a\u{202e}b\u{85}c\u{200b}d\u{1b}"), r"a\u{202e}b c\u{200b}d ");
    }
}
