//! How far a later measurement is from an earlier one.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::point::Point;
use super::read::{Graded, Timed};
use super::{Measured, summary};
use crate::config::problem::Problem;

/// Parts of the names of metrics of which more is better; of all others less is.
const MORE_IS_BETTER: [&str; 3] = ["tput", "throughput", "intvty"];

/// Throughput and latency at a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Performance {
    /// The point.
    #[serde(flatten)]
    pub point: Point,
    /// Every metric that both sides have.
    pub metrics: Vec<Metric>,
    /// The percentage by which the metric that lost most got worse; below 0 where all got better.
    pub regression_percent: f64,
}

/// One metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Its name in the rows.
    pub name: String,
    /// Its earlier value.
    pub before: f64,
    /// Its later value.
    pub after: f64,
    /// The change in percent of the earlier value.
    pub change_percent: f64,
}

impl Metric {
    /// By how many percent it got worse; below 0 where it got better.
    #[must_use]
    pub fn regression(&self) -> f64 {
        match MORE_IS_BETTER.iter().any(|part| self.name.contains(part)) {
            true => 0.0 - self.change_percent,
            false => self.change_percent,
        }
    }
}

impl Performance {
    /// What changed at a point.
    ///
    /// # Errors
    /// Rows that share no metric.
    pub(super) fn of(point: Point, before: &Timed, after: &Timed) -> Result<Self, Problem> {
        let metric = |(name, before): (&String, &f64)| {
            let after = *after.metrics.get(name)?;
            Some(Metric {
                name: name.clone(),
                before: *before,
                after,
                change_percent: (after - before) / before * 100.0,
            })
        };
        let metrics: Vec<Metric> = before.metrics.iter().filter_map(metric).collect();
        let Some(worst) = metrics.iter().map(Metric::regression).max_by(f64::total_cmp) else {
            let message = format!("{point}: no metric is in both results");
            return Err(Problem::file("", message).hint("name with --metric what both have"));
        };
        Ok(Self {
            point,
            metrics,
            regression_percent: worst,
        })
    }

    /// The largest regression first.
    pub(super) fn by_regression(a: &Self, b: &Self) -> Ordering {
        let worst = |p: &Self| p.regression_percent;
        worst(b).total_cmp(&worst(a)).then_with(|| a.point.cmp(&b.point))
    }

    /// What got worse by more than a percentage, in a sentence; `None` where nothing did.
    #[must_use]
    pub fn over(&self, percent: f64) -> Option<String> {
        let over = self.metrics.iter().filter(|metric| metric.regression() > percent);
        let told: Vec<String> = over
            .map(|metric| format!("{} {}", metric.name, summary::change(metric)))
            .collect();
        (!told.is_empty()).then(|| format!("{}: {}", self.point, told.join(", ")))
    }
}

/// The score of a task at a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// The task and its point.
    #[serde(flatten)]
    pub measured: Measured,
    /// Which score it is.
    pub score_name: String,
    /// The earlier score.
    pub before: f64,
    /// The later score.
    pub after: f64,
    /// The later less the earlier.
    pub change: f64,
    /// The change in standard errors of the difference; `None` where a side does not say its own.
    pub change_in_se: Option<f64>,
    /// Whether less of it is better.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub less_is_better: bool,
}

impl Score {
    /// What changed of a task's score.
    ///
    /// # Errors
    /// Scores that are not of the same kind.
    pub(super) fn of(measured: Measured, before: &Graded, after: &Graded) -> Result<Self, Problem> {
        if before.name != after.name {
            let message = format!("{measured}: the score was {}, it is {}", before.name, after.name);
            return Err(Problem::file("", message).hint("the two cannot be compared"));
        }
        if before.less_is_better != after.less_is_better {
            let message = format!(
                "{measured}: the two sides disagree on whether less of {} is better",
                after.name
            );
            return Err(Problem::file("", message).hint("the two cannot be compared"));
        }
        let change = after.score - before.score;
        let error = before.se.zip(after.se).map(|(a, b)| a.hypot(b));
        Ok(Self {
            measured,
            score_name: after.name.clone(),
            before: before.score,
            after: after.score,
            change,
            change_in_se: error.filter(|error| *error > 0.0).map(|error| change / error),
            less_is_better: after.less_is_better,
        })
    }

    /// The largest loss in standard errors first, then in the score itself.
    pub(super) fn by_loss(a: &Self, b: &Self) -> Ordering {
        let gain = |s: &Self, change: f64| if s.less_is_better { -change } else { change };
        let errors = |s: &Self| gain(s, s.change_in_se.unwrap_or(0.0));
        errors(a)
            .total_cmp(&errors(b))
            .then_with(|| gain(a, a.change).total_cmp(&gain(b, b.change)))
            .then_with(|| a.measured.cmp(&b.measured))
    }
}
