//! The checks, one a file. Each looks at all files and adds its findings.

// Every finding has an id of its own: see clippy.toml.
#![warn(clippy::disallowed_methods)]

pub mod always;
pub mod artifacts;
pub mod calls;
pub mod concurrency;
pub mod conditions;
pub mod credentials;
pub mod expressions;
pub mod launches;
pub mod limits;
pub mod names;
pub mod needs;
pub mod nesting;
pub mod permissions;
pub mod pins;
pub mod secrets;
pub mod timeouts;
pub mod triggers;
pub mod verdicts;
