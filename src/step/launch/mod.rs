//! Launch: an envelope becomes a running server and a measured result, on the backend of the runner's cluster.

pub mod backend;
pub mod slurm;
pub mod srt;
