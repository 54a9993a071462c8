//! The evaluator of GitHub's expressions, over the syntax tree of `github-actions-expressions`.

use std::sync::Arc;

use github_actions_expressions::call::{Call, Function};
use github_actions_expressions::context::Context;
use github_actions_expressions::literal::Literal;
use github_actions_expressions::op::{BinExpr, BinOp};
use github_actions_expressions::{Expr, SpannedExpr};
use indexmap::IndexMap;
use thiserror::Error;

use super::functions;
use super::value::{List, Value};

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EvalError {
    /// It is none.
    #[error("`{0}` is no expression: {1}")]
    Syntax(String, String),
    /// A context that is not there at this place.
    #[error("`{0}` is not known here")]
    Context(String),
    /// A function that has no meaning at this place.
    #[error("`{0}()` has no meaning here")]
    Function(&'static str),
    /// `fromJSON` of something else.
    #[error("fromJSON: {0}")]
    Json(String),
    /// A text that `format` cannot read.
    #[error("the format `{0}` is invalid")]
    Format(String),
    /// A format that names more values than there are.
    #[error("the format `{0}` names more values than it is given")]
    FormatIndex(String),
    /// `case` with something else than `true` or `false` as a condition.
    #[error("a condition of `case` is neither true nor false")]
    Case,
    /// Text that is not where a text must be.
    #[error("{0}")]
    Shape(String),
}

/// What the functions `success()`, `failure()` and `cancelled()` give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// Whether all ancestors succeeded.
    pub success: bool,
    /// Whether an ancestor failed.
    pub failure: bool,
    /// Whether the run was cancelled.
    pub cancelled: bool,
}

/// What an expression may name.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    contexts: IndexMap<&'static str, Value>,
    /// What the status functions give; `None` where they have no meaning.
    pub status: Option<Status>,
}

impl Scope {
    /// The scope with one more context, or another one of its name.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: Value) -> Self {
        self.contexts.insert(name, value);
        self
    }

    /// Some of the contexts, and no status: what a called workflow sees of its caller.
    #[must_use]
    pub fn only(&self, names: &[&str]) -> Self {
        let mut contexts = self.contexts.clone();
        contexts.retain(|name, _| names.contains(name));
        Self { contexts, status: None }
    }

    /// The scope with what the status functions give.
    #[must_use]
    pub fn in_status(self, status: Status) -> Self {
        Self {
            status: Some(status),
            ..self
        }
    }

    fn context(&self, name: &str) -> Result<Value, EvalError> {
        let found = self.contexts.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found
            .map(|(_, value)| value.clone())
            .ok_or_else(|| EvalError::Context(name.to_owned()))
    }

    fn status(&self, function: &'static str) -> Result<Status, EvalError> {
        self.status.ok_or(EvalError::Function(function))
    }
}

/// Parses an expression, without `${{ }}`.
///
/// # Errors
/// Text that is none.
pub fn parse(text: &str) -> Result<SpannedExpr<'_>, EvalError> {
    Expr::parse(text).map_err(|error| EvalError::Syntax(text.trim().to_owned(), error.to_string()))
}

/// Evaluates an expression.
///
/// # Errors
/// A part that has no value; parts that `&&` and `||` pass over are not looked at.
pub fn evaluate(expr: &SpannedExpr<'_>, scope: &Scope) -> Result<Value, EvalError> {
    match &expr.inner {
        Expr::Literal(literal) => Ok(match literal {
            Literal::Number(number) => Value::Number(*number),
            Literal::String(text) => text.as_ref().into(),
            Literal::Boolean(value) => Value::Bool(*value),
            Literal::Null => Value::Null,
        }),
        Expr::Context(context) => access(context, scope),
        Expr::Identifier(name) => scope.context(name.as_str()),
        Expr::UnExpr { expr, .. } => Ok(Value::Bool(!evaluate(expr, scope)?.is_truthy())),
        Expr::BinExpr(expr) => binary(expr, scope),
        Expr::Call(call) => function(call, scope),
        Expr::Index(inner) => evaluate(inner, scope),
        Expr::Star => Err(EvalError::Shape("`*` stands alone".to_owned())),
    }
}

fn binary(expr: &BinExpr<'_>, scope: &Scope) -> Result<Value, EvalError> {
    use std::cmp::Ordering::{Greater, Less};
    let left = evaluate(&expr.lhs, scope)?;
    match expr.op {
        BinOp::And if !left.is_truthy() => return Ok(left),
        BinOp::Or if left.is_truthy() => return Ok(left),
        _ => {}
    }
    let right = evaluate(&expr.rhs, scope)?;
    let order = || left.compare(&right);
    Ok(Value::Bool(match expr.op {
        BinOp::And | BinOp::Or => return Ok(right),
        BinOp::Eq => left.equals(&right),
        BinOp::Neq => !left.equals(&right),
        BinOp::Gt => order() == Some(Greater),
        BinOp::Ge => order() == Some(Greater) || left.equals(&right),
        BinOp::Lt => order() == Some(Less),
        BinOp::Le => order() == Some(Less) || left.equals(&right),
    }))
}

/// What one step of an access asks for.
enum Key {
    /// Every item.
    Star,
    /// A name, a number, or both; a list or a mapping is neither.
    One {
        name: Option<Arc<str>>,
        index: Option<usize>,
    },
}

