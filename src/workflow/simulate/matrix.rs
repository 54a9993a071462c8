//! The values of a matrix.

use super::evaluate::{EvalError, Scope};
use super::template;
use super::value::Value;
use crate::config::tree::Node;
use crate::workflow::tree::get;

/// One combination: axis and value.
pub(super) type Combination = Vec<(String, Value)>;

/// The combinations of a job's matrix; one without axes where it has no matrix.
///
/// # Errors
/// Axes that are no lists or are empty, and expressions without a value.
pub(super) fn combinations(strategy: Option<&Node<'_>>, scope: &Scope) -> Result<Vec<Combination>, EvalError> {
    let Some(matrix) = strategy.and_then(|strategy| get(strategy, "matrix")) else {
        return Ok(vec![Combination::new()]);
    };
    let matrix = template::value(matrix, scope)?;
    let axes = pairs(&matrix)?;
    let mut all = vec![Combination::new()];
    let mut has_axis = false;
    for (name, values) in axes.iter().filter(|(name, _)| name != "include" && name != "exclude") {
        has_axis = true;
        let values = items(name, values)?;
        if values.is_empty() {
            return Err(EvalError::Shape(format!("the matrix axis `{name}` has no value")));
        }
        let longer = |combination: &Combination| {
            let mut longer = Vec::with_capacity(values.len());
            for value in values {
                let mut one = combination.clone();
                one.push((name.clone(), value.clone()));
                longer.push(one);
            }
            longer
        };
        all = all.iter().flat_map(longer).collect();
    }
    let listed = |key: &str| -> Result<Vec<Combination>, EvalError> {
        match axes.iter().find(|(name, _)| name == key) {
            Some((_, values)) => items(key, values)?.iter().map(pairs).collect(),
            None => Ok(Vec::new()),
        }
    };
    for excluded in listed("exclude")? {
        all.retain(|combination| !is_part(&excluded, combination));
    }
    if !has_axis {
        all.clear();
    }
    let original = all.len();
    for included in listed("include")? {
        let mut fits = false;
        for combination in &mut all[..original] {
            let clashes = included.iter().any(|(name, value)| {
                combination
                    .iter()
                    .any(|(known, other)| known == name && !value.equals(other))
            });
            if !clashes {
                fits = true;
                let new = included
                    .iter()
                    .filter(|(name, _)| !combination.iter().any(|(known, _)| known == name));
                let new: Combination = new.cloned().collect();
                combination.extend(new);
            }
        }
        if !fits {
            all.push(included);
        }
    }
    if all.is_empty() {
        return Err(EvalError::Shape("the matrix has no value".to_owned()));
    }
    Ok(all)
}

fn is_part(part: &Combination, of: &Combination) -> bool {
    part.iter()
        .all(|(name, value)| of.iter().any(|(known, other)| known == name && value.equals(other)))
}

fn pairs(value: &Value) -> Result<Combination, EvalError> {
    match value {
        Value::Object(object) => Ok(object
            .pairs()
            .map(|(key, value)| (key.to_owned(), value.clone()))
            .collect()),
        _ => Err(EvalError::Shape("a matrix is a mapping".to_owned())),
    }
}

fn items<'v>(name: &str, value: &'v Value) -> Result<&'v [Value], EvalError> {
    match value {
        Value::Array(list) => Ok(&list.items),
        _ => Err(EvalError::Shape(format!("the matrix axis `{name}` is no list"))),
    }
}

/// What GitHub adds to a name without an expression: the plain values of the combination.
pub(super) fn suffix(combination: &Combination) -> String {
    let mut plain = Vec::new();
    combination.iter().for_each(|(_, value)| leaves(value, &mut plain));
    match plain.is_empty() {
        true => String::new(),
        false => format!(" ({})", plain.join(", ")),
    }
}

fn leaves(value: &Value, plain: &mut Vec<String>) {
    match value {
        Value::Array(list) => list.items.iter().for_each(|item| leaves(item, plain)),
        Value::Object(object) => object.values().for_each(|item| leaves(item, plain)),
        other => plain.push(other.text().to_string()),
    }
}
