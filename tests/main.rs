//! The integration tests: one binary, a module a capability.

mod cli;
mod corpus;
mod job_env;
mod mock_server;
mod support;
