//! Tables of what was gathered, for people.

use super::eval_row::{EvalRow, StdErr};
use super::evals::Evals;
use super::throughput::{Aggregate, Throughput};
use crate::config::fields::{Field, Side};
use crate::config::problem::Problem;
use crate::ledger::publish::{Recipe, RunLedger};
use crate::ledger::{Job, State};
use crate::plural;
use crate::step::markdown;
use crate::step::results::answers::Answers;
use crate::step::validate::repeated;

/// The columns that say what was measured.
pub(crate) const WHAT: [&str; 6] = ["Model", "Hardware", "Framework", "Precision", "Spec", "ISL/OSL"];
const JOBS: [&str; 4] = ["Job", "Id", "State", "Reason"];

/// The columns of eval rows of one kind.
#[must_use]
pub(crate) fn eval_columns(multinode: bool) -> Vec<&'static str> {
    let split: &[&str] = match multinode {
        false => &["TP", "EP", "DPA"],
        true => &["Prefill", "Decode"],
    };
    [&WHAT, split, &["Conc", "Task", "Score", "Samples"]].concat()
}

/// The columns of throughput rows.
#[must_use]
pub(crate) fn throughput_columns() -> Vec<&'static str> {
    let measured = ["Tokens/s/GPU", "Output tokens/s/GPU", "Median TTFT (s)"];
    [&WHAT[..], &["Parallelism", "Conc"], &measured].concat()
}

/// The rows of one kind, for a table.
#[must_use]
pub(crate) fn eval_rows(rows: &[EvalRow], multinode: bool) -> Vec<Vec<String>> {
    rows.iter()
        .filter(|row| row.is_multinode == multinode)
        .map(eval_row)
        .collect()
}

fn eval_row(row: &EvalRow) -> Vec<String> {
    let what = [
        Field::ModelPrefix,
        Field::Runner,
        Field::Framework,
        Field::Precision,
        Field::SpecDecoding,
    ];
    let mut cells: Vec<String> = what.map(|field| row.text(field)).into();
    // Published eval rows write it large, and throughput rows small.
    cells[1] = cells[1].to_lowercase();
    cells.push(format!("{}/{}", row.text(Field::Isl), row.text(Field::Osl)));
    match row.is_multinode {
        true => cells.extend(Side::ALL.map(|side| eval_side(row, side))),
        false => cells.extend(row.sizes(None).map(|(_, value)| value)),
    }
    let of = match repeated(row.repeats, row.spread) {
        Some(repeated) => format!("{}, {repeated}", row.score_name),
        None => row.score_name.clone(),
    };
    let score = match row.score_se {
        Some(StdErr::Number(se)) => format!("{:.4} ± {se:.4} ({of})", row.score),
        _ => format!("{:.4} ({of})", row.score),
    };
    let mut samples = row.n_eff.map_or_else(|| "-".to_owned(), |n| n.to_string());
    if row.diagnostic {
        samples.push_str(" (diagnostic)");
    }
    if let Some(trouble) = row.answers.and_then(Answers::trouble) {
        samples.push_str(&format!(" ({trouble})"));
    }
    cells.extend([row.conc.to_string(), row.task.clone(), score, samples]);
    cells
}

fn eval_side(row: &EvalRow, side: Side) -> String {
    let mut text = format!("{}x", row.workers(side));
    for (size, value) in row.sizes(Some(side)) {
        let space = if size.is_flag() { " " } else { "" };
        text.push_str(&format!(" {}{space}{value}", size.names().short));
    }
    text
}

/// The summary of eval results.
#[must_use]
pub(crate) fn evals(evals: &Evals) -> String {
    let mut text = format!(
        "### Eval results: {} of {}\n\n",
        plural::count(evals.rows.len(), "row"),
        plural::count(evals.sets, "set")
    );
    notes(&mut text, &evals.problems, &evals.jobs, &evals.unplanned);
    for (title, multinode) in [("Single node", false), ("Multi node", true)] {
        let rows = eval_rows(&evals.rows, multinode);
        table(&mut text, title, &eval_columns(multinode), &rows);
    }
    text
}

