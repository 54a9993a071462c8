//! genai-perf's `profile_export_genai_perf.json`, with its flat settings and its nested ones.

use super::client::Client;
use super::export::{Export, Settings};
use super::measured::{Found, Measured, Tokens};
use crate::step::results::loose::Cell;

/// The mode of a measurement that counts requests; in the others `num` is a time.
const REQUEST_COUNT: &str = "request_count";

/// What was measured.
#[must_use]
pub(super) fn read(export: &Export) -> Measured {
    let empty = Settings::default();
    let settings = export.input_config.0.as_ref().unwrap_or(&empty);
    let mut times = export.time_to_first_token.times("time_to_first_token", "ttft");
    // Its inter-token latency is a request's own mean: what others call the time per output token.
    times.extend(export.inter_token_latency.times("inter_token_latency", "tpot"));
    times.extend(export.request_latency.times("request_latency", "e2el"));
    Measured {
        client: Client::GenaiPerf,
        model: model(settings),
        conc: conc(settings),
        completed: export.request_count.avg("request_count"),
        planned: planned(settings),
        failed: Found::none("failed"),
        error_rate: Found::none("error_rate"),
        stopped: Vec::new(),
        mixed: None,
        duration: None,
        all_rate: all_rate(export),
        output_rate: export.output_token_throughput.avg("output_token_throughput"),
        input: Tokens::Mean(export.input_sequence_length.avg("input_sequence_length")),
        output: Tokens::Mean(export.output_sequence_length.avg("output_sequence_length")),
        times,
    }
}

fn model(settings: &Settings) -> Option<Found> {
    let named = [
        ("input_config.model_names", &settings.model_names.0),
        ("input_config.model", &settings.model.0),
    ];
    let mut found = named.into_iter().filter(|(_, value)| **value != Cell::Null);
    found.next().map(|(name, value)| Found::new(name, value.clone()))
}

fn conc(settings: &Settings) -> Found {
    let nested = settings
        .perf_analyzer
        .0
        .as_ref()
        .and_then(|nested| nested.stimulus.0.as_ref());
    match nested {
        Some(stimulus) if settings.concurrency == Cell::Null => Found::new(
            "input_config.perf_analyzer.stimulus.concurrency",
            stimulus.concurrency.clone(),
        ),
        _ => Found::new("input_config.concurrency", settings.concurrency.clone()),
    }
}

/// How many requests were planned. Without `--request-count` it writes 0 into flat settings, and an empty text or null into
/// nested ones: none of them says how many.
fn planned(settings: &Settings) -> Found {
    let measurement = settings
        .perf_analyzer
        .0
        .as_ref()
        .and_then(|nested| nested.measurement.0.as_ref());
    let found = match measurement {
        Some(measurement) if measurement.mode.text() == Some(REQUEST_COUNT) => {
            Found::new("input_config.perf_analyzer.measurement.num", measurement.num.clone())
        }
        Some(_) => Found::none("input_config.perf_analyzer.measurement.num"),
        None => Found::new("input_config.request_count", settings.request_count.clone()),
    };
    let unsaid = found.count() == Some(0) || matches!(&found.value, Cell::Text(text) if text.is_empty());
    match unsaid {
        true => Found::none(&found.name),
        false => found,
    }
}

/// It gives output tokens a second, and how long the prompts of its requests are.
fn all_rate(export: &Export) -> Found {
    let [output, length, requests] = [
        &export.output_token_throughput,
        &export.input_sequence_length,
        &export.request_throughput,
    ]
    .map(|metric| metric.avg("").value.number());
    let rate = match (output, length, requests) {
        (Some(output), Some(length), Some(requests)) => Cell::Number(output + length * requests),
        _ => Cell::Null,
    };
    let name = "output_token_throughput + input_sequence_length x request_throughput";
    Found::new(name, rate)
}
