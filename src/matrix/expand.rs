//! From configs to rows.
//!
//! Rows follow the order of the configs, then fixed sequences before agentic traces, then the order of the lists.
//! Within a search-space entry concurrency is the outer loop and the runner the inner one; for agentic rows on many
//! nodes it is the other way round.

use std::sync::Arc;

use super::row::{AGENTIC_DURATION, Conc, Offload, Row, Scenario, Topology};
use crate::config::master::search_space::{ConcSpec, Nodes, Roles, SearchEntry};
use crate::config::master::{Agentic, Config, Fixed};
use crate::config::problem::{Problem, Problems, nearest_of_all};
use crate::config::runners::Runners;
use crate::config::types::{KvOffloading, NodeKind, ScenarioType, SeqLen, SpecDecoding};
use crate::findings::config::{SIZE, UNKNOWN_RUNNER};
use crate::findings::plan;

/// The most host memory that is counted, in MiB; larger hosts count as this.
const MAX_DRAM_MIB: u64 = 2_861_022;

/// What is expanded, and how far.
#[derive(Debug, Clone)]
pub struct Expansion {
    /// The factor between the points of a range; above 1.
    pub step: u64,
    /// The scenarios.
    pub scenarios: Vec<ScenarioType>,
    /// The node kinds.
    pub node_kinds: Vec<NodeKind>,
    /// The fixed lengths; all, where `None`.
    pub seq_lens: Option<Vec<SeqLen>>,
    /// Keeps the runner names that contain this text.
    pub runner_filter: Option<RunnerFilter>,
    /// Keeps these points.
    pub conc: Option<Vec<u64>>,
    /// Bounds.
    pub bounds: Bounds,
}

impl Default for Expansion {
    fn default() -> Self {
        Self {
            step: 2,
            scenarios: ScenarioType::CHOICES.iter().map(|(_, s)| *s).collect(),
            node_kinds: vec![NodeKind::Single, NodeKind::Multi],
            seq_lens: None,
            runner_filter: None,
            conc: None,
            bounds: Bounds::default(),
        }
    }
}

/// Replaces a label by runner names.
#[derive(Debug, Clone)]
pub struct RunnerFilter {
    /// What a name must contain.
    pub text: String,
    /// Whether the label itself is a candidate, before its names.
    pub label_too: bool,
}

/// Bounds of a full sweep. One of 0 or less leaves nothing of the fixed entries that it applies to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bounds {
    /// The lowest concurrency.
    pub min_conc: Option<i64>,
    /// The highest concurrency.
    pub max_conc: Option<i64>,
    /// The largest tensor parallel size of single-node fixed entries.
    pub max_tp: Option<i64>,
    /// Caps the expert parallel size of single-node fixed entries.
    pub max_ep: Option<i64>,
}

