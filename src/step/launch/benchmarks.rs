//! Whether rows can run the accuracy benchmarks that they ask for: srt-slurm runs that of the row's recipe.

use std::collections::HashSet;
use std::path::{Component, Path};

use super::runnable::Files;
use crate::config::clusters::{Backend, Srt};
use crate::config::fleet::Fleet;
use crate::config::problem::Problems;
use crate::config::recipe::{Benchmark, asked, check as recipe};
use crate::config::types::NodeKind;
use crate::findings::Severity;
use crate::findings::plan::BENCHMARK_ROW;
use crate::matrix::row::Row;

/// Checks the rows that ask for one. Of a fleet that nothing is known of (`None`) no recipe is asked for.
///
/// # Errors
/// Every reason why one cannot, each once: a row on one node, no recipe, a backend that is not srt-slurm, and a recipe
/// that runs something else or that `recipe check` refuses.
pub(super) fn check(rows: &[Row], fleet: Option<&Fleet>, files: &Files<'_>) -> Result<(), Problems> {
    let mut problems = Problems::default();
    let mut said = HashSet::new();
    for row in rows {
        // A suite that is none is refused as such.
        let Some(suite) = row.benchmark().and_then(Benchmark::of_suite) else {
            continue;
        };
        for problem in one(row, suite, fleet, files).err().unwrap_or_default().0 {
            if said.insert((problem.file.clone(), problem.span, problem.message.clone())) {
                problems.push(problem);
            }
        }
    }
    problems.into_result()
}

fn one(row: &Row, suite: Benchmark, fleet: Option<&Fleet>, files: &Files<'_>) -> Result<(), Problems> {
    let label = &row.topology.runner;
    let refused = |why: String, hint: String| -> Problems {
        let key = row.config_key.as_deref().unwrap_or(label);
        let message = format!("rows of `{key}` cannot run the benchmark `{}`: {why}", suite.name());
        BENCHMARK_ROW.file("", message).hint(hint).into()
    };
    if row.node_kind() == NodeKind::Single {
        let hint = "write `nodes: multi` in the rule; rows on one node are evaluated with `lm-eval`";
        return Err(refused("they are on one node".to_owned(), hint.to_owned()));
    }
    let Some(name) = row.srt_recipe() else {
        let hint = format!(
            "write one with `sweepctl recipe accuracy {}`, and name it as `eval-srt-recipe` in the search-space entry",
            suite.name()
        );
        return Err(refused("they name no recipe".to_owned(), hint));
    };
    let Some(fleet) = fleet else { return Ok(()) };
    let runners = fleet.runners.labels.get(label).map(Vec::as_slice);
    let mut problems = Problems::default();
    for runner in runners.unwrap_or(std::slice::from_ref(label)) {
        // A runner without a cluster is refused as such.
        let Some((cluster, found)) = fleet.clusters.of(runner) else {
            continue;
        };
        match &found.backend {
            Backend::Srt(srt) => problems.extend(its_recipe(srt, &name, suite, files).err().unwrap_or_default()),
            other => {
                let why = format!(
                    "the cluster `{cluster}` starts them with the backend `{}`",
                    other.name()
                );
                let hint = "let a cluster with the backend `srt` start them, or evaluate with `lm-eval`";
                problems.extend(refused(why, hint.to_owned()));
            }
        }
    }
    problems.into_result()
}

/// Whether the recipe is there, runs the suite, and can.
fn its_recipe(srt: &Srt, name: &str, suite: Benchmark, files: &Files<'_>) -> Result<(), Problems> {
    let path = srt.recipe(name);
    let is_inside = Path::new(&path)
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if !is_inside {
        let message = format!("the recipe `{path}` leads out of the checkout");
        let hint = "write a path from the repository's root, without `..`";
        return Err(BENCHMARK_ROW.file("", message).hint(hint).into());
    }
    let Some(source) = files(Path::new(&path))? else {
        let message = format!(
            "there is no recipe `{path}`, which would run the benchmark `{}`",
            suite.name()
        );
        let hint = format!("write it with `sweepctl recipe accuracy {} {path}`", suite.name());
        return Err(BENCHMARK_ROW.file(&path, message).hint(hint).into());
    };
    asked::asked(&source, suite)?;
    let found = recipe::check(&source)?.problems;
    let refused = found.into_iter().filter(|problem| problem.severity == Severity::Error);
    Problems(refused.collect()).into_result()
}
