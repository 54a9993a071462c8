//! The `script` backend: a fleet's own launch script.

use schemars::JsonSchema;

use super::decode::inside;
use super::uses::Uses;
use super::{Needs, Settings};
use crate::config::decode::{Decoder, Fields};

/// A launch script.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub struct Script {
    /// The script, from the repository's root; `runners/launch_<fleet>.sh` unless given.
    pub path: Option<String>,
    /// What it starts that may outlive it.
    #[schemars(flatten)]
    pub uses: Uses,
}

impl Settings for Script {
    fn decode(d: &mut Decoder, f: &mut Fields<'_, '_>) -> Option<Self> {
        Some(Self {
            path: f.optional(d, "path", inside),
            uses: Uses::decode(d, f),
        })
    }

    fn needs(&self) -> Needs<'_> {
        Needs::Script(self.path.as_deref())
    }
}
