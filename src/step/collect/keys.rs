//! Whether a threshold that was meant for a row reaches it.

use std::collections::{BTreeMap, BTreeSet};

use super::eval_row::EvalRow;
use crate::config::fields::Field;
use crate::config::problem::Problem;
use crate::config::thresholds::Thresholds;

/// The model and the tasks of the rows of one prefix.
#[derive(Default)]
struct OfPrefix<'r> {
    models: BTreeSet<String>,
    tasks: BTreeSet<&'r str>,
}

/// Keys of the thresholds that miss rows by their case, or name a model in full, as the gate finds them for one job. A key
/// that is right for another row misses nothing.
pub(super) fn missed(rows: &[EvalRow], thresholds: &Thresholds) -> Vec<Problem> {
    let mut by_prefix: BTreeMap<String, OfPrefix<'_>> = BTreeMap::new();
    for row in rows {
        let of_prefix = by_prefix.entry(row.text(Field::ModelPrefix)).or_default();
        of_prefix.models.insert(row.text(Field::Model));
        of_prefix.tasks.insert(&row.task);
    }
    let all: BTreeSet<&str> = rows.iter().map(|row| row.task.as_str()).collect();
    let mut missed: Vec<Problem> = Vec::new();
    for (prefix, OfPrefix { models, tasks }) in &by_prefix {
        let mut left = thresholds.clone();
        left.models
            .retain(|key, _| key == prefix || !by_prefix.contains_key(key));
        let is_of_others = |key: &str| all.contains(key) && !tasks.contains(key);
        left.default.retain(|key, _| !is_of_others(key));
        let tasks: Vec<&str> = tasks.iter().copied().collect();
        for model in models {
            let found = left.missed_keys(Some(prefix), Some(model), &tasks);
            missed.extend(found);
        }
    }
    // The same key is met for each model, and a default one for each prefix.
    let mut said = BTreeSet::new();
    missed.retain(|problem| said.insert(problem.message.clone()));
    missed
}
