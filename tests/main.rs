//! The integration tests: one module a capability.

mod eval_context;
mod eval_run;
mod process;
mod stage;
mod support;
mod tools;
