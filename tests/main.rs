//! The integration tests, by capability.

mod collect;
mod fixture;
mod throughput;
mod validate;
