//! The integration tests: one binary, a module a capability.

mod changelog_gate;
mod cli;
mod collect;
mod corpus;
mod desk;
mod eval;
mod fixture;
mod job_env;
mod launch;
mod mock_server;
mod process;
mod support;
mod throughput;
mod validate;
