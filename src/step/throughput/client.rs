//! The clients whose results are read, and how their files are told apart.

use indexmap::IndexMap;
use serde::Deserialize;

use super::export::Export;
use super::measured::{Found, Measured};
use super::{aiperf, genai_perf, sglang, vllm};
use crate::step::results::json;
use crate::step::results::loose::Cell;

/// What measured the throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// `vllm bench serve --save-result`, and the scripts that save in its form.
    Vllm,
    /// sglang's `bench_serving --output-file`.
    Sglang,
    /// aiperf's `profile_export_aiperf.json`.
    Aiperf,
    /// genai-perf's `profile_export_genai_perf.json`.
    GenaiPerf,
}

/// The scalars of a file's top level; lists and mappings are only seen to be there.
#[derive(Debug, Clone)]
pub(crate) struct Fields(pub IndexMap<String, Cell>);

/// What is needed of an export to tell its client.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Told {
    input_config: Cell,
}

impl Client {
    /// What people call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::Aiperf => "aiperf",
            Self::GenaiPerf => "genai-perf",
        }
    }

    /// Whether a run that completed more than was planned is wrong too: `vllm bench serve` counts its prompts.
    #[must_use]
    pub fn counts_exactly(self) -> bool {
        self == Self::Vllm
    }
}

impl Fields {
    /// The value of a field.
    #[must_use]
    pub(crate) fn get(&self, name: &str) -> Found {
        Found::new(name, self.0.get(name).cloned().unwrap_or_default())
    }

    /// The value of a field that is there.
    #[must_use]
    pub(crate) fn there(&self, name: &str) -> Option<Found> {
        self.0.contains_key(name).then(|| self.get(name))
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}

/// Reads what a client saved; of which one, the file says itself. Gives the
/// fields of its top level too.
///
/// # Errors
/// As the end of a sentence about the file: no JSON object, of no client, or of another than `asked`.
pub(crate) fn read(bytes: &[u8], asked: Option<Client>) -> Result<(Measured, Fields), String> {
    let fields = Fields(json::parse_object(bytes)?);
    let told: Told = json::parse_object(bytes)?;
    let export: Export = match told.input_config {
        Cell::Nested => json::parse_object(bytes)?,
        _ => Export::default(),
    };
    let found = tell(&fields, &export).ok_or_else(|| {
        "is of no known client: vllm's has `model_id` and `max_concurrency`, sglang's `random_range_ratio`, aiperf's and \
         genai-perf's the models under `input_config`"
            .to_owned()
    })?;
    if let Some(asked) = asked.filter(|asked| *asked != found) {
        return Err(format!("is what {} saves, not {}", found.name(), asked.name()));
    }
    let measured = match found {
        Client::Vllm => vllm::read(&fields),
        Client::Sglang => sglang::read(&fields, &json::parse_object(bytes)?),
        Client::Aiperf => aiperf::read(&export),
        Client::GenaiPerf => genai_perf::read(&export),
    };
    Ok((measured, fields))
}

/// Some of a client's own fields tell it; which of the others are missing is said by their names later.
fn tell(fields: &Fields, export: &Export) -> Option<Client> {
    if export.is_genai_perf() {
        return Some(Client::GenaiPerf);
    }
    if export.is_aiperf() {
        return Some(Client::Aiperf);
    }
    let names_model = fields.has("model_id");
    if !names_model && (fields.has("random_range_ratio") || fields.0.keys().any(|name| name.contains(sglang::E2E))) {
        return Some(Client::Sglang);
    }
    let is_vllm = names_model
        || ["max_concurrency", "num_prompts", "completed"]
            .iter()
            .any(|name| fields.has(name));
    is_vllm.then_some(Client::Vllm)
}
