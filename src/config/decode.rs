//! From a located tree to typed values, with every problem reported.
//!
//! Decoding never stops at the first problem: a value that is wrong is said and left out, and the rest is looked at.
//! Names that are not asked for are unknown fields, so a decoder is also the list of what it knows.

use std::panic::Location;
use std::sync::Arc;

use rust_decimal::Decimal;

use super::problem::{Place, Problem, Problems, Span, close_to, nearest};
use super::scalar::Scalar;
use super::source::Source;
use super::tree::{Node, Value};
use crate::findings::{Finding, config, refusals};

/// The largest integer that a file may hold anywhere: sizes, counts and concurrencies are far below it.
pub(crate) const MAX_INTEGER: u64 = 2_147_483_647;

/// Collects the problems of one source.
#[derive(Debug)]
pub struct Decoder {
    source: Arc<Source>,
    /// What was found so far.
    pub problems: Problems,
}

impl Decoder {
    /// A decoder of one source.
    #[must_use]
    pub fn new(source: &Arc<Source>) -> Self {
        Self {
            source: Arc::clone(source),
            problems: Problems::default(),
        }
    }

    /// A place that outlives the decoder.
    #[must_use]
    pub fn place(&self, span: Span) -> Place {
        Place::new(&self.source, span)
    }

    /// Reports a problem at a place, with the id of the caller's area.
    #[track_caller]
    pub fn report(&mut self, span: Span, message: impl Into<String>, hint: impl Into<String>) {
        self.refuse(refusals::of_area(Location::caller()), span, message, hint);
    }

    /// Reports a finding at a place.
    pub fn refuse(
        &mut self,
        finding: &'static Finding,
        span: Span,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let (message, hint) = (message.into(), hint.into());
        self.problems.push_at(&self.source, span, |problem| {
            Problem { message, ..problem }.hint(hint).id(finding)
        });
    }

    fn mismatch(&mut self, node: &Node<'_>, name: &str, wanted: &str, hint: &str) {
        let found = match &node.value {
            Value::Scalar { text, .. } if !text.is_empty() => {
                let shown: String = text.chars().take(40).collect();
                format!("{} (`{shown}`)", node.kind())
            }
            _ => node.kind().to_owned(),
        };
        let message = format!("`{name}` is {found}, not {wanted}");
        self.refuse(&config::WRONG_TYPE, node.span, message, hint);
    }

    /// A string: quoted, or plain text. A plain number is taken as it is written (`1.10` stays `1.10`).
    pub fn string(&mut self, node: &Node<'_>, name: &str) -> Option<String> {
        match node.scalar() {
            Some(Scalar::Null) => self.mismatch(node, name, "a string", "give it a value, or remove the field"),
            Some(Scalar::Bool(_)) => self.mismatch(node, name, "a string", "quote it if the text is meant"),
            Some(Scalar::Str(text)) if text.is_empty() => {
                let hint = "give it a value, or remove the field";
                self.refuse(&config::EMPTY, node.span, format!("`{name}` is empty"), hint);
            }
            Some(_) => return Some(node.text().to_owned()),
            None => self.mismatch(node, name, "a string", "write one value on the line"),
        }
        None
    }

    /// A string that may be empty: `""`.
    pub fn string_or_empty(&mut self, node: &Node<'_>, name: &str) -> Option<String> {
        match node.scalar() {
            Some(Scalar::Str(text)) if text.is_empty() => Some(String::new()),
            _ => self.string(node, name),
        }
    }

    /// `true` or `false`.
    pub fn boolean(&mut self, node: &Node<'_>, name: &str) -> Option<bool> {
        match node.scalar() {
            Some(Scalar::Bool(value)) => return Some(value),
            Some(Scalar::Str(_)) if resembles(node, |s| matches!(s, Scalar::Bool(_))) => {
                self.mismatch(node, name, "a boolean", "remove the quotes");
            }
            _ => self.mismatch(node, name, "a boolean", "write `true` or `false`"),
        }
        None
    }

