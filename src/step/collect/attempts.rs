//! Of several attempts at one job, the newest counts.

use std::collections::HashMap;

use crate::config::problem::Problem;
use crate::ledger::{Job, State};

/// A result that says which attempt it is of.
pub(super) trait Attempt {
    /// What no two results of one attempt share; `None` where the result does not say.
    fn point(&self) -> Option<String>;
    /// Run and attempt; the larger is the newer.
    fn number(&self) -> (u64, u64);
    /// When its results were written, where no attempt is numbered; the larger is the newer.
    fn written(&self) -> i128 {
        0
    }
    /// Why it cannot stand for the job: such an attempt hides none that can.
    fn flaw(&self) -> Option<Flaw> {
        None
    }
    /// The job's id, where it is known.
    fn job(&self) -> Option<&str>;
    /// Where it lies, for people.
    fn source(&self) -> &str;
}

/// Why an attempt cannot stand for its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    /// It left nothing.
    Empty,
    /// What it left contradicts the job.
    Foreign,
}

/// Results by whether they count.
pub(super) struct Newest<T> {
    /// Those that do.
    pub kept: Vec<T>,
    /// Attempts in whose place another counts.
    pub superseded: Vec<Job>,
    /// Those of them that are newer than what counts.
    pub passed_over: Vec<T>,
    /// Two results of one attempt, of which the first counts.
    pub problems: Vec<Problem>,
}

/// What tells attempts apart, whether it has no flaw first; the largest is the newest.
type Age = (bool, u64, u64, i128);

fn age(result: &impl Attempt) -> Age {
    let (run, attempt) = result.number();
    // A number says more than a clock.
    let written = if attempt == 0 { result.written() } else { 0 };
    (result.flaw().is_none(), run, attempt, written)
}

/// Keeps the newest attempt at each point.
pub(super) fn newest<T: Attempt>(results: Vec<T>) -> Newest<T> {
    let mut last: HashMap<String, Age> = HashMap::new();
    for result in &results {
        if let Some(point) = result.point() {
            let age = age(result);
            let newest = last.entry(point).or_insert(age);
            *newest = age.max(*newest);
        }
    }
    let mut taken: HashMap<String, String> = HashMap::new();
    let mut newest = Newest {
        kept: Vec::new(),
        superseded: Vec::new(),
        passed_over: Vec::new(),
        problems: Vec::new(),
    };
    for result in results {
        let Some(point) = result.point() else {
            newest.kept.push(result);
            continue;
        };
        let source = result.source();
        let (own, kept) = (age(&result), last[&point]);
        if own < kept {
            newest.superseded.push(Job {
                id: result.job().unwrap_or_default().to_owned(),
                state: State::Superseded,
                reason: format!("{source}: {}", superseded(&result, kept)),
                ..Job::default()
            });
            if (own.1, own.2, own.3) > (kept.1, kept.2, kept.3) {
                newest.passed_over.push(result);
            }
        } else if let Some(first) = taken.get(&point) {
            let message = format!("{source}: the same attempt at the same job as {first}, which stands");
            let problem = Problem::file(source, message).hint("a job uploads its results once");
            newest.problems.push(problem);
        } else {
            taken.insert(point, source.to_owned());
            newest.kept.push(result);
        }
    }
    newest
}

/// Why an attempt does not count; `newest` is the one that does.
fn superseded(result: &impl Attempt, newest: Age) -> String {
    let which = match result.number() {
        (run, 0) if run > 0 => format!("an attempt without a number, of run {run}"),
        (_, 0) => "an attempt without a number".to_owned(),
        (run, attempt) => format!("attempt {attempt} of run {run}"),
    };
    match result.flaw().filter(|_| newest.0) {
        None => format!("{which}, there is a newer one"),
        Some(Flaw::Empty) => format!("{which} left no result, another one did"),
        Some(Flaw::Foreign) => format!("{which} contradicts the job, another one does not"),
    }
}
