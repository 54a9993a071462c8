//! The integration tests: one binary, a module a capability.

mod cli;
mod corpus;
mod docs;
mod emission;
mod fleet;
mod hostile;
mod mistakes;
mod mock_server;
mod policy;
mod properties;
mod repositories;
mod schemas;
mod support;
