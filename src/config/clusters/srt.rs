//! The `srt` backend: srt-slurm's recipes.

use schemars::JsonSchema;

use super::decode::{absolute, inside};
use super::srt_schema::Schema;
use super::{Needs, Settings};
use crate::config::decode::{Decoder, Fields};

/// srt-slurm.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub struct Srt {
    /// The folder that recipes are found in, from the repository's root; the root unless given.
    pub recipes_dir: Option<String>,
    /// The checkout that the cluster's nodes see, an absolute path; the job's own unless given.
    pub workspace: Option<String>,
    /// The schema of the recipes that its `srtctl` reads; 2 unless given. Releases up to v1.0.68 read 1.
    #[schemars(default)]
    pub schema: Schema,
}

impl Srt {
    /// Where a recipe stands, from the repository's root.
    #[must_use]
    pub fn recipe(&self, name: &str) -> String {
        match self.recipes_dir.as_deref().map(|folder| folder.trim_end_matches('/')) {
            Some(folder) => format!("{folder}/{name}"),
            None => name.to_owned(),
        }
    }
}

impl Settings for Srt {
    fn decode(d: &mut Decoder, f: &mut Fields<'_, '_>) -> Option<Self> {
        Some(Self {
            recipes_dir: f.optional(d, "recipes-dir", inside),
            workspace: f.optional(d, "workspace", absolute),
            schema: f.optional(d, "schema", Schema::decode).unwrap_or_default(),
        })
    }

    fn needs(&self) -> Needs<'_> {
        Needs::Nothing
    }
}
