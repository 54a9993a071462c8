//! The steps of an eval, with the real lm-eval.

mod context;
mod run;
mod server;
mod stage;
mod support;
mod tools;
