//! The integration tests: one binary, a module a capability.

mod changelog_gate;
mod cli;
mod corpus;
mod mock_server;
mod support;

mod collect;
mod fixture;
mod throughput;
mod validate;
