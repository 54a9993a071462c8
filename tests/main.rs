//! The integration tests: one module a capability.

mod eval_run;
mod stage;
mod support;
mod tools;
