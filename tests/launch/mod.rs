//! Launching jobs with real processes, and stand-ins only for what this machine lacks: GPUs and containers.

pub mod backends;
mod dry_run;
pub mod engines;
mod faults;
mod hub;
mod lm_eval_contract;
mod local;
mod outputs;
mod owners;
mod preflight;
mod replays;
mod secrets;
mod signals;
pub mod support;
mod uses;
