//! What changed between two collections of results, point by point.
//!
//! A point is what two measurements must have in common to be comparable, and no more: an image, a model's path or a
//! router may differ, for it is their change that is measured. See [`point::Point`].

mod change;
pub(crate) mod largest;
mod pairs;
pub(crate) mod point;
mod read;
mod row;
pub(crate) mod summary;

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use change::{Metric, Performance, Score};
use point::Point;

use crate::config::fields::Size;
use crate::config::problem::{Problem, Problems, nearest};
use crate::step::results::file;

/// Which metrics of throughput results are compared; none named is the usual ones: `tput_per_gpu`, and the median and
/// the percentiles of `ttft` and of `intvty`, or of `tpot` where there is no `intvty`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metrics(pub Vec<String>);

/// What changed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Comparison {
    /// Where the earlier results lie.
    pub baseline: String,
    /// Where the later ones lie.
    pub current: String,
    /// Throughput and latency, the largest regression first.
    pub points: Vec<Performance>,
    /// Scores, the largest loss first.
    pub scores: Vec<Score>,
    /// What only the earlier results have.
    pub only_baseline: Vec<Measured>,
    /// What only the later results have.
    pub only_current: Vec<Measured>,
    /// What could not be compared, and why.
    #[serde(serialize_with = "messages", skip_deserializing)]
    pub problems: Vec<Problem>,
    /// Which sides hold no result at all, as sentences.
    #[serde(skip)]
    pub empty: Vec<String>,
}

impl Comparison {
    /// Whether the later results can show that nothing got worse.
    ///
    /// # Errors
    /// No later results, and everything that could not be compared.
    pub fn conclusive(&self) -> Result<(), Problems> {
        let mut problems = Problems(self.problems.clone());
        let nothing = self.points.is_empty() && self.scores.is_empty() && self.only_current.is_empty();
        if nothing && problems.0.is_empty() {
            let message = format!(
                "there is no result in {}: nothing shows that nothing got worse",
                self.current
            );
            let hint = "name the folder that `sweepctl collect` wrote to, or see why nothing was collected";
            problems.push(Problem::file(&self.current, message).hint(hint));
        }
        problems.into_result()
    }
}

/// Something measured: a point, or a task at a point.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Measured {
    /// The point.
    #[serde(flatten)]
    pub point: Point,
    /// The task of a score; `None` for throughput.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
}

/// The named metrics that no throughput result of either side has, if there is one.
fn unknown(metrics: &Metrics, before: &read::Side, after: &read::Side) -> Problems {
    let known: BTreeSet<&str> = before.numbers.union(&after.numbers).map(String::as_str).collect();
    let unknown = metrics
        .0
        .iter()
        .filter(|name| !known.is_empty() && !known.contains(name.as_str()));
    // A row's shape is no metric.
    let is_shape = |name: &str| {
        let ends = Size::ALL.iter().map(|size| size.names().published);
        matches!(name, "conc" | "isl" | "osl") || ends.chain(["num_workers"]).any(|end| name.ends_with(end))
    };
    let metrics = || known.iter().copied().filter(|name| !is_shape(name));
    let said = unknown.map(|name| {
        let message = format!("no throughput result has the metric `{name}`");
        Problem::file("", message).hint(nearest(name, metrics()))
    });
    Problems(said.collect())
}

fn messages<S: serde::Serializer>(problems: &[Problem], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(problems.iter().map(|problem| &problem.message))
}

/// Compares the collections in two folders, or files.
///
/// # Errors
/// A folder that cannot be searched, and a metric that no throughput result has. A file or a row that cannot be read loses only itself.
pub fn compare(baseline: &Path, current: &Path, metrics: &Metrics) -> Result<Comparison, Problems> {
    let (before, after) = (read::side(baseline, metrics)?, read::side(current, metrics)?);
    unknown(metrics, &before, &after).into_result()?;
    let mut comparison = Comparison {
        baseline: file::shown(baseline),
        current: file::shown(current),
        points: Vec::new(),
        scores: Vec::new(),
        only_baseline: Vec::new(),
        only_current: Vec::new(),
        problems: Vec::new(),
        empty: Vec::new(),
    };
    let sides = [
        (&before, baseline, &comparison.baseline),
        (&after, current, &comparison.current),
    ];
    for (side, path, place) in sides {
        if side.is_empty() {
            comparison.empty.push(match path.exists() {
                true => format!("there is no result in {place}"),
                false => format!("{place} is not found"),
            });
        }
    }
    comparison.problems.extend(before.problems);
    comparison.problems.extend(after.problems);
    let throughput = pairs::pair(before.throughput, after.throughput, |a, b| a.is_same_recipe(b));
    let scores = pairs::pair(before.scores, after.scores, |_, _| false);
    for (of_point, before, after) in throughput.matched {
        match Performance::of(of_point.point, &before, &after) {
            Ok(performance) => comparison.points.push(performance),
            Err(problem) => comparison.problems.push(problem),
        }
    }
    for (of_task, before, after) in scores.matched {
        match Score::of(of_task, &before, &after) {
            Ok(score) => comparison.scores.push(score),
            Err(problem) => comparison.problems.push(problem),
        }
    }
    comparison.problems.extend(throughput.ambiguous);
    comparison.problems.extend(scores.ambiguous);
    for (only, of_throughput, of_scores) in [
        (
            &mut comparison.only_baseline,
            throughput.only_before,
            scores.only_before,
        ),
        (&mut comparison.only_current, throughput.only_after, scores.only_after),
    ] {
        only.extend(of_throughput.into_iter().chain(of_scores));
        only.sort();
    }
    comparison.points.sort_by(Performance::by_regression);
    comparison.scores.sort_by(Score::by_loss);
    Ok(comparison)
}