    /// An integer of at least `least` and at most [`MAX_INTEGER`].
    pub fn integer(&mut self, node: &Node<'_>, name: &str, least: u64) -> Option<u64> {
        match node.scalar() {
            Some(Scalar::Int(value)) if value < i128::from(least) => {
                let wanted = match least {
                    1 => "must be positive".to_owned(),
                    _ => format!("must be at least {least}"),
                };
                let message = format!("`{name}` is {value}, it {wanted}");
                self.refuse(&config::OUT_OF_RANGE, node.span, message, "correct the number");
            }
            Some(Scalar::Int(value)) if value > i128::from(MAX_INTEGER) => {
                let message = format!("`{name}` is {value}, the largest accepted is {MAX_INTEGER}");
                self.refuse(&config::OUT_OF_RANGE, node.span, message, "correct the number");
            }
            Some(Scalar::Int(value)) => return u64::try_from(value).ok(),
            Some(Scalar::Str(_)) if resembles(node, |s| matches!(s, Scalar::Int(_))) => {
                self.mismatch(node, name, "an integer", "remove the quotes");
            }
            _ => self.mismatch(node, name, "an integer", "write a whole number"),
        }
        None
    }

    /// A positive integer of at most `most`.
    pub fn integer_up_to(&mut self, node: &Node<'_>, name: &str, most: u64) -> Option<u64> {
        let value = self.integer(node, name, 1)?;
        if value > most {
            let message = format!("`{name}` is {value}, the most is {most}");
            self.refuse(&config::OUT_OF_RANGE, node.span, message, "correct the number");
            return None;
        }
        Some(value)
    }

    /// A number, exactly as written.
    pub fn decimal(&mut self, node: &Node<'_>, name: &str) -> Option<Decimal> {
        if let Some(Scalar::Int(_) | Scalar::Float(_)) = node.scalar() {
            let text = node.text().replace('_', "");
            let exact = Decimal::from_str_exact(&text).or_else(|_| Decimal::from_scientific(&text));
            if let Ok(value) = exact {
                return Some(value.normalize());
            }
            let shown: String = text.chars().take(60).collect();
            let message = format!("`{name}` is {shown}: a number here is decimal, of at most 28 digits");
            self.refuse(
                &config::OUT_OF_RANGE,
                node.span,
                message,
                "round it, or write it in decimal",
            );
            return None;
        }
        let hint = if resembles(node, |s| matches!(s, Scalar::Int(_) | Scalar::Float(_))) {
            "remove the quotes"
        } else {
            "write a number such as 0.75"
        };
        self.mismatch(node, name, "a number", hint);
        None
    }

    /// One of a closed set of names.
    pub fn choice<T: Copy>(&mut self, node: &Node<'_>, name: &str, choices: &[(&str, T)]) -> Option<T> {
        let found = match node.scalar() {
            Some(Scalar::Str(text)) => text.into_owned(),
            _ => {
                let names: Vec<&str> = choices.iter().map(|(n, _)| *n).collect();
                self.mismatch(
                    node,
                    name,
                    &format!("one of `{}`", names.join("`, `")),
                    "write one of them",
                );
                return None;
            }
        };
        let chosen = choices.iter().find(|(n, _)| *n == found).map(|(_, v)| *v);
        if chosen.is_none() {
            let hint = nearest(&found, choices.iter().map(|(n, _)| *n));
            let message = format!("`{found}` is not a value of `{name}`");
            self.refuse(&config::UNKNOWN_VALUE, node.span, message, hint);
        }
        chosen
    }

    /// A list of at least `least` items, each through `item`. Wrong items are left out.
    pub fn list<'n, 't, T>(
        &mut self,
        node: &'n Node<'t>,
        name: &str,
        least: usize,
        mut item: impl FnMut(&mut Self, &'n Node<'t>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let Value::Seq(items) = &node.value else {
            self.mismatch(node, name, "a list", "write its items with `- `, one a line");
            return None;
        };
        if items.len() < least {
            let message = format!("`{name}` is an empty list");
            self.refuse(&config::EMPTY, node.span, message, "give it at least one item");
            return None;
        }
        Some(items.iter().filter_map(|i| item(self, i)).collect())
    }

    /// A list of strings.
    pub fn strings(&mut self, node: &Node<'_>, name: &str, least: usize) -> Option<Vec<String>> {
        self.list(node, name, least, |d, item| d.string(item, name))
    }

    /// The pairs of a mapping whose keys are names of the user's own.
    pub fn entries<'n, 't>(&mut self, node: &'n Node<'t>, name: &str) -> &'n [(Node<'t>, Node<'t>)] {
        if let Value::Map(pairs) = &node.value {
            return pairs;
        }
        self.mismatch(node, name, "a mapping", "write it as `name: value` lines");
        &[]
    }

    /// The fields of a mapping with a fixed set of names.
    pub fn fields<'n, 't>(&mut self, node: &'n Node<'t>, what: &str) -> Option<Fields<'n, 't>> {
        let Value::Map(pairs) = &node.value else {
            self.mismatch(node, what, "a mapping", "write it as `field: value` lines");
            return None;
        };
        Some(Fields {
            what: what.to_owned(),
            span: node.span,
            pairs,
            asked: Vec::new(),
            missing: Vec::new(),
        })
    }
}

