//! Changes of a YAML text that leave its comments and its order where they are.
//!
//! Places come from the located tree, and lines of block style are changed one value at a time. What was written is read
//! again and held against what was meant: a text in another form is refused, and never damaged.

use std::sync::Arc;

use super::read::field;
use crate::config::problem::{Problem, Problems};
use crate::config::scalar::{Scalar, resolve};
use crate::config::source::Source;
use crate::config::tree::{self, Node, Value};
use crate::config::yaml::Yaml;
use crate::findings::recipe as findings;

/// One change.
#[derive(Debug, Clone)]
pub(super) enum Change {
    /// Sets the field at a path, whatever is there.
    Set(Vec<&'static str>, Yaml),
    /// Removes the field at a path, where it is there.
    Remove(Vec<&'static str>),
}

/// The text of a file with changes.
///
/// # Errors
/// A text that is no YAML, and a change of a part that is not in block style.
pub(super) fn apply(source: &Arc<Source>, changes: &[Change]) -> Result<String, Problems> {
    let mut meant = Yaml::from(&tree::parse(source)?);
    let mut text = source.text.clone();
    for change in changes {
        let before = Source::new(source.name.clone(), text.clone());
        let root = tree::parse(&before)?;
        let mut lines = Lines::of(&text);
        let path = match change {
            Change::Set(path, value) => {
                meant.set(path, value.clone());
                lines.set(&root, path, value);
                path
            }
            Change::Remove(path) => {
                meant.remove(path);
                lines.remove(&root, path);
                path
            }
        };
        let edited = lines.text();
        let after = Source::new(source.name.clone(), edited.clone());
        if !tree::parse(&after).is_ok_and(|root| Yaml::from(&root) == meant) {
            return Err(refused(source, &root, path, change).into());
        }
        text = edited;
    }
    Ok(text)
}

fn refused(source: &Source, root: &Node<'_>, path: &[&'static str], change: &Change) -> Problem {
    let deepest = (1..=path.len()).rev().find_map(|depth| field(root, &path[..depth]));
    let span = deepest.map_or(root.span, |(key, _)| key.span);
    let place = path.join(".");
    let hint = match change {
        Change::Set(_, value) => format!("write it by hand: {place}: {}", written(value)),
        Change::Remove(_) => format!("remove `{place}` by hand"),
    };
    findings::OTHER_FORM
        .at(source, span, format!("`{place}` cannot be edited where it stands"))
        .hint(hint)
}

/// A text by lines, without their ends.
struct Lines {
    lines: Vec<String>,
    end: &'static str,
}

impl Lines {
    fn of(text: &str) -> Self {
        Self {
            lines: text.lines().map(str::to_owned).collect(),
            end: if text.contains("\r\n") { "\r\n" } else { "\n" },
        }
    }

    fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}{}", self.end)).collect()
    }

    fn set(&mut self, root: &Node<'_>, path: &[&str], value: &Yaml) {
        if let Some((key, old)) = field(root, path) {
            self.replace(key, old, value);
            return;
        }
        // The deepest mapping that is there takes the rest of the path.
        let depth = (1..path.len())
            .rev()
            .find(|depth| field(root, &path[..*depth]).is_some());
        let (at, indent, rest) = match depth {
            None => (self.lines.len(), 0, path),
            Some(depth) => {
                let Some((key, parent)) = field(root, &path[..depth]) else {
                    return;
                };
                let rest = &path[depth..];
                match &parent.value {
                    Value::Map(pairs) if !pairs.is_empty() => {
                        let last = pairs.iter().max_by_key(|(key, _)| key.span.line);
                        let Some((last, _)) = last else { return };
                        (self.entry_end(last), last.span.column - 1, rest)
                    }
                    _ => {
                        self.clear(key);
                        (key.span.line, key.span.column + 1, rest)
                    }
                }
            }
        };
        let at = match depth {
            None => self.last_of(root),
            Some(_) => at,
        };
        let new: Vec<String> = nested(rest, value, indent);
        self.lines.splice(at..at, new);
    }

    /// Behind the last field of the root: an end mark of the document stays behind it.
    fn last_of(&self, root: &Node<'_>) -> usize {
        match &root.value {
            Value::Map(pairs) => pairs
                .iter()
                .max_by_key(|(key, _)| key.span.line)
                .map_or(self.lines.len(), |(key, _)| self.entry_end(key)),
            _ => self.lines.len(),
        }
    }

    fn remove(&mut self, root: &Node<'_>, path: &[&str]) {
        if let Some((key, _)) = field(root, path) {
            let (start, end) = (key.span.line - 1, self.entry_end(key));
            self.lines.drain(start..end.max(start + 1));
        }
    }

    /// Takes an empty value, such as `{}`, from behind a key.
    fn clear(&mut self, key: &Node<'_>) {
        let Some(line) = self.lines.get_mut(key.span.line - 1) else {
            return;
        };
        for empty in [": {}", ": ~", ": null"] {
            if let Some(at) = line.find(empty) {
                line.replace_range(at + 1..at + empty.len(), "");
                return;
            }
        }
    }

    fn replace(&mut self, key: &Node<'_>, old: &Node<'_>, value: &Yaml) {
        let at = key.span.line - 1;
        let end = self.entry_end(key);
        let Some(line) = self.lines.get(at) else { return };
        let Some(colon) = byte_of(line, key.span.column - 1 + key.span.length)
            .and_then(|from| line[from..].find(':').map(|colon| from + colon + 1))
        else {
            return;
        };
        let is_one_line = end == at + 1 && old.span.line == key.span.line;
        let rest = match &old.value {
            Value::Scalar { text, .. } if is_one_line && !text.is_empty() => {
                let from = byte_of(line, old.span.column - 1).unwrap_or(colon);
                line[from + scalar_length(&line[from..])..].to_owned()
            }
            Value::Seq(_) | Value::Map(_) if is_one_line => {
                let close = line.rfind([']', '}']).map_or(line.len(), |close| close + 1);
                line[close..].to_owned()
            }
            // What stands on further lines goes; a comment behind the key stays.
            _ => line[colon..]
                .find(" #")
                .map_or(String::new(), |from| line[colon + from..].to_owned()),
        };
        let new = format!("{} {}{rest}", &line[..colon], written(value));
        self.lines.splice(at..end.max(at + 1), [new]);
    }

    /// The line behind an entry: its own, and all below it that are deeper or items of its list. Blank lines and comments
    /// behind them belong to what follows.
    fn entry_end(&self, key: &Node<'_>) -> usize {
        let indent = key.span.column - 1;
        let depth = |line: &str| line.len() - line.trim_start().len();
        let is_item = |line: &str| depth(line) == indent && line.trim_start().starts_with("- ");
        let mut end = key.span.line;
        for (at, line) in self.lines.iter().enumerate().skip(key.span.line) {
            let text = line.trim();
            if text.is_empty() {
                continue;
            }
            if depth(line) > indent || is_item(line) {
                end = at + 1;
            } else if !text.starts_with('#') {
                break;
            }
        }
        end
    }
}

/// The byte of a character of a line, or its end.
fn byte_of(line: &str, characters: usize) -> Option<usize> {
    let ends = line.char_indices().map(|(at, _)| at).chain([line.len()]);
    ends.into_iter().nth(characters)
}

/// The lines of a value below the mappings of a path.
fn nested(path: &[&str], value: &Yaml, indent: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for (depth, name) in path.iter().enumerate() {
        let space = " ".repeat(indent + 2 * depth);
        lines.push(match depth + 1 == path.len() {
            true => format!("{space}{name}: {}", written(value)),
            false => format!("{space}{name}:"),
        });
    }
    lines
}

/// A value on one line.
fn written(value: &Yaml) -> String {
    match value {
        Yaml::Text(text) => match is_plain(text) {
            true => text.clone(),
            false => serde_json::Value::from(text.as_str()).to_string(),
        },
        Yaml::List(items) => {
            let items: Vec<String> = items.iter().map(written).collect();
            format!("[{}]", items.join(", "))
        }
        Yaml::Int(number) => number.to_string(),
        Yaml::Float(number) => number.to_string(),
        Yaml::Bool(flag) => flag.to_string(),
        Yaml::Null => "null".to_owned(),
        Yaml::Map(_) => "{}".to_owned(),
    }
}

