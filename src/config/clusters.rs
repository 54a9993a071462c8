//! The `clusters` of `configs/runners.yaml`: what starts a job on which runners.
//!
//! A runner belongs to the cluster that names it, else to the one that its fleet belongs to. A cluster has one
//! backend, and the fields of that backend alone.

pub mod command;
mod decode;
mod srt_schema;
pub mod uses;

use indexmap::IndexMap;
use schemars::JsonSchema;

pub use command::Command;
pub(super) use decode::clusters;
pub use srt_schema::Schema;
pub use uses::Uses;

/// A runner's fleet: its name up to the first `_`.
#[must_use]
pub fn fleet(runner: &str) -> &str {
    runner.split_once('_').map_or(runner, |(fleet, _)| fleet)
}

/// The launch script of a runner's fleet, from the repository's root; `None` for a name that is no file's.
#[must_use]
pub fn fleet_script(runner: &str) -> Option<String> {
    let fleet = fleet(runner);
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    (!fleet.is_empty() && fleet.chars().all(plain)).then(|| format!("runners/launch_{fleet}.sh"))
}

/// Runners whose jobs are started in one way.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Cluster {
    /// The fleets that belong to it; the one of its own name, where neither fleets nor runners are given.
    #[schemars(default, length(min = 1), inner(length(min = 1)))]
    pub fleets: Vec<String>,
    /// Runners that belong to it whatever their fleet's cluster is.
    #[schemars(default, length(min = 1), inner(length(min = 1)))]
    pub runners: Vec<String>,
    /// Minutes after which a job is ended that prints nothing and whose files stay as they are; no limit unless given.
    #[schemars(default, range(min = 1, max = 7200))]
    pub idle_minutes: Option<u64>,
    /// What starts the jobs.
    #[schemars(flatten)]
    pub backend: Backend,
}

/// What starts jobs.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(tag = "backend", rename_all = "kebab-case")]
pub enum Backend {
    /// The fleet's own launch script.
    Script(Script),
    /// A server on the runner's host.
    Local(Local),
    /// A batch job of Slurm.
    Slurm(Slurm),
    /// A container on the runner's host.
    Container(Container),
    /// srt-slurm, NVIDIA's launcher of multi-node servers.
    Srt(Srt),
}

impl Backend {
    /// Every backend's name, as in `backend: script`.
    pub const NAMES: [&'static str; 5] = ["script", "local", "slurm", "container", "srt"];

    /// The backend's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Script(_) => "script",
            Self::Local(_) => "local",
            Self::Slurm(_) => "slurm",
            Self::Container(_) => "container",
            Self::Srt(_) => "srt",
        }
    }

    /// Whether its jobs run on the very host that starts them, without anything that a person's machine lacks.
    #[must_use]
    pub fn runs_anywhere(&self) -> bool {
        matches!(self, Self::Local(_))
    }

    /// The eval task of rows that name no suite, where the cluster has one of its own.
    #[must_use]
    pub fn eval_task(&self) -> Option<&str> {
        match self {
            Self::Local(settings) => settings.eval_task.as_deref(),
            _ => None,
        }
    }
}

/// A launch script.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub struct Script {
    /// The script, from the repository's root; `runners/launch_<fleet>.sh` unless given.
    pub path: Option<String>,
    /// What it starts that may outlive it.
    #[schemars(flatten)]
    pub uses: Uses,
}

/// A server on the runner's host.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub struct Local {
    /// The server: a program and its arguments.
    pub server_command: Command,
    /// The port that it serves on; a free one is taken unless given.
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<u16>,
    /// Seconds within which it must be healthy; 1800 unless given.
    #[schemars(default = "ready_timeout", range(min = 1, max = 86400))]
    pub ready_timeout_seconds: u64,
    /// The throughput client; without one such a cluster runs evals only.
    pub throughput_command: Option<Command>,
    /// The eval task of rows that name no suite, a file or a name under `configs/evals`; `gsm8k` unless given.
    #[schemars(length(min = 1))]
    pub eval_task: Option<String>,
}

