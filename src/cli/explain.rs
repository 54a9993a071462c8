//! `sweepctl explain`: which rule took each row for evaluation, or why none did.

use clap::Args;
use serde::Serialize;

use super::generate::{RowArgs, matching, mode};
use super::output;
use crate::config::policy::{GroupBy, Pick, Rule};
use crate::config::types::ScenarioType;
use crate::matrix::evals::{self, EvalMode, Examined, Group, Outcome};
use crate::matrix::row::{Conc, Row};
use crate::step::eval::framework;

/// `sweepctl explain`
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// Config keys, exact or with `*` and `?`
    #[arg(value_name = "KEY", default_value = "*")]
    config_keys: Vec<String>,
    #[command(flatten)]
    rows: RowArgs,
    /// Explain throughput alone: no row is evaluated
    #[arg(long, conflicts_with_all = ["evals_only", "all_evals"], help_heading = "How to sweep")]
    no_evals: bool,
    /// Explain every eligible eval
    #[arg(long, help_heading = "How to sweep")]
    all_evals: bool,
    /// Explain a sweep without throughput
    #[arg(long, help_heading = "How to sweep")]
    evals_only: bool,
    /// Keep these concurrencies
    #[arg(long, num_args = 1.., value_name = "N")]
    conc: Vec<u64>,
}

/// Why a row is evaluated or not.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Explained<'a> {
    exp_name: &'a str,
    config_key: Option<&'a str>,
    runner: &'a str,
    conc: &'a [u64],
    taken: bool,
    /// One for each rule that looks at such rows.
    rules: Vec<Verdict<'a>>,
    /// Where no rule looks at such rows: what kind they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    nothing_looks_at: Option<String>,
}

/// What one rule made of a row.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Verdict<'a> {
    rule: &'a str,
    taken: bool,
    /// In words.
    why: String,
    /// What the rows of the group have in common.
    group: Vec<(String, String)>,
    /// The sorted distinct concurrencies of the group.
    concurrencies: &'a [u64],
    /// The concurrencies that the rule picks of them.
    picks: Vec<(&'static str, u64)>,
}

impl Explain {
    /// Explains and prints.
    ///
    /// # Errors
    /// Everything wrong with the inputs.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let inputs = self.rows.inputs.files()?.load()?;
        let policy = self
            .rows
            .inputs
            .policy
            .chosen(&inputs.policies)
            .map_err(crate::config::problem::Problems::from)?;
        let configs = matching(&inputs.master, &self.config_keys)?;
        let mut expansion = self.rows.expansion(true);
        expansion.conc = (!self.conc.is_empty()).then(|| self.conc.clone());
        let rows = expansion.rows(configs, &inputs.runners)?;
        let mode = mode(self.no_evals, self.all_evals, self.evals_only);
        let rules = match mode {
            EvalMode::AllEvals => &policy.all_evals,
            _ => &policy.selection,
        };
        let examined = match mode {
            EvalMode::NoEvals => Vec::new(),
            _ => evals::examine(&rows, rules, mode),
        };
        let explained: Vec<Explained<'_>> = rows
            .iter()
            .enumerate()
            .map(|(index, row)| explain(index, row, &rows, &examined))
            .collect();
        if output::wants_json(self.rows.json) {
            return output::json(&explained);
        }
        output::text(&table(&explained))
    }
}

fn explain<'a>(index: usize, row: &'a Row, rows: &'a [Row], examined: &'a [Examined<'a>]) -> Explained<'a> {
    let rules: Vec<Verdict<'_>> = examined.iter().filter_map(|e| verdict(index, row, rows, e)).collect();
    let kind = match row.seq() {
        Some(seq) => format!("{} {seq} rows", nodes(row)),
        None => format!("{} {} rows", nodes(row), ScenarioType::AgenticCoding.as_str()),
    };
    Explained {
        exp_name: &row.exp_name,
        config_key: row.config_key.as_deref(),
        runner: &row.topology.runner,
        conc: row.conc.points(),
        taken: rules.iter().any(|verdict| verdict.taken),
        nothing_looks_at: rules.is_empty().then_some(kind),
        rules,
    }
}

fn nodes(row: &Row) -> &'static str {
    match row.conc {
        Conc::Point(_) => "single-node",
        Conc::List(_) => "multi-node",
    }
}

