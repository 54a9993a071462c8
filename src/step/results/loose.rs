//! Values of files whose writers change their minds: another type than the expected one reads as absent.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::json::BARE;

/// Any scalar; lists and mappings are only told apart from scalars.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Cell {
    /// `null`, or no such field.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A string, or a bare `NaN` or `Infinity`.
    Text(String),
    /// A list or a mapping.
    Nested,
}

impl Cell {
    /// The number, if it is a finite one.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(value) if value.is_finite() => Some(*value),
            _ => None,
        }
    }

    /// The whole number that it is or spells.
    #[must_use]
    pub fn integer(&self) -> Option<u64> {
        match self {
            // 2^53: beyond it a double skips whole numbers.
            Self::Number(value) if value.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(value) =>
            {
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "whole and in range"
                )]
                Some(*value as u64)
            }
            Self::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// The text, if there is any.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// The flag that it is or spells.
    #[must_use]
    pub fn flag(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            Self::Text(text) if text.eq_ignore_ascii_case("true") => Some(true),
            Self::Text(text) if text.eq_ignore_ascii_case("false") => Some(false),
            _ => None,
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            // Without an exponent the smallest doubles take hundreds of digits.
            Self::Number(value) if *value != 0.0 && !(1e-9..1e21).contains(&value.abs()) => write!(f, "{value:e}"),
            Self::Number(value) => write!(f, "{value}"),
            Self::Text(text) if BARE.contains(&text.as_str()) => f.write_str(text),
            Self::Text(text) => write!(f, "{:?}", text.chars().take(80).collect::<String>()),
            Self::Nested => f.write_str("a list or a mapping"),
        }
    }
}

impl Serialize for Cell {
    /// As it was read; what is not kept is null.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null | Self::Nested => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(value) => match self.integer() {
                Some(whole) => serializer.serialize_u64(whole),
                None => serializer.serialize_f64(*value),
            },
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

/// What is kept of lists and mappings.
#[derive(Clone, Copy)]
enum Keep {
    /// That they are there.
    Nothing,
    /// The first item of a list.
    First,
    /// The `name` of a mapping.
    Name,
}

struct CellVisitor(Keep);

impl<'de> Visitor<'de> for CellVisitor {
    type Value = Cell;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Cell, E> {
        Ok(Cell::Bool(value))
    }

    #[allow(clippy::cast_precision_loss, reason = "JSON numbers are doubles to their writers")]
    fn visit_i64<E>(self, value: i64) -> Result<Cell, E> {
        Ok(Cell::Number(value as f64))
    }

    #[allow(clippy::cast_precision_loss, reason = "JSON numbers are doubles to their writers")]
    fn visit_u64<E>(self, value: u64) -> Result<Cell, E> {
        Ok(Cell::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Cell, E> {
        Ok(Cell::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Cell, E> {
        Ok(Cell::Text(value.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Cell, E> {
        Ok(Cell::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Cell, A::Error> {
        let first = match self.0 {
            Keep::First => list.next_element::<Cell>()?.unwrap_or_default(),
            Keep::Nothing | Keep::Name => Cell::Nested,
        };
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(first)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Cell, A::Error> {
        let mut kept = Cell::Nested;
        while let Some(key) = map.next_key::<String>()? {
            match self.0 {
                Keep::Name if key == "name" => kept = map.next_value::<Cell>()?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(kept)
    }
}

impl<'de> Deserialize<'de> for Cell {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CellVisitor(Keep::Nothing))
    }
}

/// A scalar, or the first item of a list; null where the list is empty.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct First(pub Cell);

impl<'de> Deserialize<'de> for First {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CellVisitor(Keep::First)).map(Self)
    }
}

/// A scalar, or the `name` of a mapping that has one.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Named(pub Cell);

impl<'de> Deserialize<'de> for Named {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CellVisitor(Keep::Name)).map(Self)
    }
}

/// The methods of a visitor to which every scalar is absent.
macro_rules! scalars_are_absent {
    () => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("any value")
        }

        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
    };
}

/// A mapping; anything else reads as `None`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Map<T>(pub Option<T>);

impl<T> Default for Map<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Map<T> {
    /// Whether there is none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }
}

struct MapVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for MapVisitor<T> {
    type Value = Option<T>;

    scalars_are_absent!();

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Option<T>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Option<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Some)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Map<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MapVisitor(PhantomData)).map(Self)
    }
}

/// A list; anything else reads as `None`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct List<T>(pub Option<Vec<T>>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> List<T> {
    /// The items; none where there is no list.
    pub fn items(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten()
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = Option<Vec<T>>;

    scalars_are_absent!();

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(Some)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListVisitor(PhantomData)).map(Self)
    }
}
