//! Variables that a repository adds to its jobs: `env` of its workflow settings, of the runner's cluster and of the
//! row's engine. A later one wins; the row's own variables stay.

use indexmap::IndexMap;

use super::{Environment, check, is_own};
use crate::config::clusters::Template;
use crate::config::fleet::Fleet;
use crate::config::master::search_space::Nodes;
use crate::config::problem::{Problem, Problems};
use crate::matrix::envelope::Envelope;
use crate::step::launch::serving;

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
    let mut added = IndexMap::new();
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
    environment.0.extend(added);
    Ok(())
}

/// The value of a variable that a repository adds.
fn value(environment: &Environment, name: &str, text: &Template) -> Result<String, Problem> {
    let upper = name.to_ascii_uppercase();
    if is_own(&upper) && !FREE.contains(&upper.as_str()) {
        let problem = Problem::file("", format!("the variable {name} of `env` cannot be used: the row sets it"));
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