fn verdict<'a>(index: usize, row: &Row, rows: &[Row], examined: &'a Examined<'a>) -> Option<Verdict<'a>> {
    let rule = examined.rule;
    let (group, taken, why) = match examined.outcomes[index] {
        Outcome::Elsewhere => return None,
        Outcome::UnderFloor => (
            None,
            false,
            format!(
                "concurrency {} is under the floor {}",
                row.conc.highest(),
                rule.floor.unwrap_or(0)
            ),
        ),
        Outcome::Fallback => (
            None,
            true,
            "the highest of a deployment that has nothing at the floor".to_owned(),
        ),
        Outcome::Taken { group, pick } => (Some(group), true, taken_because(rule, pick)),
        Outcome::Passed { group } => (Some(group), false, passed_because(rule, row, &examined.groups[group])),
    };
    let group = group.map(|group| &examined.groups[group]);
    Some(Verdict {
        rule: &rule.name,
        taken,
        why,
        group: group
            .map(|group| in_common(rule, &rows[group.first]))
            .unwrap_or_default(),
        concurrencies: group.map(|group| group.levels.as_slice()).unwrap_or_default(),
        picks: group
            .map(|group| group.picks.iter().map(|(p, level)| (pick_name(*p), *level)).collect())
            .unwrap_or_default(),
    })
}

fn pick_name(pick: Pick) -> &'static str {
    Pick::CHOICES
        .iter()
        .find(|(_, p)| *p == pick)
        .map_or("", |(name, _)| name)
}

fn taken_because(rule: &Rule, pick: Pick) -> String {
    let what = match pick {
        Pick::Every => "every such row".to_owned(),
        pick => format!("the {} concurrency of its group", pick_name(pick).replace('-', " ")),
    };
    match &rule.evaluator {
        Some(evaluator) if !evaluator.suite.is_empty() => {
            let size = match framework::suite(evaluator, &[".".into()]) {
                Ok(Some(suite)) if suite.cases == suite.checks => format!(" ({} cases)", suite.cases),
                Ok(Some(suite)) => format!(" ({} cases, {} checks)", suite.cases, suite.checks),
                Ok(None) if evaluator.is_benchmark() => ", in a job of its own".to_owned(),
                Ok(None) => String::new(),
                Err(_) => ", which nothing here runs".to_owned(),
            };
            format!("{what}, by {} {}{size}", evaluator.framework, evaluator.suite)
        }
        _ => what,
    }
}

fn passed_because(rule: &Rule, row: &Row, group: &Group) -> String {
    let floor = rule.floor.unwrap_or(0);
    let level = row
        .conc
        .points()
        .iter()
        .copied()
        .filter(|p| *p >= floor)
        .max()
        .unwrap_or(0);
    if group.picks.iter().any(|(_, picked)| *picked == level) {
        return "an earlier row of its group has the same concurrency".to_owned();
    }
    let picks: Vec<String> = group
        .picks
        .iter()
        .map(|(pick, level)| format!("{} {level}", pick_name(*pick)))
        .collect();
    format!("its group picks {}, this is {level}", picks.join(" and "))
}

/// The fields that make the group, with their values.
fn in_common(rule: &Rule, first: &Row) -> Vec<(String, String)> {
    match &rule.group_by {
        None => Vec::new(),
        Some(GroupBy::Topology(_)) => vec![("topology".to_owned(), first.exp_name.clone())],
        Some(GroupBy::Fields(fields)) => fields
            .iter()
            .map(|field| (field.name(), first.topology.field(*field).to_string()))
            .collect(),
    }
}

fn table(explained: &[Explained<'_>]) -> String {
    let mut rows = Vec::new();
    for row in explained {
        let points: Vec<String> = row.conc.iter().map(u64::to_string).collect();
        let start = |rule: &str, eval: &str, why: String, levels: &[u64]| {
            let (name, runner) = (row.exp_name.to_owned(), row.runner.to_owned());
            let config = row.config_key.unwrap_or_default().to_owned();
            let levels: Vec<String> = levels.iter().map(u64::to_string).collect();
            vec![
                name,
                config,
                runner,
                points.join(","),
                eval.to_owned(),
                rule.to_owned(),
                why,
                levels.join(" "),
            ]
        };
        if let Some(kind) = &row.nothing_looks_at {
            rows.push(start("", "no", format!("no rule looks at {kind}"), &[]));
        }
        for verdict in &row.rules {
            let eval = if verdict.taken { "yes" } else { "no" };
            rows.push(start(verdict.rule, eval, verdict.why.clone(), verdict.concurrencies));
        }
    }
    output::table(
        &[
            "experiment",
            "config",
            "runner",
            "conc",
            "eval",
            "rule",
            "why",
            "concurrencies of its group",
        ],
        &rows,
    )
}
