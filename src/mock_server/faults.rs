//! What goes wrong, on demand.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use clap::Args;

use super::draw::{draw, share};

/// The faults of the transport and the process; each request meets at most one. Shares are `0.0..=1.0`.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Faults")]
pub(crate) struct Faults {
    /// The share of requests that get HTTP 500, drawn anew for each attempt at a question
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub fail_rate: f64,
    /// HTTP 500 from the N-th request on
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub fail_from: Option<u64>,
    /// How many requests --fail-from fails [default: all]
    #[arg(long, value_name = "N", requires = "fail_from")]
    pub fail_count: Option<u64>,
    /// HTTP 500 while more than N requests are in flight; with --latency-ms, for instant answers never overlap
    #[arg(long, value_name = "N", requires = "latency_ms")]
    pub fail_above_concurrency: Option<u64>,
    /// The share of requests that are never answered, drawn anew for each attempt at a question
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub hang_rate: f64,
    /// Never answer after the first N requests
    #[arg(long, value_name = "N")]
    pub hang_after: Option<u64>,
    /// The share of requests whose connection closes amid the answer, drawn anew for each attempt at a question
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub close_early_rate: f64,
    /// End the process with exit code 134, that of an abort, once N requests are answered
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub die_after: Option<u64>,
}

/// What happens to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It gets HTTP 500.
    Fail,
    /// It is never answered.
    Hang,
    /// Its connection closes amid the answer.
    CloseEarly,
}

/// A request as far as faults care.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival<'a> {
    /// Counted from 1.
    pub number: u64,
    /// How many requests are in flight, this one among them.
    pub in_flight: u64,
    /// What it asks.
    pub question: &'a str,
    /// How often this was asked before.
    pub attempt: u32,
}

impl Faults {
    /// What happens to a request, if anything.
    #[must_use]
    pub(crate) fn strike(&self, seed: u64, arrival: Arrival<'_>) -> Option<Fault> {
        let drawn = |what: &str, share: f64| {
            let subject = format!("{}\0{}", arrival.attempt, arrival.question);
            share > 0.0 && draw(seed, what, &subject) < share
        };
        let fails = self.in_window(arrival.number)
            || self.fail_above_concurrency.is_some_and(|most| arrival.in_flight > most)
            || drawn("fail", self.fail_rate);
        let hangs = self.hang_after.is_some_and(|after| arrival.number > after);
        if fails {
            Some(Fault::Fail)
        } else if hangs || drawn("hang", self.hang_rate) {
            Some(Fault::Hang)
        } else {
            drawn("close", self.close_early_rate).then_some(Fault::CloseEarly)
        }
    }

    fn in_window(&self, number: u64) -> bool {
        let past = self.fail_from.and_then(|from| number.checked_sub(from));
        past.is_some_and(|past| self.fail_count.is_none_or(|count| past < count))
    }
}

/// How often each question was asked.
#[derive(Debug, Default)]
pub(crate) struct Attempts(Mutex<HashMap<u64, u32>>);

impl Attempts {
    /// Notes that a question is asked, and tells how often it was before. Only hashes are kept: questions can be long.
    pub(crate) fn note(&self, question: &str) -> u32 {
        let mut hasher = DefaultHasher::new();
        question.hash(&mut hasher);
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(hasher.finish()).or_default();
        let before = *count;
        *count = before.saturating_add(1);
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Faults = Faults {
        fail_rate: 0.0,
        fail_from: None,
        fail_count: None,
        fail_above_concurrency: None,
        hang_rate: 0.0,
        hang_after: None,
        close_early_rate: 0.0,
        die_after: None,
    };

    fn arrival(number: u64) -> Arrival<'static> {
        Arrival {
            number,
            in_flight: 1,
            question: "q",
            attempt: 0,
        }
    }

    fn struck(faults: &Faults, numbers: std::ops::RangeInclusive<u64>) -> Vec<u64> {
        numbers.filter(|n| faults.strike(0, arrival(*n)).is_some()).collect()
    }

    #[test]
    fn windows_count_from_one() {
        let (from, count) = (Some(3), Some(2));
        let window = Faults {
            fail_from: from,
            fail_count: count,
            ..NONE
        };
        assert_eq!(struck(&window, 1..=6), [3, 4]);
        assert_eq!(
            struck(
                &Faults {
                    fail_from: from,
                    ..NONE
                },
                1..=6
            ),
            [3, 4, 5, 6]
        );
        let hang = Faults {
            hang_after: Some(4),
            ..NONE
        };
        assert_eq!(struck(&hang, 1..=6), [5, 6]);
        assert_eq!(struck(&NONE, 1..=6), [0u64; 0]);
    }

    #[test]
    fn concurrency_counts_the_request_itself() {
        let faults = Faults {
            fail_above_concurrency: Some(2),
            ..NONE
        };
        let at = |in_flight| {
            let arrival = Arrival {
                in_flight,
                ..arrival(1)
            };
            faults.strike(0, arrival)
        };
        assert_eq!([at(1), at(2), at(3)], [None, None, Some(Fault::Fail)]);
    }

    #[test]
    fn a_retry_draws_anew_and_a_rerun_draws_the_same() {
        let faults = Faults { fail_rate: 0.5, ..NONE };
        let run = || -> Vec<bool> {
            let strike = |attempt| faults.strike(9, Arrival { attempt, ..arrival(1) }).is_some();
            (0..200).map(strike).collect()
        };
        let failed = run().iter().filter(|failed| **failed).count();
        assert!((70..130).contains(&failed), "{failed}");
        assert_eq!(run(), run());
    }

    #[test]
    fn attempts_are_counted_by_question() {
        let attempts = Attempts::default();
        assert_eq!(["a", "a", "b", "a"].map(|q| attempts.note(q)), [0, 1, 0, 2]);
    }
}
