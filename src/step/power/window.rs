//! When a benchmark ran and what it did meanwhile, by its own result.

use serde::Serialize;

use crate::step::results::loose::Cell;

/// A reported duration may be off by so much: seconds, or a share of the window, whichever is more.
const DURATION_SLACK: (f64, f64) = (0.5, 0.01);

/// The fields of a result as they stand there.
#[derive(Debug, Clone, Default, PartialEq)]
#[allow(missing_docs, reason = "named by what they hold")]
pub struct Reported {
    pub start: Cell,
    pub end: Cell,
    pub duration: Cell,
    pub completed: Cell,
    pub input_tokens: Cell,
    pub output_tokens: Cell,
}

/// The window that is integrated over.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs, reason = "named as written, units included")]
pub struct Window {
    pub start_time_unix: f64,
    pub end_time_unix: f64,
    pub reported_duration_s: f64,
    pub integration_duration_s: f64,
    pub completed: Option<u64>,
    pub total_input_tokens: Option<u64>,
    pub total_output_tokens: Option<u64>,
}

impl Reported {
    /// The window; `None` where one of its three numbers is none or they cannot be.
    #[must_use]
    pub fn window(&self) -> Option<Window> {
        let (start, end, reported) = (self.start.number()?, self.end.number()?, self.duration.number()?);
        let count = |cell: &Cell| cell.integer().filter(|_| matches!(cell, Cell::Number(_)));
        let length = end - start;
        (length > 0.0 && length.is_finite() && reported > 0.0).then(|| Window {
            start_time_unix: start,
            end_time_unix: end,
            reported_duration_s: reported,
            integration_duration_s: length,
            completed: count(&self.completed),
            total_input_tokens: count(&self.input_tokens),
            total_output_tokens: count(&self.output_tokens),
        })
    }
}

impl Window {
    /// What is wrong with it, which does not keep the samples from being read.
    pub fn issues(&self) -> impl Iterator<Item = &'static str> {
        let off = (self.reported_duration_s - self.integration_duration_s).abs();
        let most = DURATION_SLACK.0.max(DURATION_SLACK.1 * self.integration_duration_s);
        let none = |count: Option<u64>| count.unwrap_or_default() == 0;
        let issues = [
            ("benchmark_duration_mismatch", off > most),
            ("invalid_successful_query_count", none(self.completed)),
            ("invalid_input_token_count", none(self.total_input_tokens)),
            ("invalid_output_token_count", none(self.total_output_tokens)),
        ];
        issues.into_iter().filter(|(_, is)| *is).map(|(issue, _)| issue)
    }

    /// Completed requests, input tokens and output tokens.
    #[must_use]
    pub fn counts(&self) -> Option<[u64; 3]> {
        Some([self.completed?, self.total_input_tokens?, self.total_output_tokens?])
    }
}
