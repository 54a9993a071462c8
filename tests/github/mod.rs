//! What is asked of GitHub: the real binary against a server on loopback that plays its API.

mod artifacts;
mod asking;
mod check;
mod dispatch;
mod reuse;
pub mod server;
mod telling;
