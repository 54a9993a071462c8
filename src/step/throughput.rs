//! The result of a throughput benchmark: whether it is one, and the aggregate that is published of it.
//!
//! What a client saved is read into one common form ([`measured`]), which the checks and the aggregate know alone.

mod aiperf;
pub mod check;
pub mod client;
mod export;
mod genai_perf;
pub mod measured;
mod sglang;
mod vllm;

use std::path::Path;

use indexmap::IndexMap;
use serde::Serialize;

use self::check::Check;
use self::client::{Client, Fields};
use self::measured::Measured;
use super::power::{Published, Reported};
use super::results::file;
use crate::config::master::search_space::Nodes;
use crate::config::problem::{Problem, Problems};
use crate::config::types::{Component, Role};
use crate::matrix::row::{Row, Scenario};

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
    /// What offloads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kv_offload_backend: Option<Component>,
    /// Host memory that the offload may take, in GB; agentic results only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocated_cpu_dram_gb: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub router: Option<Component>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kv_p2p_transfer: Option<String>,
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
            kv_offload_backend: offload.and_then(|offload| offload.backend.clone()),
            allocated_cpu_dram_gb: offload.map(|offload| offload.total_cpu_dram_gb),
            router: t.router.clone(),
            kv_p2p_transfer: t.kv_p2p_transfer.clone(),
            is_multinode: matches!(t.nodes, Nodes::Multi(_)),
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

/// The sizes of a side; zero where it has no workers that could be so large.
fn side(sizes: &mut IndexMap<String, Size>, name: &str, role: &Role) {
    let of_a_worker = |size| if role.num_worker == 0 { 0 } else { size };
    let numbers = [
        ("tp", of_a_worker(role.tp)),
        ("pp", of_a_worker(role.pp)),
        ("dcp_size", of_a_worker(role.dcp_size)),
        ("pcp_size", of_a_worker(role.pcp_size)),
        ("ep", of_a_worker(role.ep)),
        ("num_workers", role.num_worker),
    ];
    sizes.extend(numbers.map(|(size, value)| (format!("{name}_{size}"), Size::Number(value))));
    sizes.insert(format!("{name}_dp_attention"), Size::Text(role.dp_attn.to_string()));
    sizes.insert(format!("num_{name}_gpu"), Size::Number(role.gpus()));
    if let Some(hardware) = &role.hardware {
        sizes.insert(format!("{name}_hw"), Size::Text(hardware.clone()));
    }
}
