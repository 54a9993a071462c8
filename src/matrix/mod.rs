//! What is computed: configs in, rows out. Nothing here reads a file, a process or the network.

// Every finding has an id of its own: see clippy.toml.
#![warn(clippy::disallowed_methods)]

pub(crate) mod append_only;
pub mod bucket;
pub mod envelope;
pub mod evals;
pub mod expand;
pub mod fingerprint;
pub mod names;
pub(crate) mod plan;
pub(crate) mod priority;
pub(crate) mod recipes;
pub mod row;
pub(crate) mod rules;
pub mod shard;
pub(crate) mod trim;
mod unique;
pub mod wire;
