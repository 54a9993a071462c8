//! Whether an aggregate can be published: its figures are figures, and it is of the row that was planned.

use indexmap::IndexMap;

use crate::matrix::row::{Row, Scenario};
use crate::step::replay::published::RequestMetrics;
use crate::step::results::loose::Cell;
use crate::step::results::meta;
use crate::step::throughput::{Size, topology};

/// The throughput that everything else is compared by.
const THROUGHPUT: &str = "tput_per_gpu";
/// The rates that `result process` publishes.
const RATES: [&str; 3] = [THROUGHPUT, "output_tput_per_gpu", "input_tput_per_gpu"];
/// The ends of the names of times, and of the rates that are their inverse: `median_ttft`, `p99_intvty`.
const LATENCIES: [&str; 5] = ["ttft", "tpot", "itl", "e2el", "intvty"];
/// The start of the names of spreads, of which zero is a value like any other.
const SPREAD: &str = "std_";

/// The scalars of an aggregate's top level.
pub(super) type Values = IndexMap<String, Cell>;

/// Every figure that is there and cannot be one, and the throughput where it is missing. A latency that is missing, or null,
/// was not measured: clients differ in what they measure.
pub(super) fn figures(values: &Values, nested: &RequestMetrics) -> Vec<String> {
    let flat = values
        .iter()
        .map(|(name, cell)| (name.clone(), name.clone(), cell.clone()));
    let mut wrong = Vec::new();
    let mut has_throughput = false;
    for (path, name, cell) in flat.filter(|(_, name, _)| is_figure(name)).chain(nested.figures()) {
        has_throughput |= name == THROUGHPUT && cell != Cell::Null;
        wrong.extend(unfit(&path, &name, &cell, path != name));
    }
    if !has_throughput {
        wrong.push(format!("`{THROUGHPUT}` is missing"));
    }
    wrong
}

fn is_figure(name: &str) -> bool {
    let of_latency = |(_, latency): (&str, &str)| LATENCIES.contains(&latency);
    RATES.contains(&name) || name.rsplit_once('_').is_some_and(of_latency)
}

/// What is wrong with a figure. A replay's tokens may all be input, or all output; of other results each has both.
fn unfit(path: &str, name: &str, cell: &Cell, nested: bool) -> Option<String> {
    let may_be_zero = name.starts_with(SPREAD) || (nested && RATES[1..].contains(&name));
    let fits = |value: f64| value.is_normal() && value > 0.0 || may_be_zero && value == 0.0;
    if *cell == Cell::Null || cell.number().is_some_and(fits) {
        return None;
    }
    let wanted = if may_be_zero { "of at least 0" } else { "above 0" };
    Some(format!("`{path}` is {cell}, it must be a finite number {wanted}"))
}

/// Every field in which an aggregate contradicts the row of its job. What it lacks says nothing. Scripts that aggregate
/// replays themselves sum the sizes of both sides, and others get them wrong: of replays only the model counts.
pub(super) fn contradictions(values: &Values, row: &Row) -> Vec<String> {
    let topology_of_row = topology(&row.topology.nodes);
    let mut found = Vec::new();
    let mut check = |name: &str, wanted: String, fits: &dyn Fn(&Cell) -> bool| match values.get(name) {
        None | Some(Cell::Null) => {}
        Some(Cell::Text(text)) if text.trim().is_empty() => {}
        Some(cell) if fits(cell) => {}
        Some(cell) => found.push(format!("`{name}` is {cell}, the job's is {wanted}")),
    };
    let model = &row.topology.model;
    check("model", format!("{model:?}"), &|cell| meta::is_model(cell, model));
    if matches!(row.topology.scenario, Scenario::Agentic(_)) {
        return found;
    }
    if let Some(seq) = row.seq() {
        for (name, length) in [("isl", seq.isl), ("osl", seq.osl)] {
            check(name, length.to_string(), &|cell| cell.integer() == Some(length));
        }
    }
    for (name, size) in &topology_of_row {
        match size {
            Size::Number(number) => check(name, number.to_string(), &|cell| cell.integer() == Some(*number)),
            Size::Text(text) => check(name, format!("{text:?}"), &|cell| match cell {
                Cell::Text(said) => said.eq_ignore_ascii_case(text),
                cell => cell.flag().is_some_and(|flag| flag.to_string() == *text),
            }),
        }
    }
    found
}
