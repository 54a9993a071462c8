//! `sweepctl` decides which benchmark and evaluation jobs a change needs, and is the command that each step runs.
//!
//! The modules stand in the order in which data flows.

pub mod changelog;
pub mod cli;
pub mod config;
pub mod files;
pub mod findings;
pub mod github;
pub mod http;
pub mod ledger;
pub mod matrix;
pub mod mock_server;
pub mod plan_files;
pub mod plural;
pub mod process;
pub mod repo;
pub mod runner;
pub mod secrets;
pub mod statistics;
pub mod step;
pub mod workflow;
