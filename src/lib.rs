//! `sweepctl` decides which benchmark and evaluation jobs a change needs, and is the command that each step runs.
//!
//! The modules stand in the order in which data flows.

pub(crate) mod artifacts;
pub mod backends;
pub(crate) mod changelog;
pub mod cli;
pub mod config;
pub mod files;
pub mod findings;
pub mod github;
pub(crate) mod http;
pub(crate) mod ledger;
pub mod matrix;
pub(crate) mod mock_server;
pub mod plan_files;
pub(crate) mod plural;
pub mod process;
pub mod repo;
pub mod runner;
pub mod secrets;
pub(crate) mod statistics;
pub mod step;
pub mod workflow;
