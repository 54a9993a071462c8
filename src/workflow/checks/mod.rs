//! The checks, one a file. Each looks at all files and adds its findings.

// Every finding has an id of its own: see clippy.toml.
#![warn(clippy::disallowed_methods)]

pub(crate) mod always;
pub(crate) mod artifacts;
pub(crate) mod calls;
pub(crate) mod concurrency;
pub(crate) mod conditions;
pub(crate) mod credentials;
pub(crate) mod expressions;
pub(crate) mod launches;
pub(crate) mod limits;
pub(crate) mod names;
pub(crate) mod needs;
pub(crate) mod nesting;
pub(crate) mod permissions;
pub(crate) mod pins;
pub(crate) mod secrets;
pub(crate) mod timeouts;
pub(crate) mod triggers;
pub(crate) mod verdicts;
