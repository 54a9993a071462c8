//! Reading a few fields of large JSON objects: the others are skipped without being kept, the last of several of one
//! name counts, and a value of another kind is missing.

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A scalar of a record; objects and lists are only told apart from scalars.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum Datum {
    /// `null`, or no such field.
    #[default]
    Missing,
    /// `true` or `false`.
    Flag(bool),
    /// A whole number, exact: times in nanoseconds are more than a double holds.
    Whole(i128),
    /// Any other number.
    Real(f64),
    /// A text, or a bare `NaN` or `Infinity`.
    Text(String),
    /// A list or an object.
    Nested,
}

impl Datum {
    /// The number that it is or spells, infinite ones and NaN too.
    #[allow(clippy::cast_precision_loss, reason = "JSON numbers are doubles to their writers")]
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Self::Flag(flag) => Some(f64::from(u8::from(*flag))),
            Self::Whole(value) => Some(*value as f64),
            Self::Real(value) => Some(*value),
            Self::Text(text) => text.trim().parse().ok(),
            Self::Missing | Self::Nested => None,
        }
    }

    /// The number if it is finite and above 0.
    pub(super) fn positive(&self) -> Option<f64> {
        self.number().filter(|value| value.is_finite() && *value > 0.0)
    }

    /// A number cut to its whole part, or the whole number that a text spells.
    pub(super) fn count(&self) -> Option<i128> {
        match self {
            Self::Flag(flag) => Some(i128::from(*flag)),
            Self::Whole(value) => Some(*value),
            #[allow(clippy::cast_possible_truncation, reason = "cut to its whole part; casts saturate")]
            Self::Real(value) => value.is_finite().then_some(*value as i128),
            Self::Text(text) => text.trim().parse().ok(),
            Self::Missing | Self::Nested => None,
        }
    }
}

/// The methods of a visitor that reads any scalar as a [`Datum`].
macro_rules! scalars {
    ($from:expr) => {
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("any value")
        }

        fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
            Ok($from(Datum::Flag(value)))
        }

        fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
            Ok($from(Datum::Whole(value.into())))
        }

        fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
            Ok($from(Datum::Whole(value.into())))
        }

        fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
            Ok($from(Datum::Real(value)))
        }

        fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
            Ok($from(Datum::Text(value.to_owned())))
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok($from(Datum::Missing))
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok($from(Datum::Nested))
        }
    };
}
pub(super) use scalars;

struct DatumVisitor;

impl<'de> Visitor<'de> for DatumVisitor {
    type Value = Datum;

    scalars!(|datum| datum);

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Datum, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Datum::Nested)
    }
}

impl<'de> Deserialize<'de> for Datum {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DatumVisitor)
    }
}

/// A key, if it is one of a few names; any other is not kept.
pub(super) struct Key(pub &'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Option<&'static str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key {
    type Value = Option<&'static str>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().find(|known| **known == name).copied())
    }
}

/// A struct of some fields of a JSON object, each under its name there.
macro_rules! picked {
    ($(#[$about:meta])* $name:ident { $($(#[$of_field:meta])* $field:ident: $type:ty = $key:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Default)]
        pub(super) struct $name {
            $($(#[$of_field])* pub $field: $type,)*
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
                use $crate::step::replay::picked::{Datum, Key, scalars};

                struct Fields;

                impl<'de> Visitor<'de> for Fields {
                    type Value = $name;

                    scalars!(|_: Datum| $name::default());

                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<$name, A::Error> {
                        let mut fields = $name::default();
                        while let Some(key) = map.next_key_seed(Key(&[$($key),*]))? {
                            match key {
                                $(Some($key) => fields.$field = map.next_value()?,)*
                                _ => drop(map.next_value::<IgnoredAny>()?),
                            }
                        }
                        Ok(fields)
                    }
                }
                deserializer.deserialize_any(Fields)
            }
        }
    };
}
pub(super) use picked;

/// A metric of a record: its value, bare or in an object.
#[derive(Debug, Clone, Default)]
pub(super) struct Metric(pub Datum);

struct MetricVisitor;

impl<'de> Visitor<'de> for MetricVisitor {
    type Value = Metric;

    scalars!(Metric);

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Metric, A::Error> {
        let mut value = Datum::Missing;
        while let Some(key) = map.next_key_seed(Key(&["value"]))? {
            match key {
                Some(_) => value = map.next_value()?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Metric(value))
    }
}

impl<'de> Deserialize<'de> for Metric {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MetricVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datum(text: &str) -> Datum {
        serde_json::from_str(text).expect("JSON")
    }

    #[test]
    fn numbers_and_counts_are_read_as_the_rules_say() {
        let cases: [(&str, Option<f64>, Option<i128>); 12] = [
            ("1.9", Some(1.9), Some(1)),
            ("-1.9", Some(-1.9), Some(-1)),
            ("true", Some(1.0), Some(1)),
            ("false", Some(0.0), Some(0)),
            ("\" 12 \"", Some(12.0), Some(12)),
            ("\"12.0\"", Some(12.0), None),
            ("\"-3\"", Some(-3.0), Some(-3)),
            ("\"fast\"", None, None),
            ("\"\"", None, None),
            ("null", None, None),
            ("[1]", None, None),
            ("{\"value\": 1}", None, None),
        ];
        for (text, number, count) in cases {
            assert_eq!((datum(text).number(), datum(text).count()), (number, count), "{text}");
        }
        assert_eq!(datum("\"NaN\"").count(), None);
        assert_eq!(datum("\"Infinity\"").positive(), None);
        assert_eq!(datum("1796050152018693993").count(), Some(1_796_050_152_018_693_993));
    }

    #[test]
    fn a_metric_is_its_value_or_itself_and_the_last_of_a_name() {
        let metric = |text: &str| serde_json::from_str::<Metric>(text).expect("JSON").0;
        assert_eq!(metric("{\"unit\": \"ms\", \"value\": 2}"), Datum::Whole(2));
        assert_eq!(metric("{\"value\": 1, \"value\": null}"), Datum::Missing);
        assert_eq!(metric("{\"values\": 1}"), Datum::Missing);
        assert_eq!(metric("2.5"), Datum::Real(2.5));
    }
}
