//! What of a sweep is published: the one decision that collection, gates, comparison, announcement and verdict ask.
//!
//! A job is done where its collector found everything that was planned, and nothing says that the job failed: neither
//! GitHub of the job itself, nor, where it says nothing of single jobs, the result of its whole bucket.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::{Job, State};
use crate::config::workflows::publish::Publish;
use crate::matrix::envelope::Envelope;
use crate::matrix::recipes;
use crate::plural;

/// The jobs that the reason of a withheld recipe names.
const NAMED: usize = 3;

/// What GitHub says of how jobs ended, each by the id of its envelope.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ended {
    /// How single jobs ended, such as `success` or `failure`.
    pub jobs: HashMap<String, String>,
    /// The job of the workflow that a job was a part of, and how the whole of that ended.
    pub whole: HashMap<String, (String, String)>,
}

/// The ledger of a run: the file `ledger.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunLedger {
    /// What is published.
    pub publish: Publish,
    /// Every recipe of the plan.
    pub recipes: Vec<Recipe>,
    /// Every planned job.
    pub jobs: Vec<Job>,
}

/// What became of one recipe.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Recipe {
    /// Its fingerprint.
    pub recipe: String,
    /// What is run and on what, for people.
    pub name: String,
    /// Whether it is published.
    pub published: bool,
    /// Its planned jobs.
    pub planned: usize,
    /// Of these, those that are done.
    pub done: usize,
    /// Why it is withheld; where single jobs are published, why some of its own are not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Decides what is published of a plan. `found` is what the collectors say of each job.
#[must_use]
pub(crate) fn decide<'f>(
    plan: &[Envelope],
    found: impl Fn(&str) -> Option<&'f Job>,
    ended: &Ended,
    publish: Publish,
) -> RunLedger {
    let recipes = recipes::of(plan);
    let mut of_job: HashMap<&str, &str> = HashMap::new();
    for recipe in &recipes {
        let jobs = recipe.jobs.iter();
        of_job.extend(jobs.map(|envelope| (envelope.id.as_str(), recipe.fingerprint.as_str())));
    }
    let mut jobs: Vec<Job> = plan
        .iter()
        .map(|envelope| {
            let mut job = settled(envelope, found(&envelope.id), ended);
            job.recipe = of_job.get(job.id.as_str()).copied().unwrap_or_default().to_owned();
            job
        })
        .collect();
    doubt(&mut jobs, ended);
    let by_id: HashMap<&str, &Job> = jobs.iter().map(|job| (job.id.as_str(), job)).collect();
    let all_done = jobs.iter().all(|job| job.state == State::Done);
    let state = |recipe: &recipes::Recipe<'_>| {
        let of_recipe = recipe
            .jobs
            .iter()
            .filter_map(|envelope| by_id.get(envelope.id.as_str()));
        let of_recipe: Vec<&Job> = of_recipe.copied().collect();
        let open: Vec<&Job> = of_recipe
            .iter()
            .copied()
            .filter(|job| job.state != State::Done)
            .collect();
        let (planned, done) = (of_recipe.len(), of_recipe.len() - open.len());
        let published = match publish {
            Publish::Run => all_done,
            Publish::Recipe => open.is_empty(),
            Publish::Job => done > 0,
        };
        Recipe {
            recipe: recipe.fingerprint.clone(),
            name: recipe.name.clone(),
            published,
            planned,
            done,
            reason: match (open.is_empty(), published) {
                (true, true) => String::new(),
                (true, false) => "other jobs of the run are not done, and runs are published whole".to_owned(),
                (false, _) => reason(&open, planned),
            },
        }
    };
    let recipes = recipes.iter().map(state).collect();
    RunLedger { publish, recipes, jobs }
}

