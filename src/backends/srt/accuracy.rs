//! What jobs of srt-slurm are told of their evals, and those whose eval is the `benchmark` section of their recipe.
//!
//! srt-slurm (v1.0.68, `cli/do_sweep.py`) leaves that section out where EVAL_ONLY is true, and runs lm-eval instead; where
//! RUN_EVAL is true, it runs lm-eval behind it. Neither may be true of such a job.

use super::yaml::Yaml;
use crate::config::problem::{Problem, Problems};
use crate::config::recipe::Benchmark;
use crate::config::recipe::asked::Asked;
use crate::matrix::row::Row;
use crate::step::environment::Environment;

/// What srt-slurm's lm-eval reads the requests at a time from.
pub(super) const EVAL_CONCURRENT_REQUESTS: &str = "EVAL_CONCURRENT_REQUESTS";

/// The variables that `srtctl` and its job get beside, or in place of, the row's own: of another eval the requests at a
/// time, which srt-slurm's lm-eval takes for 256 where nothing says them.
pub(super) fn variables(row: &Row) -> Vec<(&'static str, String)> {
    match row.benchmark() {
        Some(_) => ["EVAL_ONLY", "RUN_EVAL"].map(|name| (name, false.to_string())).into(),
        None if row.runs_eval() => {
            let points: Vec<String> = row.eval_concs().iter().map(u64::to_string).collect();
            vec![(EVAL_CONCURRENT_REQUESTS, points.join(" "))]
        }
        None => Vec::new(),
    }
}

/// Whether a recipe can hold both what the row measures and the benchmark.
///
/// # Errors
/// A row that measures throughput too, and one that names no recipe.
pub(super) fn check_row(row: &Row) -> Result<(), Problems> {
    let Some(suite) = row.benchmark() else { return Ok(()) };
    let mut problems = Problems::default();
    if !row.eval.eval_only {
        let message = format!("the row measures throughput and `{suite}`, and a recipe has one benchmark");
        problems
            .push(Problem::file("", message).hint("plan the eval as a job of its own, with evals-only or all-evals"));
    }
    if row.srt_recipe().is_none() {
        let message = format!("the row's eval is `{suite}` of srt-slurm, and it names no recipe that runs it");
        let hint = format!("write one with `sweepctl recipe accuracy {suite} FILE`, and name it as `eval-srt-recipe`");
        problems.push(Problem::file("", message).hint(hint));
    }
    problems.into_result()
}

/// Writes the job's limit on samples into its recipe, as the number of examples: never more than it asks for.
///
/// # Errors
/// A limit of a benchmark that runs all of its examples or none.
pub(super) fn limit(recipe: &mut Yaml, asked: Asked, environment: &Environment) -> Result<(), Problem> {
    let limit = environment.get("EVAL_LIMIT").unwrap_or_default();
    let Some(limit) = limit.parse::<u64>().ok().filter(|limit| *limit > 0) else {
        return Ok(());
    };
    if asked.benchmark == Benchmark::Aime {
        let message = format!("EVAL_LIMIT is {limit}, and `aime` runs all of its problems");
        return Err(Problem::file("", message).hint("run it without a limit, or lower `REPEAT` in a recipe of its own"));
    }
    if let Some(examples) = asked.limited(limit).examples {
        recipe.set(&["benchmark", "num_examples"], examples);
    }
    Ok(())
}
