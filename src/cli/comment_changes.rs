//! What changed since the earlier results, as a part of the comment on a pull request.

use std::path::Path;

use super::comment::inert;
use crate::config::problem::Problem;
use crate::github::text;
use crate::plural;
use crate::step::compare::{Comparison, Metric, Performance, Score, largest, summary};
use crate::step::markdown;

/// Rows of a table.
const SHOWN: usize = 10;

/// Reads what `sweepctl compare --output` wrote.
///
/// # Errors
/// A file that cannot be read, or is something else.
pub(super) fn read(path: &Path) -> Result<Comparison, Problem> {
    let source = text::read(path)?;
    serde_json::from_str(&source.text).map_err(|error| {
        Problem::file(&source.name, format!("`{}` is no comparison: {error}", source.name))
            .hint("write it with `sweepctl compare BASELINE CURRENT --output FILE`")
    })
}

/// What changed, the largest first.
pub(super) fn section(comparison: &Comparison) -> String {
    let largest = largest::of(comparison);
    let mut text = "\n#### What changed\n".to_owned();
    if comparison.points.is_empty() && comparison.scores.is_empty() {
        text.push_str("\nThere is nothing that both this sweep and the earlier results have.\n");
        return text;
    }
    let points = largest.points.iter().map(|(point, metric)| point_row(point, metric));
    table(&mut text, &["Point", "Metric", "Change"], points);
    let scores = largest.scores.iter().map(|score| score_row(score));
    table(&mut text, &["Score", "Task", "Change", "In standard errors"], scores);
    text.push_str(&format!(
        "\n{} did not change beyond noise; {} new, {} gone.\n",
        plural::count(largest.unchanged, "measurement"),
        comparison.only_current.len(),
        comparison.only_baseline.len()
    ));
    text
}

fn table(text: &mut String, head: &[&str], rows: impl ExactSizeIterator<Item = Vec<String>>) {
    let more = rows.len().saturating_sub(SHOWN);
    let rows: Vec<Vec<String>> = rows.take(SHOWN).collect();
    if rows.is_empty() {
        return;
    }
    text.push_str(&format!("\n{}", markdown::table_of_markup(head, &rows)));
    if more > 0 {
        text.push_str(&format!("\n{more} more changed less.\n"));
    }
}

fn point_row(point: &Performance, metric: &Metric) -> Vec<String> {
    let mut change = summary::change(metric);
    if metric.regression() > 0.0 {
        change.push_str(", worse");
    }
    [point.point.to_string(), metric.name.clone(), change]
        .map(|text| inert(&text))
        .to_vec()
}

fn score_row(score: &Score) -> Vec<String> {
    let errors = score
        .change_in_se
        .map_or_else(|| "-".to_owned(), |errors| format!("{errors:+.1}"));
    let worse = if (score.change < 0.0) == score.less_is_better {
        ""
    } else {
        ", worse"
    };
    let change = format!("{:.4} → {:.4} ({:+.4}{worse})", score.before, score.after, score.change);
    let task = score.measured.task.clone().unwrap_or_default();
    [score.measured.point.to_string(), task, change, errors]
        .map(|text| inert(&text))
        .to_vec()
}
