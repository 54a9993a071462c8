//! The policy engine: which rows are evaluated, and why.

use std::collections::HashMap;
use std::sync::Arc;

use super::row::{Conc, EvalMark, FieldValue, Row, Topology};
use super::trim;
use crate::config::policy::{
    EvalConc, EvalPolicy, Evaluator, ExtraRows, Field, GroupBy, Pick, Rule, RuleSet, Take, When,
};
use crate::config::types::NodeKind;

/// What evals do to a run of the generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EvalMode {
    /// Rows are marked in place; all are kept.
    #[default]
    Mark,
    /// Nothing is marked.
    NoEvals,
    /// The selected rows alone.
    EvalsOnly,
    /// Every eligible row, and nothing else.
    AllEvals,
}

impl EvalMode {
    fn rules(self, policy: &EvalPolicy) -> &RuleSet {
        match self {
            Self::AllEvals => &policy.all_evals,
            _ => &policy.selection,
        }
    }

    fn applies(self, rule: &Rule) -> bool {
        match rule.when {
            When::Always => true,
            When::EvalsOnly => self != Self::Mark,
        }
    }
}

/// Marks or selects rows for evaluation, and trims them if asked to.
#[must_use]
pub fn apply(mut rows: Vec<Row>, policy: &EvalPolicy, mode: EvalMode, trim_conc: bool) -> Vec<Row> {
    if mode == EvalMode::NoEvals {
        for row in &mut rows {
            row.eval.run_eval = row.seq().map(|_| false);
        }
    } else {
        let rules = mode.rules(policy);
        let examined = examine(&rows, rules, mode);
        rows = mark(rows, rules, &examined, mode);
    }
    if trim_conc {
        rows = trim::rows(rows, mode == EvalMode::AllEvals);
    }
    if mode == EvalMode::EvalsOnly {
        rows.retain(Row::runs_eval);
        for row in &mut rows {
            row.eval.eval_only = true;
        }
    }
    rows
}

/// What one rule made of all rows.
#[derive(Debug)]
pub struct Examined<'r> {
    /// The rule.
    pub rule: &'r Rule,
    /// Its groups, in the order of their first rows.
    pub groups: Vec<Group>,
    /// What became of each row.
    pub outcomes: Vec<Outcome>,
}

/// Rows that one rule compares.
#[derive(Debug)]
pub struct Group {
    /// The first row, for its name.
    pub first: usize,
    /// The sorted distinct concurrencies of its rows.
    pub levels: Vec<u64>,
    /// The concurrencies that the rule picks.
    pub picks: Vec<(Pick, u64)>,
}

/// What one rule made of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The rule does not look at such rows.
    Elsewhere,
    /// Every concurrency of the row is under the rule's floor.
    UnderFloor,
    /// In a group, and not picked.
    Passed {
        /// The group's index.
        group: usize,
    },
    /// Picked.
    Taken {
        /// The group's index.
        group: usize,
        /// Why.
        pick: Pick,
    },
    /// Stands in for a group without a row at the floor.
    Fallback,
}

/// Applies every rule to every row.
#[must_use]
pub fn examine<'r>(rows: &[Row], rules: &'r RuleSet, mode: EvalMode) -> Vec<Examined<'r>> {
    rules
        .rules
        .iter()
        .filter(|rule| mode.applies(rule))
        .map(|rule| examine_rule(rows, rule))
        .collect()
}

/// Whether a rule looks at such rows at all.
#[must_use]
pub fn concerns(rule: &Rule, topology: &Topology) -> bool {
    let value_matches = |field: Field, values: &[String]| {
        let value = topology.field(field).to_string();
        values.contains(&value)
    };
    topology.scenario_type() == rule.scenario
        && rule.nodes.is_none_or(|nodes| nodes == topology.node_kind())
        && rule
            .sequence_lengths
            .as_ref()
            .is_none_or(|lengths| topology.seq().is_some_and(|seq| lengths.contains(&seq)))
        && rule.r#match.iter().all(|(field, values)| value_matches(*field, values))
}

