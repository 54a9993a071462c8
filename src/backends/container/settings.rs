//! The `container` backend: docker or podman on the runner's host.

use schemars::JsonSchema;

use crate::config::clusters::decode::{inside, matching};
use crate::config::clusters::{Gpus, Mount, Needs, Served, Settings};
use crate::config::decode::{Decoder, Fields};
use crate::config::types::NodeKind;

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
    /// The script that it runs, from the repository's root; unless given, `runners/launch_<fleet>.sh` where that is
    /// there, else the server of the row's engine.
    pub path: Option<String>,
    /// How rows without a launch script are served.
    #[schemars(flatten)]
    pub served: Served,
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

impl Settings for Container {
    fn decode(d: &mut Decoder, f: &mut Fields<'_, '_>) -> Option<Self> {
        let runtime = f.required(d, "runtime", |d, n, name| d.choice(n, name, &Runtime::CHOICES));
        let gpus = f.optional(d, "gpus", |d, n, name| d.choice(n, name, &Gpus::CHOICES));
        let mounts = f.optional(d, "mounts", Mount::decode_all);
        let shm_size = f.optional(d, "shm-size", |d, n, name| {
            matching(d, n, name, is_size, "write it as `64g`")
        });
        let network = f.optional(d, "network", |d, n, name| {
            matching(d, n, name, is_network, "write `host`, or a network's name")
        });
        let path = f.optional(d, "path", inside);
        let served = Served::decode(d, f);
        Some(Container {
            runtime: runtime?,
            gpus: gpus.unwrap_or_default(),
            mounts: mounts.unwrap_or_default(),
            shm_size,
            network,
            path,
            served,
        })
    }

    fn needs(&self) -> Needs<'_> {
        Needs::ScriptOrEngine(self.path.as_deref())
    }

    fn runs_locally(&self, _nodes: NodeKind) -> bool {
        true
    }

    fn served(&self) -> Option<&Served> {
        Some(&self.served)
    }

    fn script_mounts(&self) -> bool {
        false
    }
}

fn is_size(text: &str) -> bool {
    text.strip_suffix(['b', 'k', 'm', 'g'])
        .is_some_and(|digits| !digits.starts_with('0') && digits.parse::<u32>().is_ok_and(|n| n > 0))
}

fn is_network(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
}
