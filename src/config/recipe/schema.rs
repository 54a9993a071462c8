//! The schema of srt-slurm's recipes.

use std::borrow::Cow;

use schemars::{JsonSchema, SchemaGenerator, json_schema};

use crate::config::decode::Decoder;
use crate::config::tree::Node;

/// The form of a recipe.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Schema {
    /// `backend` and `resources`: releases up to v1.0.68.
    One,
    /// `engine` and `roles`.
    #[default]
    Two,
}

impl Schema {
    /// Reads its number.
    pub(crate) fn decode(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<Self> {
        match d.integer_up_to(node, name, 2)? {
            1 => Some(Self::One),
            _ => Some(Self::Two),
        }
    }
}

impl serde::Serialize for Schema {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(if *self == Self::One { 1 } else { 2 })
    }
}

impl JsonSchema for Schema {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "RecipeSchema".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> schemars::Schema {
        json_schema!({"type": "integer", "minimum": 1, "maximum": 2})
    }
}
