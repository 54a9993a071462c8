//! A published row with every field at its top, whichever kind of result it is.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::point::Fields;
use crate::step::replay::published::RequestMetrics;
use crate::step::results::loose::{Cell, Named};

/// A row. The metrics of a replay are nested: here they stand under the names that other results give them.
pub(super) struct Row(pub Fields);

struct RowVisitor;

impl<'de> Visitor<'de> for RowVisitor {
    type Value = Row;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Row, A::Error> {
        let (mut fields, mut nested) = (Fields::new(), RequestMetrics::default());
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "request_metrics" => nested = map.next_value()?,
                _ => drop(fields.insert(name, map.next_value()?)),
            }
        }
        for (name, value) in nested.flat() {
            fields.entry(name).or_insert(Named(Cell::Number(value)));
        }
        Ok(Row(fields))
    }
}

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RowVisitor)
    }
}