impl Expansion {
    /// The rows of configs, in order.
    ///
    /// # Errors
    /// Every offload that cannot be sized.
    pub fn rows<'c>(
        &self,
        configs: impl IntoIterator<Item = &'c Config>,
        runners: &Runners,
    ) -> Result<Vec<Row>, Problems> {
        let mut out = Output {
            rows: Vec::new(),
            problems: Problems::default(),
        };
        for config in configs {
            let first = out.rows.len();
            self.config(config, runners, &mut out);
            let key: Arc<str> = config.key.as_str().into();
            for row in &mut out.rows[first..] {
                row.config_key = Some(Arc::clone(&key));
            }
        }
        out.problems.into_result()?;
        Ok(out.rows)
    }

    fn config(&self, config: &Config, runners: &Runners, out: &mut Output) {
        let kind = if config.multinode {
            NodeKind::Multi
        } else {
            NodeKind::Single
        };
        if !self.node_kinds.contains(&kind) {
            return;
        }
        let names = self.runner_names(config, runners);
        if self.scenarios.contains(&ScenarioType::FixedSeqLen) {
            for fixed in config.fixed.iter().flatten() {
                if self.seq_lens.as_ref().is_none_or(|wanted| wanted.contains(&fixed.seq)) {
                    self.fixed(config, fixed, &names, out);
                }
            }
        }
        if self.scenarios.contains(&ScenarioType::AgenticCoding) {
            for agentic in config.agentic.iter().flatten() {
                self.agentic(config, agentic, &names, runners, out);
            }
        }
    }

    fn runner_names(&self, config: &Config, runners: &Runners) -> Vec<String> {
        let Some(filter) = &self.runner_filter else {
            return vec![config.runner.clone()];
        };
        let label = filter.label_too.then_some(&config.runner);
        let names = runners.labels.get(&config.runner).into_iter().flatten();
        label
            .into_iter()
            .chain(names)
            .filter(|name| name.contains(&filter.text))
            .cloned()
            .collect()
    }

    fn fixed(&self, config: &Config, fixed: &Fixed, names: &[String], out: &mut Output) {
        for entry in &fixed.space {
            let Some((entry_nodes, points)) = self.bounds.apply(entry, self.step) else {
                continue;
            };
            let points = self.wanted(points);
            if points.is_empty() {
                continue;
            }
            let exp_name = format!("{}_{}", config.model_prefix, fixed.seq);
            let topologies: Vec<_> = names
                .iter()
                .map(|name| topology(config, entry, entry_nodes.clone(), name, Scenario::Fixed(fixed.seq)))
                .collect();
            if config.multinode {
                for topology in &topologies {
                    out.push(topology, Conc::List(points.clone()), exp_name.clone());
                }
                continue;
            }
            for point in &points {
                for topology in &topologies {
                    out.push(topology, Conc::Point(*point), exp_name.clone());
                }
            }
        }
    }

    fn agentic(&self, config: &Config, agentic: &Agentic, names: &[String], runners: &Runners, out: &mut Output) {
        for entry in &agentic.space {
            let points = self.wanted(self.bounds.filter(expand(&entry.conc, self.step)));
            if points.is_empty() || names.is_empty() {
                continue;
            }
            let offload = match offload(config, agentic, entry, runners) {
                Ok(offload) => offload,
                Err(problem) => {
                    out.problems.push(*problem);
                    continue;
                }
            };
            let topologies: Vec<_> = names
                .iter()
                .map(|name| {
                    topology(
                        config,
                        entry,
                        entry.nodes.clone(),
                        name,
                        Scenario::Agentic(offload.clone()),
                    )
                })
                .collect();
            let exp_name = |point| agentic_name(config, entry, &offload, point);
            if config.multinode {
                for topology in &topologies {
                    for point in &points {
                        out.push(topology, Conc::List(vec![*point]), exp_name(*point));
                    }
                }
                continue;
            }
            for point in &points {
                for topology in &topologies {
                    out.push(topology, Conc::Point(*point), exp_name(*point));
                }
            }
        }
    }

    fn wanted(&self, mut points: Vec<u64>) -> Vec<u64> {
        if let Some(wanted) = &self.conc {
            points.retain(|point| wanted.contains(point));
        }
        points
    }
}

struct Output {
    rows: Vec<Row>,
    problems: Problems,
}

impl Output {
    fn push(&mut self, topology: &Arc<Topology>, conc: Conc, exp_name: String) {
        match Row::new(Arc::clone(topology), conc, exp_name) {
            Ok(row) => self.rows.push(row),
            Err(error) => self.problems.push(plan::ROW.file("", error.to_string())),
        }
    }
}

/// The points of a range: start, start x step, ..., and always the end.
fn expand(conc: &ConcSpec, step: u64) -> Vec<u64> {
    match conc {
        ConcSpec::List(points) => points.clone(),
        ConcSpec::Range { start, end } => range(*start, *end, step),
    }
}

fn range(start: u64, end: u64, step: u64) -> Vec<u64> {
    let mut points = Vec::new();
    let mut point = start;
    while point < end {
        points.push(point);
        point = point.saturating_mul(step);
    }
    points.push(end);
    points
}

