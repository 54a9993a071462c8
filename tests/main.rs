//! The integration tests: one binary, a module a capability.

mod cli;
mod corpus;
mod mock_server;
mod support;
mod workflows;
