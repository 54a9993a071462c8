//! The integration tests: one binary, a module a capability.

mod cli;
mod corpus;
mod fleet;
mod mock_server;
mod support;
