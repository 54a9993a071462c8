//! Gates: whether what was collected is published and compared.

use serde::Serialize;

use super::needs::{self, COLLECT_EVALS, COLLECT_RESULTS, JobResult, Needs};
use super::text::listed;
use crate::config::problem::Problems;
use crate::ledger::publish::RunLedger;
use crate::matrix::bucket::Bucket;
use crate::plan_files::Index;
use crate::plural;

/// What a gate stands before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum For {
    /// The publisher: with --results it runs if anything is published; else if every collection succeeded, none is
    /// empty, and no bucket that is among `needs` failed
    Ingest,
    /// The comparison with earlier results: with --results as the publisher; else if there is a collection that succeeded
    /// and is not empty
    Comparison,
}

/// What a gate says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Answer {
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
    pub(crate) fn outputs(&self) -> Vec<(String, String)> {
        vec![
            ("run".to_owned(), self.run.to_string()),
            ("reason".to_owned(), self.reason.clone()),
        ]
    }
}

/// What a collector collects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Collector {
    /// Throughput results.
    Results,
    /// Evals.
    Evals,
}

impl Collector {
    /// Both.
    pub(crate) const ALL: [Self; 2] = [Self::Results, Self::Evals];

    /// Its job.
    #[must_use]
    pub(crate) fn job(self) -> &'static str {
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

    /// The jobs of its buckets.
    fn bucket_jobs(self) -> Vec<String> {
        let own = Bucket::ALL
            .iter()
            .filter(|bucket| bucket.is_eval() == (self == Self::Evals));
        own.map(|bucket| needs::job_of(*bucket)).collect()
    }
}

/// Answers for a gate. The plan is optional: it tells what was not planned from what was dropped. The ledger says what is
/// published.
///
/// # Errors
/// Jobs that are not among `needs`, and counts that are missing or none.
pub(crate) fn gate(
    gate: For,
    needs: &Needs,
    plan: Option<&Index>,
    ledger: Option<&RunLedger>,
) -> Result<Answer, Problems> {
    if let Some(ledger) = ledger {
        return Ok(published(ledger));
    }
    match gate {
        For::Ingest => ingest(needs, plan),
        For::Comparison => comparison(needs),
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
fn collections(needs: &Needs) -> Result<Vec<(Collector, Collection)>, Problems> {
    let collection = |collector: Collector| {
        let job = collector.job();
        let need = needs.job(job)?;
        let collection = match need.result {
            JobResult::Success => Collection::Rows(need.count(job, "rows")?),
            JobResult::Skipped => Collection::None,
            JobResult::Failure => Collection::Failed(format!("`{job}` failed")),
            JobResult::Cancelled => Collection::Failed(format!("`{job}` was cancelled")),
        };
        Ok((collector, collection))
    };
    crate::repo::all(Collector::ALL.map(collection))
}

/// Whether anything is published.
fn published(ledger: &RunLedger) -> Answer {
    let names: Vec<&String> = ledger.withheld().map(|recipe| &recipe.name).take(NAMED).collect();
    let mut reason = ledger.sentence();
    if !names.is_empty() {
        let more = ledger.withheld().count() - names.len();
        let more = if more > 0 {
            format!(", and {more} more")
        } else {
            String::new()
        };
        reason = format!("{reason} Withheld: {}{more}.", listed(&names));
    }
    match ledger.published().next() {
        Some(_) => Answer::yes(reason),
        None => Answer::no(reason),
    }
}

/// Withheld recipes that an answer names.
const NAMED: usize = 10;

fn ingest(needs: &Needs, plan: Option<&Index>) -> Result<Answer, Problems> {
    let mut against = Vec::new();
    let buckets = Collector::ALL.iter().flat_map(|collector| collector.bucket_jobs());
    for job in buckets.chain([needs::CANARY.to_owned()]) {
        let result = needs.0.get(&job).map(|need| need.result);
        if matches!(result, Some(JobResult::Failure | JobResult::Cancelled)) {
            against.push(format!(
                "`{job}` did not succeed, and without --results nothing says what of it is whole"
            ));
        }
    }
    let mut all = 0;
    for (collector, collection) in collections(needs)? {
        let (job, what) = (collector.job(), collector.what());
        let planned = plan.map_or(0, |plan| collector.planned(plan));
        match collection {
            Collection::Failed(reason) => against.push(reason),
            Collection::Rows(0) => against.push(format!("`{job}` found nothing")),
            Collection::Rows(rows) => all += rows,
            Collection::None if planned > 0 => {
                let were = if planned == 1 { "was" } else { "were" };
                let jobs = plural::count(planned, &format!("{what} job"));
                against.push(format!("{jobs} {were} planned and `{job}` did not run"));
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

fn comparison(needs: &Needs) -> Result<Answer, Problems> {
    let rows = collections(needs)?.into_iter().map(|(_, collection)| match collection {
        Collection::Rows(rows) => rows,
        Collection::None | Collection::Failed(_) => 0,
    });
    Ok(match rows.sum() {
        0 => Answer::no("There is nothing to compare: nothing was collected."),
        rows => Answer::yes(format!("{rows} collected rows can be compared.")),
    })
}
