//! What the collectors say of each planned job: the JSON that `sweepctl collect ... --plan F --ledger FILE` writes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::text;
use crate::config::problem::{Problem, Problems};
use crate::config::workflows::publish::Publish;
use crate::ledger::{Job, State};

/// How deep ledgers lie below their folder: an artifact each, with a folder of its own.
const MAX_DEPTH: usize = 4;

/// What was found of every job, by its id.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Ledgers {
    jobs: HashMap<String, Job>,
    publish: Option<Publish>,
}

impl Ledgers {
    /// Reads a ledger, or every one below a folder: the JSON files that hold an object with a list of `jobs`. Links are not
    /// followed, other files are passed over.
    ///
    /// # Errors
    /// A folder without a ledger, and JSON files that cannot be read.
    pub(crate) fn read(dir: &Path) -> Result<Self, Problems> {
        #[derive(Deserialize)]
        struct Ledger {
            jobs: Vec<Job>,
            #[serde(default)]
            publish: Option<Publish>,
        }
        let mut files = Vec::new();
        let mut problems = Problems::default();
        match dir.is_dir() || !dir.exists() {
            true => json_files(dir, MAX_DEPTH, &mut files, &mut problems),
            false => files.push(dir.to_owned()),
        }
        let mut ledgers = Self::default();
        let mut found = false;
        for path in files {
            let read = text::read(&path).and_then(|source| {
                let value: serde_json::Value = serde_json::from_str(&source.text)
                    .map_err(|error| Problem::file(&source.name, format!("`{}` is no JSON: {error}", source.name)))?;
                if !value.get("jobs").is_some_and(serde_json::Value::is_array) {
                    return Ok(None);
                }
                serde_json::from_value::<Ledger>(value).map(Some).map_err(|error| {
                    let message = format!("`{}` is no ledger of jobs: {error}", source.name);
                    Problem::file(&source.name, message)
                        .hint("write it with `sweepctl collect ... --plan F --ledger FILE`")
                })
            });
            match read {
                Ok(None) => {}
                Ok(Some(ledger)) => {
                    found = true;
                    ledgers.publish = ledgers.publish.or(ledger.publish);
                    ledger.jobs.into_iter().for_each(|job| ledgers.add(job));
                }
                Err(problem) => problems.push(problem),
            }
        }
        if !found && problems.0.is_empty() {
            let place = dir.display().to_string();
            let problem = Problem::file(&place, format!("no collector left a ledger in `{place}`"));
            problems.push(problem.hint("keep what `sweepctl collect ... --plan F --ledger FILE` writes there"));
        }
        problems.into_result()?;
        Ok(ledgers)
    }

    /// The jobs that a collector accounts for here, as it found them.
    pub(crate) fn extend(&mut self, jobs: impl IntoIterator<Item = Job>) {
        jobs.into_iter().for_each(|job| self.add(job));
    }

    /// What is published, where a ledger says so.
    #[must_use]
    pub(crate) fn publish(&self) -> Option<Publish> {
        self.publish
    }

    /// The worst state counts, and every score; a superseded attempt says nothing of the job.
    fn add(&mut self, job: Job) {
        if job.state == State::Superseded {
            return;
        }
        let mut job = Job {
            reason: text::one_line(&job.reason),
            ..job
        };
        if let Some(known) = self.jobs.remove(&job.id) {
            let (mut worse, other) = if known.state >= job.state {
                (known, job)
            } else {
                (job, known)
            };
            let unsaid = other.scores.into_iter().filter(|score| !worse.scores.contains(score));
            let unsaid: Vec<_> = unsaid.collect();
            worse.scores.extend(unsaid);
            worse.diagnostic |= other.diagnostic;
            job = worse;
        }
        self.jobs.insert(job.id.clone(), job);
    }

    /// What was found of a job; `None` where no collector accounts for it.
    #[must_use]
    pub(crate) fn of(&self, id: &str) -> Option<&Job> {
        self.jobs.get(id)
    }
}

fn json_files(dir: &Path, depth: usize, files: &mut Vec<PathBuf>, problems: &mut Problems) {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => {
            let place = dir.display().to_string();
            problems.push(Problem::file(&place, format!("`{place}` cannot be read: {error}")));
            return;
        }
    };
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        // The type of the entry itself: a link is neither a folder nor a file.
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 1 => json_files(&path, depth - 1, files, problems),
            Ok(kind) if kind.is_file() && path.extension().is_some_and(|end| end == "json") => files.push(path),
            _ => {}
        }
    }
}
