//! Jobs whose eval is an accuracy benchmark of srt-slurm: the `benchmark` section of their recipe.
//!
//! srt-slurm (v1.0.68, `cli/do_sweep.py`) leaves that section out where EVAL_ONLY is true, and runs lm-eval instead; where
//! RUN_EVAL is true, it runs lm-eval behind it. Neither may be true of such a job.

use std::sync::Arc;

use super::recipe::named;
use crate::config::problem::{Problem, Problems};
use crate::config::recipe::check;
use crate::config::source::Source;
use crate::matrix::row::Row;
use crate::step::results::accuracy::suite;

/// What `srtctl` and its job are told in place of the row's own variables.
const BENCHMARK_ALONE: [(&str, &str); 2] = [("EVAL_ONLY", "false"), ("RUN_EVAL", "false")];

/// The variables that a row's job has in place of its own.
pub(super) fn variables(row: &Row) -> &'static [(&'static str, &'static str)] {
    match suite(row) {
        Some(_) => &BENCHMARK_ALONE,
        None => &[],
    }
}

/// Whether a recipe can hold both what the row measures and the benchmark.
///
/// # Errors
/// A row that measures throughput too, and one that names no recipe.
pub(super) fn check_row(row: &Row) -> Result<(), Problems> {
    let Some(suite) = suite(row) else { return Ok(()) };
    let mut problems = Problems::default();
    if !row.eval.eval_only {
        let message = format!("the row measures throughput and `{suite}`, and a recipe has one benchmark");
        problems.push(Problem::file("", message).hint("plan the eval as a job of its own, with evals-only or all-evals"));
    }
    if named(row).is_none() {
        let message = format!("the row's eval is `{suite}` of srt-slurm, and it names no recipe that runs it");
        let hint = format!("write one with `sweepctl recipe accuracy {suite} FILE`, and name it as `eval-srt-recipe`");
        problems.push(Problem::file("", message).hint(hint));
    }
    problems.into_result()
}

/// Whether a recipe runs the benchmark that the row asks for.
///
/// # Errors
/// A recipe of another benchmark, or of none.
pub(super) fn check_recipe(row: &Row, name: &str, source: &Arc<Source>) -> Result<(), Problems> {
    let Some(suite) = suite(row) else { return Ok(()) };
    let found = check::check(source)?.benchmark.map(|benchmark| benchmark.name());
    if found == Some(suite) {
        return Ok(());
    }
    let runs = found.map_or("no accuracy benchmark".to_owned(), |name| format!("`{name}`"));
    let message = format!("the row's eval is `{suite}`, and the recipe runs {runs}");
    let hint = format!("`sweepctl recipe accuracy {suite} FILE` writes it; name that recipe as `eval-srt-recipe`");
    Err(Problem::file(name, message).hint(hint).into())
}
