//! `vllm bench serve --save-result`: one flat object, times in milliseconds under names that end in `_ms`.

use super::client::{Client, Fields};
use super::measured::{Found, Measured, Time, Tokens};

/// The end of the names of times in milliseconds.
const MILLISECONDS: &str = "_ms";

/// What was measured.
#[must_use]
pub(super) fn read(fields: &Fields) -> Measured {
    Measured {
        client: Client::Vllm,
        model: Some(fields.get("model_id")),
        conc: fields.get("max_concurrency"),
        completed: fields.get("completed"),
        planned: fields.get("num_prompts"),
        failed: fields.get("failed"),
        error_rate: fields.get("error_rate"),
        stopped: Vec::new(),
        mixed: None,
        duration: fields.there("duration"),
        all_rate: fields.get("total_token_throughput"),
        output_rate: fields.get("output_throughput"),
        input: Tokens::Total(fields.get("total_input_tokens")),
        output: Tokens::Total(fields.get("total_output_tokens")),
        times: milliseconds(fields, |stem| Some(stem.to_owned())),
    }
}

/// Every time of a flat file, in the file's order, under the name that `publish` makes of its own without `_ms`; where it
/// makes none, the field is no measured time.
pub(super) fn milliseconds(fields: &Fields, publish: impl Fn(&str) -> Option<String>) -> Vec<Time> {
    let times = fields.0.iter().filter_map(|(name, value)| {
        let published = publish(name.strip_suffix(MILLISECONDS)?)?;
        Some(Time {
            found: Found::new(name, value.clone()),
            published,
            per_second: 1000.0,
        })
    });
    times.collect()
}
