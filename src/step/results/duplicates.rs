//! Keys that stand twice in one object: readers disagree on which value counts, so neither does.

use std::borrow::Cow;

/// The most keys that are named.
pub(super) const NAMED: usize = 5;
/// Up to how many keys of an object comparing each with each beats sorting them.
const FEW: usize = 8;

/// Every key that stands twice in its object, as its path from the top, such as `results.gsm8k`. The text is JSON
/// that a parser took.
#[must_use]
pub(crate) fn find(text: &str) -> Vec<String> {
    let bytes = text.as_bytes();
    let mut open = Open::default();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() && found.len() < NAMED {
        match bytes[at] {
            b'{' => open.begin(true),
            b'[' => open.begin(false),
            b'}' | b']' => open.end(&mut found),
            b',' => open.next(),
            b'"' => {
                let end = super::json::end_of_string(bytes, at + 1);
                open.string(&text[at..end.min(text.len())]);
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found.truncate(NAMED);
    found
}

/// The lists and objects that are open, from the top.
#[derive(Default)]
struct Open<'t> {
    levels: Vec<Level>,
    /// The keys so far of every object that is open.
    keys: Vec<Cow<'t, str>>,
}

/// A list or an object.
struct Level {
    is_object: bool,
    /// Whether a key comes next.
    key_next: bool,
    /// Where its keys start among those of all.
    start: usize,
}

impl<'t> Open<'t> {
    fn begin(&mut self, is_object: bool) {
        self.levels.push(Level {
            is_object,
            key_next: is_object,
            start: self.keys.len(),
        });
    }

    fn next(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            level.key_next = level.is_object;
        }
    }

    /// A string with its quotes.
    fn string(&mut self, quoted: &'t str) {
        if let Some(level) = self.levels.last_mut().filter(|level| level.key_next) {
            level.key_next = false;
            self.keys.push(unescaped(quoted));
        }
    }

    /// Ends what was begun last.
    fn end(&mut self, found: &mut Vec<String>) {
        let Some(level) = self.levels.pop() else { return };
        let twice = twice(&self.keys[level.start..]);
        found.extend(twice.into_iter().map(|key| self.path(level.start, key)));
        self.keys.truncate(level.start);
    }

    /// The path of a key of the object that has just ended, whose keys start at `start`: each object around it is told
    /// by its last key.
    fn path(&self, start: usize, key: &str) -> String {
        let ends = self.levels.iter().skip(1).map(|level| level.start).chain([start]);
        let around = self.levels.iter().zip(ends).filter(|(level, end)| *end > level.start);
        let around = around.map(|(_, end)| self.keys[end - 1].as_ref());
        around.chain([key]).collect::<Vec<_>>().join(".")
    }
}

/// What is wrong with a text in which these keys stand twice, as the end of a sentence about it.
pub(super) fn told(keys: &[String]) -> String {
    let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
    format!("has {} twice in one object", keys.join(", "))
}

/// The keys that stand there more than once, each once, sorted.
pub(super) fn twice<K: Ord>(keys: &[K]) -> Vec<&K> {
    let is_clean = |keys: &[K]| (1..keys.len()).all(|at| !keys[..at].contains(&keys[at]));
    if keys.len() <= FEW && is_clean(keys) {
        return Vec::new();
    }
    let mut sorted: Vec<&K> = keys.iter().collect();
    sorted.sort_unstable();
    let pairs = sorted.windows(2).filter(|pair| pair[0] == pair[1]);
    let mut twice: Vec<&K> = pairs.map(|pair| pair[0]).collect();
    twice.dedup();
    twice
}

/// A string with its quotes: without them, and with its escapes resolved, since `"\u0061"` is `"a"`.
pub(super) fn unescaped(quoted: &str) -> Cow<'_, str> {
    let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let inner = inner.unwrap_or(quoted);
    match quoted.contains('\\') {
        true => serde_json::from_str(quoted).map_or(Cow::Borrowed(inner), Cow::Owned),
        false => Cow::Borrowed(inner),
    }
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
        let many = |count: usize| {
            (0..count)
                .map(|at| format!("\"k{at:02}\": {{}}"))
                .collect::<Vec<_>>()
                .join(",")
        };
        for count in [2, NAMED, FEW, 2 * FEW] {
            let text = format!("[{{{}, {}}}]", many(count), many(count));
            let wanted: Vec<String> = (0..count.min(NAMED)).map(|at| format!("k{at:02}")).collect();
            assert_eq!(find(&text), wanted);
            assert_eq!(
                find(&format!("[{{{}}}, {{{}}}]", many(count), many(count))),
                Vec::<String>::new()
            );
        }
        // However often it stands there.
        assert_eq!(
            find(r#"{"z": {"k": 1, "j": 1, "k": 2, "j": 2, "k": 3}}"#),
            ["z.j", "z.k"]
        );
    }

    #[test]
    fn no_text_makes_it_fail() {
        for text in ["", "\"", "{\"", "}{", "[\"a\\", "{\"a\" \"a\"", "]]}}{{"] {
            let _ = find(text);
        }
    }
}
