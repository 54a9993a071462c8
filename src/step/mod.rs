//! What a job runs, one module a step. A step knows one row.

pub mod environment;
