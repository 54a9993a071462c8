//! Values that a JSON Schema asks for: the smallest that fit, as far as their keywords are known here.
//!
//! Known are `type`, `enum`, `const`, `$ref` within the schema, `anyOf`, `oneOf` (the first that can be built),
//! `allOf`, what objects, arrays, strings and numbers must hold, and `pattern` as a regular expression. Others, such as
//! `not`, are passed over.

use std::cell::Cell;

use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::{Map, Number, Value, json};

/// How deep a value may nest.
const MAX_DEPTH: usize = 64;
/// How many values may be made for one schema: schemas come from clients.
const MAX_VALUES: usize = 10_000;
/// The longest string that is made, in characters.
const MAX_LENGTH: u64 = 1 << 16;
/// The keywords that choose between schemas.
const CHOICES: [&str; 2] = ["anyOf", "oneOf"];

/// A value that fits a schema; `None` where none is found.
#[must_use]
pub(super) fn value(schema: &Value) -> Option<Value> {
    let maker = Maker {
        root: schema,
        left: Cell::new(MAX_VALUES),
    };
    maker.make(schema, MAX_DEPTH, 0)
}

struct Maker<'s> {
    root: &'s Value,
    left: Cell<usize>,
}

impl Maker<'_> {
    /// A value for a schema; another `salt` gives another value, where the schema allows more than one.
    fn make(&self, schema: &Value, depth: usize, salt: usize) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        self.left.set(self.left.get().checked_sub(1)?);
        let schema = match schema {
            Value::Bool(true) => return Some(json!("text")),
            Value::Object(schema) => schema,
            _ => return None,
        };
        if let Some(reference) = schema.get("$ref") {
            let target = self.root.pointer(reference.as_str()?.strip_prefix('#')?)?;
            return self.make(&merged(target, &without(schema, &["$ref"])), depth, salt);
        }
        if let Some(value) = schema.get("const") {
            return Some(value.clone());
        }
        if let Some(Value::Array(parts)) = schema.get("allOf") {
            let rest = Value::Object(without(schema, &["allOf"]));
            let all = parts.iter().fold(rest, |all, part| match part {
                Value::Object(part) => merged(&all, part),
                _ => all,
            });
            return self.make(&all, depth, salt);
        }
        if let Some(Value::Array(options)) = CHOICES.iter().find_map(|name| schema.get(*name)) {
            let rest = Value::Object(without(schema, &CHOICES));
            return options.iter().find_map(|option| match option {
                Value::Object(option) => self.make(&merged(&rest, option), depth, salt),
                other => self.make(other, depth, salt),
            });
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            let of_type: Vec<&Value> = values.iter().filter(|value| is_allowed(schema, value)).collect();
            return of_type.get(salt % of_type.len().max(1)).map(|value| (*value).clone());
        }
        match schema.get("type") {
            Some(Value::Array(types)) => types
                .iter()
                .find_map(|kind| self.typed(kind.as_str()?, schema, depth, salt)),
            Some(kind) => self.typed(kind.as_str()?, schema, depth, salt),
            None => self.typed(implied(schema), schema, depth, salt),
        }
    }

    fn typed(&self, kind: &str, schema: &Map<String, Value>, depth: usize, salt: usize) -> Option<Value> {
        match kind {
            "object" => self.object(schema, depth),
            "array" => self.array(schema, depth),
            "string" => string(schema, salt).map(Value::String),
            "integer" => number(schema, true, salt),
            "number" => number(schema, false, salt),
            "boolean" => Some(Value::Bool(salt.is_multiple_of(2))),
            "null" => Some(Value::Null),
            _ => None,
        }
    }

    /// What is required, and as much more as the least number of properties asks for.
    fn object(&self, schema: &Map<String, Value>, depth: usize) -> Option<Value> {
        let none = Map::new();
        let known = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let other = schema.get("additionalProperties").unwrap_or(&Value::Bool(true));
        let required = texts(schema.get("required"));
        let mut object = Map::new();
        for name in required {
            let value = self.make(known.get(name).unwrap_or(other), depth, 0)?;
            object.insert(name.to_owned(), value);
        }
        let least = usize::try_from(size(schema, "minProperties").unwrap_or(0)).ok()?;
        for (name, property) in known {
            if object.len() < least && !object.contains_key(name) {
                object.extend(self.make(property, depth, 0).map(|value| (name.clone(), value)));
            }
        }
        let mut count = 0;
        while object.len() < least {
            count += 1;
            let value = self.make(other, depth, count)?;
            object.insert(format!("key{count}"), value);
        }
        Some(Value::Object(object))
    }

    /// As few items as are allowed.
    fn array(&self, schema: &Map<String, Value>, depth: usize) -> Option<Value> {
        let first = schema.get("prefixItems").and_then(Value::as_array);
        let items = schema.get("items").unwrap_or(&Value::Bool(true));
        let contains = schema.get("contains");
        let unique = schema.get("uniqueItems") == Some(&Value::Bool(true));
        let least = size(schema, "minItems").unwrap_or(0).max(contains.is_some().into());
        (0..usize::try_from(least).ok()?)
            .map(|at| {
                let own = first.and_then(|first| first.get(at)).or(contains).unwrap_or(items);
                self.make(own, depth, if unique { at } else { 0 })
            })
            .collect::<Option<Vec<Value>>>()
            .map(Value::Array)
    }
}

