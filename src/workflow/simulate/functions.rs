//! The functions of GitHub's expressions, those of a status aside.

use super::evaluate::EvalError;
use super::value::{Value, upper};

/// `contains(search, item)`: an item of a list, or a part of a text whatever its case.
pub(super) fn contains(search: &Value, item: &Value) -> bool {
    match search {
        Value::Array(list) => list.items.iter().any(|known| item.equals(known)),
        Value::Object(_) => false,
        _ => item.is_primitive() && search.text().to_lowercase().contains(&item.text().to_lowercase()),
    }
}

/// `startsWith` and `endsWith`: texts whatever their case.
pub(super) fn at_an_end(text: &Value, part: &Value, test: impl Fn(&str, &str) -> bool) -> bool {
    text.is_primitive() && part.is_primitive() && test(&upper(&text.text()), &upper(&part.text()))
}

/// `join(list, separator)`: a text as it is, a mapping as nothing.
pub(super) fn join(list: &Value, separator: Option<&Value>) -> String {
    match list {
        Value::Array(list) => {
            let separator = separator
                .filter(|separator| separator.is_primitive())
                .map_or_else(|| ",".into(), Value::text);
            let items: Vec<_> = list.items.iter().map(Value::text).collect();
            items.join(&separator)
        }
        Value::Object(_) => String::new(),
        _ => list.text().to_string(),
    }
}

/// `fromJSON(text)`
pub(super) fn from_json(text: &Value) -> Result<Value, EvalError> {
    let text = text.text();
    if text.trim().is_empty() {
        return Err(EvalError::Json("the text is empty".to_owned()));
    }
    let json: serde_json::Value = serde_json::from_str(&text).map_err(|error| EvalError::Json(error.to_string()))?;
    Ok((&json).into())
}

/// `format(text, values...)`: `{0}` is the first value, `{{` and `}}` are braces.
pub(super) fn format(pattern: &str, values: &[Value]) -> Result<String, EvalError> {
    let invalid = || EvalError::Format(pattern.to_owned());
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(at) = rest.find(['{', '}']) {
        out.push_str(&rest[..at]);
        let (brace, after) = rest[at..].split_at(1);
        if let Some(after) = after.strip_prefix(brace) {
            out.push_str(brace);
            rest = after;
            continue;
        }
        let (inside, after) = after.split_once('}').filter(|_| brace == "{").ok_or_else(invalid)?;
        // What follows the digits up to the brace is a specifier, which GitHub reads over.
        let digits = inside.len() - inside.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let index: usize = inside[..digits].parse().map_err(|_| invalid())?;
        let value = values
            .get(index)
            .ok_or_else(|| EvalError::FormatIndex(pattern.to_owned()))?;
        out.push_str(&value.text());
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// `case(condition, value, ..., default)`
pub(super) fn case(mut args: Vec<Value>) -> Result<Value, EvalError> {
    let default = args.pop().ok_or(EvalError::Case)?;
    for pair in args.chunks(2) {
        match pair {
            [Value::Bool(true), value] => return Ok(value.clone()),
            [Value::Bool(false), _] => {}
            _ => return Err(EvalError::Case),
        }
    }
    Ok(default)
}
