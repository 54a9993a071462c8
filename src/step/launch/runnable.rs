//! Whether rows can run at all: what is certain before a GPU is asked for.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::benchmarks;
use super::serving::Serving;
use crate::config::clusters::{Needs, fleet_script};
use crate::config::fleet::Fleet;
use crate::config::problem::{Problem, Problems, nearest};
use crate::config::source::Source;
use crate::findings::config::{NO_CLUSTER, NO_COMMAND};
use crate::matrix::row::Row;
use crate::step::eval::framework;

/// A file of the checkout; `None` where there is none of that name.
pub(crate) type Files<'a> = dyn Fn(&Path) -> Result<Option<Arc<Source>>, Problem> + 'a;

/// Whether each row can run: a job of it is started on every runner of its label, and something runs its eval. Of a
/// fleet that nothing is known of (`None`) nothing is asked; frameworks and tasks of evals are looked for in `roots`.
///
/// # Errors
/// Every runner without a cluster, every row without a command, every evaluator and suite that nothing runs, and every
/// row that cannot run the accuracy benchmark that it asks for; of alike rows the first is named.
pub(crate) fn check(rows: &[Row], fleet: Option<&Fleet>, files: &Files<'_>, roots: &[PathBuf]) -> Result<(), Problems> {
    let mut problems = Problems::default();
    if let Some(fleet) = fleet {
        commands(rows, fleet, files, &mut problems);
    }
    let mut seen = HashSet::new();
    for evaluator in rows.iter().filter_map(|row| row.eval.evaluator.as_ref()) {
        if seen.insert(evaluator) {
            problems.extend(framework::suite(evaluator, roots).err().unwrap_or_default());
        }
    }
    problems.extend(benchmarks::check(rows, fleet, files).err().unwrap_or_default());
    problems.into_result()
}

fn commands(rows: &[Row], fleet: &Fleet, files: &Files<'_>, problems: &mut Problems) {
    let mut said = HashSet::new();
    for row in rows {
        let label = &row.topology.runner;
        let names = fleet.runners.labels.get(label).map(Vec::as_slice);
        // A row may name a runner itself.
        for runner in names.unwrap_or(std::slice::from_ref(label)) {
            if let Err(problem) = command(row, fleet, runner, files)
                && said.insert(problem.message.clone())
            {
                problems.push(problem);
            }
        }
    }
}

/// Whether something starts a row's job on a runner.
fn command(row: &Row, fleet: &Fleet, runner: &str, files: &Files<'_>) -> Result<(), Problem> {
    let file = fleet.files.clusters.display().to_string();
    let label = &row.topology.runner;
    let Some((name, cluster)) = fleet.clusters.of(runner) else {
        let known = fleet.clusters.clusters.keys().map(String::as_str);
        let message = format!("no cluster starts jobs on the runner `{runner}` of `{label}`");
        return Err(NO_CLUSTER.file(&file, message).hint(nearest(runner, known)));
    };
    let engine = || Serving::of_row(&fleet.engines, row, row.config_key.as_deref()).map(drop);
    let script = |named: Option<&str>| {
        let path = named.map(str::to_owned).or_else(|| fleet_script(runner));
        match path {
            // A script that cannot be read is said where it is launched.
            Some(path) if !matches!(files(Path::new(&path)), Ok(None)) => Ok(()),
            path => Err(format!("there is no launch script `{}`", path.unwrap_or_default())),
        }
    };
    let found = match cluster.backend.needs() {
        Needs::Nothing => Ok(()),
        Needs::Engine => engine().map_err(|problem| problem.message),
        Needs::Script(named) | Needs::ScriptOrEngine(named @ Some(_)) => script(named),
        Needs::ScriptOrEngine(None) => {
            script(None).or_else(|lacks| engine().map_err(|problem| format!("{lacks}, and {}", problem.message)))
        }
    };
    found.map_err(|why| {
        let message = format!("rows of `{label}` cannot run on the cluster `{name}`: {why}");
        NO_COMMAND.file(&file, message).hint(NO_COMMAND.remedy)
    })
}