/// A schema under another one's keywords. Properties and what is required add up.
fn merged(base: &Value, over: &Map<String, Value>) -> Value {
    let Value::Object(base) = base else {
        return if over.is_empty() {
            base.clone()
        } else {
            Value::Object(over.clone())
        };
    };
    let mut all = base.clone();
    for (name, value) in over {
        match (name.as_str(), all.get_mut(name), value) {
            ("properties", Some(Value::Object(old)), Value::Object(new)) => {
                old.extend(new.iter().map(|(name, schema)| (name.clone(), schema.clone())));
            }
            ("required", Some(Value::Array(old)), Value::Array(new)) => old.extend(new.iter().cloned()),
            _ => {
                all.insert(name.clone(), value.clone());
            }
        }
    }
    Value::Object(all)
}

fn without(schema: &Map<String, Value>, names: &[&str]) -> Map<String, Value> {
    let kept = schema.iter().filter(|(name, _)| !names.contains(&name.as_str()));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn texts(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

fn size(schema: &Map<String, Value>, name: &str) -> Option<u64> {
    let value = schema.get(name)?;
    value.as_u64().or_else(|| {
        let whole = value.as_f64().filter(|size| size.fract() == 0.0 && *size >= 0.0)?;
        Some(whole as u64)
    })
}

/// The type that keywords speak of where none is named.
fn implied(schema: &Map<String, Value>) -> &'static str {
    let has = |names: &[&str]| names.iter().any(|name| schema.contains_key(*name));
    if has(&["properties", "required", "minProperties", "additionalProperties"]) {
        "object"
    } else if has(&["items", "prefixItems", "minItems", "contains"]) {
        "array"
    } else if has(&[
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
    ]) {
        "number"
    } else {
        "string"
    }
}

/// Whether the `type` of a schema allows a value; a schema without one allows all.
#[must_use]
pub(super) fn is_allowed(schema: &Map<String, Value>, value: &Value) -> bool {
    let is = |kind: &Value| match (kind.as_str(), value) {
        (Some("integer"), Value::Number(n)) => n.as_f64().is_some_and(|n| n.fract() == 0.0),
        (Some(kind), value) => kind == type_name(value),
        (None, _) => false,
    };
    match schema.get("type") {
        None => true,
        Some(Value::Array(kinds)) => kinds.iter().any(is),
        Some(kind) => is(kind),
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn string(schema: &Map<String, Value>, salt: usize) -> Option<String> {
    let least = size(schema, "minLength").unwrap_or(0);
    let most = size(schema, "maxLength").unwrap_or(MAX_LENGTH).min(MAX_LENGTH);
    if least > most {
        return None;
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
        let hir = regex_syntax::parse(pattern).ok()?;
        let fits = |text: &String| (least..=most).contains(&(text.chars().count() as u64));
        return (0..=u32::try_from(least).ok()?)
            .map_while(|more| matching(&hir, more + u32::try_from(salt).unwrap_or(0)))
            .find(fits);
    }
    let mut text = match schema.get("format").and_then(Value::as_str) {
        Some(format) => of_format(format).to_owned(),
        None => "text".to_owned(),
    };
    if salt > 0 {
        text += &salt.to_string();
    }
    let missing = least.saturating_sub(text.chars().count() as u64);
    text.extend(std::iter::repeat_n('x', usize::try_from(missing).ok()?));
    Some(text.chars().take(usize::try_from(most).ok()?).collect())
}

fn of_format(format: &str) -> &'static str {
    match format {
        "date-time" => "2024-01-02T03:04:05Z",
        "date" => "2024-01-02",
        "time" => "03:04:05Z",
        "duration" => "P1D",
        "email" => "a@example.com",
        "hostname" => "example.com",
        "uri" | "url" => "https://example.com/",
        "uuid" => "00000000-0000-4000-8000-000000000000",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        _ => "text",
    }
}

/// A text that an expression matches: repetitions as few as allowed and `more` times more, of alternatives the first.
/// `None` where it would be too long.
fn matching(hir: &Hir, more: u32) -> Option<String> {
    Some(match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => String::new(),
        HirKind::Literal(literal) => String::from_utf8_lossy(&literal.0).into_owned(),
        HirKind::Class(class) => character(class).into(),
        HirKind::Capture(capture) => matching(&capture.sub, more)?,
        HirKind::Concat(parts) => parts
            .iter()
            .map(|part| matching(part, more))
            .collect::<Option<String>>()?,
        HirKind::Alternation(parts) => matching(parts.first()?, more)?,
        HirKind::Repetition(repetition) => {
            let most = repetition.max.unwrap_or(u32::MAX);
            let count = repetition.min.saturating_add(more).min(most) as usize;
            let one = matching(&repetition.sub, more)?;
            let fits = one.len().checked_mul(count)? <= MAX_LENGTH as usize;
            fits.then(|| one.repeat(count))?
        }
    })
}

/// A character of a class, a plain one if it has any.
fn character(class: &Class) -> char {
    let ranges: Vec<(char, char)> = match class {
        Class::Unicode(class) => class.iter().map(|range| (range.start(), range.end())).collect(),
        Class::Bytes(class) => class
            .iter()
            .map(|range| (range.start().into(), range.end().into()))
            .collect(),
    };
    let holds = |c: &char| ranges.iter().any(|(start, end)| (start..=end).contains(&c));
    let plain = ['a', 'A', '1', ' ', '-'].into_iter().find(holds);
    plain.or(ranges.first().map(|(start, _)| *start)).unwrap_or('?')
}

/// A number within its bounds.
fn number(schema: &Map<String, Value>, whole: bool, salt: usize) -> Option<Value> {
    let of = |name: &str| schema.get(name).and_then(Value::as_f64);
    let (least, over) = (of("minimum"), of("exclusiveMinimum"));
    let (most, under) = (of("maximum"), of("exclusiveMaximum"));
    let low = [least, over].into_iter().flatten().reduce(f64::max);
    let high = [most, under].into_iter().flatten().reduce(f64::min);
    let fits = |v: f64| {
        least.is_none_or(|b| v >= b)
            && over.is_none_or(|b| v > b)
            && most.is_none_or(|b| v <= b)
            && under.is_none_or(|b| v < b)
    };
    let salt = salt as f64;
    let step = of("multipleOf").filter(|step| *step > 0.0);
    let step = if whole {
        step.map(|step| if step.fract() == 0.0 { step } else { step * 10.0 })
            .or(Some(1.0))
    } else {
        step
    };
    let found = match (low, high, step) {
        (Some(low), _, Some(step)) => {
            let first = (low / step).ceil();
            let first = if fits(first * step) { first } else { first + 1.0 };
            (first + salt) * step
        }
        (None, Some(high), Some(step)) => {
            let last = (high / step).floor();
            let last = if fits(last * step) { last } else { last - 1.0 };
            (last - salt) * step
        }
        (None, None, step) => step.unwrap_or(1.0) * (salt + 1.0),
        (Some(low), Some(high), None) => low + (high - low) * (salt + 1.0) / (salt + 2.0),
        (Some(low), None, None) => low + salt + 1.0,
        (None, Some(high), None) => high - salt - 1.0,
    };
    if !fits(found) {
        return None;
    }
    // A bound that is a large whole number has digits that a double does not hold.
    let bound = ["minimum", "maximum"].iter().filter_map(|name| schema.get(*name));
    if let Some(bound) = bound
        .filter(|bound| bound.is_i64() || bound.is_u64())
        .find(|bound| bound.as_f64() == Some(found))
    {
        return Some(bound.clone());
    }
    /// Up to here every whole number is a double.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if found.fract() == 0.0 && found.abs() <= EXACT {
        return Some(Value::Number(Number::from(found as i64)));
    }
    Number::from_f64(found).map(Value::Number)
}
