//! The changelog gate: what a change may do to the bytes of `perf-changelog.yaml`, and the two repairs that keep it so.
//!
//! [`gate`] compares the file at two commits, [`additions`] judges what was appended, [`canonicalize`] fills in links
//! that were left open, [`resolve`] settles a merge conflict. All are bytes in, bytes or problems out; only
//! [`work_tree`] touches the disk.

// Every finding has an id of its own: see clippy.toml.
#![warn(clippy::disallowed_methods)]

pub(crate) mod additions;
pub(crate) mod canonicalize;
pub(crate) mod gate;
pub(crate) mod link;
pub(crate) mod resolve;
pub(crate) mod text;
pub(crate) mod work_tree;
