//! The result of a throughput benchmark: whether it is one, and the aggregate that is published of it.
//!
//! The input is the JSON that serving benchmarks save (`vllm bench serve --save-result` and those that follow it),
//! with times in milliseconds under names that end in `_ms`.

use std::path::Path;

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::{Map, Value};

use super::results::loose::Cell;
use super::results::{file, json};
use crate::config::fields::{self, Field, Has, Parallelism, Role, Side};
use crate::config::master::search_space::Nodes;
use crate::config::problem::{Problem, Problems};
use crate::matrix::row::{FieldValue, Row};
use crate::matrix::wire;

/// The end of the names of times in milliseconds.
const MILLISECONDS: &str = "_ms";
/// The part of the names of times per output token.
const TPOT: &str = "tpot";
/// What it becomes where a time per output token turns into its inverse, tokens a second for one user.
const INTVTY: &str = "intvty";
/// The start of the names of spreads, of which zero is a value like any other.
const SPREAD: &str = "std_";

/// A benchmark's result as it was saved.
#[derive(Debug, Clone)]
pub struct Benchmark {
    name: String,
    fields: IndexMap<String, Cell>,
}

/// The published aggregate.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs, reason = "named as published")]
pub struct Aggregate {
    #[serde(skip)]
    pub conc: u64,
    /// What of the row is published, with the concurrency and the model that was asked.
    #[serde(flatten)]
    pub row: Map<String, Value>,
    pub is_multinode: bool,
    /// Sizes by their names, in multi-node jobs after `prefill_` and `decode_`.
    #[serde(flatten)]
    pub topology: IndexMap<String, Size>,
    /// Input and output tokens a second, over all GPUs.
    pub tput_per_gpu: f64,
    /// Output tokens a second, over the decode GPUs, or all where none is decode's alone.
    pub output_tput_per_gpu: f64,
    /// Input tokens a second, over the prefill GPUs, or all on one node.
    pub input_tput_per_gpu: f64,
    /// Times in seconds, and interactivities in tokens a second.
    #[serde(flatten)]
    pub metrics: IndexMap<String, f64>,
}

/// One part of a topology; flags are published as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "named by their types")]
pub enum Size {
    Number(u64),
    Text(String),
}

impl Benchmark {
    /// Reads a benchmark's result.
    ///
    /// # Errors
    /// A file that cannot be read or is no JSON object.
    pub fn read(path: &Path) -> Result<Self, Problem> {
        let name = file::shown(path);
        let failed =
            |reason: String| Problem::file(&name, format!("{name} {reason}")).hint("see the log of the benchmark");
        let bytes = file::read(path).map_err(|error| failed(format!("cannot be read: {error}")))?;
        let fields = json::parse_object(&bytes).map_err(failed)?;
        Ok(Self { name, fields })
    }

    /// Checks that the benchmark did what was planned: every request completed, and tokens came out.
    ///
    /// # Errors
    /// Every way in which it did not; `planned` is the number of requests where it is known, else the file's own.
    pub fn check(&self, planned: Option<u64>) -> Result<(), Problems> {
        let mut problems = Problems::default();
        let asked = planned.or_else(|| self.field("num_prompts").integer());
        let completed = self.field("completed");
        match (asked, completed.integer()) {
            (_, None | Some(0)) => {
                problems.push(self.problem(format!("`completed` is {completed}: no request completed")));
            }
            (Some(asked), Some(done)) if done != asked => {
                problems.push(self.problem(format!("`completed` is {done}, {asked} requests were planned")));
            }
            _ => {}
        }
        let tokens = self.field("total_output_tokens");
        if tokens.number().is_none_or(|tokens| tokens <= 0.0) {
            problems.push(self.problem(format!("`total_output_tokens` is {tokens}: nothing was generated")));
        }
        problems.into_result()
    }

