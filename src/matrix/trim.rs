//! Trimming: the lowest concurrency of each topology, for a sweep that only proves that everything starts.

use std::collections::HashMap;
use std::sync::Arc;

use super::row::{Row, Topology};
use crate::config::policy::{Evaluator, PlanTrim};
use crate::config::types::NodeKind;

/// What is kept apart: a topology, and for eval-only rows their evaluator.
type Shape = (Arc<Topology>, Option<Option<Evaluator>>);

/// Keeps the lowest concurrency of each topology, at that row's own place.
///
/// The kept row takes its topology's eval if any row of it had one. Rows that are eval-only (or, with
/// `evals_apart`, that run an eval at all) are trimmed apart from the others, by evaluator.
#[must_use]
pub(crate) fn rows(rows: Vec<Row>, evals_apart: bool) -> Vec<Row> {
    let shape = |row: &Row| -> Shape {
        let apart = row.eval.eval_only || (evals_apart && row.runs_eval());
        (Arc::clone(&row.topology), apart.then(|| row.eval.evaluator.clone()))
    };
    struct Kept {
        index: usize,
        lowest: u64,
        eval: Option<usize>,
    }
    let mut kept: HashMap<Shape, Kept> = HashMap::new();
    for (index, row) in rows.iter().enumerate() {
        let lowest = row.conc.lowest();
        let best = kept.entry(shape(row)).or_insert(Kept {
            index,
            lowest,
            eval: None,
        });
        if lowest < best.lowest {
            best.index = index;
            best.lowest = lowest;
        }
        if row.runs_eval() && best.eval.is_none() {
            best.eval = Some(index);
        }
    }
    let mut chosen: HashMap<usize, (u64, Option<usize>)> =
        kept.into_values().map(|k| (k.index, (k.lowest, k.eval))).collect();
    let evals: HashMap<usize, _> = chosen
        .iter()
        .filter_map(|(index, (_, eval))| Some((*index, rows[(*eval)?].eval.clone())))
        .collect();
    let mut out = Vec::with_capacity(chosen.len());
    for (index, mut row) in rows.into_iter().enumerate() {
        let Some((lowest, _)) = chosen.remove(&index) else {
            continue;
        };
        if let Some(eval) = evals.get(&index)
            && !row.runs_eval()
        {
            row.eval = eval.clone();
        }
        reduce(&mut row, lowest);
        out.push(row);
    }
    out
}

/// Trims the throughput rows of a plan, all together.
#[must_use]
pub(crate) fn plan(mut plan_rows: Vec<Row>, how: PlanTrim) -> Vec<Row> {
    if how == PlanTrim::Topology {
        return rows(plan_rows, false);
    }
    for row in plan_rows.iter_mut().filter(|row| row.node_kind() == NodeKind::Multi) {
        let lowest = row.conc.lowest();
        reduce(row, lowest);
    }
    let kept: std::collections::HashSet<usize> = lowest_of_single_node(&plan_rows);
    let mut index = 0;
    plan_rows.retain(|row| {
        index += 1;
        row.node_kind() == NodeKind::Multi || kept.contains(&(index - 1))
    });
    plan_rows
}

fn lowest_of_single_node(rows: &[Row]) -> std::collections::HashSet<usize> {
    let mut lowest: HashMap<&Topology, usize> = HashMap::new();
    for (index, row) in rows.iter().enumerate() {
        if row.node_kind() == NodeKind::Single {
            let best = lowest.entry(&row.topology).or_insert(index);
            if row.conc.lowest() < rows[*best].conc.lowest() {
                *best = index;
            }
        }
    }
    lowest.into_values().collect()
}

fn reduce(row: &mut Row, lowest: u64) {
    row.conc = row.conc.reduced_to(lowest);
    let multi = row.node_kind() == NodeKind::Multi;
    if multi && row.runs_eval() && !row.eval.eval_all_concs {
        row.eval.eval_conc = Some(lowest);
    }
}
