//! Keys that stand twice in one object: readers disagree on which value counts, so neither does.

use std::borrow::Cow;
use std::collections::HashSet;

/// The most keys that are named.
const NAMED: usize = 5;

/// Every key that stands twice in its object, as its path from the top, such as `results.gsm8k`. The text is JSON
/// that a parser took.
#[must_use]
pub(crate) fn find(text: &str) -> Vec<String> {
    let bytes = text.as_bytes();
    let mut objects: Vec<Option<Object<'_>>> = Vec::new();
    let mut seen: HashSet<(usize, Cow<'_, str>)> = HashSet::new();
    let mut count = 0;
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() && found.len() < NAMED {
        match bytes[at] {
            b'{' => {
                count += 1;
                objects.push(Some(Object::new(count)));
            }
            b'[' => objects.push(None),
            b'}' | b']' => {
                objects.pop();
            }
            b',' => {
                if let Some(Some(object)) = objects.last_mut() {
                    object.key_next = true;
                }
            }
            b'"' => {
                let end = super::json::end_of_string(bytes, at + 1);
                if let Some(Some(object)) = objects.last_mut()
                    && object.key_next
                {
                    let key = unescaped(&text[at..end.min(text.len())]);
                    object.key_next = false;
                    object.key = key.clone();
                    if !seen.insert((object.number, key)) {
                        found.push(path(&objects));
                    }
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// An object that is open.
struct Object<'t> {
    /// Which one of the text.
    number: usize,
    /// The key that was read last.
    key: Cow<'t, str>,
    /// Whether a key comes next.
    key_next: bool,
}

impl Object<'_> {
    fn new(number: usize) -> Self {
        Self {
            number,
            key: Cow::Borrowed(""),
            key_next: true,
        }
    }
}

/// A string with its quotes: without them, and with its escapes resolved, since `"\u0061"` is `"a"`.
fn unescaped(quoted: &str) -> Cow<'_, str> {
    let inner = quoted.trim_matches('"');
    match quoted.contains('\\') {
        true => serde_json::from_str(quoted).map_or(Cow::Borrowed(inner), Cow::Owned),
        false => Cow::Borrowed(inner),
    }
}

fn path(objects: &[Option<Object<'_>>]) -> String {
    let keys = objects.iter().flatten().map(|object| object.key.as_ref());
    keys.collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_twice_in_one_object_is_named_wherever_it_stands() {
        assert_eq!(
            find(r#"{"a": 1, "b": {"a": 2}, "c": [{"a": 3}, {"a": 4}]}"#),
            Vec::<String>::new()
        );
        assert_eq!(find(r#"{"a": 1, "a": 1}"#), ["a"]);
        assert_eq!(find(r#"{"a": {"b": [{"c": 1, "x": "c", "c": 2}]}}"#), ["a.b.c"]);
        assert_eq!(find(r#"{"a": 1, "\u0061": 2}"#), ["a"]);
        assert_eq!(
            find(r#"{"a\"": "a", "a": "{\"a\": 1, \"a\": 2}", "": 1}"#),
            Vec::<String>::new()
        );
        let many: Vec<String> = (0..20).map(|_| r#""k": 1"#.to_owned()).collect();
        assert_eq!(find(&format!("{{{}}}", many.join(","))).len(), NAMED);
    }

    #[test]
    fn no_text_makes_it_fail() {
        for text in ["", "\"", "{\"", "}{", "[\"a\\", "{\"a\" \"a\"", "]]}}{{"] {
            let _ = find(text);
        }
    }
}