impl Key {
    fn of(part: &SpannedExpr<'_>, scope: &Scope) -> Result<Self, EvalError> {
        let inner = match &part.inner {
            Expr::Star => return Ok(Self::Star),
            Expr::Identifier(name) => {
                return Ok(Self::One {
                    name: Some(name.as_str().into()),
                    index: None,
                });
            }
            Expr::Index(inner) => inner,
            _ => return Err(EvalError::Shape("an access is neither a name nor an index".to_owned())),
        };
        if matches!(inner.inner, Expr::Star) {
            return Ok(Self::Star);
        }
        let value = evaluate(inner, scope)?;
        let number = value.number();
        Ok(Self::One {
            name: value.is_primitive().then(|| value.text()),
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "no list is longer than usize"
            )]
            index: (number.is_finite() && number >= 0.0).then(|| number.floor() as usize),
        })
    }

    /// What one list or mapping holds under the key.
    fn find<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        match (value, self) {
            (Value::Array(list), Self::Star) => list.items.iter().collect(),
            (Value::Object(object), Self::Star) => object.values().collect(),
            (Value::Array(list), Self::One { index: Some(index), .. }) => list.items.get(*index).into_iter().collect(),
            (Value::Object(object), Self::One { name: Some(name), .. }) => object.get(name).into_iter().collect(),
            _ => Vec::new(),
        }
    }
}

fn access(context: &Context<'_>, scope: &Scope) -> Result<Value, EvalError> {
    let Some((head, parts)) = context.parts.split_first() else {
        return Ok(Value::Null);
    };
    let mut value = evaluate(head, scope)?;
    for part in parts {
        let key = Key::of(part, scope)?;
        let filtered = |items: Vec<&Value>| {
            Value::Array(Arc::new(List {
                items: items.into_iter().cloned().collect(),
                filtered: true,
            }))
        };
        value = match (&value, &key) {
            (Value::Array(list), _) if list.filtered => {
                filtered(list.items.iter().flat_map(|item| key.find(item)).collect())
            }
            (_, Key::Star) => filtered(key.find(&value)),
            _ => key.find(&value).first().map_or(Value::Null, |found| (*found).clone()),
        };
    }
    Ok(value)
}

fn function(call: &Call<'_>, scope: &Scope) -> Result<Value, EvalError> {
    let args: Vec<Value> = call
        .args
        .iter()
        .map(|arg| evaluate(arg, scope))
        .collect::<Result<_, _>>()?;
    let arg = |index: usize| args.get(index).unwrap_or(&Value::Null);
    Ok(match call.func {
        Function::Contains => functions::contains(arg(0), arg(1)).into(),
        Function::StartsWith => functions::at_an_end(arg(0), arg(1), |text, part| text.starts_with(part)).into(),
        Function::EndsWith => functions::at_an_end(arg(0), arg(1), |text, part| text.ends_with(part)).into(),
        Function::Format => functions::format(&arg(0).text(), args.get(1..).unwrap_or_default())?.into(),
        Function::Join => functions::join(arg(0), args.get(1)).into(),
        Function::ToJSON => arg(0).to_json().into(),
        Function::FromJSON => functions::from_json(arg(0))?,
        Function::Case => functions::case(args)?,
        Function::HashFiles => return Err(EvalError::Function("hashFiles")),
        Function::Always => {
            scope.status("always")?;
            true.into()
        }
        Function::Success => scope.status("success")?.success.into(),
        Function::Failure => scope.status("failure")?.failure.into(),
        Function::Cancelled => scope.status("cancelled")?.cancelled.into(),
    })
}

/// Whether an expression asks for a status anywhere; without one, GitHub asks `success()` as well.
#[must_use]
pub fn asks_status(expr: &SpannedExpr<'_>) -> bool {
    match &expr.inner {
        Expr::Call(call) => {
            let is_status = matches!(
                call.func,
                Function::Success | Function::Failure | Function::Cancelled | Function::Always
            );
            is_status || call.args.iter().any(asks_status)
        }
        Expr::BinExpr(expr) => asks_status(&expr.lhs) || asks_status(&expr.rhs),
        Expr::UnExpr { expr, .. } | Expr::Index(expr) => asks_status(expr),
        Expr::Context(context) => context.parts.iter().any(asks_status),
        Expr::Literal(_) | Expr::Star | Expr::Identifier(_) => false,
    }
}

/// The part of a false condition that made it false: of `&&` the first side that is; with a comparison, what was compared.
#[must_use]
pub fn blame(expr: &SpannedExpr<'_>, scope: &Scope) -> String {
    let raw = expr.origin.raw;
    let Expr::BinExpr(BinExpr { lhs, op, rhs }) = &expr.inner else {
        return raw.to_owned();
    };
    if *op == BinOp::And {
        let left = evaluate(lhs, scope).is_ok_and(|value| value.is_truthy());
        return blame(if left { rhs } else { lhs }, scope);
    }
    if *op == BinOp::Or {
        return raw.to_owned();
    }
    let sides = [lhs, rhs].into_iter().filter(|side| !side.is_literal());
    let found: Vec<(&str, String)> = sides
        .filter_map(|side| Some((side.origin.raw, shown(&evaluate(side, scope).ok()?))))
        .collect();
    match found.as_slice() {
        [] => raw.to_owned(),
        [(_, value)] => format!("{raw}, but it is {value}"),
        all => {
            let all: Vec<String> = all.iter().map(|(side, value)| format!("{side} is {value}")).collect();
            format!("{raw}, but {}", all.join(" and "))
        }
    }
}

/// A value for people, on one line.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("'{}'", text.chars().take(60).collect::<String>()),
        Value::Null => "null".to_owned(),
        other => other.text().to_string(),
    }
}
