//! The result of a throughput benchmark: whether it is one, and the aggregate that is published of it.
//!
//! What a client saved is read into one common form ([`measured`]), which the checks and the aggregate know alone.

mod aiperf;
pub(crate) mod check;
pub(crate) mod client;
mod export;
mod genai_perf;
pub(crate) mod measured;
mod sglang;
mod vllm;

use std::path::Path;

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::{Map, Value};

use self::check::Check;
use self::client::{Client, Fields};
use self::measured::Measured;
use super::power::{Published, Reported};
use super::results::file;
use crate::config::fields::{self, Field, Has, Parallelism, Role, Side};
use crate::config::master::search_space::Nodes;
use crate::config::problem::{Problem, Problems};
use crate::matrix::row::{FieldValue, Row};
use crate::matrix::wire;

/// A benchmark's result as it was saved.
#[derive(Debug, Clone)]
pub struct Benchmark {
    name: String,
    run: Measured,
    fields: Fields,
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
    /// Requests that completed.
    pub completed: u64,
    /// Input and output tokens a second, over all GPUs.
    pub tput_per_gpu: f64,
    /// Output tokens a second, over the decode GPUs, or all where none is decode's alone.
    pub output_tput_per_gpu: f64,
    /// Input tokens a second, over the prefill GPUs, or all on one node.
    pub input_tput_per_gpu: f64,
    /// Times in seconds, and interactivities in tokens a second.
    #[serde(flatten)]
    pub metrics: IndexMap<String, f64>,
    /// Power and energy, where samples of them were named.
    #[serde(flatten)]
    pub power: Option<Published>,
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
    /// Reads a benchmark's result, of the client that was named or that the file tells.
    ///
    /// # Errors
    /// A file that cannot be read, is no JSON object, or is of no client or another one.
    pub fn read(path: &Path, client: Option<Client>) -> Result<Self, Problem> {
        let name = file::shown(path);
        let failed =
            |reason: String| Problem::file(&name, format!("{name} {reason}")).hint("see the log of the benchmark");
        let bytes = file::read(path).map_err(|error| failed(format!("cannot be read: {error}")))?;
        let (run, fields) = client::read(&bytes, client).map_err(failed)?;
        Ok(Self { name, run, fields })
    }

    /// Checks that the benchmark did what was planned: every request completed (of an agentic replay some may fail),
    /// tokens came out, and counts and times are numbers that can be.
    ///
    /// # Errors
    /// Every way in which it did not.
    pub fn check(&self, row: &Row) -> Result<(), Problems> {
        let mut check = self.checked();
        check.whole(row);
        check.problems.into_result()
    }

    /// The aggregate of a row's benchmark; `ratio` is the job's RANDOM_RANGE_RATIO.
    ///
    /// # Errors
    /// What [`Benchmark::check`] finds, every field that is missing, no number, zero or infinite, and what is not the
    /// row's: model, concurrency, lengths.
    pub fn aggregate(&self, row: &Row, ratio: f64) -> Result<Aggregate, Problems> {
        let mut check = self.checked();
        let metrics = check.whole(row);
        let conc = check.conc(row);
        let model = check.model(row);
        check.lengths(row, ratio);
        let rates = check.rates();
        let gpus = Gpus::of(&row.topology.nodes);
        for (count, which) in [(gpus.all, "GPUs"), (gpus.input, "prefill GPUs")] {
            if count == 0 {
                check.report(format_args!("the row has no {which} to divide by"));
            }
        }
        check.problems.into_result()?;
        let t = &*row.topology;
        Ok(Aggregate {
            conc,
            row: measured(row, conc, model),
            is_multinode: t.shape().multinode,
            topology: topology(&t.nodes),
            completed: self.run.completed.count().unwrap_or_default(),
            tput_per_gpu: rates.all / divisor(gpus.all),
            output_tput_per_gpu: rates.output / divisor(gpus.output),
            input_tput_per_gpu: (rates.all - rates.output) / divisor(gpus.input),
            metrics,
            power: None,
        })
    }

    /// When it ran and what it did, as far as the file says.
    #[must_use]
    pub fn reported(&self) -> Reported {
        let cell = |name| self.fields.get(name).value;
        Reported {
            start: cell("benchmark_start_time_unix"),
            end: cell("benchmark_end_time_unix"),
            duration: cell("duration"),
            completed: cell("completed"),
            input_tokens: cell("total_input_tokens"),
            output_tokens: cell("total_output_tokens"),
        }
    }

    fn checked(&self) -> Check<'_> {
        Check {
            file: &self.name,
            run: &self.run,
            problems: Problems::default(),
        }
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
            (_, value) => wire::plain(value),
        };
        fields.insert(name.to_owned(), value);
    }
    fields
}

/// The sizes of a row, under the names that they are published with.
#[must_use]
pub fn topology(nodes: &Nodes) -> IndexMap<String, Size> {
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

/// The sizes of a side; zero where it has no workers that could be so large.
fn of_side(side: Side, role: &Role) -> Vec<(String, Size)> {
    let name = side.name();
    let start = format!("{name}_");
    let sizes = |flags: bool| {
        let sizes = fields::Size::ALL.iter().filter(move |size| size.is_flag() == flags);
        sizes.map(|size| match published_size(&start, &role.sizes, *size) {
            (name, Size::Number(_)) if role.num_worker == 0 => (name, Size::Number(0)),
            published => published,
        })
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
