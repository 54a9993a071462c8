//! The integration tests: one binary, a module a capability.

mod cli;
mod corpus;
mod support;

mod mock_server;
