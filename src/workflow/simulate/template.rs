//! Expressions where workflow files hold them: in conditions, and in texts between `${{` and `}}`.

use github_actions_expressions::SpannedExpr;

use super::evaluate::{self, EvalError, Scope, asks_status, evaluate};
use super::value::Value;
use crate::config::tree::{self, Node};

const OPEN: &str = "${{";
const CLOSE: &str = "}}";

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'t> {
    /// As it stands.
    Text(&'t str),
    /// An expression, without its braces.
    Expression(&'t str),
}

/// The parts of a text.
///
/// # Errors
/// An expression that does not end.
pub fn parts(text: &str) -> Result<Vec<Part<'_>>, EvalError> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OPEN) {
        if !before.is_empty() {
            parts.push(Part::Text(before));
        }
        let end = end(after).ok_or_else(|| EvalError::Shape(format!("`{OPEN}` has no `{CLOSE}`: {text}")))?;
        parts.push(Part::Expression(&after[..end]));
        rest = &after[end + CLOSE.len()..];
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest));
    }
    Ok(parts)
}

/// Where an expression ends: braces in its strings do not count.
fn end(text: &str) -> Option<usize> {
    let mut quoted = false;
    let bytes = text.as_bytes();
    (0..bytes.len()).find(|at| {
        quoted ^= bytes[*at] == b'\'';
        !quoted && bytes[*at..].starts_with(CLOSE.as_bytes())
    })
}

/// The value of a text: of one that is nothing but an expression whatever that gives, else text.
///
/// # Errors
/// An expression without a value.
pub fn text_value(text: &str, scope: &Scope) -> Result<Value, EvalError> {
    let parts = parts(text)?;
    if let [Part::Expression(only)] = parts.as_slice() {
        return evaluate(&evaluate::parse(only)?, scope);
    }
    let mut whole = String::new();
    for part in parts {
        match part {
            Part::Text(text) => whole.push_str(text),
            Part::Expression(text) => whole.push_str(&evaluate(&evaluate::parse(text)?, scope)?.text()),
        }
    }
    Ok(whole.into())
}

/// The value of a node and of everything in it.
///
/// # Errors
/// An expression without a value.
pub fn value(node: &Node<'_>, scope: &Scope) -> Result<Value, EvalError> {
    match &node.value {
        tree::Value::Map(pairs) => pairs
            .iter()
            .map(|(key, node)| Ok((key.text(), value(node, scope)?)))
            .collect(),
        tree::Value::Seq(items) => {
            let items: Result<Vec<Value>, EvalError> = items.iter().map(|item| value(item, scope)).collect();
            Ok(items?.into())
        }
        tree::Value::Scalar { text, .. } if text.contains(OPEN) => text_value(text, scope),
        tree::Value::Scalar { text, plain } => Ok(literal(text, *plain)),
    }
}

/// A scalar as GitHub reads it (YAML 1.2: `yes` and `on` are text).
fn literal(text: &str, plain: bool) -> Value {
    match text {
        _ if !plain => text.into(),
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => true.into(),
        "false" | "False" | "FALSE" => false.into(),
        _ if text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => {
            let number = Value::from(text).number();
            match number.is_nan() {
                true => text.into(),
                false => Value::Number(number),
            }
        }
        _ => text.into(),
    }
}

/// What an `if` says.
#[derive(Debug)]
pub enum Condition<'t> {
    /// One expression, with `${{ }}` or without.
    Expression(SpannedExpr<'t>),
    /// Text around expressions, which is a text, and so true unless it is empty.
    Text(&'t str),
}

impl<'t> Condition<'t> {
    /// Reads an `if`; one that is not there asks for nothing but success.
    ///
    /// # Errors
    /// Text that is no expression.
    pub fn parse(text: &'t str) -> Result<Option<Self>, EvalError> {
        if text.trim().is_empty() {
            return Ok(None);
        }
        let parts = parts(text.trim())?;
        let expression = match parts.as_slice() {
            [Part::Expression(only) | Part::Text(only)] => only,
            _ => return Ok(Some(Self::Text(text))),
        };
        Ok(Some(Self::Expression(evaluate::parse(expression)?)))
    }

    /// Whether it asks for a status itself.
    #[must_use]
    pub fn asks_status(&self) -> bool {
        match self {
            Self::Expression(expression) => asks_status(expression),
            Self::Text(text) => parts(text).is_ok_and(|parts| {
                parts.iter().any(|part| match part {
                    Part::Expression(text) => evaluate::parse(text).is_ok_and(|e| asks_status(&e)),
                    Part::Text(_) => false,
                })
            }),
        }
    }

    /// Whether it is true.
    ///
    /// # Errors
    /// A part without a value.
    pub fn holds(&self, scope: &Scope) -> Result<bool, EvalError> {
        Ok(match self {
            Self::Expression(expression) => evaluate(expression, scope)?,
            Self::Text(text) => text_value(text, scope)?,
        }
        .is_truthy())
    }

    /// The part of it that is false.
    #[must_use]
    pub fn blame(&self, scope: &Scope) -> String {
        match self {
            Self::Expression(expression) => evaluate::blame(expression, scope),
            Self::Text(text) => (*text).to_owned(),
        }
    }
}
