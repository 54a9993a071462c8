//! Gates: whether what was collected is published and compared.

use serde::Serialize;

use super::needs::{COLLECT_EVALS, COLLECT_RESULTS, JobResult, Needs};
use crate::config::problem::Problems;
use crate::plan_files::Index;
use crate::plural;

/// What a gate stands before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum For {
    /// The publisher: it runs if every collection succeeded and none is empty
    Ingest,
    /// The comparison with earlier results: it runs if there is a collection that succeeded and is not empty
    Comparison,
}

/// What a gate says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// Whether the job runs.
    pub run: bool,
    /// Why, in a sentence.
    pub reason: String,
}

impl Answer {
    fn yes(reason: impl Into<String>) -> Self {
        Self {
            run: true,
            reason: reason.into(),
        }
    }

    fn no(reason: impl Into<String>) -> Self {
        Self {
            run: false,
            reason: reason.into(),
        }
    }

    /// The outputs of a step.
    #[must_use]
    pub fn outputs(&self) -> Vec<(String, String)> {
        vec![
            ("run".to_owned(), self.run.to_string()),
            ("reason".to_owned(), self.reason.clone()),
        ]
    }
}

/// What a collector collects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collector {
    /// Throughput results.
    Results,
    /// Evals.
    Evals,
}

impl Collector {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Results, Self::Evals];

    /// The step of the job `collect` that does it.
    #[must_use]
    pub fn step(self) -> &'static str {
        match self {
            Self::Results => COLLECT_RESULTS,
            Self::Evals => COLLECT_EVALS,
        }
    }

    fn what(self) -> &'static str {
        match self {
            Self::Results => "throughput",
            Self::Evals => "eval",
        }
    }

    fn planned(self, plan: &Index) -> usize {
        match self {
            Self::Results => plan.throughput_jobs,
            Self::Evals => plan.eval_jobs,
        }
    }
}

/// Answers for a gate, from the steps that collected. The plan is optional: it tells what was not planned from what did
/// not run.
///
/// # Errors
/// Steps that are not among `steps`, and counts that are missing or none.
pub fn gate(gate: For, steps: &Needs, plan: Option<&Index>) -> Result<Answer, Problems> {
    match gate {
        For::Ingest => ingest(steps, plan),
        For::Comparison => comparison(steps),
    }
}

/// What a collector came to.
enum Collection {
    /// It succeeded, with so many rows.
    Rows(usize),
    /// It was skipped.
    None,
    /// It did not succeed, for this reason.
    Failed(String),
}

/// What both collectors came to.
fn collections(steps: &Needs) -> Result<Vec<(Collector, Collection)>, Problems> {
    let collection = |collector: Collector| {
        let id = collector.step();
        let step = steps.job(id)?;
        let collection = match step.result {
            JobResult::Success => Collection::Rows(step.count(id, "rows")?),
            JobResult::Skipped => Collection::None,
            JobResult::Failure => Collection::Failed(format!("`{id}` failed")),
            JobResult::Cancelled => Collection::Failed(format!("`{id}` was cancelled")),
        };
        Ok((collector, collection))
    };
    crate::repo::all(Collector::ALL.map(collection))
}

fn ingest(steps: &Needs, plan: Option<&Index>) -> Result<Answer, Problems> {
    let mut against = Vec::new();
    let mut all = 0;
    for (collector, collection) in collections(steps)? {
        let (id, what) = (collector.step(), collector.what());
        let planned = plan.map_or(0, |plan| collector.planned(plan));
        match collection {
            Collection::Failed(reason) => against.push(reason),
            Collection::Rows(0) => against.push(format!("`{id}` found nothing")),
            Collection::Rows(rows) => all += rows,
            Collection::None if planned > 0 => {
                let were = if planned == 1 { "was" } else { "were" };
                let jobs = plural::count(planned, &format!("{what} job"));
                against.push(format!("{jobs} {were} planned and `{id}` did not run"));
            }
            Collection::None => {}
        }
    }
    if !against.is_empty() {
        return Ok(Answer::no(format!("Nothing is published: {}.", against.join(", and "))));
    }
    Ok(match all {
        0 => Answer::no("Nothing is published: nothing was collected."),
        rows => Answer::yes(format!("{} can be published.", plural::count(rows, "collected row"))),
    })
}

fn comparison(steps: &Needs) -> Result<Answer, Problems> {
    let rows = collections(steps)?.into_iter().map(|(_, collection)| match collection {
        Collection::Rows(rows) => rows,
        Collection::None | Collection::Failed(_) => 0,
    });
    Ok(match rows.sum() {
        0 => Answer::no("There is nothing to compare: nothing was collected."),
        rows => Answer::yes(format!("{rows} collected rows can be compared.")),
    })
}
