//! The integration tests: one binary, a module a capability.

mod changelog_gate;
mod cli;
mod collect;
mod corpus;
mod decisions;
mod desk;
mod docs;
mod emission;
mod eval;
mod fixture;
mod fleet;
mod hostile;
mod job_env;
mod launch;
mod mistakes;
mod mock_server;
mod policy;
mod process;
mod properties;
mod repositories;
mod schemas;
mod slurm;
mod support;
mod throughput;
mod validate;
mod workflows;
