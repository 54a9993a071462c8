//! The checks, one a file. Each looks at all files and adds its findings.

pub mod always;
pub mod calls;
pub mod conditions;
pub mod credentials;
pub mod expressions;
pub mod limits;
pub mod names;
pub mod nesting;
pub mod permissions;
pub mod pins;
pub mod secrets;
pub mod timeouts;
pub mod triggers;
