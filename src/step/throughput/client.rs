//! The clients whose results are read, and how their files are told apart.

use indexmap::IndexMap;
use serde::Deserialize;
use serde::de::IgnoredAny;

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
/// As the end of a sentence about the file: no JSON object, several of them, of no client, or of another than `asked`.
pub(crate) fn read(bytes: &[u8], asked: Option<Client>) -> Result<(Measured, Fields), String> {
    if let Some(mark) = byte_order_mark(bytes) {
        return Err(format!(
            "starts with a byte order mark ({mark}): save it as UTF-8 without one"
        ));
    }
    let fields = json::parse_object(bytes).map_err(|reason| runs(bytes).unwrap_or(reason))?;
    let fields = Fields(fields);
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

/// The mark that editors and shells of some systems put before a text, which is no part of JSON.
fn byte_order_mark(bytes: &[u8]) -> Option<&'static str> {
    let marks: [(&[u8], &str); 3] = [
        (b"\xef\xbb\xbf", "UTF-8"),
        (b"\xff\xfe", "UTF-16"),
        (b"\xfe\xff", "UTF-16"),
    ];
    let found = marks.into_iter().find(|(mark, _)| bytes.starts_with(mark));
    found.map(|(_, name)| name)
}

/// What is wrong with a file that has an object in each of several lines: sglang's `--output-file` and vLLM's
/// `--append-result` append to what is there.
fn runs(bytes: &[u8]) -> Option<String> {
    let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let lines: Vec<&[u8]> = lines.filter(|line| !line.is_empty()).collect();
    let [first, others @ ..] = lines.as_slice() else {
        return None;
    };
    let objects = !others.is_empty()
        && others.iter().all(|line| line.starts_with(b"{"))
        && json::parse_object::<IgnoredAny>(first).is_ok();
    objects.then(|| {
        format!(
            "holds {} runs, one a line (sglang's `--output-file` and vLLM's `--append-result` append to a file that is \
             there): keep the line of this run alone, and let each run write a file of its own",
            lines.len()
        )
    })
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
