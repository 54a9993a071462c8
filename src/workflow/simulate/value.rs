//! Values of GitHub's expressions, and how they turn into each other.
//!
//! Source of the rules: GitHub's documentation of expressions, and its own engine `@actions/expressions`, against which
//! the tests hold this module.

use std::fmt::Write;
use std::sync::Arc;

/// A value of an expression.
#[derive(Debug, Clone)]
pub enum Value {
    /// Nothing: also what a property that is not there gives.
    Null,
    /// `true` or `false`
    Bool(bool),
    /// Every number is a double.
    Number(f64),
    /// Text.
    String(Arc<str>),
    /// A list; two lists are equal only if they are the same one.
    Array(Arc<List>),
    /// A mapping; equal as lists are.
    Object(Arc<Object>),
}

/// A list.
#[derive(Debug, Default)]
pub struct List {
    /// Its items.
    pub items: Vec<Value>,
    /// Whether a filter (`*`) made it: what is asked of it then is asked of each item.
    pub filtered: bool,
}

/// A mapping in its own order, whose keys are found whatever their case; of keys that differ in case only the first
/// counts.
#[derive(Debug, Default)]
pub struct Object {
    pairs: Vec<(Arc<str>, Value)>,
}

impl Object {
    /// Adds a pair unless its key is there.
    pub fn add(&mut self, key: &str, value: Value) {
        if self.get(key).is_none() {
            self.pairs.push((key.into(), value));
        }
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        let is_same = |known: &str| known.eq_ignore_ascii_case(key) || known.to_lowercase() == key.to_lowercase();
        self.pairs
            .iter()
            .find(|(known, _)| is_same(known))
            .map(|(_, value)| value)
    }

    /// The pairs, in their order.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.pairs.iter().map(|(key, value)| (key.as_ref(), value))
    }

    /// The values, in their order.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.pairs.iter().map(|(_, value)| value)
    }
}

impl<K: AsRef<str>> FromIterator<(K, Value)> for Value {
    fn from_iter<I: IntoIterator<Item = (K, Value)>>(pairs: I) -> Self {
        let mut object = Object::default();
        for (key, value) in pairs {
            object.add(key.as_ref(), value);
        }
        Self::Object(Arc::new(object))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text.into())
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<Vec<Self>> for Value {
    fn from(items: Vec<Self>) -> Self {
        Self::Array(Arc::new(List { items, filtered: false }))
    }
}

impl From<&serde_json::Value> for Value {
    fn from(json: &serde_json::Value) -> Self {
        use serde_json::Value as Json;
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => Self::Number(number.as_f64().unwrap_or(f64::NAN)),
            Json::String(text) => text.as_str().into(),
            Json::Array(items) => items.iter().map(Self::from).collect::<Vec<_>>().into(),
            Json::Object(fields) => fields.iter().map(|(key, value)| (key, Self::from(value))).collect(),
        }
    }
}

impl Value {
    /// Whether a condition takes it for true: not null, `false`, 0, NaN or empty text.
    #[must_use]
    pub fn is_truthy(&self) -> bool {
        match self {
            Self::Null => false,
            Self::Bool(value) => *value,
            Self::Number(number) => *number != 0.0 && !number.is_nan(),
            Self::String(text) => !text.is_empty(),
            Self::Array(_) | Self::Object(_) => true,
        }
    }

    /// Whether it is neither list nor mapping.
    #[must_use]
    pub fn is_primitive(&self) -> bool {
        !matches!(self, Self::Array(_) | Self::Object(_))
    }

    /// As text.
    #[must_use]
    pub fn text(&self) -> Arc<str> {
        match self {
            Self::Null => "".into(),
            Self::Bool(value) => value.to_string().into(),
            Self::Number(number) => number_text(*number).into(),
            Self::String(text) => Arc::clone(text),
            Self::Array(_) => "Array".into(),
            Self::Object(_) => "Object".into(),
        }
    }

    /// As a number; NaN where it is none.
    #[must_use]
    pub fn number(&self) -> f64 {
        match self {
            Self::Null => 0.0,
            Self::Bool(value) => f64::from(u8::from(*value)),
            Self::Number(number) => *number,
            Self::String(text) => parse_number(text),
            Self::Array(_) | Self::Object(_) => f64::NAN,
        }
    }

