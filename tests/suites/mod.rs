//! The vendors' suites and BFCL against the mock server.
//!
//! The vendors' verifiers are in no package registry: stand-ins with their arguments, files and exit codes run here.
//! BFCL's package is the real one.

mod bfcl;
mod configured;
mod support;
mod vendors;
