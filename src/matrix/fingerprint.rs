//! The fingerprint of a recipe: what two measurements must share to lie on one curve.

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::row::Row;
use super::wire::{self, Form};
use crate::config::fields::Field;

/// The SHA-256, in hex, of a row as it was generated, without its concurrency, experiment name and fingerprint.
///
/// It is taken over JSON with sorted keys, no spaces, and non-ASCII characters escaped.
#[must_use]
pub fn recipe_fingerprint(row: &Row) -> String {
    let mut json = wire::to_json(row, Form::Generated);
    for field in Field::of_rows().filter(|field| !field.in_fingerprint()) {
        json.shift_remove(&field.name());
    }
    let json = Value::Object(json);
    let mut text = String::new();
    canonical(&json, &mut text);
    hex(&Sha256::digest(text.as_bytes()))
}

/// Bytes as lower-case hex.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes JSON with sorted keys, no spaces, and non-ASCII characters escaped.
pub fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            out.push('{');
            for (index, (name, value)) in fields.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                string(name, out);
                out.push(':');
                canonical(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                canonical(item, out);
            }
            out.push(']');
        }
        Value::String(text) => string(text, out),
        other => out.push_str(&other.to_string()),
    }
}

/// A JSON string in ASCII: characters beyond it as UTF-16 escapes.
fn string(text: &str, out: &mut String) {
    for c in Value::from(text).to_string().chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
}