impl Bounds {
    /// The topology and points of a fixed entry inside the bounds; `None` when nothing is left.
    fn apply(&self, entry: &SearchEntry, step: u64) -> Option<(Nodes, Vec<u64>)> {
        let empty = |bound: Option<i64>| bound.is_some_and(|b| b <= 0);
        if empty(self.min_conc) || empty(self.max_conc) {
            return None;
        }
        let (nodes, clipped) = match &entry.nodes {
            Nodes::Multi(_) => (entry.nodes.clone(), None),
            Nodes::Single(parallelism) => {
                if empty(self.max_tp) || empty(self.max_ep) {
                    return None;
                }
                if self.max_tp.is_some_and(|max| parallelism.tp > max.unsigned_abs()) {
                    return None;
                }
                let mut parallelism = *parallelism;
                if let Some(max) = self.max_ep {
                    parallelism.ep = parallelism.ep.min(max.unsigned_abs());
                }
                (Nodes::Single(parallelism), self.clip(&entry.conc))
            }
        };
        if let Some((start, end)) = clipped {
            return (start <= end).then(|| (nodes, range(start, end, step)));
        }
        let above = self.at_least(expand(&entry.conc, step));
        if above.is_empty() {
            return None;
        }
        let mut points = self.at_most(above);
        if let (true, Some(max)) = (points.is_empty(), self.max_conc) {
            points.push(max.unsigned_abs());
        }
        Some((nodes, points))
    }

    /// The ends of a range inside the bounds; a range above the upper one becomes that bound.
    fn clip(&self, conc: &ConcSpec) -> Option<(u64, u64)> {
        let ConcSpec::Range { start, end } = *conc else {
            return None;
        };
        let min = self.min_conc.map_or(start, i64::unsigned_abs);
        let max = self.max_conc.map_or(end, i64::unsigned_abs);
        if end < min {
            return Some((1, 0));
        }
        let start = start.max(min).min(max);
        Some((start, end.min(max)))
    }

    fn at_least(&self, mut points: Vec<u64>) -> Vec<u64> {
        points.retain(|p| {
            self.min_conc
                .is_none_or(|min| i64::try_from(*p).is_ok_and(|p| p >= min))
        });
        points
    }

    fn at_most(&self, mut points: Vec<u64>) -> Vec<u64> {
        points.retain(|p| {
            self.max_conc
                .is_none_or(|max| i64::try_from(*p).is_ok_and(|p| p <= max))
        });
        points
    }

    fn filter(&self, points: Vec<u64>) -> Vec<u64> {
        self.at_most(self.at_least(points))
    }
}

fn topology(config: &Config, entry: &SearchEntry, nodes: Nodes, runner: &str, scenario: Scenario) -> Arc<Topology> {
    Arc::new(Topology {
        image: config.image.clone(),
        model: config.model.clone(),
        model_prefix: config.model_prefix.clone(),
        precision: config.precision.clone(),
        framework: config.framework.clone(),
        runner: runner.to_owned(),
        spec_decoding: entry.spec_decoding,
        disagg: config.disagg,
        router: entry.router.clone().or_else(|| config.router.clone()),
        kv_p2p_transfer: entry.kv_p2p_transfer.clone().or_else(|| config.kv_p2p_transfer.clone()),
        passed: entry.passed.clone(),
        nodes,
        scenario,
    })
}

fn offload(
    config: &Config,
    agentic: &Agentic,
    entry: &SearchEntry,
    runners: &Runners,
) -> Result<Offload, Box<Problem>> {
    let mode = entry.kv_offloading.unwrap_or_default();
    let total_cpu_dram_gb = match mode {
        KvOffloading::None => 0,
        KvOffloading::Dram => dram_gb(config, agentic, entry, runners)?,
    };
    Ok(Offload {
        mode,
        backend: entry.kv_offload_backend.clone(),
        total_cpu_dram_gb,
        duration: AGENTIC_DURATION,
    })
}

