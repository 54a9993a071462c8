//! What a throughput client measured, in one form for every client. Values stand beside the names that they have in
//! the client's file, so that a problem names what its reader can look up.

use super::client::Client;
use crate::step::results::loose::Cell;

/// A value and its name in the client's file; null where the file does not have it.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// As in `input_config.loadgen.concurrency`.
    pub name: String,
    /// The value.
    pub value: Cell,
}

/// How many tokens requests had.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Tokens {
    /// Of all completed requests together.
    Total(Found),
    /// Of one request, on average.
    Mean(Found),
}

/// A time, or the spread of times.
#[derive(Debug, Clone, PartialEq)]
pub struct Time {
    /// In the client's file.
    pub found: Found,
    /// As published, such as `p99_ttft`.
    pub published: String,
    /// How many of the file's units a second has; no number where the unit is not known, which is found then.
    pub per_second: f64,
}

/// One run of a client.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Measured {
    /// Which client.
    pub client: Client,
    /// The model that was asked; `None` where the file need not name one and does not.
    pub model: Option<Found>,
    /// Requests at a time.
    pub conc: Found,
    /// Requests that completed.
    pub completed: Found,
    /// Requests that were to be sent.
    pub planned: Found,
    /// Requests that failed.
    pub failed: Found,
    /// The share of requests that failed, where the file says it.
    pub error_rate: Found,
    /// The fields that say that the run ended early.
    pub stopped: Vec<Found>,
    /// Why its figures are of no single run, as a sentence.
    pub mixed: Option<String>,
    /// How long it took; `None` where the file does not say.
    pub duration: Option<Found>,
    /// Input and output tokens a second.
    pub all_rate: Found,
    /// Output tokens a second.
    pub output_rate: Found,
    /// Input tokens.
    pub input: Tokens,
    /// Output tokens.
    pub output: Tokens,
    /// Latencies.
    pub times: Vec<Time>,
}

impl Found {
    /// A value under its name.
    pub fn new(name: impl Into<String>, value: Cell) -> Self {
        Self {
            name: name.into(),
            value,
        }
    }

    /// A value that no file of the client has.
    #[must_use]
    pub fn none(name: &str) -> Self {
        Self::new(name, Cell::Null)
    }

    /// The count that it is: a whole number, not one that a text spells.
    #[must_use]
    pub fn count(&self) -> Option<u64> {
        self.value.integer().filter(|_| matches!(self.value, Cell::Number(_)))
    }

    /// A finite number above 0; numbers so small that they have lost digits are none.
    #[must_use]
    pub fn positive(&self) -> Option<f64> {
        self.value.number().filter(|value| *value > 0.0 && value.is_normal())
    }

    /// Whether there is no value.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.value == Cell::Null
    }
}

impl Tokens {
    /// What the file says.
    #[must_use]
    pub(crate) fn found(&self) -> &Found {
        match self {
            Self::Total(found) | Self::Mean(found) => found,
        }
    }

    /// Whether they are what can be counted: a total that is no whole number was not. A mean need not be whole, and what
    /// is no number at all is another fault.
    #[must_use]
    pub(crate) fn are_whole(&self) -> bool {
        match self {
            Self::Total(found) => found.value.number().is_none_or(|total| total.fract() == 0.0),
            Self::Mean(_) => true,
        }
    }

    /// Tokens a request, of so many completed ones.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "no run has 2^53 requests")]
    pub(crate) fn mean(&self, completed: u64) -> Option<f64> {
        match self {
            Self::Total(found) => found.value.number().map(|total| total / completed as f64),
            Self::Mean(found) => found.value.number(),
        }
        .filter(|mean| mean.is_finite() && *mean >= 0.0)
    }
}
