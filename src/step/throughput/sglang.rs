//! sglang's `bench_serving --output-file`: one flat object a run, much like vLLM's.

use serde::Deserialize;

use super::client::{Client, Fields};
use super::measured::{Found, Measured, Tokens};
use super::vllm::milliseconds;
use crate::step::results::loose::{Cell, List, Map};

/// What it calls a request's whole time.
pub(super) const E2E: &str = "e2e_latency";
/// What everyone else calls it.
const E2EL: &str = "e2el";
/// `goodput_slos_ms` without its end: with `--goodput` bench_serving writes the limits that it was called with there, by
/// metric. They are no times that it measured.
const LIMITS: &str = "goodput_slos";

/// What is nested in its file.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Details {
    server_info: Map<ServerInfo>,
    /// One text a request, empty where it went well.
    errors: List<Cell>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ServerInfo {
    model_path: Cell,
}

/// What was measured.
#[must_use]
pub(super) fn read(fields: &Fields, details: &Details) -> Measured {
    let model = details.server_info.0.as_ref().map(|info| info.model_path.clone());
    let model = Found::new("server_info.model_path", model.unwrap_or_default());
    #[allow(clippy::cast_precision_loss, reason = "no run has 2^53 requests")]
    let failed = details.errors.items().filter(|error| error.text().is_some()).count() as f64;
    Measured {
        client: Client::Sglang,
        model: Some(model).filter(|model| !model.is_null()),
        conc: fields.get("max_concurrency"),
        completed: fields.get("completed"),
        planned: Found::none("num_prompts"),
        failed: Found::new("errors", Cell::Number(failed)),
        error_rate: Found::none("error_rate"),
        stopped: Vec::new(),
        mixed: None,
        duration: fields.there("duration"),
        all_rate: all_rate(fields),
        output_rate: fields.get("output_throughput"),
        input: Tokens::Total(fields.get("total_input_tokens")),
        output: Tokens::Total(fields.get("total_output_tokens")),
        times: milliseconds(fields, |stem| (stem != LIMITS).then(|| stem.replace(E2E, E2EL))),
    }
}

/// Older versions do not add up.
fn all_rate(fields: &Fields) -> Found {
    fields.there("total_throughput").unwrap_or_else(|| {
        let [input, output] = ["input_throughput", "output_throughput"].map(|name| fields.get(name).value.number());
        let sum = input
            .zip(output)
            .map_or(Cell::Null, |(input, output)| Cell::Number(input + output));
        Found::new("input_throughput + output_throughput", sum)
    })
}
