//! Floors from runs that were collected: mean, spread, samples, and a bound that a good run misses at a stated rate.

use indexmap::IndexMap;
use serde::Serialize;

use crate::config::problem::Problem;
use crate::plural;
use crate::statistics::{mean_and_spread, student_above};

/// One run's score of a task.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Run {
    /// The model's short name.
    pub prefix: String,
    /// The task.
    pub task: String,
    /// Which metric the score is.
    pub score_name: String,
    /// The score.
    pub score: f64,
    /// The samples that were evaluated.
    pub samples: Option<u64>,
    /// Whether less is better.
    pub less_is_better: bool,
    /// Whether a limit on samples was set.
    pub diagnostic: bool,
    /// Other sets that count as attempts at the same job, and so as no runs.
    pub attempts: usize,
}

/// What the runs of one model and task give.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Calibration {
    /// The model's short name.
    pub model_prefix: String,
    /// The task.
    pub task: String,
    /// Which metric it is.
    pub score_name: String,
    /// How many runs.
    pub runs: usize,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation.
    pub spread: f64,
    /// The samples of each.
    pub samples: u64,
    /// The floor, or the ceiling where less is better.
    pub bound: f64,
    /// Whether less is better.
    pub less_is_better: bool,
}

/// The fewest runs that a floor is computed of.
pub(crate) const MIN_RUNS: usize = 3;
/// Digits behind the point of what is written.
const DIGITS: f64 = 10_000.0;

/// Calibrates every model and task; what cannot be is a problem.
///
/// The next run of a server that is as good as these lies below the floor at the rate `false_alarm`: with `k` runs,
/// that is `t x spread x sqrt(1 + 1/k)` below their mean, `t` being Student's of `k - 1` degrees of freedom. Few runs
/// give a wide floor.
#[must_use]
pub(crate) fn calibrate(runs: Vec<Run>, false_alarm: f64) -> (Vec<Calibration>, Vec<Problem>) {
    let mut by_task: IndexMap<(String, String), Vec<Run>> = IndexMap::new();
    for run in runs {
        by_task
            .entry((run.prefix.clone(), run.task.clone()))
            .or_default()
            .push(run);
    }
    by_task.sort_keys();
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for ((prefix, task), runs) in by_task {
        match one(&prefix, &task, &runs, false_alarm) {
            Ok(calibration) => found.push(calibration),
            Err(why) => {
                let hint = format!(
                    "collect at least {MIN_RUNS} whole runs of one server and one split, and name each as a folder of its \
                     own: below one folder the newest set of a job counts alone"
                );
                problems.push(Problem::file("", format!("`{prefix}` `{task}`: {why}")).hint(hint));
            }
        }
    }
    (found, problems)
}

fn one(prefix: &str, task: &str, runs: &[Run], false_alarm: f64) -> Result<Calibration, String> {
    let whole: Vec<&Run> = runs.iter().filter(|run| !run.diagnostic).collect();
    if whole.len() < MIN_RUNS {
        let limited = runs.len() - whole.len();
        let attempts = match runs.iter().map(|run| run.attempts).sum::<usize>() {
            0 => String::new(),
            attempts => format!(
                "; not counted: {} of the same job",
                plural::count(attempts, "other set")
            ),
        };
        return Err(format!(
            "{}, and {limited} with a limit on samples, are too few{attempts}",
            plural::count(whole.len(), "whole run")
        ));
    }
    let first = whole[0];
    if let Some(other) = whole.iter().find(|run| run.score_name != first.score_name) {
        return Err(format!(
            "one run's score is {}, another's {}",
            first.score_name, other.score_name
        ));
    }
    let samples = first
        .samples
        .ok_or("a run does not say how many samples it evaluated")?;
    if let Some(other) = whole.iter().find(|run| run.samples != Some(samples)) {
        let count = other
            .samples
            .map_or_else(|| "an unknown number of".to_owned(), |count| count.to_string());
        return Err(format!("one run evaluated {samples} samples, another {count}"));
    }
    let scores: Vec<f64> = whole.iter().map(|run| run.score).collect();
    let (mean, spread) = mean_and_spread(&scores).ok_or("there are too few runs")?;
    #[allow(clippy::cast_precision_loss, reason = "runs are counted far below 2^53")]
    let widened = spread * (1.0 + 1.0 / scores.len() as f64).sqrt();
    let distance = student_above(false_alarm, scores.len() as u64 - 1) * widened;
    let bound = match first.less_is_better {
        // Rounded away from the mean: no digit makes good runs fail more often.
        true => ((mean + distance) * DIGITS).ceil() / DIGITS,
        false => (((mean - distance) * DIGITS).floor() / DIGITS).max(0.0),
    };
    let rounded = |value: f64| (value * DIGITS).round() / DIGITS;
    Ok(Calibration {
        model_prefix: prefix.to_owned(),
        task: task.to_owned(),
        score_name: first.score_name.clone(),
        runs: scores.len(),
        mean: rounded(mean),
        spread: rounded(spread),
        samples,
        bound,
        less_is_better: first.less_is_better,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(score: f64) -> Run {
        Run {
            prefix: "m".to_owned(),
            task: "gsm8k".to_owned(),
            score_name: "em_strict".to_owned(),
            score,
            samples: Some(1319),
            less_is_better: false,
            diagnostic: false,
            attempts: 0,
        }
    }

    #[test]
    fn a_floor_is_a_students_t_under_the_mean() {
        let runs: Vec<Run> = [0.95, 0.96, 0.94, 0.95, 0.95].map(run).to_vec();
        let (found, problems) = calibrate(runs, 0.01);
        assert!(problems.is_empty(), "{problems:?}");
        // 0.95 - 3.7469 x 0.0070711 x sqrt(1.2)
        assert_eq!((found[0].mean, found[0].spread, found[0].bound), (0.95, 0.0071, 0.9209));
        let less = |score| Run {
            less_is_better: true,
            ..run(score)
        };
        let (found, _) = calibrate(vec![less(9.0), less(9.1), less(9.2)], 0.05);
        assert!(found[0].bound > 9.4, "{found:?}");
    }

    #[test]
    fn runs_that_do_not_belong_together_are_named() {
        let refused = |runs: Vec<Run>| calibrate(runs, 0.01).1[0].message.clone();
        assert!(refused(vec![run(0.9), run(0.9)]).contains("2 whole runs"));
        let newest = Run {
            attempts: 2,
            ..run(0.9)
        };
        assert!(refused(vec![newest]).contains("are too few; not counted: 2 other sets of the same job"));
        let limited = Run {
            diagnostic: true,
            ..run(0.9)
        };
        assert!(refused(vec![run(0.9), run(0.9), limited]).contains("1 with a limit"));
        let other = Run {
            samples: Some(40),
            ..run(0.9)
        };
        assert!(refused(vec![run(0.9), run(0.9), other]).contains("1319 samples, another 40"));
        let named = Run {
            score_name: "accuracy".to_owned(),
            ..run(0.9)
        };
        assert!(refused(vec![run(0.9), run(0.9), named]).contains("another's accuracy"));
    }
}
