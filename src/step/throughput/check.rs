//! Whether a run measured what it should: by itself, and held against its row. Written once for every client.

use indexmap::IndexMap;

use super::measured::{Found, Measured, Time};
use crate::config::problem::{Problem, Problems};
use crate::matrix::row::{Row, Scenario};

/// The largest share of requests of an agentic replay that may fail.
pub(crate) const MAX_ERROR_RATE: f64 = 0.10;
/// The ratio of the lengths where RANDOM_RANGE_RATIO says none.
pub(crate) const RANGE_RATIO: f64 = 0.8;
/// How far the mean length of requests may lie under the lowest mean that a client makes of a ratio, and over the
/// highest.
const LENGTH_SLACK: (f64, f64) = (0.8, 1.1);
/// What a limit's own rounding may hide.
const ROUNDING: f64 = 1e-9;
/// The part of the names of times per output token.
const TPOT: &str = "tpot";
/// What it becomes where a time per output token turns into its inverse, tokens a second for one user.
const INTVTY: &str = "intvty";
/// The start of the names of spreads, of which zero is a value like any other.
const SPREAD: &str = "std_";

/// A run, the file that it stands in, and what is wrong with it.
pub(super) struct Check<'a> {
    /// The file, for people.
    pub file: &'a str,
    /// The run.
    pub run: &'a Measured,
    /// What was found so far.
    pub problems: Problems,
}

/// The rates of a run, in tokens a second.
pub(super) struct Rates {
    pub all: f64,
    pub output: f64,
}

impl Check<'_> {
    /// Reports a problem.
    pub(super) fn report(&mut self, message: impl std::fmt::Display) {
        let problem = Problem::file(self.file, format!("{}: {message}", self.file));
        self.problems
            .push(problem.hint("the benchmark did not measure what it should: see its log and the server's"));
    }

    /// What needs no row but its scenario: every request completed (of an agentic replay some may fail), tokens came
    /// out, time passed. Gives the latencies in seconds, and every time per output token as interactivity too.
    pub(super) fn whole(&mut self, row: &Row) -> IndexMap<String, f64> {
        let agentic = matches!(row.topology.scenario, Scenario::Agentic(_));
        match agentic {
            true => self.some_completed(),
            false => self.all_completed(),
        }
        for found in &self.run.stopped {
            self.report(format_args!("`{}` is {}: the run was stopped", found.name, found.value));
        }
        if let Some(mixed) = &self.run.mixed {
            self.report(mixed);
        }
        self.tokens();
        if let Some(duration) = &self.run.duration {
            self.positive(duration);
        }
        self.times()
    }

    fn tokens(&mut self) {
        let input = self.run.input.found();
        if !self.run.input.are_whole() {
            self.counted(input);
        } else if !input.is_null() && input.value.number().is_none_or(|tokens| tokens < 0.0) {
            self.report(format_args!("`{}` is {}, it must be a number", input.name, input.value));
        }
        let output = self.run.output.found();
        if output.positive().is_none() {
            self.report(format_args!(
                "`{}` is {}: nothing was generated",
                output.name, output.value
            ));
        } else if !self.run.output.are_whole() {
            self.counted(output);
        }
    }

    fn completed(&mut self) -> Option<u64> {
        let completed = &self.run.completed;
        match completed.count() {
            Some(done) if done > 0 => return Some(done),
            None if !completed.is_null() => {
                self.report(format_args!(
                    "`{}` is {}, it must be a whole number",
                    completed.name, completed.value
                ));
            }
            _ => self.report(format_args!(
                "`{}` is {}: no request completed",
                completed.name, completed.value
            )),
        }
        None
    }

    fn all_completed(&mut self) {
        let (planned, failed) = (&self.run.planned, &self.run.failed);
        let done = self.completed();
        self.counted(planned);
        self.counted(failed);
        match (done, planned.count()) {
            (_, Some(0)) => self.report(format_args!("`{}` is 0: no request was planned", planned.name)),
            (Some(done), Some(planned)) if done != planned => {
                let name = &self.run.completed.name;
                self.report(format_args!("`{name}` is {done}, {planned} requests were planned"));
            }
            _ => {}
        }
        if let Some(failures) = failed.count().filter(|failures| *failures > 0) {
            let name = &failed.name;
            let failures = crate::plural::count(failures, "request");
            self.report(format_args!("`{name}`: {failures} failed"));
        }
    }

    fn some_completed(&mut self) {
        self.completed();
        self.counted(&self.run.failed);
        if let Some(rate) = self.run.error_share().filter(|rate| *rate > MAX_ERROR_RATE) {
            let (rate, most) = (rate * 100.0, MAX_ERROR_RATE * 100.0);
            self.report(format_args!(
                "{rate:.1} % of the requests failed, at most {most:.0} % may"
            ));
        }
    }

    /// A count that may be missing, and is a number if it is there.
    fn counted(&mut self, found: &Found) {
        if !found.is_null() && found.count().is_none() {
            self.report(format_args!(
                "`{}` is {}, it must be a whole number",
                found.name, found.value
            ));
        }
    }

    /// A positive, finite number; 0 with a problem otherwise.
    fn positive(&mut self, found: &Found) -> f64 {
        found.positive().unwrap_or_else(|| {
            self.unfit(found);
            0.0
        })
    }

    fn unfit(&mut self, found: &Found) {
        let (name, value) = (&found.name, &found.value);
        self.report(format_args!("`{name}` is {value}, it must be a finite number above 0"));
    }

    fn times(&mut self) -> IndexMap<String, f64> {
        let mut metrics = IndexMap::new();
        for time in &self.run.times {
            let found = &time.found;
            if time.per_second.is_nan() {
                self.report(format_args!(
                    "`{}` is {}, no unit of time that is known",
                    found.name, found.value
                ));
                continue;
            }
            let Some(seconds) = seconds(time) else {
                self.unfit(found);
                continue;
            };
            metrics.insert(time.published.clone(), seconds);
            if time.published.contains(TPOT) && seconds > 0.0 {
                metrics.insert(time.published.replace(TPOT, INTVTY), 1.0 / seconds);
            }
        }
        metrics
    }

    /// The rates, which say what is input and what is output.
    pub(super) fn rates(&mut self) -> Rates {
        let (all, output) = (self.positive(&self.run.all_rate), self.positive(&self.run.output_rate));
        if all > 0.0 && output >= all {
            let (output_name, all_name) = (&self.run.output_rate.name, &self.run.all_rate.name);
            self.report(format_args!(
                "`{output_name}` is {output}, not below `{all_name}`, {all}"
            ));
        }
        Rates { all, output }
    }

    /// The concurrency, which is one of the row's.
    pub(super) fn conc(&mut self, row: &Row) -> u64 {
        let found = &self.run.conc;
        let conc = found.count().unwrap_or(0);
        if !row.conc.points().contains(&conc) {
            let planned: Vec<String> = row.conc.points().iter().map(u64::to_string).collect();
            let planned = planned.join(", ");
            self.report(format_args!(
                "`{}` is {}, the row is measured at {planned}",
                found.name, found.value
            ));
        }
        conc
    }

    /// The model as the file names it, else the row's. One is another's path or alias only if their last parts differ
    /// in nothing but case.
    pub(super) fn model(&mut self, row: &Row) -> String {
        let wanted = &row.topology.model;
        let Some(found) = &self.run.model else {
            return wanted.clone();
        };
        let Some(model) = found.value.text() else {
            self.report(format_args!(
                "`{}` is {}, it must name the model",
                found.name, found.value
            ));
            return String::new();
        };
        if !last_part(model).eq_ignore_ascii_case(last_part(wanted)) {
            self.report(format_args!(
                "`{}` is {}, the row's model is `{wanted}`",
                found.name, found.value
            ));
        }
        model.to_owned()
    }

    /// The mean lengths of requests against the row's, under the job's ratio. What a client means by a ratio differs
    /// (from ratio x length to the length, around it, or no range at all) and its file does not say.
    pub(super) fn lengths(&mut self, row: &Row, ratio: f64) {
        let (Some(seq), Some(completed)) = (row.seq(), self.run.completed.count().filter(|done| *done > 0)) else {
            return;
        };
        for (which, tokens, length) in [
            ("input", &self.run.input, seq.isl),
            ("output", &self.run.output, seq.osl),
        ] {
            let found = tokens.found();
            let Some(mean) = tokens.mean(completed) else {
                // What is there and no number is said already.
                if found.is_null() {
                    self.report(format_args!("`{}` is null, it must be a number", found.name));
                }
                continue;
            };
            #[allow(clippy::cast_precision_loss, reason = "lengths stay far below 2^53")]
            let wanted = length as f64;
            let least = LENGTH_SLACK.0 * wanted * f64::midpoint(1.0, ratio);
            let most = LENGTH_SLACK.1 * wanted;
            if mean < least * (1.0 - ROUNDING) || mean > most * (1.0 + ROUNDING) {
                let mean = (mean * 1000.0).round() / 1000.0;
                self.report(format_args!(
                    "a completed request had {mean} {which} tokens on average (`{}`), the row's length is {length}: from \
                     {least:.0} to {most:.0} are right at a RANDOM_RANGE_RATIO of {ratio}",
                    found.name
                ));
            }
        }
    }
}

