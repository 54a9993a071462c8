//! The integration tests, by capability.

mod fixture;
mod validate;
