//! What is rendered: the workflows that run sweeps, and the checks that they hold what GitHub only says at run time.

pub mod check;
mod checks;
pub(crate) mod init;
pub mod model;
pub mod render;
pub mod simulate;
pub mod templates;
pub mod tree;
mod uploads;