fn resembles(node: &Node<'_>, is: impl Fn(Scalar<'_>) -> bool) -> bool {
    matches!(&node.value, Value::Scalar { text, plain: false } if is(super::scalar::resolve(text)))
}

/// The fields of one mapping; remembers which names were asked for.
#[derive(Debug)]
pub struct Fields<'n, 't> {
    what: String,
    /// Where the mapping begins.
    pub span: Span,
    pairs: &'n [(Node<'t>, Node<'t>)],
    asked: Vec<&'static str>,
    /// What was reported as missing: the fields that would be it, and the message.
    missing: Vec<(Vec<&'static str>, String)>,
}

impl<'n, 't> Fields<'n, 't> {
    /// The value of a field, if it is there.
    pub fn get(&mut self, name: &'static str) -> Option<&'n Node<'t>> {
        if !self.asked.contains(&name) {
            self.asked.push(name);
        }
        self.pairs.iter().find(|(k, _)| k.text() == name).map(|(_, v)| v)
    }

    /// Whether a field is there, without asking for it.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.pairs.iter().any(|(k, _)| k.text() == name)
    }

    /// The place of a field's name, or of the mapping.
    #[must_use]
    pub fn at(&self, name: &str) -> Span {
        self.pairs
            .iter()
            .find(|(k, _)| k.text() == name)
            .map_or(self.span, |(k, _)| k.span)
    }

    /// A field that must be there.
    pub fn required<T>(
        &mut self,
        d: &mut Decoder,
        name: &'static str,
        decode: impl FnOnce(&mut Decoder, &'n Node<'t>, &'static str) -> Option<T>,
    ) -> Option<T> {
        match self.get(name) {
            Some(node) => decode(d, node, name),
            None => {
                let message = format!("{} lacks `{name}`", self.what);
                self.lacks(d, &config::MISSING_FIELD, &[name], message, format!("add `{name}:`"));
                None
            }
        }
    }

    /// Reports that one of some fields must be there. Where one of them is only misspelt, [`Self::finish`] says that
    /// instead.
    pub(crate) fn lacks(
        &mut self,
        d: &mut Decoder,
        finding: &'static Finding,
        names: &[&'static str],
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let message = message.into();
        d.refuse(finding, self.span, message.clone(), hint);
        self.missing.push((names.to_vec(), message));
    }

    /// A field that may be there. A wrong value is reported and reads as absent.
    pub fn optional<T>(
        &mut self,
        d: &mut Decoder,
        name: &'static str,
        decode: impl FnOnce(&mut Decoder, &'n Node<'t>, &'static str) -> Option<T>,
    ) -> Option<T> {
        self.get(name).and_then(|node| decode(d, node, name))
    }

    /// Refuses a field that has no meaning here, with the reason.
    pub fn forbidden(&mut self, d: &mut Decoder, name: &'static str, reason: &str) {
        if self.get(name).is_some() {
            let message = format!("`{name}` cannot stand here: {reason}");
            d.refuse(&config::MISPLACED_FIELD, self.at(name), message, "remove it");
        }
    }

    /// Takes back that a field is missing which is there under a misspelt name: one mistake is one problem.
    fn found(&self, d: &mut Decoder, name: &str) {
        let of_name = self.missing.iter().filter(|(names, _)| names.contains(&name));
        for (_, message) in of_name {
            let is = |problem: &Problem| problem.span == Some(self.span) && problem.message == *message;
            d.problems.0.retain(|problem| !is(problem));
        }
    }

    /// Ends the mapping: every field that was not asked for is unknown.
    pub fn finish(self, d: &mut Decoder) {
        let is_asked = |key: &Node<'_>| self.asked.iter().any(|name| *name == key.text());
        let unknown = self.pairs.iter().filter(|(key, _)| !is_asked(key));
        let mut missing: Option<Vec<&str>> = None;
        for (key, _) in unknown {
            if d.problems.is_full() {
                return;
            }
            // Looked for once: a mapping may have any number of fields.
            let missing =
                missing.get_or_insert_with(|| self.asked.iter().copied().filter(|name| !self.has(name)).collect());
            let hint = nearest(key.text(), missing.iter().copied());
            if let Some(meant) = close_to(key.text(), missing.clone()).first() {
                self.found(d, meant);
            }
            let message = format!("unknown field `{}` in {}", key.text(), self.what);
            d.refuse(&config::UNKNOWN_FIELD, key.span, message, hint);
        }
    }
}