#[derive(PartialEq, Eq, Hash)]
enum GroupKey<'a> {
    All,
    Topology(&'a Topology),
    Fields(Vec<FieldValue<'a>>),
}

fn group_key<'a>(topology: &'a Topology, group_by: Option<&GroupBy>) -> GroupKey<'a> {
    match group_by {
        None => GroupKey::All,
        Some(GroupBy::Topology(_)) => GroupKey::Topology(topology),
        Some(GroupBy::Fields(fields)) => GroupKey::Fields(values(topology, fields)),
    }
}

fn values<'a>(topology: &'a Topology, fields: &[Field]) -> Vec<FieldValue<'a>> {
    fields.iter().map(|field| topology.field(*field)).collect()
}

/// The row's concurrencies at or above the floor.
fn eligible<'a>(rule: &'a Rule, row: &'a Row) -> impl Iterator<Item = u64> + 'a {
    let floor = rule.floor.unwrap_or(0);
    row.conc.points().iter().copied().filter(move |point| *point >= floor)
}

fn examine_rule<'r>(rows: &[Row], rule: &'r Rule) -> Examined<'r> {
    let mut outcomes = vec![Outcome::Elsewhere; rows.len()];
    let mut keys: HashMap<GroupKey<'_>, usize> = HashMap::new();
    let mut members: Vec<Vec<(usize, u64)>> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        if !concerns(rule, &row.topology) {
            continue;
        }
        let Some(level) = eligible(rule, row).max() else {
            outcomes[index] = Outcome::UnderFloor;
            continue;
        };
        let key = group_key(&row.topology, rule.group_by.as_ref());
        let group = *keys.entry(key).or_insert(members.len());
        if group == members.len() {
            members.push(Vec::new());
        }
        members[group].push((index, level));
    }
    let mut groups = Vec::with_capacity(members.len());
    for (group, members) in members.iter().enumerate() {
        let mut levels: Vec<u64> = members.iter().map(|(_, level)| *level).collect();
        levels.sort_unstable();
        levels.dedup();
        let picks = picks(rule, &levels);
        for (index, _) in members {
            outcomes[*index] = Outcome::Passed { group };
        }
        for (pick, wanted) in &picks {
            let at_level = members.iter().filter(|(_, level)| level == wanted);
            let count = match rule.take {
                Take::Level => usize::MAX,
                Take::FirstRow => 1,
            };
            for (index, _) in at_level.take(count) {
                if !matches!(outcomes[*index], Outcome::Taken { .. }) {
                    outcomes[*index] = Outcome::Taken { group, pick: *pick };
                }
            }
        }
        let first = members[0].0;
        groups.push(Group { first, levels, picks });
    }
    fall_back(rows, rule, &mut outcomes);
    Examined { rule, groups, outcomes }
}

fn picks(rule: &Rule, levels: &[u64]) -> Vec<(Pick, u64)> {
    let mut picks = Vec::new();
    for pick in &rule.pick {
        match pick {
            Pick::Highest => picks.extend(levels.last().map(|level| (*pick, *level))),
            Pick::UpperMedian => picks.push((*pick, upper_median(levels))),
            Pick::Every => picks.extend(levels.iter().map(|level| (*pick, *level))),
        }
    }
    picks
}

/// Element n/2, counted from 0, of sorted distinct values.
fn upper_median(sorted: &[u64]) -> u64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}

fn fall_back(rows: &[Row], rule: &Rule, outcomes: &mut [Outcome]) {
    let Some(fallback) = &rule.fallback else { return };
    let mut best: HashMap<Vec<FieldValue<'_>>, (bool, usize)> = HashMap::new();
    for (index, row) in rows.iter().enumerate() {
        if outcomes[index] == Outcome::Elsewhere {
            continue;
        }
        let served = outcomes[index] != Outcome::UnderFloor;
        let (any_served, first) = best
            .entry(values(&row.topology, &fallback.group_by))
            .or_insert((false, index));
        *any_served |= served;
        if row.conc.highest() > rows[*first].conc.highest() {
            *first = index;
        }
    }
    for (served, first) in best.into_values() {
        if !served {
            outcomes[first] = Outcome::Fallback;
        }
    }
}

