//! Jobs without a launch script: the batch job is `sweepctl` itself, which serves the row on the node.

use std::path::{Path, PathBuf};

use super::FOLDER;
use super::settings::{InContainer, Slurm};
use crate::backends::container::image;
use crate::config::clusters::Mount;
use crate::config::fleet::FleetFiles;
use crate::config::problem::Problem;
use crate::step::launch::backend::Prepared;
use crate::step::launch::served::{Around, Bare};
use crate::step::launch::serving::Serving;

/// The log of a client on a node; the launch keeps the job's whole output in one of its own.
pub(super) const CLIENT_LOG: &str = "client.log";

/// What serves rows without a launch script.
#[derive(Debug, Clone)]
pub struct OnNode {
    /// The engine's commands.
    pub serving: Result<Serving, Problem>,
    /// The files that the node reads once more.
    pub fleet: FleetFiles,
    /// The eval's task, where it is not the row's own.
    pub task: Option<String>,
}

impl OnNode {
    /// The file of the state folder that the node reads the job from.
    pub(super) fn envelope(state: &Path) -> PathBuf {
        state.join(FOLDER).join("envelope.json")
    }

    /// The command that serves the job on the node; the checkout, the state folder and this binary are the nodes' too.
    ///
    /// # Errors
    /// A binary, or a file of the fleet, without a path.
    pub(super) fn command(&self, job: &Prepared<'_>) -> Result<Vec<String>, Problem> {
        let failed = |error: std::io::Error| Problem::file("", format!("a path of the launch is unknown: {error}"));
        let absolute = |path: &Path| match std::path::absolute(path) {
            Ok(path) => Ok(path.display().to_string()),
            Err(error) => Err(failed(error)),
        };
        let mut command = vec![
            std::env::current_exe().map_err(failed)?.display().to_string(),
            "launch".to_owned(),
            "--on-node".to_owned(),
            format!("--envelope={}", Self::envelope(job.state).display()),
            format!("--runner-name={}", job.runner),
            format!("--workspace={}", job.workspace.display()),
            format!("--state={}", job.state.join(FOLDER).join("node").display()),
            format!("--runner-config={}", absolute(&self.fleet.runners)?),
            format!("--cluster-config={}", absolute(&self.fleet.clusters)?),
        ];
        if let Some(engines) = &self.fleet.engines {
            command.push(format!("--engine-config={}", absolute(engines)?));
        }
        command.extend(self.task.iter().map(|task| format!("--eval-task={task}")));
        Ok(command)
    }
}

/// What servers of a cluster run in on their node.
pub(super) fn around(settings: &Slurm) -> Box<dyn Around> {
    let mounts = settings.mounts.clone();
    match settings.container {
        Some(InContainer::Pyxis) => Box::new(Pyxis { mounts }),
        None => Box::new(Bare),
    }
}

/// The row's image, through pyxis.
struct Pyxis {
    mounts: Vec<Mount>,
}

impl Around for Pyxis {
    fn around(
        &self,
        job: &Prepared<'_>,
        server: Vec<String>,
        _: u16,
        files: Option<&Path>,
    ) -> Result<Vec<String>, Problem> {
        let workspace = job.workspace.display();
        let mut mounts = vec![format!("{workspace}:{workspace}")];
        mounts.extend(files.map(|files| format!("{0}:{0}:ro", files.display())));
        mounts.extend(self.mounts.iter().map(|mount| {
            let end = if mount.read_only { ":ro" } else { "" };
            format!("{}:{}{end}", mount.host, mount.container)
        }));
        let mut command = vec![
            "srun".to_owned(),
            "--nodes=1".to_owned(),
            "--ntasks=1".to_owned(),
            // The clients of the batch step run beside it.
            "--overlap".to_owned(),
            "--export=ALL".to_owned(),
            format!("--container-image={}", enroot(image(job)?)),
            format!("--container-mounts={}", mounts.join(",")),
            format!("--container-workdir={workspace}"),
            "--no-container-mount-home".to_owned(),
            "--no-container-entrypoint".to_owned(),
        ];
        command.extend(server);
        Ok(command)
    }
}

/// An image's name as pyxis takes it: a registry ends in `#`, since a `/` may be part of any name.
fn enroot(image: &str) -> String {
    match image.split_once('/') {
        Some((registry, rest)) if registry.contains(['.', ':']) && !image.contains('#') => format!("{registry}#{rest}"),
        _ => image.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_is_told_from_a_name() {
        assert_eq!(enroot("vllm/vllm-openai:v1"), "vllm/vllm-openai:v1");
        assert_eq!(enroot("nvcr.io/nvidia/trt:1"), "nvcr.io#nvidia/trt:1");
        assert_eq!(enroot("host:5000/a:1"), "host:5000#a:1");
        assert_eq!(enroot("nvcr.io#nvidia/trt:1"), "nvcr.io#nvidia/trt:1");
        assert_eq!(enroot("ubuntu"), "ubuntu");
    }
}
