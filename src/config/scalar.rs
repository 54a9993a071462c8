//! What a scalar means, with the habits of YAML 1.1 that configuration files rely on.
//!
//! The rules are those of the YAML 1.1 type repository (<https://yaml.org/type/>): `yes` and `on` are booleans,
//! digits may be grouped by `_`, `~` is null. A quoted scalar is always a string.

use std::borrow::Cow;

/// A scalar by meaning. Two scalars that are written differently and mean the same are equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scalar<'a> {
    /// `~`, `null` or nothing.
    Null,
    /// `true`, `no`, `on`, ...
    Bool(bool),
    /// An integer that fits 128 bits.
    Int(i128),
    /// A number with a fraction or exponent (or an integer beyond 128 bits), as text without `_`.
    Float(String),
    /// Anything else, and everything quoted.
    Str(Cow<'a, str>),
}

impl Scalar<'_> {
    /// What a person calls this kind of value.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "a boolean",
            Self::Int(_) => "an integer",
            Self::Float(_) => "a number with a fraction",
            Self::Str(_) => "a string",
        }
    }
}

/// The meaning of a plain (unquoted) scalar.
#[must_use]
pub fn resolve(text: &str) -> Scalar<'_> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Scalar::Bool(true);
        }
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Scalar::Bool(false);
        }
        _ => {}
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return Scalar::Str(Cow::Borrowed(text));
    }
    number(text).unwrap_or(Scalar::Str(Cow::Borrowed(text)))
}

fn number(text: &str) -> Option<Scalar<'static>> {
    let (sign, digits) = match text.as_bytes()[0] {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    if matches!(digits, ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN") {
        return Some(Scalar::Float(text.to_ascii_lowercase()));
    }
    let bare = digits.replace('_', "");
    let radix = |prefix: &str, radix: u32| {
        let rest = bare.strip_prefix(prefix)?;
        i128::from_str_radix(rest, radix)
            .ok()
            .filter(|_| !rest.starts_with(['+', '-']))
    };
    if let Some(value) = radix("0x", 16).or_else(|| radix("0b", 2)).or_else(|| radix("0o", 8)) {
        return Some(Scalar::Int(sign * value));
    }
    if !digits.starts_with('_') && !bare.is_empty() && bare.bytes().all(|b| b.is_ascii_digit()) {
        // A leading zero is octal in YAML 1.1; one that cannot be octal is a string there.
        if bare.len() > 1 && bare.starts_with('0') {
            return i128::from_str_radix(&bare, 8).ok().map(|v| Scalar::Int(sign * v));
        }
        return Some(match bare.parse::<i128>() {
            Ok(value) => Scalar::Int(sign * value),
            Err(_) => Scalar::Float(text.replace('_', "")),
        });
    }
    is_float(&bare).then(|| Scalar::Float(text.replace('_', "")))
}

/// `1.5`, `.5`, `1.`, `1e3`, `1.5e-3`; not `1.2.3`.
fn is_float(text: &str) -> bool {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let exponent_is_right = exponent.is_none_or(|e| digits(e.trim_start_matches(['+', '-'])));
    let mantissa_is_right = match mantissa.split_once('.') {
        Some((whole, part)) => {
            (whole.is_empty() || digits(whole))
                && (part.is_empty() || digits(part))
                && !(whole.is_empty() && part.is_empty())
        }
        None => digits(mantissa) && exponent.is_some(),
    };
    exponent_is_right && mantissa_is_right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_1_1_habits() {
        assert_eq!(resolve("2_063_920"), Scalar::Int(2_063_920));
        assert_eq!(resolve("yes"), Scalar::Bool(true));
        assert_eq!(resolve("OFF"), Scalar::Bool(false));
        assert_eq!(resolve("1.10"), Scalar::Float("1.10".into()));
        assert_eq!(resolve("0.8.1.post1"), Scalar::Str("0.8.1.post1".into()));
        assert_eq!(resolve("-7"), Scalar::Int(-7));
        assert_eq!(resolve("0x1F"), Scalar::Int(31));
        assert_eq!(resolve("010"), Scalar::Int(8));
        assert_eq!(resolve("089"), Scalar::Str("089".into()));
        assert_eq!(resolve("8.5"), Scalar::Float("8.5".into()));
        assert_eq!(resolve("1e3"), Scalar::Float("1e3".into()));
        assert_eq!(resolve("-"), Scalar::Str("-".into()));
        assert_eq!(resolve("."), Scalar::Str(".".into()));
        assert_eq!(resolve("2026-11-29"), Scalar::Str("2026-11-29".into()));
        assert_eq!(resolve("1k1k"), Scalar::Str("1k1k".into()));
        let huge = "99999999999999999999999999999999999999999";
        assert_eq!(resolve(huge), Scalar::Float(huge.into()));
    }
}
