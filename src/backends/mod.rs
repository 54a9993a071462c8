//! The launch backends: a module for each, and the one table of them. A backend's settings are data, which `config` reads;
//! how its jobs run stands beside them, on what `step::launch` has for all.

pub mod container;
pub(crate) mod local;
pub(crate) mod script;
pub mod slurm;
pub mod srt;

/// Gives every backend to a macro: its name in a cluster, and its settings, which implement `config::clusters::Settings`
/// and `step::launch::backend::Launches`.
macro_rules! table {
    ($each:ident) => {
        $each! {
            /// The fleet's own launch script.
            "script" => script::Script,
            /// A server on the runner's host.
            "local" => local::Local,
            /// A batch job of Slurm.
            "slurm" => slurm::Slurm,
            /// A container on the runner's host.
            "container" => container::Container,
            /// srt-slurm, NVIDIA's launcher of multi-node servers.
            "srt" => srt::Srt,
        }
    };
}
pub(crate) use table;
