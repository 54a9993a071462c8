//! Which jobs of a run failed, and which of them are run again: facts in, decision out.

mod cause;
pub(crate) mod gather;

use std::collections::HashMap;

use serde::Serialize;

use cause::{Cause, cause};
pub(crate) use cause::{Class, LAUNCH};

use super::client::answers::{Annotation, Job, Run};
use super::run_jobs::{self, Places};

/// A job that did not succeed, and what is done about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Judged {
    /// Its number.
    pub job_id: u64,
    /// Its name.
    pub name: String,
    /// Its bucket; `hosted` where it takes no GPU.
    pub bucket: String,
    /// Its page.
    pub url: Option<String>,
    /// What failed.
    pub class: Class,
    /// Which step failed.
    pub step: Option<String>,
    /// Its exit code.
    pub exit_code: Option<i32>,
    /// Why it is of that class.
    pub why: String,
    /// How often it was started.
    pub attempts: u64,
    /// Whether it is run again.
    pub rerun: bool,
    /// Why it is not; empty where it is.
    pub why_not: String,
}

/// A job that did not succeed, with everything that decides about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The job, of the latest attempt at its run.
    pub job: Job,
    /// What it said.
    pub annotations: Vec<Annotation>,
    /// How often it was started.
    pub attempts: u64,
}

/// Judges the jobs that did not succeed, by class and then in the order of the run.
#[must_use]
pub(crate) fn judge(facts: &[Facts], places: &Places, max_attempts: u64) -> Vec<Judged> {
    let judged = |facts: &Facts| {
        let cause = cause(&facts.job, &facts.annotations)?;
        let why_not = why_not(&cause, facts.attempts, max_attempts);
        Some(Judged {
            job_id: facts.job.id,
            name: run_jobs::short(&facts.job.name).to_owned(),
            bucket: places.of(&facts.job.name).name().to_owned(),
            url: facts.job.html_url.clone(),
            class: cause.class,
            step: cause.step,
            exit_code: cause.exit_code,
            why: cause.why,
            attempts: facts.attempts,
            rerun: why_not.is_none(),
            why_not: why_not.unwrap_or_default(),
        })
    };
    let mut judged: Vec<Judged> = facts.iter().filter_map(judged).collect();
    judged.sort_by_key(|judged| judged.class);
    judged
}

fn why_not(cause: &Cause, attempts: u64, max_attempts: u64) -> Option<String> {
    match cause.class {
        Class::Infrastructure if cause.measured => Some("it has measured: clean the node instead".to_owned()),
        Class::Infrastructure if attempts >= max_attempts => {
            Some(format!("it was started {attempts} times, {max_attempts} is the most"))
        }
        Class::Infrastructure => None,
        Class::Consequence => Some("it runs again with the jobs that it waits for".to_owned()),
        class => Some(format!("{} is no fault of the infrastructure", class.as_str())),
    }
}

/// What is asked of GitHub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "action")]
pub(crate) enum Rerun {
    /// Nothing.
    Nothing {
        /// Why.
        reason: String,
    },
    /// One job again; `later` are those that GitHub takes only when the run has ended again.
    #[serde(rename_all = "kebab-case")]
    Job {
        /// Which.
        job_id: u64,
        /// Its name.
        name: String,
        /// How many more would be.
        later: usize,
    },
    /// Every job that failed: all of them for the infrastructure.
    #[serde(rename_all = "kebab-case")]
    AllFailed {
        /// How many.
        jobs: usize,
    },
}

/// What to ask of GitHub. It runs jobs again only of a run that has ended, and the first one starts the run: where others
/// failed for another reason, one job a turn is all there is.
#[must_use]
pub(crate) fn rerun(run: &Run, judged: &[Judged]) -> Rerun {
    let nothing = |reason: &str| Rerun::Nothing {
        reason: reason.to_owned(),
    };
    if !run_jobs::has_ended(run) {
        return nothing("the run goes on, and GitHub runs jobs again only of one that has ended");
    }
    let again: Vec<&Judged> = judged.iter().filter(|judged| judged.rerun).collect();
    let Some(first) = again.first() else {
        return nothing("no job failed for the infrastructure, or none may be run again");
    };
    let only = judged
        .iter()
        .all(|judged| judged.rerun || judged.class == Class::Consequence);
    match again.len() {
        jobs if jobs > 1 && only => Rerun::AllFailed { jobs },
        jobs => Rerun::Job {
            job_id: first.job_id,
            name: first.name.clone(),
            later: jobs - 1,
        },
    }
}

/// How many jobs failed of each class that some did, in the order of [`Class::ALL`].
#[must_use]
pub(crate) fn counts(judged: &[Judged]) -> Vec<(Class, usize)> {
    let mut counts: HashMap<Class, usize> = HashMap::new();
    for judged in judged {
        *counts.entry(judged.class).or_default() += 1;
    }
    let count = |class| counts.get(&class).map(|count| (class, *count));
    Class::ALL.into_iter().filter_map(count).collect()
}
