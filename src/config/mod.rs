//! What people write: one loader for every YAML file, and the typed form of each kind.

// Every finding has an id of its own: see clippy.toml.
#![warn(clippy::disallowed_methods)]

pub mod asked;
pub mod changelog;
pub mod clusters;
pub(crate) mod decode;
pub(crate) mod draw;
pub(crate) mod engines;
pub(crate) mod entries;
pub(crate) mod environment;
pub mod fields;
pub mod fleet;
pub(crate) mod floors;
pub(crate) mod frameworks;
pub mod kind;
pub mod labels;
pub mod master;
pub mod policy;
pub(crate) mod priority;
pub mod problem;
pub mod recipe;
pub mod runners;
pub mod scalar;
pub mod source;
pub mod thresholds;
pub(crate) mod thresholds_edit;
pub mod tree;
pub(crate) mod types;
pub mod workflows;
pub(crate) mod yaml;

use std::sync::Arc;

use decode::Decoder;
use problem::Problems;
use source::Source;

/// Reads a source as one typed value, through the tree and a decoder.
///
/// # Errors
/// Every problem of the source.
pub fn load<T>(
    source: &Arc<Source>,
    decode: impl FnOnce(&mut Decoder, &tree::Node<'_>) -> Option<T>,
) -> Result<T, Problems> {
    let root = tree::parse(source)?;
    let mut decoder = Decoder::new(source);
    let value = decode(&mut decoder, &root);
    decoder.problems.into_result()?;
    value.ok_or_else(|| {
        Problems::from(crate::findings::config::NOTHING.file(&source.name, "the file holds nothing that can be read"))
    })
}
