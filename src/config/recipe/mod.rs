//! Recipes of srt-slurm as people write them: their accuracy benchmarks, what is wrong with them, and how a benchmark is
//! written into one.

pub mod accuracy;
pub mod asked;
pub mod check;
mod edit;
pub mod parameters;
mod read;

pub use parameters::Benchmark;
