//! What is computed: configs in, rows out. Nothing here reads a file, a process or the network.

// Every finding has an id of its own: see clippy.toml.
#![warn(clippy::disallowed_methods)]

pub mod append_only;
pub mod bucket;
pub mod envelope;
pub mod evals;
pub mod expand;
pub mod fingerprint;
pub mod names;
pub mod plan;
pub mod priority;
pub mod row;
pub mod rules;
pub mod shard;
pub mod trim;
mod unique;
pub mod wire;