impl Measured {
    /// The share of requests that failed, 0 to 1: as the file says, else failed of failed and completed ones. `None`
    /// where it does not say.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "no run has 2^53 requests")]
    pub(crate) fn error_share(&self) -> Option<f64> {
        let said = self.error_rate.value.number().filter(|rate| *rate >= 0.0);
        said.or_else(|| {
            let (failed, completed) = (self.failed.count()?, self.completed.count()?);
            let asked = failed.checked_add(completed).filter(|asked| *asked > 0)?;
            Some(failed as f64 / asked as f64)
        })
    }
}

/// The ratio that a job's RANDOM_RANGE_RATIO asks for.
///
/// # Errors
/// A text that is no number from 0 to 1.
pub(crate) fn range_ratio(text: Option<&str>) -> Result<f64, Problem> {
    let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else {
        return Ok(RANGE_RATIO);
    };
    let ratio = text.parse::<f64>().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
    ratio.ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        Problem::file(
            "",
            format!("RANDOM_RANGE_RATIO is {shown:?}, it must be a number from 0 to 1"),
        )
        .hint("set it as the job's environment does, such as 0.8")
    })
}

/// Seconds; `None` for zero (a spread may be zero), for no number, and for one that loses digits as seconds.
fn seconds(time: &Time) -> Option<f64> {
    if time.published.starts_with(SPREAD) && time.found.value.number() == Some(0.0) {
        return Some(0.0);
    }
    let seconds = time.found.positive()? / time.per_second;
    (seconds.is_normal() && (1.0 / seconds).is_normal()).then_some(seconds)
}

/// What stands after the last `/`.
fn last_part(model: &str) -> &str {
    model.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}
