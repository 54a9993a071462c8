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
    /// The job's id, where it is known.
    fn job(&self) -> Option<&str>;
    /// Where it lies, for people.
    fn source(&self) -> &str;
}

/// Results by whether they count.
pub(super) struct Newest<T> {
    /// Those that do.
    pub kept: Vec<T>,
    /// Older attempts.
    pub superseded: Vec<Job>,
    /// Two results of one attempt, of which the first counts.
    pub problems: Vec<Problem>,
}

/// Keeps the newest attempt at each point.
pub(super) fn newest<T: Attempt>(results: Vec<T>) -> Newest<T> {
    let mut last: HashMap<String, (u64, u64)> = HashMap::new();
    for result in &results {
        if let Some(point) = result.point() {
            let newest = last.entry(point).or_default();
            *newest = (*newest).max(result.number());
        }
    }
    let mut taken: HashMap<String, String> = HashMap::new();
    let mut newest = Newest {
        kept: Vec::new(),
        superseded: Vec::new(),
        problems: Vec::new(),
    };
    for result in results {
        let Some(point) = result.point() else {
            newest.kept.push(result);
            continue;
        };
        let source = result.source();
        let (run, attempt) = result.number();
        if (run, attempt) < last[&point] {
            newest.superseded.push(Job {
                id: result.job().unwrap_or_default().to_owned(),
                name: String::new(),
                state: State::Superseded,
                reason: format!("{source}: attempt {attempt} of run {run}, there is a newer one"),
            });
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