/// A taken row's eval.
fn eval_mark(rule: &Rule, row: &Row, outcome: Outcome) -> EvalMark {
    let multi = row.node_kind() == NodeKind::Multi;
    let mut points: Vec<u64> = match outcome {
        Outcome::Fallback => row.conc.points().to_vec(),
        _ => eligible(rule, row).collect(),
    };
    points.sort_unstable();
    points.dedup();
    EvalMark {
        run_eval: Some(true),
        eval_only: false,
        eval_conc: match rule.eval_conc {
            Some(EvalConc::Highest) if multi => points.last().copied(),
            Some(EvalConc::UpperMedian) if multi => Some(upper_median(&points)),
            _ => None,
        },
        eval_all_concs: multi && rule.eval_conc == Some(EvalConc::All),
        evaluator: rule.evaluator.clone(),
    }
}

/// Rows under construction; rows of merging rules grow in place.
#[derive(Default)]
struct Marked {
    rows: Vec<Row>,
    merged: HashMap<(usize, Arc<Topology>), usize>,
}

impl Marked {
    fn add(&mut self, rule_index: usize, rule: &Rule, mut row: Row) {
        if rule.merge && row.node_kind() == NodeKind::Multi {
            let key = (rule_index, Arc::clone(&row.topology));
            if let Some(at) = self.merged.get(&key) {
                merge_into(&mut self.rows[*at], &row.conc);
                return;
            }
            self.merged.insert(key, self.rows.len());
            let own = row.conc.clone();
            merge_into(&mut row, &own);
        }
        self.rows.push(row);
    }
}

/// The rules that take a row, with their places, each evaluator once.
fn takers<'e, 'r>(examined: &'e [Examined<'r>], row: usize) -> Vec<(usize, &'e Examined<'r>)> {
    let mut evaluators: Vec<&Option<Evaluator>> = Vec::new();
    let mut taken = Vec::new();
    for (place, examined) in examined.iter().enumerate() {
        let is_taken = matches!(examined.outcomes[row], Outcome::Taken { .. } | Outcome::Fallback);
        if is_taken && !evaluators.contains(&&examined.rule.evaluator) {
            evaluators.push(&examined.rule.evaluator);
            taken.push((place, examined));
        }
    }
    taken
}

/// Whether a rule's eval marks no row, and is a job beside it: srt-slurm runs one benchmark of a recipe, throughput or
/// accuracy.
fn has_own_job(rule: &Rule) -> bool {
    rule.evaluator.as_ref().is_some_and(Evaluator::is_benchmark)
}

fn mark(rows: Vec<Row>, rules: &RuleSet, examined: &[Examined<'_>], mode: EvalMode) -> Vec<Row> {
    let all = mode == EvalMode::AllEvals;
    let mut marked = Marked::default();
    let mut last = Marked::default();
    for (index, mut row) in rows.into_iter().enumerate() {
        let taken = takers(examined, index);
        let (alone, here): (Vec<_>, Vec<_>) = taken.into_iter().partition(|(_, examined)| has_own_job(examined.rule));
        let is_marked = !here.is_empty();
        if !is_marked && !all {
            row.eval.run_eval = Some(false);
            marked.rows.push(row.clone());
        }
        for (place, (rule_index, examined)) in here.into_iter().chain(alone).enumerate() {
            let rule = examined.rule;
            let extra = place > 0 || !is_marked;
            let mut eval = eval_mark(rule, &row, examined.outcomes[index]);
            eval.eval_only = all || extra;
            // With all evals there is no row that such a copy could follow.
            let target = match rules.extra_rows {
                ExtraRows::Last if place > 0 || (extra && !all) => &mut last,
                _ => &mut marked,
            };
            target.add(rule_index, rule, Row { eval, ..row.clone() });
        }
    }
    marked.rows.append(&mut last.rows);
    marked.rows
}

/// Adds concurrencies to a row, sorted and distinct; its eval concurrency follows.
fn merge_into(row: &mut Row, more: &Conc) {
    let mut points = row.conc.points().to_vec();
    points.extend_from_slice(more.points());
    points.sort_unstable();
    points.dedup();
    if row.eval.eval_conc.is_some() {
        row.eval.eval_conc = points.last().copied();
    }
    row.conc = Conc::List(points);
}
