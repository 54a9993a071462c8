//! The steps of an eval, with the real lm-eval.

mod context;
mod metrics;
mod python;
mod road;
mod run;
pub mod server;
mod stage;
pub mod support;
pub mod tools;
