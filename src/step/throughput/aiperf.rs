//! aiperf's `profile_export_aiperf.json`. What it measured while warming up stands under a name of its own and is no
//! result.

use super::client::Client;
use super::export::{Export, Loadgen, Phase, Settings};
use super::measured::{Found, Measured, Tokens};
use crate::step::results::loose::Cell;

/// What it calls the phase that is measured.
const PROFILING: &str = "profiling";

/// What was measured.
#[must_use]
pub(super) fn read(export: &Export) -> Measured {
    let empty = Settings::default();
    let settings = export.input_config.0.as_ref().unwrap_or(&empty);
    let Load { conc, planned, mixed } = load(settings);
    let mut times = export.time_to_first_token.times("time_to_first_token", "ttft");
    // Its inter-token latency is a request's own mean: what others call the time per output token.
    times.extend(export.inter_token_latency.times("inter_token_latency", "tpot"));
    times.extend(export.inter_chunk_latency.times("inter_chunk_latency", "itl"));
    times.extend(export.request_latency.times("request_latency", "e2el"));
    Measured {
        client: Client::Aiperf,
        model: model(settings),
        conc,
        completed: export.request_count.avg("request_count"),
        planned,
        failed: export.error_request_count.avg("error_request_count"),
        error_rate: Found::none("error_rate"),
        stopped: stopped(export),
        mixed,
        duration: Some(export.benchmark_duration.avg("benchmark_duration")).filter(|found| !found.is_null()),
        all_rate: all_rate(export),
        output_rate: export.output_token_throughput.avg("output_token_throughput"),
        input: Tokens::Mean(export.input_sequence_length.avg("input_sequence_length")),
        output: Tokens::Mean(export.output_sequence_length.avg("output_sequence_length")),
        times,
    }
}

fn model(settings: &Settings) -> Option<Found> {
    let old = settings
        .endpoint
        .0
        .as_ref()
        .map(|endpoint| endpoint.model_names.0.clone());
    let new = settings
        .models
        .0
        .as_ref()
        .and_then(|models| Some(models.items.items().next()?.0.as_ref()?.name.clone()));
    let named = [
        ("input_config.endpoint.model_names", old),
        ("input_config.models.items[0].name", new),
    ];
    let mut found = named
        .into_iter()
        .filter_map(|(name, value)| Some(Found::new(name, value?)));
    found.find(|found| !found.is_null())
}

/// The load that was asked for.
struct Load {
    /// Requests at a time.
    conc: Found,
    /// Requests that were to be sent.
    planned: Found,
    /// Why it is not one load, as a sentence.
    mixed: Option<String>,
}

fn load(settings: &Settings) -> Load {
    let phases = settings.phases.items().filter_map(|phase| phase.0.as_ref());
    let phases: Vec<&Phase> = phases.filter(|phase| phase.is_measured()).collect();
    if !phases.is_empty() || (settings.phases.0.is_some() && settings.loadgen.0.is_none()) {
        return of_phases(&phases);
    }
    let empty = Loadgen::default();
    let loadgen = settings.loadgen.0.as_ref().unwrap_or(&empty);
    Load {
        conc: Found::new("input_config.loadgen.concurrency", loadgen.concurrency.clone()),
        planned: Found::new("input_config.loadgen.request_count", loadgen.request_count.clone()),
        mixed: None,
    }
}

/// The metrics of `profile_export_aiperf.json` are of all profiling phases together, so these have one concurrency, and
/// their requests add up.
fn of_phases(phases: &[&Phase]) -> Load {
    let conc = phases
        .first()
        .map(|phase| phase.concurrency.clone())
        .unwrap_or_default();
    let requests: Vec<&Cell> = phases.iter().map(|phase| &phase.requests).collect();
    let name = "input_config.phases[profiling].concurrency";
    Load {
        mixed: mixed(name, phases.iter().map(|phase| &phase.concurrency)),
        conc: Found::new(name, conc),
        planned: Found::new("input_config.phases[profiling].requests", sum(&requests)),
    }
}

fn mixed<'p>(name: &str, concs: impl Iterator<Item = &'p Cell>) -> Option<String> {
    let mut different: Vec<String> = Vec::new();
    for conc in concs.map(Cell::to_string) {
        if !different.contains(&conc) {
            different.push(conc);
        }
    }
    let (last, others) = different.split_last().filter(|(_, others)| !others.is_empty())?;
    let others = others.join(", ");
    Some(format!(
        "`{name}` is {others} and {last}: the file mixes them, a result is of one concurrency"
    ))
}

/// The requests of all phases: what is no count if one is none, and nothing if a phase does not say how many, as one that
/// ends after a time.
fn sum(requests: &[&Cell]) -> Cell {
    let wrong = |cell: &&&Cell| **cell != &Cell::Null && Found::new("", (**cell).clone()).count().is_none();
    if let Some(wrong) = requests.iter().find(wrong) {
        return (*wrong).clone();
    }
    let numbers: Option<Vec<f64>> = requests.iter().map(|cell| cell.number()).collect();
    let numbers = numbers.filter(|numbers| !numbers.is_empty());
    numbers.map_or(Cell::Null, |numbers| Cell::Number(numbers.iter().sum()))
}

impl Phase {
    /// Whether it is measured. `kind` came with 0.12; from 0.9 to 0.11 the name is the kind.
    fn is_measured(&self) -> bool {
        let kind = if self.kind == Cell::Null {
            &self.name
        } else {
            &self.kind
        };
        kind.text() == Some(PROFILING)
    }
}

fn stopped(export: &Export) -> Vec<Found> {
    let cancelled = Found::new("was_cancelled", export.was_cancelled.clone());
    let complete = Found::new("is_complete", export.is_complete.clone());
    let said = [(cancelled, true), (complete, false)];
    said.into_iter()
        .filter(|(found, bad)| found.value.flag() == Some(*bad))
        .map(|(found, _)| found)
        .collect()
}

/// Older versions do not add up.
fn all_rate(export: &Export) -> Found {
    let said = export.total_token_throughput.avg("total_token_throughput");
    if !said.is_null() {
        return said;
    }
    let [input, output, duration] = [
        export.total_isl.avg("").value,
        export.total_osl.avg("").value,
        export.benchmark_duration.avg("").value,
    ]
    .map(|cell| cell.number());
    let rate = match (input, output, duration) {
        (Some(input), Some(output), Some(duration)) => Cell::Number((input + output) / duration),
        _ => Cell::Null,
    };
    Found::new("(total_isl + total_osl) / benchmark_duration", rate)
}
