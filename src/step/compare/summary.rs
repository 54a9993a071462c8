//! A comparison for people: tables whose size is bounded.

use std::fmt;

use indexmap::IndexSet;

use super::{Comparison, Measured, Metric, Performance, Score};
use crate::config::fields::Field;
use crate::plural;
use crate::step::collect::summary::WHAT;
use crate::step::markdown;

/// Rows of a table of a step summary; what changed most stands first.
const MAX_ROWS: usize = 1000;
/// Items of a list of a step summary.
const MAX_ITEMS: usize = 100;
/// Metrics that have a column.
const MAX_METRICS: usize = 8;

const SPLIT: [&str; 2] = ["Parallelism", "Conc"];
const SCORE: [&str; 6] = ["Task", "Score", "Before", "After", "Change", "In standard errors"];

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.point)?;
        match &self.task {
            Some(task) => write!(f, " {task}"),
            None => Ok(()),
        }
    }
}

/// A metric's change, such as `100.0 → 90.0 (-10.0 %)`.
#[must_use]
pub(crate) fn change(metric: &Metric) -> String {
    let (before, after) = (number(metric.before), number(metric.after));
    format!("{before} → {after} ({})", percent(metric.change_percent))
}

/// A share in percent with its sign.
fn percent(value: f64) -> String {
    match value.abs() < 1e6 {
        true => format!("{value:+.1} %"),
        false => format!("{value:+.1e} %"),
    }
}

/// Four digits, or more before the point.
fn number(value: f64) -> String {
    match value {
        value if !(1e-4..1e7).contains(&value) => format!("{value:.3e}"),
        value if value >= 100.0 => format!("{value:.1}"),
        value if value >= 10.0 => format!("{value:.2}"),
        value if value >= 1.0 => format!("{value:.3}"),
        value => format!("{value:.4}"),
    }
}

/// A table: its columns and its rows.
pub(crate) type Table = (Vec<String>, Vec<Vec<String>>);

/// Throughput and latency, a column a metric.
#[must_use]
pub(crate) fn points(comparison: &Comparison) -> Table {
    let names = comparison.points.iter().flat_map(|point| &point.metrics);
    let names: IndexSet<&String> = names.map(|metric| &metric.name).collect();
    let told = |name: &String| is_median_again(name, comparison);
    let names: Vec<&String> = names.into_iter().filter(|name| !told(name)).take(MAX_METRICS).collect();
    let mut header: Vec<String> = WHAT.iter().chain(&SPLIT).map(|name| (*name).to_owned()).collect();
    header.extend(names.iter().map(|name| (*name).clone()));
    let row = |performance: &Performance| {
        let of = |name: &&String| performance.metrics.iter().find(|metric| metric.name == **name);
        let mut cells = cells(&Measured {
            point: performance.point.clone(),
            task: None,
        });
        cells.extend(names.iter().map(|name| of(name).map_or_else(|| "-".to_owned(), change)));
        cells
    };
    (header, comparison.points.iter().map(row).collect())
}

/// Whether a metric is the 50th percentile of what has a median of the same numbers at every point.
fn is_median_again(name: &str, comparison: &Comparison) -> bool {
    let Some(of) = name.strip_prefix("p50_") else {
        return false;
    };
    let median = format!("median_{of}");
    comparison.points.iter().all(|point| {
        let find = |name: &str| point.metrics.iter().find(|metric| metric.name == name);
        match (find(name), find(&median)) {
            (Some(percentile), Some(median)) => change(percentile) == change(median),
            (percentile, _) => percentile.is_none(),
        }
    })
}

/// Scores.
#[must_use]
pub(crate) fn scores(comparison: &Comparison) -> Table {
    let header = WHAT.iter().chain(&SPLIT).chain(&SCORE).map(|name| (*name).to_owned());
    let row = |score: &Score| {
        let mut cells = cells(&score.measured);
        cells.extend([
            score.measured.task.clone().unwrap_or_default(),
            score.score_name.clone(),
            format!("{:.4}", score.before),
            format!("{:.4}", score.after),
            format!("{:+.4}", score.change),
            score
                .change_in_se
                .map_or_else(|| "-".to_owned(), |errors| format!("{errors:+.1}")),
        ]);
        cells
    };
    (header.collect(), comparison.scores.iter().map(row).collect())
}

fn cells(measured: &Measured) -> Vec<String> {
    let point = &measured.point;
    vec![
        point.text(Field::ModelPrefix).to_owned(),
        point.text(Field::Runner).to_owned(),
        point.text(Field::Framework).to_owned(),
        point.text(Field::Precision).to_owned(),
        point.spec(),
        point.lengths.clone(),
        point.split(),
        point.conc.to_string(),
    ]
}

/// The step summary; `over` are the points that got worse than is allowed, `withheld` the recipes that are not compared.
#[must_use]
pub(crate) fn markdown(comparison: &Comparison, over: &[String], withheld: &[String]) -> String {
    let mut text = format!("### Comparison: {}\n\n", counted(comparison));
    for sentence in &comparison.empty {
        text.push_str(&format!("Nothing to compare: {}.\n\n", markdown::escape(sentence)));
    }
    list(&mut text, "Worse than allowed", over.iter());
    list(&mut text, "Withheld, and not compared", withheld.iter());
    table(&mut text, "Throughput and latency", points(comparison));
    table(&mut text, "Scores", scores(comparison));
    list(&mut text, "Only before", comparison.only_baseline.iter());
    list(&mut text, "Only now", comparison.only_current.iter());
    let problems = comparison.problems.iter().map(|problem| &problem.message);
    list(&mut text, "Not compared", problems);
    text
}

/// How much of everything there is.
#[must_use]
pub(crate) fn counted(comparison: &Comparison) -> String {
    format!(
        "{} and {} on both sides, {} only before, {} only now, {} not compared",
        plural::count(comparison.points.len(), "point"),
        plural::count(comparison.scores.len(), "score"),
        comparison.only_baseline.len(),
        comparison.only_current.len(),
        comparison.problems.len()
    )
}

fn table(text: &mut String, title: &str, (header, mut rows): Table) {
    if rows.is_empty() {
        return;
    }
    let more = rows.len().saturating_sub(MAX_ROWS);
    rows.truncate(MAX_ROWS);
    let header: Vec<String> = header.iter().map(|name| markdown::escape(name)).collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    text.push_str(&format!("#### {title}\n\n{}\n", markdown::table(&header, &rows)));
    if more > 0 {
        text.push_str(&format!("_{more} more changed less._\n\n"));
    }
}

fn list<T: fmt::Display>(text: &mut String, title: &str, items: impl ExactSizeIterator<Item = T>) {
    let count = items.len();
    if count == 0 {
        return;
    }
    let shown = items.take(MAX_ITEMS).map(|item| item.to_string());
    text.push_str(&format!("#### {title}: {count}\n\n{}\n", markdown::list(shown)));
    if count > MAX_ITEMS {
        text.push_str(&format!("_{} more._\n\n", count - MAX_ITEMS));
    }
}
