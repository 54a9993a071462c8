//! Whether rows can run at all: what is certain before a GPU is asked for.

use std::collections::HashSet;
use std::path::Path;

use super::serving::Serving;
use crate::config::clusters::{Backend, fleet_script};
use crate::config::fleet::Fleet;
use crate::config::problem::{Problem, Problems, nearest};
use crate::findings::config::{NO_CLUSTER, NO_COMMAND};
use crate::matrix::row::Row;

/// Whether the checkout has a file.
pub type Has<'a> = dyn Fn(&Path) -> bool + 'a;

/// Whether a job of each row can be started on every runner of its label.
///
/// # Errors
/// Every runner without a cluster, and every row without a command; of alike rows the first is named.
pub fn check(rows: &[Row], fleet: &Fleet, has: &Has<'_>) -> Result<(), Problems> {
    let mut said = HashSet::new();
    let mut problems = Problems::default();
    for row in rows {
        let label = &row.topology.runner;
        let names = fleet.runners.labels.get(label).map(Vec::as_slice);
        // A row may name a runner itself.
        for runner in names.unwrap_or(std::slice::from_ref(label)) {
            if let Err(problem) = command(row, fleet, runner, has)
                && said.insert(problem.message.clone())
            {
                problems.push(problem);
            }
        }
    }
    problems.into_result()
}

/// Whether something starts a row's job on a runner.
fn command(row: &Row, fleet: &Fleet, runner: &str, has: &Has<'_>) -> Result<(), Problem> {
    let file = fleet.files.clusters.display().to_string();
    let label = &row.topology.runner;
    let Some((name, cluster)) = fleet.clusters.of(runner) else {
        let known = fleet.clusters.clusters.keys().map(String::as_str);
        let message = format!("no cluster starts jobs on the runner `{runner}` of `{label}`");
        return Err(NO_CLUSTER.file(&file, message).hint(nearest(runner, known)));
    };
    let engine = || Serving::of_row(&fleet.engines, row, row.config_key.as_deref()).map(drop);
    let script = |path: Option<&str>| path.map(str::to_owned).or_else(|| fleet_script(runner));
    let lacks = |path: &str, more: &str| format!("there is no launch script `{path}`{more}");
    let found = match &cluster.backend {
        Backend::Srt(_) => Ok(()),
        Backend::Local(settings) if settings.server_command.is_some() => Ok(()),
        Backend::Local(_) => engine().map_err(|problem| problem.message),
        Backend::Script(settings) => match script(settings.path.as_deref()) {
            Some(path) if has(Path::new(&path)) => Ok(()),
            path => Err(lacks(&path.unwrap_or_default(), "")),
        },
        Backend::Container(_) | Backend::Slurm(_) => {
            let named = match &cluster.backend {
                Backend::Container(settings) => settings.path.as_deref(),
                Backend::Slurm(settings) => settings.path.as_deref(),
                _ => None,
            };
            match script(named) {
                Some(path) if has(Path::new(&path)) => Ok(()),
                Some(path) if named.is_some() => Err(lacks(&path, "")),
                path => {
                    engine().map_err(|problem| lacks(&path.unwrap_or_default(), &format!(", and {}", problem.message)))
                }
            }
        }
    };
    found.map_err(|why| {
        let message = format!("rows of `{label}` cannot run on the cluster `{name}`: {why}");
        NO_COMMAND.file(&file, message).hint(NO_COMMAND.remedy)
    })
}