/// The host memory that one server may offload to, in GB.
///
/// `floor(min(MiB, 2861022) * 1048576 * utilization * g / gpus-per-node / 10^9)`, with the utilization as the exact
/// fraction that was written.
fn dram_gb(config: &Config, agentic: &Agentic, entry: &SearchEntry, runners: &Runners) -> Result<u64, Box<Problem>> {
    let fail = |message: String| {
        let problem = SIZE.here(&entry.place, format!("config `{}`: {message}", config.key));
        Box::new(problem)
    };
    let Some(hardware) = runners.hardware.get(&config.runner) else {
        let known: Vec<&str> = runners.hardware.keys().map(String::as_str).collect();
        let message = format!(
            "`kv-offloading: dram` on `{}`, whose hardware is not known",
            config.runner
        );
        let hint = match known.as_slice() {
            [] => "the runners file has no `hardware`: add it".to_owned(),
            _ => format!("labels with hardware: {}", known.join(", ")),
        };
        return Err(Box::new(fail(message).id(&UNKNOWN_RUNNER).hint(hint)));
    };
    let per_node = hardware.gpus_per_node;
    let gpus = match &entry.nodes {
        Nodes::Single(parallelism) if parallelism.gpus() <= per_node => parallelism.gpus(),
        Nodes::Single(parallelism) => {
            let message = format!(
                "{} on one node, which has {per_node}",
                crate::plural::count(parallelism.gpus(), "GPU")
            );
            return Err(fail(message));
        }
        Nodes::Multi(roles) => {
            let replica = roles.prefill.gpus_per_worker();
            if replica <= per_node && per_node.is_multiple_of(replica) {
                replica
            } else if replica > per_node && replica.is_multiple_of(per_node) {
                per_node
            } else {
                let message = format!(
                    "a prefill replica of {} does not fit nodes of {per_node} evenly",
                    crate::plural::count(replica, "GPU")
                );
                return Err(fail(message));
            }
        }
    };
    let Some(share) = agentic.dram_utilization else {
        return Err(fail("`kv-offloading: dram` needs a `dram-utilization`".to_owned()));
    };
    let bytes = i128::from(hardware.available_cpu_dram_mib.min(MAX_DRAM_MIB)) * (1 << 20);
    let divisor = 10_i128
        .checked_pow(share.scale() + 9)
        .and_then(|scale| scale.checked_mul(i128::from(per_node)));
    bytes
        .checked_mul(share.mantissa())
        .and_then(|product| product.checked_mul(i128::from(gpus)))
        .zip(divisor)
        .and_then(|(product, divisor)| u64::try_from(product / divisor).ok())
        .ok_or_else(|| fail(format!("`dram-utilization` {share} has too many digits")))
}

fn agentic_name(config: &Config, entry: &SearchEntry, offload: &Offload, point: u64) -> String {
    let backend = offload.backend.as_ref().map_or("", |b| b.name.as_str());
    let mode = offload.mode.as_str();
    let offloads = offload.mode != KvOffloading::None;
    let prefix = &config.model_prefix;
    match &entry.nodes {
        Nodes::Single(parallelism) => {
            let kv = if offloads {
                format!("{mode}-{backend}")
            } else {
                mode.to_owned()
            };
            let spec = match entry.spec_decoding {
                SpecDecoding::None => String::new(),
                spec => format!("_spec-{}", spec.as_str()),
            };
            format!("{prefix}_tp{}_conc{point}_kv{kv}{spec}", parallelism.tp)
        }
        Nodes::Multi(roles) => {
            let kv = if offloads {
                format!("_kv{mode}-{backend}")
            } else {
                String::new()
            };
            let (prefill, decode) = sides(roles);
            format!("{prefix}_p{prefill}_d{decode}_conc{point}{kv}")
        }
    }
}

/// `<workers>x<tp>[ep<ep>][dpa]` of prefill and decode.
fn sides(roles: &Roles) -> (String, String) {
    let side = |role: &crate::config::types::Role| {
        let ep = if role.ep > 1 {
            format!("ep{}", role.ep)
        } else {
            String::new()
        };
        let dpa = if role.dp_attn { "dpa" } else { "" };
        format!("{}x{}{ep}{dpa}", role.num_worker, role.tp)
    };
    (side(&roles.prefill), side(&roles.decode))
}

/// Checks that labels are known.
///
/// # Errors
/// Each unknown label, with the nearest.
pub fn known_labels<'a>(labels: impl IntoIterator<Item = &'a str>, runners: &Runners) -> Result<(), Problems> {
    let known = || runners.labels.keys().map(String::as_str);
    let unknown = labels.into_iter().filter(|label| !runners.labels.contains_key(*label));
    let problems = unknown.map(|label| {
        let hint = nearest_of_all(label, known());
        UNKNOWN_RUNNER
            .file("", format!("no runner label is named `{label}`"))
            .hint(hint)
    });
    Problems(problems.collect()).into_result()
}
