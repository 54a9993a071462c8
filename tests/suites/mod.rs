//! The vendors' suites, BFCL and SWE-bench against the mock server.
//!
//! The vendors' verifiers are in no package registry: stand-ins with their arguments, files and exit codes run here.
//! BFCL's package and mini-swe-agent are the real ones; SWE-bench's harness needs a Docker daemon and has a stand-in.

pub mod bfcl;
mod configured;
mod failures;
mod known;
mod python;
pub mod road;
pub mod support;
pub mod swebench;
mod vendors;
pub mod ways;
