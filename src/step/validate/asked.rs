//! Whether the tasks of a result file are the tasks that the job asked for.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::FileCheck;
use crate::config::problem::nearest;
use crate::config::thresholds::is_misspelled;
use crate::matrix::envelope::Envelope;
use crate::step::eval::framework;
use crate::step::eval::task::{self, Task};
use crate::step::results::lm_eval::ResultFile;

/// Which tasks a job asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Asked {
    /// Nothing says so: there is no envelope.
    #[default]
    Anything,
    /// Its envelope names no suite, so it runs the default task, unless its fleet has another: the tasks that a fleet
    /// evaluates are those that its thresholds name.
    Fleet,
    /// This one.
    Task {
        /// Its name.
        name: String,
        /// Whether it may be a group: a task file says that it is none.
        may_be_group: bool,
    },
}

impl Asked {
    /// What a job asks for: the task that it was given beside its row, else its suite, else the default. `roots` are
    /// folders that may hold task files.
    #[must_use]
    pub fn of(envelope: &Envelope, given: Option<&str>, roots: &[PathBuf]) -> Self {
        let evaluator = envelope.row.eval.evaluator.as_ref();
        let suite = evaluator.map(|e| e.suite.as_str()).filter(|suite| !suite.is_empty());
        let own = evaluator.is_none_or(|e| e.framework == framework::DEFAULT);
        let Some(name) = given.filter(|_| own).or(suite) else {
            return match own {
                true => Self::Fleet,
                // What another framework runs without a suite only it knows.
                false => Self::Anything,
            };
        };
        match Task::find(name, roots) {
            Ok(task) if own => Self::Task {
                name: task.name,
                may_be_group: task.is_group,
            },
            _ => Self::Task {
                name: name.to_owned(),
                may_be_group: own && name != task::DEFAULT,
            },
        }
    }
}

impl FileCheck<'_, '_> {
    pub(super) fn asked(&mut self) {
        let judge = self.judge;
        match &judge.request.asked {
            Asked::Anything => {}
            Asked::Fleet => self.fleet(),
            Asked::Task { name, may_be_group } => self.exactly(name, *may_be_group),
        }
    }

    /// A job without a suite.
    fn fleet(&mut self) {
        let wanted = task::DEFAULT;
        let names = self.names();
        if self.judge.threshold(wanted).is_none() && !names.iter().any(|name| is_misspelled(name, wanted)) {
            return;
        }
        if !names.contains(wanted) {
            return self.lacks(wanted, &names);
        }
        // What stands beside it is the fleet's where a threshold names it.
        let known: Vec<&str> = names
            .iter()
            .map(String::as_str)
            .filter(|name| self.knows(name))
            .collect();
        let within = beneath(self.result, known);
        for name in names.difference(&within) {
            self.unasked(name, wanted);
        }
    }

    fn knows(&self, task: &str) -> bool {
        self.judge.threshold(task).is_some()
    }

    fn exactly(&mut self, wanted: &str, may_be_group: bool) {
        let names = self.names();
        let is_group = may_be_group && self.result.is_group(wanted);
        if !names.contains(wanted) && !is_group {
            self.lacks(wanted, &names);
        }
        let within = match is_group {
            true => beneath(self.result, vec![wanted]),
            false => BTreeSet::from([wanted.to_owned()]),
        };
        for name in names.difference(&within) {
            self.unasked(name, wanted);
        }
    }

    fn names(&self) -> BTreeSet<String> {
        self.result.tasks().map(|(name, _)| name.to_owned()).collect()
    }

    fn lacks(&mut self, wanted: &str, names: &BTreeSet<String>) {
        let hint = nearest(wanted, names.iter().map(String::as_str)).replacen("did you mean", "there is", 1);
        let hint = format!(
            "{}; another task's score says nothing of this one",
            hint.trim_end_matches('?')
        );
        self.problem(format!("the job asked for `{wanted}`, and `results` has none"), hint);
    }

    fn unasked(&mut self, name: &str, wanted: &str) {
        let why = match is_misspelled(name, wanted) {
            true => ": names that differ in case or a space are two tasks",
            false => "",
        };
        self.problem(
            format!("`results` has `{name}`, and the job asked for `{wanted}`{why}"),
            "the results may be another job's: look at what was staged",
        );
    }
}

/// Some tasks, and everything that groups among them hold.
fn beneath<'r>(result: &'r ResultFile, mut pending: Vec<&'r str>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    while let Some(name) = pending.pop() {
        if found.insert(name.to_owned()) {
            pending.extend(result.subtasks(name));
        }
    }
    found
}
