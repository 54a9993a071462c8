//! The backends that there are: the one place that knows them all. A new one is a module and a line here, and its
//! settings and a line in `config::clusters`.

use super::backend::Backend;
use super::container::Container;
use super::local::Local;
use super::script::Script;
use super::slurm::{SlurmBackend, gpus_per_node};
use super::srt::SrtBackend;
use crate::config::clusters;
use crate::config::problem::{Problem, nearest};
use crate::config::runners::Runners;
use crate::secrets::Mask;

/// The backend of the runner's cluster; `label` is the job's, and `task` the eval task that the job was given, where it
/// was.
///
/// # Errors
/// A runner without a cluster, and settings that do not fit it.
pub fn of(runners: &Runners, label: &str, runner: &str, task: Option<String>) -> Result<Box<dyn Backend>, Problem> {
    let Some((_, cluster)) = runners.cluster(runner) else {
        let fleets = runners.clusters.values().flat_map(|cluster| &cluster.fleets);
        let known: Vec<&str> = fleets.map(String::as_str).collect();
        let message = format!("no cluster starts jobs on the runner `{runner}`");
        let hint = format!(
            "add one to `clusters` in configs/runners.yaml; {}",
            nearest(runner, known)
        );
        return Err(Problem::file("", message).hint(hint));
    };
    Ok(match &cluster.backend {
        clusters::Backend::Script(settings) => Box::new(Script::with(settings, runner)?),
        clusters::Backend::Local(settings) => Box::new(Local::new(settings, task)),
        clusters::Backend::Container(settings) => Box::new(Container::new(settings, runner)?),
        clusters::Backend::Slurm(settings) => Box::new(SlurmBackend {
            settings: settings.clone(),
            gpus_per_node: gpus_per_node(runners, label, runner),
            mask: Mask::of_environment(),
        }),
        clusters::Backend::Srt(settings) => Box::new(SrtBackend {
            settings: settings.clone(),
            gpus_per_node: gpus_per_node(runners, label, runner),
            mask: Mask::of_environment(),
        }),
    })
}