    /// The aggregate of a row's benchmark.
    ///
    /// # Errors
    /// Every field that is missing, no number, zero or infinite, and a concurrency that is not the row's.
    pub fn aggregate(&self, row: &Row) -> Result<Aggregate, Problems> {
        let mut problems = Problems::default();
        let conc = self.concurrency(row, &mut problems);
        let model = self.field("model_id").text().unwrap_or_default().to_owned();
        if model.is_empty() {
            problems.push(self.problem(format!(
                "`model_id` is {}, it must name the model",
                self.field("model_id")
            )));
        }
        let total = self.positive("total_token_throughput", &mut problems);
        let output = self.positive("output_throughput", &mut problems);
        if total > 0.0 && output >= total {
            let message = format!("`output_throughput` is {output}, not below `total_token_throughput`, {total}");
            problems.push(self.problem(message));
        }
        let gpus = Gpus::of(&row.topology.nodes);
        for (count, which) in [(gpus.all, "GPUs"), (gpus.input, "prefill GPUs")] {
            if count == 0 {
                problems.push(self.problem(format!("the row has no {which} to divide by")));
            }
        }
        let metrics = self.metrics(&mut problems);
        problems.into_result()?;
        let t = &*row.topology;
        Ok(Aggregate {
            conc,
            row: measured(row, conc, model),
            is_multinode: t.shape().multinode,
            topology: topology(&t.nodes),
            tput_per_gpu: total / divisor(gpus.all),
            output_tput_per_gpu: output / divisor(gpus.output),
            input_tput_per_gpu: (total - output) / divisor(gpus.input),
            metrics,
        })
    }

    /// The share of requests that failed, 0 to 1: `error_rate`, else `failed` of `failed` and `completed`. `None`
    /// where the benchmark does not say.
    #[must_use]
    pub fn error_rate(&self) -> Option<f64> {
        let number = |name| self.field(name).number().filter(|number| *number >= 0.0);
        number("error_rate").or_else(|| {
            let (failed, completed) = (number("failed")?, number("completed")?);
            (failed + completed > 0.0).then(|| failed / (failed + completed))
        })
    }

    /// How many requests completed.
    #[must_use]
    pub fn completed(&self) -> Option<u64> {
        self.field("completed").integer()
    }

    fn field(&self, name: &str) -> &Cell {
        self.fields.get(name).unwrap_or(&Cell::Null)
    }

    fn problem(&self, message: String) -> Problem {
        Problem::file(&self.name, format!("{}: {message}", self.name))
            .hint("the benchmark did not measure what it should: see its log and the server's")
    }

    fn concurrency(&self, row: &Row, problems: &mut Problems) -> u64 {
        let found = self.field("max_concurrency");
        let conc = found
            .integer()
            .filter(|_| matches!(found, Cell::Number(_)))
            .unwrap_or(0);
        if !row.conc.points().contains(&conc) {
            let planned: Vec<String> = row.conc.points().iter().map(u64::to_string).collect();
            let message = format!(
                "`max_concurrency` is {found}, the row is measured at {}",
                planned.join(", ")
            );
            problems.push(self.problem(message));
        }
        conc
    }

    /// A positive, finite number; 0 with a problem otherwise.
    fn positive(&self, name: &str, problems: &mut Problems) -> f64 {
        let found = self.field(name);
        match found.number().filter(|value| *value > 0.0) {
            Some(value) => value,
            None => {
                problems.push(self.problem(format!("`{name}` is {found}, it must be a finite number above 0")));
                0.0
            }
        }
    }

    /// Every time in seconds, and every time per output token as interactivity too.
    fn metrics(&self, problems: &mut Problems) -> IndexMap<String, f64> {
        let mut metrics = IndexMap::new();
        for (name, value) in &self.fields {
            let Some(stem) = name.strip_suffix(MILLISECONDS) else {
                continue;
            };
            let may_be_zero = name.starts_with(SPREAD) && value.number() == Some(0.0);
            let value = if may_be_zero {
                0.0
            } else {
                self.positive(name, problems)
            };
            metrics.insert(stem.to_owned(), value / 1000.0);
            if stem.contains(TPOT) && value > 0.0 {
                metrics.insert(stem.replace(TPOT, INTVTY), 1000.0 / value);
            }
        }
        metrics
    }
}