/// A batch job of Slurm.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub struct Slurm {
    /// The partition that jobs are submitted to.
    #[schemars(length(min = 1))]
    pub partition: String,
    /// The account that they are counted on.
    #[schemars(length(min = 1))]
    pub account: Option<String>,
    /// Their time limit, as sbatch takes it: minutes, `HH:MM:SS` or `D-HH:MM:SS`; that of the job unless given.
    pub time: Option<String>,
    /// The script that is submitted, from the repository's root; `runners/launch_<fleet>.sh` unless given.
    pub path: Option<String>,
    /// More options of sbatch, one an item, such as `--exclusive` or `--nodelist=n1`.
    #[schemars(default, inner(pattern("^-")))]
    pub extra: Vec<String>,
}

/// A container on the runner's host.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub struct Container {
    /// The command that runs containers.
    pub runtime: Runtime,
    /// The GPUs that the container sees; none unless given.
    #[schemars(default)]
    pub gpus: Gpus,
    /// Folders of the host that it sees.
    #[schemars(default)]
    pub mounts: Vec<Mount>,
    /// Its `/dev/shm`, such as `64g`.
    #[schemars(regex(pattern = "^[1-9][0-9]*[bkmg]$"))]
    pub shm_size: Option<String>,
    /// Its network, such as `host`.
    #[schemars(regex(pattern = "^[A-Za-z0-9][A-Za-z0-9_.-]*$"))]
    pub network: Option<String>,
    /// The script that it runs, from the repository's root; `runners/launch_<fleet>.sh` unless given.
    pub path: Option<String>,
}

/// srt-slurm.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub struct Srt {
    /// The folder that recipes are found in, from the repository's root; the root unless given.
    pub recipes_dir: Option<String>,
    /// The checkout that the cluster's nodes see, an absolute path; the job's own unless given.
    pub workspace: Option<String>,
    /// The schema of the recipes that its `srtctl` reads; 2 unless given. Releases up to v1.0.68 read 1.
    #[schemars(default)]
    pub schema: Schema,
}

/// What runs containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub enum Runtime {
    /// docker
    Docker,
    /// podman
    Podman,
}

impl Runtime {
    /// Every value with its text form, which is the command's name.
    pub const CHOICES: [(&'static str, Self); 2] = [("docker", Self::Docker), ("podman", Self::Podman)];
}

/// The GPUs that a container sees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub enum Gpus {
    /// No GPU.
    #[default]
    None,
    /// Every GPU of NVIDIA's.
    Nvidia,
    /// Every GPU of AMD's: `/dev/kfd` and `/dev/dri`.
    Amd,
}

impl Gpus {
    /// Every value with its text form.
    pub const CHOICES: [(&'static str, Self); 3] = [("none", Self::None), ("nvidia", Self::Nvidia), ("amd", Self::Amd)];
}

/// A folder of the host in a container.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Mount {
    /// Its absolute path on the host.
    #[schemars(regex(pattern = "^/"))]
    pub host: String,
    /// Its absolute path in the container.
    #[schemars(regex(pattern = "^/"))]
    pub container: String,
    /// Whether the container may only read it; `false` unless given.
    #[schemars(default)]
    pub read_only: bool,
}

/// Seconds within which a server must be healthy, unless the cluster says otherwise.
#[must_use]
pub fn ready_timeout() -> u64 {
    1800
}

/// The cluster of a runner, with its name: the one that names the runner, else the one of its fleet.
#[must_use]
pub fn of_runner<'a>(clusters: &'a IndexMap<String, Cluster>, runner: &str) -> Option<(&'a str, &'a Cluster)> {
    let named = |cluster: &Cluster| cluster.runners.iter().any(|name| name == runner);
    let of_fleet = |cluster: &Cluster| cluster.fleets.iter().any(|name| name == fleet(runner));
    let find = |is: &dyn Fn(&Cluster) -> bool| clusters.iter().find(|(_, cluster)| is(cluster));
    find(&named)
        .or_else(|| find(&of_fleet))
        .map(|(name, cluster)| (name.as_str(), cluster))
}