/// Whether a text stays one without quotes.
fn is_plain(text: &str) -> bool {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "_-./ ".contains(c);
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && !text.ends_with(' ')
        && text.chars().all(is_safe)
        && matches!(resolve(text), Scalar::Str(_))
}

/// How many bytes the scalar takes that a text begins with, on one line: quoted or not, without the comment behind it.
fn scalar_length(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1).peekable();
    match text.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            while let Some((at, char)) = chars.next() {
                match char {
                    '\\' if quote == '"' => drop(chars.next()),
                    // Two of these are one of the text.
                    '\'' if quote == '\'' && chars.peek().is_some_and(|(_, next)| *next == quote) => drop(chars.next()),
                    char if char == quote => return at + 1,
                    _ => {}
                }
            }
            text.len()
        }
        _ => text.find(" #").map_or(text, |at| &text[..at]).trim_end().len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &str, changes: &[Change]) -> Result<String, String> {
        apply(&Arc::new(Source::new("r.yaml", text)), changes).map_err(|problems| problems.to_string())
    }

    fn set(path: &[&'static str], value: impl Into<Yaml>) -> Change {
        Change::Set(path.to_vec(), value.into())
    }

    #[test]
    fn values_change_where_they_stand() {
        let text = "# top\nb:   # of b\n  x: \"1\"   # one\n  # before y\n  y:\n  - 1\n  - 2\n\n# tail\nc: 3\n";
        let changes = [set(&["b", "x"], 7), set(&["b", "y"], "a b"), set(&["b", "z", "q"], "1")];
        let wanted = "# top\nb:   # of b\n  x: 7   # one\n  # before y\n  y: a b\n  z:\n    q: \"1\"\n\n# tail\nc: 3\n";
        assert_eq!(edited(text, &changes), Ok(wanted.to_owned()));
    }

    #[test]
    fn blocks_lists_and_nothing_are_replaced_whole() {
        let text = "b:\n  command: | # run\n    one\n    # two\n  list: [1, 2] # both\n  none:\n  last: {}\n";
        let changes = [
            set(&["b", "command"], "x"),
            set(&["b", "list"], Yaml::List(vec![3.into()])),
            set(&["b", "none"], 4),
            set(&["b", "last", "deep"], true),
        ];
        let wanted = "b:\n  command: x # run\n  list: [3] # both\n  none: 4\n  last:\n    deep: true\n";
        assert_eq!(edited(text, &changes), Ok(wanted.to_owned()));
    }

    #[test]
    fn what_is_removed_takes_its_lines() {
        let text = "a: 1\nb:\n  x:\n    y: 1\n  # of z\n  z: 2\n";
        let change = [Change::Remove(vec!["b", "x"]), Change::Remove(vec!["none"])];
        assert_eq!(edited(text, &change), Ok("a: 1\nb:\n  # of z\n  z: 2\n".to_owned()));
    }

    #[test]
    fn other_forms_are_refused_and_never_damaged() {
        for text in [
            "b: {x: 1}\n",
            "{\"b\": {\"x\": 1}}\n",
            "d: &d\n  x: 1\nb: *d\n",
            "b:\n  ? y\n  : 2\n  ? x\n  : 3\n",
        ] {
            let why = edited(text, &[set(&["b", "new"], 1)]).expect_err(text);
            assert!(why.contains("recipe/other-form") && why.contains("b.new: 1"), "{why}");
        }
    }

    #[test]
    fn line_ends_and_end_marks_stay() {
        let text = "---\r\na: 1\r\n...\r\n";
        assert_eq!(
            edited(text, &[set(&["b"], 2)]),
            Ok("---\r\na: 1\r\nb: 2\r\n...\r\n".to_owned())
        );
    }
}
