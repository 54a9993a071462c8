//! What a job runs: each step knows one row.

pub mod eval;
pub mod stage;
pub mod sweep;
pub mod tools;
pub mod upload;
