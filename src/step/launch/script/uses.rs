//! What launch scripts leave behind under known names: Slurm jobs of the runner's, and containers.
//!
//! Names are compared whole: of `h200_1` nothing that belongs to `h200_10` is ended.

use std::time::Duration;

use crate::config::clusters::Uses;
use crate::config::clusters::uses::Program;
use crate::config::problem::Problem;
use crate::step::launch::container;
use crate::step::launch::slurm;

/// Within which jobs are gone where the step was cancelled.
pub const CANCEL: Duration = slurm::CANCEL;
/// Within which the jobs that a script left are gone.
pub const RELEASE: Duration = Duration::from_secs(60);
/// How the containers of a Slurm job's nodes begin; they end in `_` and its id.
const OF_JOBS: [&str; 3] = ["container_", "router_", "client_"];

/// Ends what bears a runner's names: its Slurm jobs within a time, then its containers. Says what it ended.
///
/// # Errors
/// Slurm or the container command does not answer, or something is still there.
pub fn release(uses: &Uses, runner: &str, within: Duration) -> Result<Vec<String>, Problem> {
    let mut said = Vec::new();
    // Of jobs that ended lately too: their containers may be left.
    let mut ids = Vec::new();
    if uses.uses.contains(&Program::Slurm) {
        let names = uses.jobs(runner);
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
        slurm::end(&left, within, &mut || {})?;
    }
    for (program, runtime) in [(Program::Docker, "docker"), (Program::Podman, "podman")] {
        if uses.uses.contains(&program) {
            said.extend(containers(runtime, &uses.containers(runner), &ids)?);
        }
    }
    Ok(said)
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