/// What became of a planned job, as far as its own traces say.
fn settled(envelope: &Envelope, found: Option<&Job>, ended: &Ended) -> Job {
    let mut job = found.cloned().unwrap_or_default();
    job.id.clone_from(&envelope.id);
    job.name.clone_from(&envelope.name);
    if found.is_none() {
        "no collector accounts for it".clone_into(&mut job.reason);
    }
    if job.state == State::Superseded {
        job.state = State::Missing;
    }
    let own = ended.jobs.get(&envelope.id).filter(|result| *result != SUCCESS);
    if let (State::Done, Some(result)) = (job.state, own) {
        job.state = State::Failed;
        job.reason = format!("the job itself ended as `{result}`, whatever it left");
    }
    job
}

const SUCCESS: &str = "success";
/// The end of the reason of a job that may or may not have failed.
const UNKNOWN: &str = "and nothing says which of its jobs did";

/// A bucket that did not succeed holds a job that failed. Where it shows in none of its jobs, it may be any of those of
/// which GitHub says nothing: none of them counts as done.
fn doubt(jobs: &mut [Job], ended: &Ended) {
    let of = |job: &Job| ended.whole.get(&job.id).filter(|(_, result)| result != SUCCESS);
    let explained: HashSet<String> = jobs
        .iter()
        .filter(|job| job.state != State::Done)
        .filter_map(|job| Some(of(job)?.0.clone()))
        .collect();
    for job in jobs.iter_mut().filter(|job| job.state == State::Done) {
        let Some((whole, result)) = of(job) else { continue };
        if !ended.jobs.contains_key(&job.id) && !explained.contains(whole) {
            job.state = State::Failed;
            job.reason = format!("`{whole}` ended as `{result}`, {UNKNOWN}");
        }
    }
}

fn reason(open: &[&Job], planned: usize) -> String {
    let named = open.iter().take(NAMED).map(|job| {
        let state = job.state.as_str();
        match job.reason.is_empty() {
            true => format!("{} ({}) is {state}", job.name, job.id),
            false => format!("{} ({}) is {state}: {}", job.name, job.id, job.reason),
        }
    });
    let named: Vec<String> = named.collect();
    let more = match open.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let are = if open.len() == 1 { "is" } else { "are" };
    let jobs = plural::count(planned, "job");
    format!("{} of {jobs} {are} not done: {}{more}", open.len(), named.join("; "))
}

impl Job {
    /// Whether it failed only as far as its whole bucket did: nothing is known of the job itself.
    #[must_use]
    pub fn is_doubted(&self) -> bool {
        self.state == State::Failed && self.reason.ends_with(UNKNOWN)
    }
}

impl RunLedger {
    /// Whether the rows of a job are published: those of jobs that are done, of recipes that are.
    #[must_use]
    pub(crate) fn publishes(&self) -> HashSet<&str> {
        let recipes = self.recipes.iter().filter(|recipe| recipe.published);
        let recipes: HashSet<&str> = recipes.map(|recipe| recipe.recipe.as_str()).collect();
        let jobs = self.jobs.iter().filter(|job| job.state == State::Done);
        jobs.filter(|job| recipes.contains(job.recipe.as_str()))
            .map(|job| job.id.as_str())
            .collect()
    }

    /// The recipes that are published.
    pub(crate) fn published(&self) -> impl Iterator<Item = &Recipe> {
        self.recipes.iter().filter(|recipe| recipe.published)
    }

    /// The recipes that are not.
    pub(crate) fn withheld(&self) -> impl Iterator<Item = &Recipe> {
        self.recipes.iter().filter(|recipe| !recipe.published)
    }

    /// What is published, in a sentence.
    #[must_use]
    pub(crate) fn sentence(&self) -> String {
        let published = self.published().count();
        let recipes = plural::count(self.recipes.len(), "recipe");
        match (published, self.recipes.len()) {
            (_, 0) => "Nothing is published: nothing was planned.".to_owned(),
            (0, 1) => "Nothing is published: the one recipe is not complete.".to_owned(),
            (_, 1) => "The one recipe is published.".to_owned(),
            (0, _) => format!("Nothing is published: none of {recipes} is complete."),
            (some, all) if some == all => format!("All {recipes} are published."),
            (some, all) => {
                let are = if some == 1 { "is" } else { "are" };
                format!("{some} of {recipes} {are} published, {} withheld.", all - some)
            }
        }
    }
}
