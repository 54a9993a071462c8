//! Whether the score of every task clears its threshold.

use super::floor::{self, Floor};
use super::{Bound, Check, FileCheck, report};
use crate::step::results::lm_eval::Metrics;
use crate::step::results::score::{self, Line, NoScore, Score};
use crate::step::results::{file, name};

impl FileCheck<'_, '_> {
    /// Checks the scores of a task.
    pub(super) fn scores(&mut self, task: &str, metrics: Option<&Metrics>) {
        let Some(metrics) = metrics else {
            return self.problem(format!("`{task}` holds no metrics"), "the file is no result of lm-eval");
        };
        let named = self.judge.threshold(task).and_then(|t| t.metric().map(str::to_owned));
        let chosen = score::choose(self.result, task, metrics, named.as_deref());
        if let Some(prefix) = self.judge.request.metric_prefix.clone() {
            return self.by_prefix(task, metrics, &prefix, chosen.as_ref().err());
        }
        match chosen {
            Ok(score) => self.score(task, &score),
            // A group need not have a line of its own: its tasks are judged one by one.
            Err(NoScore::Nothing) if self.result.is_group(task) => {}
            Err(why) => self.problem(
                format!("`{task}` {why}, so nothing of it was checked"),
                match why {
                    NoScore::Nothing => "see the eval's log: it ended without a score of this task",
                    NoScore::Lacking { .. } => "name in the threshold's `metric` one that the task has",
                },
            ),
        }
    }

    /// Checks the metrics whose names start so; what is published is the score all the same.
    fn by_prefix(&mut self, task: &str, metrics: &Metrics, prefix: &str, unpublished: Option<&NoScore>) {
        let lines: Vec<Line<'_>> = score::lines(metrics)
            .filter(|line| line.key.starts_with(prefix))
            .collect();
        if lines.is_empty() {
            if !self.result.is_group(task) {
                let there: Vec<&str> = score::lines(metrics).map(|line| line.key).take(8).collect();
                self.problem(
                    format!("`{task}` has no metric that starts with `{prefix}`, so nothing of it was checked"),
                    format!("it has {}", there.join(", ")),
                );
            }
            return;
        }
        if let Some(why) = unpublished {
            self.problem(
                format!("`{task}` {why}, so it cannot be published"),
                "see the eval's log",
            );
        }
        for line in lines {
            let less = self.result.is_more_better(task, line.metric) == Some(false);
            self.line(task, &line, less);
        }
    }

    fn score(&mut self, task: &str, score: &Score<'_>) {
        for line in &score.judged {
            self.line(task, line, score.less_is_better);
        }
    }

    fn line(&mut self, task: &str, line: &Line<'_>, less_is_better: bool) {
        let floor = floor::of(self.judge, self.result, task, less_is_better);
        let number = score::number(line.value, less_is_better);
        let stderr = line.stderr().number();
        let passed = match (&floor, number) {
            (Some(floor), Some(number)) => floor.bound.admits(number, floor.value),
            _ => false,
        };
        let key = line.key;
        let (repeats, spread) = self.repeats(task, line.metric);
        match (&floor, number) {
            (_, None) => self.problem(
                match less_is_better {
                    true => format!("`{task}` `{key}` is {}, not a finite number", line.value),
                    false => format!("`{task}` `{key}` is {}, not a number from 0 to 1", line.value),
                },
                "a score that cannot be read is not a pass: see the eval's log",
            ),
            (None, Some(number)) => self.unjudged(task, key, number, less_is_better),
            (Some(floor), Some(number)) if !passed => self.missed(task, line, (number, stderr), floor),
            _ => {}
        }
        self.report.checks.push(Check {
            file: file::shown(self.path),
            conc: name::concurrency(&file::shown(self.path)),
            task: task.to_owned(),
            metric: key.to_owned(),
            score: line.value.number().filter(|_| number.is_some()),
            stderr,
            bound: floor.as_ref().map_or(Bound::of(less_is_better), |floor| floor.bound),
            threshold: floor.as_ref().map(|floor| floor.value),
            source: floor.map_or_else(|| self.judge.source(task), |floor| floor.source),
            repeats,
            spread,
            passed,
        });
    }

    fn unjudged(&mut self, task: &str, key: &str, number: f64, less_is_better: bool) {
        let (what, needed) = match less_is_better {
            true => ("less of it is better", "max"),
            false => ("more of it is better", "min-score"),
        };
        let source = self.judge.source(task);
        self.problem(
            format!("`{task}` `{key}` is {number}, {what}, and no `{needed}` judges it ({source})"),
            format!("set `{needed}` in the threshold of `{task}`, or name another metric there"),
        );
    }

    /// The repeats of a task, and the spread over them where it is that of the metric: a file tells that of the task's own.
    fn repeats(&self, task: &str, metric: &str) -> (Option<u64>, Option<f64>) {
        let own = self.result.declared_metrics(task).first() == Some(&metric);
        let repeats = self.result.repeats(task);
        let spread = repeats.and_then(|(_, spread)| spread).filter(|_| own);
        (repeats.map(|(repeats, _)| repeats), spread)
    }

    fn missed(&mut self, task: &str, line: &Line<'_>, (number, stderr): (f64, Option<f64>), floor: &Floor) {
        let Floor { bound, value, source } = floor;
        let Line { key, metric, .. } = line;
        let side = match bound {
            Bound::Min => "under",
            Bound::Max => "over",
        };
        let threshold = self.judge.threshold(task);
        let calibration = threshold.map(floor::calibration).unwrap_or_default();
        let answers = self
            .judge
            .answers
            .map(|answers| format!("; {answers}"))
            .unwrap_or_default();
        let (repeats, spread) = self.repeats(task, metric);
        let repeats = report::repeated(repeats, spread);
        let repeats = repeats.map(|repeats| format!(" ({repeats})")).unwrap_or_default();
        let distance = distance((value - number).abs(), stderr);
        self.problem(
            format!(
                "`{task}` `{key}` is {}{repeats}, {side} {} ({source}){distance}{calibration}{answers}",
                rounded(number),
                report::short(*value)
            ),
            "look at the samples: wrong answers are the model's, empty or cut ones the server's",
        );
    }
}

/// A score with four digits behind the point.
fn rounded(number: f64) -> String {
    format!("{number:.4}")
}

/// By how many standard errors a score misses.
fn distance(gap: f64, stderr: Option<f64>) -> String {
    match stderr {
        Some(stderr) if stderr > 0.0 => format!(" by {:.1} standard errors of {stderr:.4}", gap / stderr),
        _ => format!(" by {gap:.4}; the file gives no standard error"),
    }
}
