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
    let (conc, planned) = load(settings);
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

/// The concurrency, and how many requests were planned.
fn load(settings: &Settings) -> (Found, Found) {
    let phase = settings
        .phases
        .items()
        .filter_map(|phase| phase.0.as_ref())
        .find(|phase| phase.kind.text() == Some(PROFILING));
    match (phase, &settings.loadgen.0) {
        (
            Some(Phase {
                concurrency, requests, ..
            }),
            _,
        ) => (
            Found::new("input_config.phases[profiling].concurrency", concurrency.clone()),
            Found::new("input_config.phases[profiling].requests", requests.clone()),
        ),
        (
            None,
            Some(Loadgen {
                concurrency,
                request_count,
            }),
        ) => (
            Found::new("input_config.loadgen.concurrency", concurrency.clone()),
            Found::new("input_config.loadgen.request_count", request_count.clone()),
        ),
        (None, None) => (
            Found::none("input_config.loadgen.concurrency"),
            Found::none("input_config.loadgen.request_count"),
        ),
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
