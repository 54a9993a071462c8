//! The limits that a file itself can break. Those of a plan are checked when it is emitted.

use crate::config::problem::Problems;
use crate::config::tree::{Node, Value};
use crate::findings::workflow;
use crate::matrix::shard::MAX_SHARD_JOBS;
use crate::workflow::check::{Files, is_hosted};
use crate::workflow::tree::{get, pairs};

/// The largest workflow file that GitHub takes, in bytes (500 KB).
pub(crate) const MAX_FILE_BYTES: usize = 500_000;
/// The largest `timeout-minutes` on a runner of GitHub's own: 6 hours.
const MAX_HOSTED: u64 = 360;
/// The largest on any other: 5 days.
const MAX_SELF_HOSTED: u64 = 7200;

/// Finds matrices of more jobs than GitHub starts, and numbers out of range.
pub(crate) fn check(files: &Files<'_>, problems: &mut Problems) {
    for file in files.workflows() {
        for job in file.jobs() {
            let strategy = job.get("strategy");
            if let Some(matrix) = strategy.and_then(|strategy| get(strategy, "matrix")) {
                let jobs = combinations(matrix);
                if jobs > MAX_SHARD_JOBS {
                    let message = format!(
                        "the matrix of `{}` has {jobs} jobs, GitHub starts at most {MAX_SHARD_JOBS}",
                        job.id.text()
                    );
                    problems.push(
                        file.finding(&workflow::MATRIX_SIZE, matrix.span, message)
                            .hint("cut it into shards"),
                    );
                }
            }
            let parallel = strategy.and_then(|strategy| get(strategy, "max-parallel"));
            let runner = job.get("runs-on").map_or("", Node::text);
            let most = if is_hosted(runner) { MAX_HOSTED } else { MAX_SELF_HOSTED };
            for (node, most) in [(parallel, MAX_SHARD_JOBS as u64), (job.get("timeout-minutes"), most)] {
                let Some(node) = node else { continue };
                if node.text().parse::<u64>().is_ok_and(|value| value == 0 || value > most) {
                    let problem = file.finding(&workflow::LIMIT, node.span, format!("{} is out of range", node.text()));
                    problems.push(problem.hint(format!("write 1 to {most}")));
                }
            }
        }
    }
}

/// The jobs that a matrix has for certain; a list that an expression gives counts as one.
fn combinations(matrix: &Node<'_>) -> usize {
    let length = |node: &Node<'_>| match &node.value {
        Value::Seq(items) => items.len(),
        _ => 1,
    };
    let axes = pairs(matrix)
        .iter()
        .filter(|(key, _)| !matches!(key.text(), "include" | "exclude"));
    let all = axes.map(|(_, values)| length(values)).fold(1, usize::saturating_mul);
    // How many jobs are taken away is known only where each is evaluated.
    let product = get(matrix, "exclude").map_or(all, |_| 1);
    let included = get(matrix, "include").map_or(0, length);
    product.max(included)
}
