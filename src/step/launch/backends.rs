//! The backends that there are: the one place that knows them all. A new one is a module and a line here, and its
//! settings and a line in `config::clusters`.

use super::backend::Backend;
use super::container::Container;
use super::local::Local;
use super::script::Script;
use super::served::Bare;
use super::serving::Serving;
use super::slurm::on_node::{self, OnNode, Pyxis};
use super::slurm::{SlurmBackend, gpus_per_node};
use super::srt::SrtBackend;
use crate::config::clusters::{self, Cluster};
use crate::config::fleet::Fleet;
use crate::config::problem::{Problem, nearest};
use crate::matrix::envelope::Envelope;
use crate::secrets::Mask;

/// The backend of the runner's cluster; `job` is what it shall run, if anything, `label` the job's, and `task` the eval
/// task that the job was given, where it was.
///
/// # Errors
/// A runner without a cluster, and settings that do not fit it.
pub fn of(
    fleet: &Fleet,
    job: Option<&Envelope>,
    label: &str,
    runner: &str,
    task: Option<String>,
) -> Result<Box<dyn Backend>, Problem> {
    let cluster = cluster(fleet, label, runner)?;
    let engine = match job {
        Some(envelope) => Serving::of_row(&fleet.engines, &envelope.row, envelope.config_key.as_deref()),
        None => Err(Problem::file("", "there is no job to serve")),
    };
    Ok(match &cluster.backend {
        clusters::Backend::Script(settings) => Box::new(Script::with(settings, runner)?),
        clusters::Backend::Local(settings) => Box::new(Local::new(settings, engine, task)),
        clusters::Backend::Container(settings) => Box::new(Container::new(settings, runner, engine, task)?),
        clusters::Backend::Slurm(settings) => Box::new(SlurmBackend {
            settings: settings.clone(),
            gpus_per_node: gpus_per_node(&fleet.runners, label, runner),
            mask: Mask::of_environment(),
            on_node: OnNode {
                serving: engine,
                fleet: fleet.files.clone(),
                task,
            },
        }),
        clusters::Backend::Srt(settings) => Box::new(SrtBackend {
            settings: settings.clone(),
            gpus_per_node: gpus_per_node(&fleet.runners, label, runner),
            mask: Mask::of_environment(),
        }),
    })
}

/// What serves a job on the node that the scheduler of the runner's cluster gave it.
///
/// # Errors
/// As [`of`], and a cluster without a scheduler.
pub fn on_node(
    fleet: &Fleet,
    envelope: &Envelope,
    runner: &str,
    task: Option<String>,
) -> Result<Box<dyn Backend>, Problem> {
    let clusters::Backend::Slurm(settings) = &cluster(fleet, runner, runner)?.backend else {
        let problem = Problem::file("", format!("the cluster of `{runner}` gives its jobs no node"));
        return Err(problem.hint("this is what a batch job calls on its node"));
    };
    let engine = Serving::of_row(&fleet.engines, &envelope.row, envelope.config_key.as_deref());
    let place = on_node::place(settings, task);
    Ok(match Pyxis::of(settings) {
        Some(pyxis) => Box::new(Local::inside(engine, place, Box::new(pyxis))),
        None => Box::new(Local::inside(engine, place, Box::new(Bare))),
    })
}

/// The cluster of a runner. Where nothing names a runner, its job's label stands for it, and labels have no cluster.
fn cluster<'f>(fleet: &'f Fleet, label: &str, runner: &str) -> Result<&'f Cluster, Problem> {
    let Some((_, cluster)) = fleet.clusters.of(runner) else {
        let behind = fleet.runners.labels.get(label).filter(|_| label == runner);
        let started = behind.into_iter().flatten();
        let started: Vec<&str> = started
            .map(String::as_str)
            .filter(|name| fleet.clusters.of(name).is_some())
            .collect();
        if !started.is_empty() {
            let message = format!("`{label}` is a label, and it is not known which of its runners starts the job");
            let hint = format!("name one with --runner-name or RUNNER_NAME: {}", started.join(", "));
            return Err(Problem::file("", message).hint(hint));
        }
        let fleets = fleet.clusters.clusters.values().flat_map(|cluster| &cluster.fleets);
        let known: Vec<&str> = fleets.map(String::as_str).collect();
        let message = format!("no cluster starts jobs on the runner `{runner}`");
        let hint = format!("add one to configs/clusters.yaml; {}", nearest(runner, known));
        return Err(Problem::file("", message).hint(hint));
    };
    Ok(cluster)
}
