//! The integration tests, by capability.

mod mock_server;
