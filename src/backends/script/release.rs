//! What launch scripts leave behind under known names: Slurm jobs of the runner's, and containers.
//!
//! Names are compared whole: of `h200_1` nothing that belongs to `h200_10` is ended.

use std::process::Command;
use std::time::Duration;

use super::settings::{Program, Script};
use crate::backends::container;
use crate::backends::slurm;
use crate::config::problem::Problem;
use crate::process::{self, Cancellation, Watch};

/// Within which jobs are gone where the step was cancelled.
pub(super) const CANCEL: Duration = slurm::CANCEL;
/// Within which the jobs that a script left are gone.
pub(super) const RELEASE: Duration = Duration::from_secs(60);
/// How the containers of a Slurm job's nodes begin; they end in `_` and its id.
const OF_JOBS: [&str; 3] = ["container_", "router_", "client_"];

/// What runs on each node of a Slurm job: it removes the containers that are called after the job, and prints their ids.
/// A node without the command has none.
const ON_NODES: &str = r#"
command -v "$1" >/dev/null || exit 0
ids=$("$1" ps --all --quiet --no-trunc --filter "name=(container|router|client)_.*_$2\$") || exit
[ -z "$ids" ] || "$1" rm --force $3 $ids
"#;
/// How long that may take.
const NODES_TIME: Duration = Duration::from_secs(3);

/// Ends what bears a runner's names: its Slurm jobs within a time, then its containers. Says what it ended.
///
/// # Errors
/// Slurm or the container command does not answer, or something is still there.
pub(super) fn release(settings: &Script, runner: &str, within: Duration) -> Result<Vec<String>, Problem> {
    let mut said = Vec::new();
    // Of jobs that ended lately too: their containers may be left.
    let mut ids = Vec::new();
    if settings.uses.contains(&Program::Slurm) {
        let names = settings.jobs(runner);
        let queue = slurm::queue().map_err(|failure| {
            let message = format!("jobs of {runner} may be left, and the queue cannot be read: {failure}");
            Problem::file("", message).hint("release again once `squeue --me` answers")
        })?;
        let own: Vec<_> = queue.into_iter().filter(|job| names.contains(&job.name)).collect();
        let alive: Vec<_> = own.iter().filter(|job| !slurm::is_over(&job.state)).collect();
        let left: Vec<String> = alive.iter().map(|job| job.id.clone()).collect();
        said.extend(
            alive
                .iter()
                .map(|job| format!("Slurm job {} ({}, {})", job.id, job.name, job.state)),
        );
        ids.extend(own.iter().map(|job| job.id.clone()));
        // Only while its job lives can a node be reached; a cancelled step has no time for it, and the next one does it.
        let running = alive.iter().filter(|job| job.state == "RUNNING" && within > CANCEL);
        for (job, runtime) in running.flat_map(|job| runtimes(settings).map(move |runtime| (job, runtime))) {
            said.extend(on_nodes(runtime, &job.id));
        }
        slurm::end(&left, within, &mut || {})?;
    }
    for runtime in runtimes(settings) {
        said.extend(containers(runtime, &settings.containers(runner), &ids)?);
    }
    Ok(said)
}

/// The container commands that scripts use.
fn runtimes(settings: &Script) -> impl Iterator<Item = &'static str> {
    let known = [(Program::Docker, "docker"), (Program::Podman, "podman")];
    known
        .into_iter()
        .filter_map(|(program, runtime)| settings.uses.contains(&program).then_some(runtime))
}

/// Removes the containers of a Slurm job on its nodes: their daemon is not the job's, and leaves them when it ends. Says
/// what it removed, or why no node could be asked: the job itself is ended all the same.
fn on_nodes(runtime: &str, id: &str) -> Vec<String> {
    let mut command = Command::new("srun");
    let job = format!("--jobid={id}");
    command.args([
        &job,
        "--overlap",
        "--ntasks-per-node=1",
        "--export=ALL",
        "bash",
        "-c",
        ON_NODES,
        "-",
    ]);
    command.args([runtime, id, container::at_once(runtime).unwrap_or_default()]);
    let watch = Watch {
        deadline: Some(NODES_TIME),
        grace: Duration::from_millis(200),
        ..Watch::default()
    };
    let mut lines = Vec::new();
    let ended = process::run(command, &watch, &Cancellation::never(), &mut |line| {
        lines.push(line.to_owned())
    });
    let why = match ended {
        Ok(outcome) if outcome.is_success() => {
            let is_id = |line: &&String| line.len() >= 12 && line.chars().all(|c| c.is_ascii_hexdigit());
            let removed = lines.iter().filter(is_id);
            return removed
                .map(|container| format!("container {container} of Slurm job {id}"))
                .collect();
        }
        Ok(outcome) => outcome.to_string(),
        Err(error) => error.to_string(),
    };
    vec![format!(
        "nothing of {runtime} on the nodes of Slurm job {id}, which could not be asked: srun {why}"
    )]
}

/// Removes the containers of names, and those that are called after a Slurm job.
fn containers(runtime: &str, names: &[String], ids: &[String]) -> Result<Vec<String>, Problem> {
    let list = container::ask(
        runtime,
        &["ps", "--all", "--no-trunc", "--format", "{{.ID}} {{.Names}}"],
    )?;
    let own: Vec<(&str, &str)> = list
        .iter()
        .filter_map(|line| line.trim().split_once(' '))
        // Anything else is a warning of the command.
        .filter(|(id, _)| !id.is_empty() && id.chars().all(|c| c.is_ascii_hexdigit()))
        .filter(|(_, container)| {
            let mut all = container.split(',').map(str::trim);
            all.any(|name| names.iter().any(|own| own == name) || is_of_job(name, ids))
        })
        .collect();
    if own.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<&str> = own.iter().map(|(id, _)| *id).collect();
    container::remove(runtime, &ids)?;
    Ok(own.iter().map(|(_, name)| format!("container {name}")).collect())
}

fn is_of_job(name: &str, ids: &[String]) -> bool {
    let of = name.rsplit_once('_').map(|(_, id)| id);
    OF_JOBS.iter().any(|start| name.starts_with(start)) && of.is_some_and(|of| ids.iter().any(|id| id == of))
}
