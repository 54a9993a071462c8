//! Which tasks planned jobs asked for, as their gates have them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::clusters::{self, Clusters};
use crate::config::policy::Evaluator;
use crate::config::runners::{self, Runners};
use crate::config::source::Source;
use crate::config::thresholds::Thresholds;
use crate::matrix::envelope::Envelope;
use crate::step::launch;
use crate::step::validate::{Asked, Request};

/// What says which tasks a job asked for: its evaluator and its runner.
type What<'p> = (Option<&'p Evaluator>, &'p str);

fn what(job: &Envelope) -> What<'_> {
    (job.row.eval.evaluator.as_ref(), job.runs_on.as_str())
}

/// What the jobs of a plan asked for.
pub(super) struct Tasks<'p>(HashMap<What<'p>, Asked>);

impl<'p> Tasks<'p> {
    /// Reads the fleet's files in the working folder; those that cannot be read name nothing.
    pub(super) fn of(plan: &'p [Envelope]) -> Self {
        let mut tasks = HashMap::new();
        if plan.is_empty() {
            return Self(tasks);
        }
        let clusters = Clusters::or_none(Path::new(clusters::FILE));
        let runners = Source::read(Path::new(runners::FILE)).ok();
        let runners = runners.and_then(|source| Runners::load(&Arc::new(source)).ok());
        let runners = runners.unwrap_or_default();
        for job in plan {
            tasks.entry(what(job)).or_insert_with(|| of(job, &clusters, &runners));
        }
        Self(tasks)
    }

    /// What the gate of a job asks of its results.
    pub(super) fn request(&self, job: &Envelope, thresholds: &Thresholds) -> Request {
        Request {
            thresholds: thresholds.clone(),
            envelope: Some(job.clone()),
            asked: self.0.get(&what(job)).cloned().unwrap_or_default(),
            ..Request::default()
        }
    }
}

/// Which of a label's runners took the job is not known: where their clusters evaluate different tasks, nothing is asked.
fn of(job: &Envelope, clusters: &Clusters, runners: &Runners) -> Asked {
    let label = &job.runs_on;
    let names = runners.labels.get(label).map(Vec::as_slice);
    let names = names.unwrap_or(std::slice::from_ref(label));
    let mut given: Vec<Option<String>> = names
        .iter()
        .map(|name| launch::given_task(job, clusters, name))
        .collect();
    given.dedup();
    match given.as_slice() {
        [given] => Asked::of(job, given.as_deref(), &[PathBuf::from(".")]),
        _ => Asked::Anything,
    }
}
