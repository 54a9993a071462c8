//! The recipes of a plan: the rows of one fingerprint, and the evals of their topology. A curve with a missing point
//! misleads, so a recipe is what is published as a whole.

use std::collections::HashMap;

use indexmap::IndexMap;

use super::envelope::{self, Envelope};
use super::fingerprint::recipe_fingerprint;
use super::row::{EvalMark, Row, Topology};
use crate::config::types::ScenarioType;

/// One recipe of a plan.
#[derive(Debug, Clone)]
pub(crate) struct Recipe<'p> {
    /// Its fingerprint, 64 hex digits.
    pub fingerprint: String,
    /// What is run and on what, for people; recipes that differ in an image alone share it.
    pub name: String,
    /// Its jobs, in the plan's order.
    pub jobs: Vec<&'p Envelope>,
}

/// The recipes of a plan, in the order of their first jobs. Throughput rows carry their fingerprint; an eval has that of
/// the rows with its topology, and where the plan has none of those, the one that they would have.
#[must_use]
pub(crate) fn of(plan: &[Envelope]) -> Vec<Recipe<'_>> {
    let mut known: HashMap<&Topology, &str> = HashMap::new();
    for envelope in plan {
        if let Some(fingerprint) = &envelope.row.recipe_fingerprint {
            known.entry(&envelope.row.topology).or_insert(fingerprint);
        }
    }
    let mut recipes: IndexMap<String, Recipe<'_>> = IndexMap::new();
    // Rows of one topology have one fingerprint: it is computed once.
    let mut computed: HashMap<&Topology, String> = HashMap::new();
    for envelope in plan {
        let row = &envelope.row;
        let own = row.recipe_fingerprint.as_deref();
        let fingerprint = match own.or_else(|| known.get(&*row.topology).copied()) {
            Some(fingerprint) => fingerprint.to_owned(),
            None => computed
                .entry(&row.topology)
                .or_insert_with(|| recipe_fingerprint(&without_eval(row)))
                .clone(),
        };
        let recipe = recipes.entry(fingerprint.clone()).or_insert_with(|| Recipe {
            fingerprint,
            name: envelope::recipe_name(&row.topology),
            jobs: Vec::new(),
        });
        recipe.jobs.push(envelope);
    }
    recipes.into_values().collect()
}

/// The row as it is generated for throughput: rows of fixed lengths say that they evaluate nothing, agentic ones do not.
fn without_eval(row: &Row) -> Row {
    let is_fixed = row.scenario_type() == ScenarioType::FixedSeqLen;
    Row {
        eval: EvalMark {
            run_eval: is_fixed.then_some(false),
            ..EvalMark::default()
        },
        recipe_fingerprint: None,
        ..row.clone()
    }
}
