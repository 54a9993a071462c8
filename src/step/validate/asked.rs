//! Whether the tasks of a result file are the tasks that the job asked for.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::{FileCheck, Request};
use crate::config::fields::Side;
use crate::config::problem::{Problem, nearest};
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
    /// Its envelope names no suite: the default task, or what its fleet evaluates in its place, which the thresholds
    /// say.
    ///
    /// Thresholds that name the default task leave two sets: that task alone, or every task that they name. Those that
    /// do not name it leave the tasks that they name, and the default one where it is there. Nothing else passes, and
    /// neither does anything under a name that differs from the default task's by case or a space.
    Fleet {
        /// The default task's name.
        default: String,
    },
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
                true => Self::Fleet {
                    default: Task::find(task::DEFAULT, roots)
                        .map_or_else(|_| task::DEFAULT.to_owned(), |task| task.name),
                },
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

    /// The task that a job runs unless its fleet has another; `None` where nothing says so.
    fn task(&self) -> Option<&str> {
        match self {
            Self::Anything => None,
            Self::Fleet { default: name } | Self::Task { name, .. } => Some(name),
        }
    }
}

/// Refuses settings of the job's config that name another task than the job's: a task file may bear the name of the
/// one that it stands in for, so that its results do not show it.
pub(super) fn settings(request: &Request, problems: &mut Vec<Problem>) {
    let (Some(wanted), Some(envelope)) = (request.asked.task(), &request.envelope) else {
        return;
    };
    let Some(roles) = envelope.row.topology.roles() else {
        return;
    };
    for side in Side::ALL {
        let settings = roles.side(side).additional_settings.iter().flatten();
        for (name, value) in settings.filter_map(|setting| setting.split_once('=')) {
            let names_task = task::VARIABLES
                .iter()
                .any(|known| known.eq_ignore_ascii_case(name.trim()));
            let value = value.trim();
            if names_task && !value.is_empty() && value != wanted {
                let shown: String = value.chars().take(SHOWN).flat_map(char::escape_debug).collect();
                let message = format!(
                    "the envelope: `additional-settings` of {} sets `{}={shown}`, and the job asked for `{wanted}`",
                    side.name(),
                    name.trim()
                );
                let hint = "a row's suite names its task: remove the setting from the config, and plan again";
                problems.push(Problem::file("", message).hint(hint));
            }
        }
    }
}

/// How much of a setting a message shows, in characters.
const SHOWN: usize = 60;

impl FileCheck<'_, '_> {
    pub(super) fn asked(&mut self) {
        let judge = self.judge;
        match &judge.request.asked {
            Asked::Anything => {}
            Asked::Fleet { default } => self.fleet(default),
            Asked::Task { name, may_be_group } => self.exactly(name, *may_be_group),
        }
    }

    /// A job without a suite: see [`Asked::Fleet`].
    fn fleet(&mut self, default: &str) {
        let names = self.names();
        let thresholds = &self.judge.request.thresholds;
        let known = thresholds.tasks(self.judge.prefix.as_deref());
        let is_there = |task: &str| names.contains(task) || self.result.is_group(task);
        let within = match (names.contains(default), known.contains(default)) {
            (true, true) if known.iter().all(|task| is_there(task)) => beneath(self.result, &known, default),
            (true, _) => BTreeSet::from([default.to_owned()]),
            (false, false) if !names.iter().any(|name| is_misspelled(name, default)) => {
                beneath(self.result, &known, default)
            }
            (false, _) => return self.lacks(default, &names),
        };
        if names.is_disjoint(&within) {
            return self.lacks(default, &names);
        }
        for name in names.difference(&within) {
            self.unasked(name, default);
        }
    }

    fn exactly(&mut self, wanted: &str, may_be_group: bool) {
        let names = self.names();
        let is_group = may_be_group && self.result.is_group(wanted);
        if !names.contains(wanted) && !is_group {
            self.lacks(wanted, &names);
        }
        let within = match is_group {
            true => beneath(self.result, &BTreeSet::from([wanted]), ""),
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

/// Some tasks, and everything that groups among them hold; `never_group` is a task, whatever the file says.
fn beneath(result: &ResultFile, tasks: &BTreeSet<&str>, never_group: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut pending: Vec<&str> = tasks.iter().copied().collect();
    while let Some(name) = pending.pop() {
        if found.insert(name.to_owned()) && name != never_group {
            pending.extend(result.subtasks(name));
        }
    }
    found
}
