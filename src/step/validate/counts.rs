//! Whether every sample that was to be evaluated was, and whether groups hold what they say.

use std::collections::HashSet;

use super::{FileCheck, Limit};
use crate::step::results::lm_eval::SampleCount;
use crate::step::results::loose::Cell;
use crate::step::results::score;

/// What helps where samples are missing.
const HINT: &str = "requests failed or were dropped: see the eval's log and the server's";

impl FileCheck<'_, '_> {
    /// Checks the sample counts of a task.
    pub(super) fn samples(&mut self, task: &str) {
        match self.result.own_samples(task).cloned() {
            Some(count) => self.count(task, &count),
            None if !self.result.is_group(task) => self.problem(
                format!("`{task}` has no sample count"),
                "the file is no complete result of lm-eval",
            ),
            None if !self.result.effective(task).is_some_and(|count| count > 0.0) => self.problem(
                format!("the tasks of the group `{task}` have no whole sample count"),
                HINT,
            ),
            None => {}
        }
    }

    fn count(&mut self, task: &str, count: &SampleCount) {
        let Some(effective) = positive(&count.effective) else {
            return self.problem(format!("`{task}` evaluated {} samples", count.effective), HINT);
        };
        let Some(original) = positive(&count.original) else {
            let message = format!("`{task}` has {} for its count of original samples", count.original);
            return self.problem(message, "the file is no complete result of lm-eval");
        };
        if effective > original {
            let message =
                format!("`{task}` evaluated {effective} of {original} samples, which are more than there are");
            return self.problem(message, "the counts are of two different splits: run the eval again");
        }
        let limit = self.judge.request.limit(self.result);
        let wanted = match limit {
            Limit::None => original,
            Limit::Samples(limit) => wanted(limit, original),
            Limit::Unknown => effective,
        };
        if effective < wanted {
            let of = match limit {
                Limit::None => "no limit was set".to_owned(),
                _ => format!("the limit was {wanted}"),
            };
            self.problem(
                format!("`{task}` evaluated {effective} of {original} samples, and {of}"),
                HINT,
            );
        }
    }

    /// Checks that groups hold what they say, and say one thing.
    pub(super) fn groups(&mut self) {
        let mut reported = HashSet::new();
        for (group, _) in self.result.groups() {
            if self.result.holds_itself(group) {
                self.problem(
                    format!("the group `{group}` of `group_subtasks` holds itself"),
                    "no task is its own part: the file is no result of lm-eval",
                );
            }
            for leaf in self.result.leaves(group) {
                if !self.result.has_line(leaf) && reported.insert(leaf) {
                    self.problem(
                        format!("`{leaf}` of the group `{group}` has no result"),
                        "a group's score without all of its tasks is another score: see the eval's log",
                    );
                }
            }
        }
        for (group, member) in self.result.nameless_members() {
            self.problem(
                format!("the group `{group}` of `group_subtasks` holds {member}, which is no task"),
                "a group's score without all of its tasks is another score: see the eval's log",
            );
        }
        for (name, one, other) in self.result.told_twice() {
            for line in score::lines(one) {
                let Some(value) = other.get(line.key).filter(|value| *value != line.value) else {
                    continue;
                };
                let key = line.key;
                self.problem(
                    format!(
                        "`{name}` `{key}` is {} under `results` and {value} under `groups`",
                        line.value
                    ),
                    "nothing says which of the two is meant: run the eval again",
                );
            }
        }
    }
}

/// A positive whole number, written as a number.
fn positive(cell: &Cell) -> Option<u64> {
    matches!(cell, Cell::Number(_))
        .then(|| cell.integer())
        .flatten()
        .filter(|count| *count > 0)
}

/// How many samples a limit leaves of a split; below 1 it is a share.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "counts stay far below 2^53, and a cast to an integer saturates"
)]
fn wanted(limit: f64, original: u64) -> u64 {
    match limit < 1.0 {
        true => ((original as f64 * limit).floor() as u64).max(1),
        false => (limit as u64).min(original),
    }
}
