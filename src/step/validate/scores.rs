//! Whether every task of a result file has enough samples and scores enough.

use std::path::Path;

use super::{Check, Judge, Report, title};
use crate::config::problem::Problem;
use crate::config::thresholds::{Calibrated, Threshold};
use crate::step::results::lm_eval::{self, DEFAULT_METRIC, Metrics, ResultFile, SEPARATOR};
use crate::step::results::loose::Cell;
use crate::step::results::{file, name};

/// Checks a result file.
pub(super) fn check(judge: &Judge<'_>, path: &Path, result: &ResultFile, report: &mut Report) {
    let mut file = FileCheck {
        judge,
        path,
        result,
        report,
    };
    if let Some(failure) = result.failure() {
        file.problem(
            format!("the eval itself failed: {failure}"),
            "see the eval's log; its scores say nothing",
        );
        return;
    }
    let mut empty = true;
    for (task, metrics) in result.tasks() {
        empty = false;
        file.task(task, metrics);
    }
    if empty {
        file.problem(
            "`results` holds no task".to_owned(),
            "the eval ended without a score: see its log",
        );
    }
}

struct FileCheck<'c, 'r> {
    judge: &'c Judge<'r>,
    path: &'c Path,
    result: &'c ResultFile,
    report: &'c mut Report,
}

impl FileCheck<'_, '_> {
    fn problem(&mut self, message: String, hint: impl Into<String>) {
        let name = file::shown(self.path);
        let text = format!("{}: {message}", title(self.path));
        self.report.problems.push(Problem::file(&name, text).hint(hint));
    }

    fn task(&mut self, task: &str, metrics: Option<&Metrics>) {
        let Some(metrics) = metrics else {
            return self.problem(format!("`{task}` holds no metrics"), "the file is no result of lm-eval");
        };
        self.samples(task);
        let prefixes = self.metric_prefixes(task);
        let checked = metrics
            .iter()
            .filter(|(name, _)| prefixes.iter().any(|prefix| name.starts_with(prefix)) && !lm_eval::is_stderr(name));
        let mut any = false;
        for (metric, value) in checked {
            any = true;
            self.metric(task, metric, value, lm_eval::stderr(metrics, metric));
        }
        // A group need not have a line of its own: its tasks are judged one by one.
        if !any && !self.result.is_group(task) {
            let wanted = prefixes
                .iter()
                .map(|prefix| format!("`{prefix}`"))
                .collect::<Vec<_>>()
                .join(" or ");
            let there = metrics
                .keys()
                .filter(|name| name.contains(SEPARATOR) && !lm_eval::is_stderr(name));
            let there: Vec<&str> = there.map(String::as_str).take(8).collect();
            self.problem(
                format!("`{task}` has no metric that starts with {wanted}, so nothing of it was checked"),
                match there.as_slice() {
                    [] => "the task has no metric at all: see the eval's log".to_owned(),
                    there => format!("it has {}: set `metric` in its threshold", there.join(", ")),
                },
            );
        }
    }

    /// The starts of the names of the metrics that count.
    fn metric_prefixes(&self, task: &str) -> Vec<String> {
        if let Some(prefix) = &self.judge.request.metric_prefix {
            return vec![prefix.clone()];
        }
        let own = self
            .judge
            .threshold(task)
            .and_then(|t| t.calibrated()?.metric.as_deref());
        let declared = match own {
            Some(metric) => vec![metric],
            None => self.result.declared_metrics(task),
        };
        let with_separator = |metric: &str| match metric.contains(SEPARATOR) {
            true => metric.to_owned(),
            false => format!("{metric}{SEPARATOR}"),
        };
        match declared.as_slice() {
            [] => vec![with_separator(DEFAULT_METRIC)],
            declared => declared.iter().map(|metric| with_separator(metric)).collect(),
        }
    }

    fn samples(&mut self, task: &str) {
        let hint = "requests failed or were dropped: see the eval's log and the server's";
        let Some(own) = self.result.own_samples(task) else {
            if !self.result.is_group(task) {
                self.problem(
                    format!("`{task}` has no sample count"),
                    "the file is no complete result of lm-eval",
                );
            } else if !self.result.effective(task).is_some_and(|count| count > 0.0) {
                self.problem(
                    format!("the tasks of the group `{task}` have no whole sample count"),
                    hint,
                );
            }
            return;
        };
        let Some(effective) = own.effective.number().filter(|count| *count > 0.0) else {
            return self.problem(format!("`{task}` evaluated {} samples", own.effective), hint);
        };
        let short = own.original.number().is_some_and(|original| effective < original);
        if short && !self.judge.request.is_limited(self.result) {
            let message = format!(
                "`{task}` evaluated {effective} of {} samples, and no limit was set",
                own.original
            );
            self.problem(message, hint);
        }
    }

    fn metric(&mut self, task: &str, metric: &str, value: &Cell, stderr: &Cell) {
        let threshold = self.judge.threshold(task);
        let min_score = threshold.map_or(self.judge.request.min_score, Threshold::min_score);
        let calibration = threshold
            .and_then(Threshold::calibrated)
            .map(calibration)
            .unwrap_or_default();
        let source = self.judge.source(task);
        let score = lm_eval::score(value);
        let stderr = stderr.number();
        let passed = score.is_some_and(|score| score >= min_score);
        match score {
            None => self.problem(
                format!("`{task}` `{metric}` is {value}, not a number from 0 to 1"),
                "a score that cannot be read is not a pass: see the eval's log",
            ),
            Some(score) if !passed => self.problem(
                format!(
                    "`{task}` `{metric}` is {score:.4}, under {min_score} ({source}){}{calibration}",
                    distance(min_score - score, stderr)
                ),
                "look at the samples: wrong answers are the model's, empty or cut ones the server's",
            ),
            Some(_) => {}
        }
        self.report.checks.push(Check {
            file: file::shown(self.path),
            conc: name::concurrency(&file::shown(self.path)),
            task: task.to_owned(),
            metric: metric.to_owned(),
            score,
            stderr,
            threshold: min_score,
            source,
            passed,
        });
    }
}

/// By how many standard errors a score misses.
fn distance(gap: f64, stderr: Option<f64>) -> String {
    match stderr {
        Some(stderr) if stderr > 0.0 => format!(" by {:.1} standard errors of {stderr:.4}", gap / stderr),
        _ => format!(" by {gap:.4}; the file gives no standard error"),
    }
}

/// What is known about the runs that a threshold was calibrated on.
fn calibration(threshold: &Calibrated) -> String {
    match (threshold.mean, threshold.spread, threshold.samples) {
        (Some(mean), Some(spread), Some(samples)) => {
            format!("; calibrated on a mean of {mean}, a spread of {spread}, {samples} samples")
        }
        _ => String::new(),
    }
}