/// The throughput rows, for a table.
#[must_use]
pub(crate) fn throughput_rows(aggregates: &[Aggregate]) -> Vec<Vec<String>> {
    aggregates.iter().map(Aggregate::cells).collect()
}

/// The summary of throughput results.
#[must_use]
pub(crate) fn throughput(results: &Throughput) -> String {
    let mut text = format!(
        "### Throughput results: {}\n\n",
        plural::count(results.aggregates.len(), "row")
    );
    notes(&mut text, &results.problems, &results.jobs, &results.unplanned);
    let rows = throughput_rows(&results.aggregates);
    table(&mut text, "Results", &throughput_columns(), &rows);
    text
}

/// The columns of recipes that are withheld.
pub(crate) const WITHHELD: [&str; 4] = ["Recipe", "Fingerprint", "Done", "Why it is withheld"];

/// The recipes that are withheld, for a table.
#[must_use]
pub(crate) fn withheld_rows(ledger: &RunLedger) -> Vec<Vec<String>> {
    let row = |recipe: &Recipe| {
        vec![
            recipe.name.clone(),
            recipe.recipe.chars().take(SHOWN_DIGITS).collect(),
            format!("{} of {}", recipe.done, recipe.planned),
            recipe.reason.clone(),
        ]
    };
    ledger.withheld().map(row).collect()
}

/// Digits of a fingerprint that people are shown, as in the names of results.
const SHOWN_DIGITS: usize = 16;

/// The summary of a whole run: what is published and what is withheld, every job that is not done, and the rows.
#[must_use]
pub(crate) fn sweep(ledger: &RunLedger, superseded: &[Job], results: &Throughput, of_evals: &Evals) -> String {
    let mut text = format!("### Published results\n\n{}\n\n", ledger.sentence());
    table(&mut text, "Withheld", &WITHHELD, &withheld_rows(ledger));
    let jobs: Vec<Job> = ledger.jobs.iter().chain(superseded).cloned().collect();
    notes(&mut text, &[], &jobs, &[]);
    text.push_str(&throughput(results));
    text.push_str(&evals(of_evals));
    text
}

/// What is not as planned stands first: a long table may be cut.
fn notes(text: &mut String, problems: &[Problem], jobs: &[Job], unplanned: &[String]) {
    if !problems.is_empty() {
        text.push_str("#### Problems\n\n");
        text.push_str(&markdown::list(problems.iter().map(|problem| &problem.message)));
        text.push('\n');
    }
    if !jobs.is_empty() {
        text.push_str(&format!("#### Jobs: {}\n\n", counted(jobs)));
        let open = jobs.iter().filter(|job| job.state != State::Done);
        let rows: Vec<Vec<String>> = open
            .map(|job| {
                vec![
                    job.name.clone(),
                    job.id.clone(),
                    job.state.as_str().to_owned(),
                    job.reason.clone(),
                ]
            })
            .collect();
        if !rows.is_empty() {
            text.push_str(&markdown::table(&JOBS, &rows));
            text.push('\n');
        }
    }
    if !unplanned.is_empty() {
        text.push_str("#### Not in the plan\n\n");
        text.push_str(&markdown::list(unplanned));
        text.push('\n');
    }
}

fn table(text: &mut String, title: &str, header: &[&str], rows: &[Vec<String>]) {
    if !rows.is_empty() {
        text.push_str(&format!("#### {title}\n\n{}\n", markdown::table(header, rows)));
    }
}

/// How many jobs there are of each state.
#[must_use]
pub(crate) fn counted(jobs: &[Job]) -> String {
    let states = [State::Done, State::Failed, State::Missing, State::Superseded];
    let counts = states.map(|state| (state.as_str(), jobs.iter().filter(|job| job.state == state).count()));
    let said = counts.iter().filter(|(name, count)| *count > 0 || *name == "done");
    said.map(|(name, count)| format!("{count} {name}"))
        .collect::<Vec<_>>()
        .join(", ")
}
