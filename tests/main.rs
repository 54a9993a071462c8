//! The integration tests: one binary, a module a capability.

mod changelog_gate;
mod cli;
mod collect;
mod corpus;
mod eval;
mod fixture;
mod job_env;
mod mock_server;
mod process;
mod slurm;
mod support;
mod throughput;
mod validate;
