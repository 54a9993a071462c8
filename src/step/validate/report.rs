//! The judgement, for people and for machines.

use serde::Serialize;

use crate::config::problem::Problem;
use crate::plural;
use crate::step::markdown;
use crate::step::results::answers::Answers;

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The model that thresholds were looked up for.
    pub model_prefix: Option<String>,
    /// Every score that was held against a threshold.
    pub checks: Vec<Check>,
    /// Every sample file.
    pub silence: Vec<Silence>,
    /// What became of the answers while the eval ran, where it was counted.
    pub answers: Option<Answers>,
    /// Whether a limit on samples was set: such a run shows that a server works, and measures no model.
    pub diagnostic: bool,
    /// Everything that is wrong.
    pub problems: Vec<Problem>,
}

/// Which side of a threshold passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// What is not under it.
    Min,
    /// What is not over it.
    Max,
}

impl Bound {
    /// The side of a metric.
    #[must_use]
    pub fn of(less_is_better: bool) -> Self {
        match less_is_better {
            true => Self::Max,
            false => Self::Min,
        }
    }

    /// Whether a score passes.
    #[must_use]
    pub fn admits(self, score: f64, threshold: f64) -> bool {
        match self {
            Self::Min => score >= threshold,
            Self::Max => score <= threshold,
        }
    }
}

/// One score against its threshold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// The result file.
    pub file: String,
    /// The concurrency in its name.
    pub conc: Option<u64>,
    /// The task.
    pub task: String,
    /// The metric with its filter.
    pub metric: String,
    /// The score, 0 to 1 unless less is better; `None` where the file has no such number.
    pub score: Option<f64>,
    /// Its standard error, where the file gives one.
    pub stderr: Option<f64>,
    /// Which side of the threshold passes.
    pub bound: Bound,
    /// The lowest or the highest score that passes; `None` where nothing says so.
    pub threshold: Option<f64>,
    /// Where that stands.
    pub source: String,
    /// How often all samples were run, where that was more than once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u64>,
    /// The standard deviation of the score over repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
    /// Whether it passes.
    pub passed: bool,
}

/// The empty answers of a sample file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Silence {
    /// The sample file.
    pub file: String,
    /// Its task, where a result has one of that name.
    pub task: Option<String>,
    /// Questions.
    pub answers: u64,
    /// Those of which every answer is empty.
    pub empty: u64,
    /// The largest share of empty ones that passes.
    pub max_empty: f64,
}

impl Report {
    /// Whether the eval passes.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.problems.is_empty()
    }

    /// The columns of [`Self::rows`].
    pub const HEADER: [&'static str; 7] = ["File", "Task", "Metric", "Score", "Std. error", "Threshold", "Verdict"];

    /// One line a check, for a table.
    #[must_use]
    pub fn rows(&self) -> Vec<Vec<String>> {
        let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.4}"));
        let row = |check: &Check| {
            vec![
                check.file.clone(),
                check.task.clone(),
                check.metric.clone(),
                match repeated(check.repeats, check.spread) {
                    Some(repeated) => format!("{} ({repeated})", number(check.score)),
                    None => number(check.score),
                },
                number(check.stderr),
                match (check.threshold, check.bound) {
                    (None, _) => format!("- ({})", check.source),
                    (Some(threshold), Bound::Min) => format!("{} ({})", short(threshold), check.source),
                    (Some(threshold), Bound::Max) => format!("at most {} ({})", short(threshold), check.source),
                },
                if check.passed { "pass" } else { "FAIL" }.to_owned(),
            ]
        };
        self.checks.iter().map(row).collect()
    }

    /// The step summary. Problems stand first: a long table may be cut.
    #[must_use]
    pub fn markdown(&self) -> String {
        let verdict = match self.problems.len() {
            0 => "passed".to_owned(),
            problems => plural::count(problems, "problem"),
        };
        let diagnostic = if self.diagnostic { ", diagnostic" } else { "" };
        let mut text = format!("### Eval scores: {verdict}{diagnostic}\n\n");
        if self.diagnostic {
            text.push_str("A limit on samples was set: this run measures no model.\n\n");
        }
        if let Some(answers) = self.answers {
            text.push_str(&format!("Answers: {answers}.\n\n"));
        }
        if !self.problems.is_empty() {
            text.push_str(&markdown::list(self.problems.iter().map(|problem| &problem.message)));
            text.push('\n');
        }
        if !self.checks.is_empty() {
            text.push_str(&markdown::table(&Self::HEADER, &self.rows()));
            text.push('\n');
        }
        text
    }
}

/// Repeats and their spread, in words.
#[must_use]
pub(crate) fn repeated(repeats: Option<u64>, spread: Option<f64>) -> Option<String> {
    let repeats = repeats.filter(|repeats| *repeats > 1)?;
    Some(match spread {
        Some(spread) => format!("{repeats} repeats, spread {spread:.4}"),
        None => format!("{repeats} repeats"),
    })
}

/// A threshold as it was written, or with four digits where it was scaled.
#[must_use]
pub(super) fn short(threshold: f64) -> String {
    let text = threshold.to_string();
    match text.len() > 8 {
        true => format!("{threshold:.4}"),
        false => text,
    }
}
