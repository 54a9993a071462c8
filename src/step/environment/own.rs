//! Variables that a repository adds to its jobs: `env` of its workflow settings, of the runner's cluster and of the
//! row's engine. A later one wins; the row's own variables stay.

use std::path::Path;

use indexmap::IndexMap;

use super::{Environment, check, is_own};
use crate::config::clusters::{Needs, Template, fleet_script};
use crate::config::fleet::Fleet;
use crate::config::master::search_space::Nodes;
use crate::config::problem::{Problem, Problems};
use crate::matrix::envelope::Envelope;
use crate::step::job_folder;
use crate::step::launch::serving;

/// The shortest random length, as a share of the longest, unless a repository says otherwise.
pub const RANDOM_RANGE_RATIO: &str = "0.8";
/// What of a job's own variables a repository may set.
const FREE: [&str; 2] = ["RANDOM_RANGE_RATIO", "RESULT_DIR"];

/// Adds the variables of a repository to those of a job: `all` are those of its workflow settings.
///
/// # Errors
/// Every variable that the row itself sets, and every placeholder that the job has no value for.
pub fn add(
    environment: &mut Environment,
    all: &IndexMap<String, Template>,
    fleet: &Fleet,
    envelope: &Envelope,
    runner: &str,
) -> Result<(), Problems> {
    let row = &envelope.row;
    let cluster = fleet.clusters.of(runner).map(|(_, cluster)| cluster);
    let engine = match row.topology.nodes {
        Nodes::Single(_) => fleet.engines.of(&row.topology.framework),
        Nodes::Multi(_) => None,
    };
    let mut name = cluster.and_then(|cluster| cluster.served_model_name.clone());
    let mut variables = all.clone();
    variables.extend(cluster.map(|cluster| cluster.env.clone()).unwrap_or_default());
    if let Some(engine) = engine {
        let (of_engine, served) = serving::variables(engine, row, envelope.config_key.as_deref());
        variables.extend(of_engine);
        name = served.or(name);
    }
    let mut problems = Problems::default();
    let mut added = required(environment, envelope, fleet, runner);
    for (variable, text) in &variables {
        match value(environment, variable, text) {
            Ok(value) => drop(added.insert(variable.clone(), value)),
            Err(problem) => problems.push(problem),
        }
    }
    if let Some(name) = name {
        match filled(environment, "MODEL_NAME", &name) {
            Ok(name) => drop(added.insert("MODEL_NAME".to_owned(), name)),
            Err(problem) => problems.push(problem),
        }
    }
    problems.into_result()?;
    // What a server calls its model is said only where something says it: scripts may serve a model by its path.
    environment.0.shift_remove("MODEL_NAME");
    environment.0.extend(added);
    Ok(())
}

/// What scripts require of every job, beyond its row.
fn required(environment: &Environment, envelope: &Envelope, fleet: &Fleet, runner: &str) -> IndexMap<String, String> {
    let mut variables = IndexMap::from([("RANDOM_RANGE_RATIO".to_owned(), RANDOM_RANGE_RATIO.to_owned())]);
    let row = &envelope.row;
    let checkout = environment.get("INFMAX_WORKSPACE").unwrap_or_default();
    let folder = Path::new(checkout).join(job_folder::FOLDER);
    let described = folder.join(job_folder::ENVELOPE).display().to_string();
    variables.insert("SWEEPCTL_ENVELOPE".to_owned(), described);
    if row.seq().is_none() {
        // To a script an empty value is a missing one.
        variables.extend(["ISL", "OSL", "MAX_MODEL_LEN"].map(|name| (name.to_owned(), "0".to_owned())));
    }
    if let Nodes::Single(_) = row.topology.nodes {
        let folder = match launchers_mount_it(fleet, runner, Path::new(checkout)) {
            true => "/workspace/results".to_owned(),
            false => format!("{checkout}/results"),
        };
        variables.insert("RESULT_DIR".to_owned(), folder);
    }
    for name in ["GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT"] {
        if let Some(value) = std::env::var(name).ok().filter(|value| !value.is_empty()) {
            variables.insert(name.to_owned(), value);
        }
    }
    variables
}

/// Whether the job sees the checkout where launch scripts mount it, and not at its own path.
fn launchers_mount_it(fleet: &Fleet, runner: &str, checkout: &Path) -> bool {
    let Some((_, cluster)) = fleet.clusters.of(runner) else {
        return true;
    };
    let runs_script = match cluster.backend.settings().needs() {
        Needs::Script(_) | Needs::ScriptOrEngine(Some(_)) => true,
        Needs::ScriptOrEngine(None) => fleet_script(runner).is_some_and(|script| checkout.join(script).is_file()),
        Needs::Nothing | Needs::Engine => false,
    };
    runs_script && cluster.backend.settings().script_mounts()
}

/// The value of a variable that a repository adds.
fn value(environment: &Environment, name: &str, text: &Template) -> Result<String, Problem> {
    let upper = name.to_ascii_uppercase();
    if is_own(&upper) && !FREE.contains(&upper.as_str()) {
        let problem = Problem::file(
            "",
            format!("the variable {name} of `env` cannot be used: the row sets it"),
        );
        return Err(problem.hint("remove it from configs/workflows.yaml, clusters.yaml and engines.yaml"));
    }
    filled(environment, name, text)
}

fn filled(environment: &Environment, name: &str, text: &Template) -> Result<String, Problem> {
    let workspace = environment.get("INFMAX_WORKSPACE").unwrap_or_default();
    let value = text.fill(&|name| serving::job_value(environment, workspace, name));
    let value = value.map_err(|missing| {
        let problem = Problem::file("", format!("the variable {name} of `env` cannot be filled: {missing}"));
        problem.hint("leave the placeholder out: a port and files are known to commands alone")
    })?;
    check(name, &value).map(|()| value)
}
