//! Which accuracy benchmark a row runs, and which tasks its results hold.

use crate::config::recipe::parameters::{AIME_SETS, Benchmark};
use crate::matrix::row::Row;

/// The eval framework of rows whose eval is the benchmark of their recipe.
const FRAMEWORK: &str = "benchmark";

/// The accuracy benchmark that a row asks srt-slurm for; `None` where its eval is of another framework.
#[must_use]
pub(crate) fn suite(row: &Row) -> Option<&str> {
    let evaluator = row.eval.evaluator.as_ref().filter(|_| row.runs_eval())?;
    (evaluator.framework == FRAMEWORK).then_some(evaluator.suite.as_str())
}

/// Whether a task's score is that of a benchmark: AIME's are called after its data sets.
#[must_use]
pub(crate) fn is_score_of(suite: &str, task: &str) -> bool {
    task == suite || (suite == Benchmark::Aime.name() && AIME_SETS.contains(&task))
}