/// The GPUs that throughputs are divided by.
struct Gpus {
    all: u64,
    output: u64,
    input: u64,
}

impl Gpus {
    fn of(nodes: &Nodes) -> Self {
        match nodes {
            Nodes::Single(parallelism) => {
                let all = parallelism.gpus();
                Self {
                    all,
                    output: all,
                    input: all,
                }
            }
            Nodes::Multi(roles) => {
                let (prefill, decode) = (roles.prefill.gpus(), roles.decode.gpus());
                let all = prefill + decode;
                Self {
                    all,
                    output: if decode > 0 { decode } else { all },
                    input: prefill,
                }
            }
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "no sweep has 2^53 GPUs")]
fn divisor(gpus: u64) -> f64 {
    gpus as f64
}

/// What is published of a row, with what was measured of it where readers expect that: after `hw` and after `image`.
fn measured(row: &Row, conc: u64, model: String) -> Map<String, Value> {
    let mut fields = Map::new();
    for (name, value) in published(row) {
        let next = match name.as_str() {
            "hw" => Some(("conc", conc.into())),
            "image" => Some(("model", model.clone().into())),
            _ => None,
        };
        fields.insert(name, value);
        fields.extend(next.map(|(name, value)| (name.to_owned(), value)));
    }
    fields
}

/// What published rows say of a row, besides its sizes.
#[must_use]
pub fn published(row: &Row) -> Map<String, Value> {
    let shape = row.topology.shape();
    let mut fields = Map::new();
    for (field, name) in Field::of_published() {
        // Every published row says whether it is disaggregated; of the rest each shape has its own.
        if field.of_shape(shape) == Has::Not && field != Field::Disagg {
            continue;
        }
        let value = match (field, row.field(field)) {
            (Field::RecipeFingerprint, FieldValue::Missing) => "".into(),
            (_, FieldValue::Missing) => continue,
            (Field::KvOffloadBackend, FieldValue::Component(backend)) => backend.name.clone().into(),
            (_, value) => wire::plain(value),
        };
        fields.insert(name.to_owned(), value);
    }
    fields
}

fn topology(nodes: &Nodes) -> IndexMap<String, Size> {
    match nodes {
        Nodes::Single(sizes) => sizes.texts().map(|(size, _)| published_size("", sizes, size)).collect(),
        Nodes::Multi(roles) => Side::ALL
            .into_iter()
            .flat_map(|side| of_side(side, roles.side(side)))
            .collect(),
    }
}

fn published_size(start: &str, sizes: &Parallelism, size: fields::Size) -> (String, Size) {
    let value = match size.is_flag() {
        true => Size::Text(size.text(sizes.get(size))),
        false => Size::Number(sizes.get(size)),
    };
    (format!("{start}{}", size.names().published), value)
}

fn of_side(side: Side, role: &Role) -> Vec<(String, Size)> {
    let name = side.name();
    let start = format!("{name}_");
    let sizes = |flags: bool| {
        let sizes = fields::Size::ALL.iter().filter(move |size| size.is_flag() == flags);
        sizes.map(|size| published_size(&start, &role.sizes, *size))
    };
    let mut all: Vec<(String, Size)> = sizes(false).collect();
    all.push((format!("{name}_num_workers"), Size::Number(role.num_worker)));
    all.extend(sizes(true));
    all.push((format!("num_{name}_gpu"), Size::Number(role.gpus())));
    if let Some(hardware) = &role.hardware {
        all.push((format!("{name}_hw"), Size::Text(hardware.clone())));
    }
    all
}
