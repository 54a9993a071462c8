//! What is asked of GitHub: the real binary against a server on loopback that plays its API.

mod artifacts;
mod asking;
mod check;
mod dispatch;
mod provenance;
mod recover;
mod reuse;
mod run_jobs;
pub mod server;
mod stats;
mod telling;
mod triage;
mod watch;