    /// `==`: text whatever its case, different kinds as numbers, lists and mappings by identity.
    #[must_use]
    pub fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Array(one), Self::Array(other)) => Arc::ptr_eq(one, other),
            (Self::Object(one), Self::Object(other)) => Arc::ptr_eq(one, other),
            _ => self.compare(other) == Some(std::cmp::Ordering::Equal),
        }
    }

    /// `<` and its like; `None` where neither is before the other nor equal to it.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Option<std::cmp::Ordering> {
        match (self, other) {
            (Self::Null, Self::Null) => Some(std::cmp::Ordering::Equal),
            (Self::Bool(one), Self::Bool(other)) => Some(one.cmp(other)),
            (Self::String(one), Self::String(other)) => {
                // GitHub compares UTF-16 units.
                Some(upper(one).encode_utf16().cmp(upper(other).encode_utf16()))
            }
            _ => self.number().partial_cmp(&other.number()),
        }
    }

    /// As JSON, as `toJSON` writes it: two spaces a level, numbers as JavaScript writes them.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = String::new();
        self.write_json(&mut text, 0);
        text
    }

    fn write_json(&self, out: &mut String, level: usize) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Number(number) if number.is_finite() => out.push_str(&shortest(*number)),
            Self::Number(_) => out.push_str("null"),
            Self::String(text) => quoted(text, out),
            Self::Array(list) => {
                let items = list.items.iter().map(|item| (None, item));
                write_members(out, level, ['[', ']'], items);
            }
            Self::Object(object) => {
                let pairs = object.pairs.iter().map(|(key, value)| (Some(key), value));
                write_members(out, level, ['{', '}'], pairs);
            }
        }
    }
}

fn write_members<'v>(
    out: &mut String,
    level: usize,
    [open, close]: [char; 2],
    members: impl ExactSizeIterator<Item = (Option<&'v Arc<str>>, &'v Value)>,
) {
    out.push(open);
    let is_empty = members.len() == 0;
    for (index, (key, value)) in members.enumerate() {
        out.push_str(if index == 0 { "\n" } else { ",\n" });
        out.push_str(&"  ".repeat(level + 1));
        if let Some(key) = key {
            quoted(key, out);
            out.push_str(": ");
        }
        value.write_json(out, level + 1);
    }
    if !is_empty {
        out.push('\n');
        out.push_str(&"  ".repeat(level));
    }
    out.push(close);
}

fn quoted(text: &str, out: &mut String) {
    out.push_str(&serde_json::Value::from(text).to_string());
}

/// Upper case but for the dotless `ı`, which GitHub leaves alone.
pub(super) fn upper(text: &str) -> String {
    let one = |c: char| match c {
        'ı' => "ı".to_owned(),
        c => c.to_uppercase().collect(),
    };
    match text.is_ascii() {
        true => text.to_ascii_uppercase(),
        false => text.chars().map(one).collect(),
    }
}

/// A number as text: at most 15 digits after the point.
fn number_text(number: f64) -> String {
    if !number.is_finite() || number.abs() >= 1e21 {
        return shortest(number);
    }
    let rounded: f64 = format!("{number:.15}").parse().unwrap_or(number);
    shortest(rounded)
}

/// The shortest text that reads back as the number, with an exponent where JavaScript writes one.
fn shortest(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    if number == 0.0 {
        return "0".to_owned();
    }
    if (1e-6..1e21).contains(&number.abs()) {
        return number.to_string();
    }
    let text = format!("{number:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => {
            let mut text = digits.to_owned();
            let _ = write!(text, "e+{exponent}");
            text
        }
        _ => text,
    }
}

/// Text as a number, as JavaScript's `Number` reads it.
fn parse_number(text: &str) -> f64 {
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    if text.is_empty() {
        return 0.0;
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        let digits = text
            .get(..2)
            .filter(|start| start.eq_ignore_ascii_case(prefix))
            .map(|_| &text[2..]);
        if let Some(digits) = digits {
            return radix_number(digits, radix);
        }
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned == "Infinity" {
        return if text.starts_with('-') {
            f64::NEG_INFINITY
        } else {
            f64::INFINITY
        };
    }
    // Rust reads `inf` and `nan` as well.
    let is_decimal = unsigned
        .bytes()
        .all(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    if is_decimal {
        text.parse().unwrap_or(f64::NAN)
    } else {
        f64::NAN
    }
}

fn radix_number(digits: &str, radix: u32) -> f64 {
    let digit = |c: char| c.to_digit(radix).map(f64::from);
    let digits: Option<Vec<f64>> = digits.chars().map(digit).collect();
    match digits {
        Some(digits) if !digits.is_empty() => digits.iter().fold(0.0, |all, digit| all * f64::from(radix) + digit),
        _ => f64::NAN,
    }
}
