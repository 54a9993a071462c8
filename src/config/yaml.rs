//! A recipe as data: read through the loader's tree, changed, and written as JSON, which every YAML reader takes.

use indexmap::IndexMap;
use serde::ser::{Error, Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::value::RawValue;

use crate::config::scalar::Scalar;
use crate::config::tree::{Node, Value};

/// A value of a recipe.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Yaml {
    /// Nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i128),
    /// A number with a fraction.
    Float(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Yaml>),
    /// A mapping, in file order.
    Map(IndexMap<String, Yaml>),
}

impl From<&Node<'_>> for Yaml {
    fn from(node: &Node<'_>) -> Self {
        match &node.value {
            Value::Seq(items) => Self::List(items.iter().map(Self::from).collect()),
            Value::Map(pairs) => Self::Map(pairs.iter().map(|(k, v)| (k.text().to_owned(), v.into())).collect()),
            Value::Scalar { .. } => match node.scalar() {
                None | Some(Scalar::Null) => Self::Null,
                Some(Scalar::Bool(value)) => Self::Bool(value),
                Some(Scalar::Int(value)) => Self::Int(value),
                // What is no number to Rust is one of YAML's that JSON has no form for, such as `.inf`.
                Some(Scalar::Float(number)) => Self::Float(number.parse().unwrap_or(f64::NAN)),
                Some(Scalar::Str(text)) => Self::Text(text.into_owned()),
            },
        }
    }
}

impl From<&str> for Yaml {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u64> for Yaml {
    fn from(number: u64) -> Self {
        Self::Int(number.into())
    }
}

impl From<bool> for Yaml {
    fn from(flag: bool) -> Self {
        Self::Bool(flag)
    }
}

/// A mapping of names to values.
pub(crate) fn map<const N: usize>(fields: [(&str, Yaml); N]) -> Yaml {
    Yaml::Map(
        fields
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    )
}

impl Yaml {
    /// Sets a field of a mapping, whatever was there; mappings on the way are made where there are none.
    pub(crate) fn set(&mut self, path: &[&str], value: impl Into<Self>) {
        let Some((name, rest)) = path.split_first() else {
            *self = value.into();
            return;
        };
        if !matches!(self, Self::Map(_)) {
            *self = Self::Map(IndexMap::new());
        }
        if let Self::Map(fields) = self {
            fields.entry((*name).to_owned()).or_insert(Self::Null).set(rest, value);
        }
    }

    /// A field of mappings in mappings, where it is there and is not null.
    #[must_use]
    pub(crate) fn get(&self, path: &[&str]) -> Option<&Self> {
        match (path.split_first(), self) {
            (None, Self::Null) => None,
            (None, value) => Some(value),
            (Some((name, rest)), Self::Map(fields)) => fields.get(*name)?.get(rest),
            _ => None,
        }
    }

    /// Removes a field of mappings in mappings, where it is there.
    pub(crate) fn remove(&mut self, path: &[&str]) {
        match (path, self) {
            ([name], Self::Map(fields)) => drop(fields.shift_remove(*name)),
            ([name, rest @ ..], Self::Map(fields)) => {
                if let Some(value) = fields.get_mut(*name) {
                    value.remove(rest);
                }
            }
            _ => {}
        }
    }

    /// The text of a file.
    ///
    /// # Errors
    /// A number that is not finite: JSON has none.
    pub(crate) fn to_text(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

impl Serialize for Yaml {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Int(value) => serializer.serialize_i128(*value),
            Self::Float(value) => decimal(*value).map_err(S::Error::custom)?.serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                items.iter().try_for_each(|item| list.serialize_element(item))?;
                list.end()
            }
            Self::Map(fields) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                fields
                    .iter()
                    .try_for_each(|(name, value)| map.serialize_entry(name, value))?;
                map.end()
            }
        }
    }
}

/// A number without an exponent: YAML 1.1 takes `1e-05` for text.
fn decimal(value: f64) -> serde_json::Result<Box<RawValue>> {
    if !value.is_finite() {
        return Err(Error::custom(format!("{value} is no number that a recipe can hold")));
    }
    let text = value.to_string();
    RawValue::from_string(if text.contains('.') { text } else { format!("{text}.0") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::source::Source;
    use crate::config::tree;

    #[test]
    fn values_keep_their_kind() {
        let source = Source::new(
            "r.yaml",
            "a: 1_000\nb: \"1\"\nc: 0.00001\nd: 3.0\ne: yes\nf: ~\ng: 04:00:00\nh: [1.10, x]\ni: {j: ''}\n",
        );
        let yaml = Yaml::from(&tree::parse(&source).expect("a tree"));
        let text: String = yaml.to_text().expect("a text").split_whitespace().collect();
        assert_eq!(
            text,
            r#"{"a":1000,"b":"1","c":0.00001,"d":3.0,"e":true,"f":null,"g":"04:00:00","h":[1.1,"x"],"i":{"j":""}}"#
        );
        assert!(Yaml::Float(f64::INFINITY).to_text().is_err());
    }

    #[test]
    fn setting_makes_the_way() {
        let mut yaml = map([("a", Yaml::Null), ("b", map([("c", 1.into())]))]);
        yaml.set(&["a", "x", "y"], "z");
        yaml.set(&["b", "c"], 2);
        let text: String = yaml.to_text().expect("a text").split_whitespace().collect();
        assert_eq!(text, r#"{"a":{"x":{"y":"z"}},"b":{"c":2}}"#);
    }
}
