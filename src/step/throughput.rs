//! The result of a throughput benchmark: whether it is one, and the aggregate that is published of it.
//!
//! The input is the JSON that serving benchmarks save (`vllm bench serve --save-result` and those that follow it),
//! with times in milliseconds under names that end in `_ms`.

use std::path::Path;

use indexmap::IndexMap;
use serde::Serialize;

use super::results::loose::Cell;
use super::results::{file, json};
use crate::config::master::search_space::Nodes;
use crate::config::problem::{Problem, Problems};
use crate::config::types::{Component, Role};
use crate::matrix::row::{Row, Scenario};

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
    /// The runner label.
    pub hw: String,
    pub conc: u64,
    pub image: String,
    /// The model that was asked.
    pub model: String,
    pub infmax_model_prefix: String,
    pub framework: String,
    pub precision: String,
    pub spec_decoding: &'static str,
    pub disagg: bool,
    /// Empty where the row has none.
    pub recipe_fingerprint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isl: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub osl: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario_type: Option<&'static str>,
    /// Agentic results only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kv_offloading: Option<&'static str>,
    /// The name of what offloads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kv_offload_backend: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub router: Option<Component>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kv_p2p_transfer: Option<String>,
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
        let seq = t.seq();
        let offload = match &t.scenario {
            Scenario::Agentic(offload) => Some(offload),
            Scenario::Fixed(_) => None,
        };
        Ok(Aggregate {
            hw: t.runner.clone(),
            conc,
            image: t.image.clone(),
            model,
            infmax_model_prefix: t.model_prefix.clone(),
            framework: t.framework.clone(),
            precision: t.precision.clone(),
            spec_decoding: t.spec_decoding.as_str(),
            disagg: t.disagg,
            recipe_fingerprint: row.recipe_fingerprint.clone().unwrap_or_default(),
            isl: seq.map(|seq| seq.isl),
            osl: seq.map(|seq| seq.osl),
            scenario_type: offload.map(|_| row.scenario_type().as_str()),
            kv_offloading: offload.map(|offload| offload.mode.as_str()),
            kv_offload_backend: offload.and_then(|offload| Some(offload.backend.as_ref()?.name.clone())),
            router: t.router.clone(),
            kv_p2p_transfer: t.kv_p2p_transfer.clone(),
            is_multinode: matches!(t.nodes, Nodes::Multi(_)),
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

fn topology(nodes: &Nodes) -> IndexMap<String, Size> {
    let mut sizes = IndexMap::new();
    match nodes {
        Nodes::Single(p) => {
            let numbers = [
                ("tp", p.tp),
                ("pp", p.pp),
                ("dcp_size", p.dcp_size),
                ("pcp_size", p.pcp_size),
                ("ep", p.ep.unwrap_or(1)),
            ];
            sizes.extend(numbers.map(|(name, size)| (name.to_owned(), Size::Number(size))));
            let flag = Size::Text(p.dp_attn.unwrap_or(false).to_string());
            sizes.insert("dp_attention".to_owned(), flag);
        }
        Nodes::Multi(roles) => {
            side(&mut sizes, "prefill", &roles.prefill);
            side(&mut sizes, "decode", &roles.decode);
        }
    }
    sizes
}

fn side(sizes: &mut IndexMap<String, Size>, name: &str, role: &Role) {
    let numbers = [
        ("tp", role.tp),
        ("pp", role.pp),
        ("dcp_size", role.dcp_size),
        ("pcp_size", role.pcp_size),
        ("ep", role.ep),
        ("num_workers", role.num_worker),
    ];
    sizes.extend(numbers.map(|(size, value)| (format!("{name}_{size}"), Size::Number(value))));
    sizes.insert(format!("{name}_dp_attention"), Size::Text(role.dp_attn.to_string()));
    sizes.insert(format!("num_{name}_gpu"), Size::Number(role.gpus()));
    if let Some(hardware) = &role.hardware {
        sizes.insert(format!("{name}_hw"), Size::Text(hardware.clone()));
    }
}
