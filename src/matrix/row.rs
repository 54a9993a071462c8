//! The row: one job.
//!
//! A row is a topology (everything that is deployed), the concurrency it is measured at, a name, and what its eval
//! is. Rows of one search-space entry share their topology, so that a sweep of thousands of rows stays small. The
//! JSON form is [`super::wire`].

use std::sync::Arc;

use crate::config::master::search_space::{Nodes, Roles};
use crate::config::policy::{Evaluator, Field};
use crate::config::types::{Component, KvOffloading, NodeKind, Parallelism, ScenarioType, SeqLen, SpecDecoding};

/// The seconds that an agentic row replays its traces for.
pub const AGENTIC_DURATION: u64 = 3600;

/// Everything that is deployed: a row without its concurrency, experiment name and eval fields.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Topology {
    /// The container image.
    pub image: String,
    /// The model.
    pub model: String,
    /// The model's short name.
    pub model_prefix: String,
    /// The weights' precision.
    pub precision: String,
    /// The serving engine.
    pub framework: String,
    /// The runner label or, under a filter, the runner's name.
    pub runner: String,
    /// Speculative decoding.
    pub spec_decoding: SpecDecoding,
    /// Whether prefill and decode are apart.
    pub disagg: bool,
    /// The router.
    pub router: Option<Component>,
    /// The KV transfer.
    pub kv_p2p_transfer: Option<String>,
    /// An srt-slurm recipe.
    pub srt_recipe: Option<String>,
    /// The recipe of eval-only jobs.
    pub eval_srt_recipe: Option<String>,
    /// One node, or prefill and decode workers.
    pub nodes: Nodes,
    /// What is run.
    pub scenario: Scenario,
}

/// What is run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scenario {
    /// Requests of fixed lengths.
    Fixed(SeqLen),
    /// Replayed traces of coding agents.
    Agentic(Offload),
}

/// The KV offload of an agentic row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Offload {
    /// Where to.
    pub mode: KvOffloading,
    /// What does it.
    pub backend: Option<Component>,
    /// Host memory that it may take, in GB (10^9 bytes).
    pub total_cpu_dram_gb: u64,
    /// Seconds of replay.
    pub duration: u64,
}

/// The concurrencies of a row: one on one node, a non-empty list on many.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Conc {
    /// One point.
    Point(u64),
    /// One server, several points one after another.
    List(Vec<u64>),
}

impl Conc {
    /// Every point.
    #[must_use]
    pub fn points(&self) -> &[u64] {
        match self {
            Self::Point(point) => std::slice::from_ref(point),
            Self::List(points) => points,
        }
    }

    /// The highest point.
    #[must_use]
    pub fn highest(&self) -> u64 {
        self.points().iter().copied().max().unwrap_or(0)
    }

    /// The lowest point.
    #[must_use]
    pub fn lowest(&self) -> u64 {
        self.points().iter().copied().min().unwrap_or(0)
    }

    /// The same kind with one point.
    #[must_use]
    pub fn reduced_to(&self, point: u64) -> Self {
        match self {
            Self::Point(_) => Self::Point(point),
            Self::List(_) => Self::List(vec![point]),
        }
    }
}

/// What the eval of a row is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct EvalMark {
    /// Whether it runs one; `None` where agentic rows carry no eval field.
    pub run_eval: Option<bool>,
    /// Whether it runs nothing else.
    pub eval_only: bool,
    /// The eval's concurrency, in multi-node jobs.
    pub eval_conc: Option<u64>,
    /// Whether the eval runs at every concurrency of the row.
    pub eval_all_concs: bool,
    /// What evaluates.
    pub evaluator: Option<Evaluator>,
}

/// One job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What is deployed.
    pub topology: Arc<Topology>,
    /// What it is measured at.
    pub conc: Conc,
    /// The experiment's name.
    pub exp_name: String,
    /// Its eval.
    pub eval: EvalMark,
    /// The recipe's fingerprint, on a plan's throughput rows.
    pub recipe_fingerprint: Option<String>,
    /// The key of the config that it was generated from; of a row that several configs were merged into, the first one's.
    /// It travels beside the row, not in it: the JSON form has none, and an envelope has a field of its own.
    pub config_key: Option<Arc<str>>,
}

/// A row whose concurrency does not fit its topology.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// One node, several points.
    #[error("a single-node row has one concurrency, not a list")]
    ListOnOneNode,
    /// Multi-node, no list.
    #[error("a multi-node row has a list of concurrencies")]
    PointOnManyNodes,
    /// An empty list or a zero.
    #[error("concurrencies are positive, and there is at least one")]
    NoConcurrency,
}

impl Row {
    /// A row without an eval.
    ///
    /// # Errors
    /// A concurrency that does not fit the topology.
    pub fn new(topology: Arc<Topology>, conc: Conc, exp_name: String) -> Result<Self, ShapeError> {
        match (&topology.nodes, &conc) {
            (Nodes::Single(_), Conc::List(_)) => return Err(ShapeError::ListOnOneNode),
            (Nodes::Multi(_), Conc::Point(_)) => return Err(ShapeError::PointOnManyNodes),
            _ => {}
        }
        if conc.points().is_empty() || conc.points().contains(&0) {
            return Err(ShapeError::NoConcurrency);
        }
        Ok(Self {
            topology,
            conc,
            exp_name,
            eval: EvalMark::default(),
            recipe_fingerprint: None,
            config_key: None,
        })
    }

    /// Which scenario it belongs to.
    #[must_use]
    pub fn scenario_type(&self) -> ScenarioType {
        self.topology.scenario_type()
    }

    /// One node or many.
    #[must_use]
    pub fn node_kind(&self) -> NodeKind {
        self.topology.node_kind()
    }

    /// Its sequence lengths, if they are fixed.
    #[must_use]
    pub fn seq(&self) -> Option<SeqLen> {
        self.topology.seq()
    }

    /// The concurrencies that its eval runs at; none without one.
    #[must_use]
    pub fn eval_concs(&self) -> Vec<u64> {
        match (self.runs_eval(), self.eval.eval_all_concs, self.eval.eval_conc) {
            (false, ..) => Vec::new(),
            (true, true, _) => self.conc.points().to_vec(),
            (true, false, Some(conc)) => vec![conc],
            (true, false, None) => vec![self.conc.highest()],
        }
    }

    /// Whether it runs an eval.
    #[must_use]
    pub fn runs_eval(&self) -> bool {
        self.eval.run_eval == Some(true)
    }
}

impl Topology {
    /// Which scenario it belongs to.
    #[must_use]
    pub fn scenario_type(&self) -> ScenarioType {
        match self.scenario {
            Scenario::Fixed(_) => ScenarioType::FixedSeqLen,
            Scenario::Agentic(_) => ScenarioType::AgenticCoding,
        }
    }

    /// One node or many.
    #[must_use]
    pub fn node_kind(&self) -> NodeKind {
        match self.nodes {
            Nodes::Single(_) => NodeKind::Single,
            Nodes::Multi(_) => NodeKind::Multi,
        }
    }

    /// Its sequence lengths, if they are fixed.
    #[must_use]
    pub fn seq(&self) -> Option<SeqLen> {
        match self.scenario {
            Scenario::Fixed(seq) => Some(seq),
            Scenario::Agentic(_) => None,
        }
    }

    /// The GPUs that it occupies.
    #[must_use]
    pub fn gpus(&self) -> u64 {
        match &self.nodes {
            Nodes::Single(parallelism) => parallelism.gpus(),
            Nodes::Multi(roles) => roles.prefill.gpus() + roles.decode.gpus(),
        }
    }

    fn single(&self) -> Option<&Parallelism> {
        match &self.nodes {
            Nodes::Single(parallelism) => Some(parallelism),
            Nodes::Multi(_) => None,
        }
    }

    fn roles(&self) -> Option<&Roles> {
        match &self.nodes {
            Nodes::Single(_) => None,
            Nodes::Multi(roles) => Some(roles),
        }
    }

    /// The value of a field, `None` where this topology has no such field.
    #[must_use]
    pub fn field(&self, field: Field) -> FieldValue<'_> {
        use FieldValue::{Bool, Int, Missing, Text};
        let single = |get: fn(&Parallelism) -> FieldValue<'static>| self.single().map_or(Missing, get);
        match field {
            Field::Image => Text(&self.image),
            Field::Model => Text(&self.model),
            Field::ModelPrefix => Text(&self.model_prefix),
            Field::Precision => Text(&self.precision),
            Field::Framework => Text(&self.framework),
            Field::Runner => Text(&self.runner),
            Field::SpecDecoding => Text(self.spec_decoding.as_str()),
            Field::Disagg => Bool(self.disagg),
            Field::KvP2pTransfer => self.kv_p2p_transfer.as_deref().map_or(Missing, Text),
            Field::ScenarioType => Text(self.scenario_type().as_str()),
            Field::Isl => self.seq().map_or(Missing, |s| Int(s.isl)),
            Field::Osl => self.seq().map_or(Missing, |s| Int(s.osl)),
            Field::KvOffloading => match &self.scenario {
                Scenario::Agentic(offload) => Text(offload.mode.as_str()),
                Scenario::Fixed(_) => Missing,
            },
            Field::Tp => single(|p| Int(p.tp)),
            Field::Pp => single(|p| Int(p.pp)),
            Field::DcpSize => single(|p| Int(p.dcp_size)),
            Field::PcpSize => single(|p| Int(p.pcp_size)),
            Field::Ep => single(|p| Int(p.ep.unwrap_or(1))),
            Field::DpAttn => single(|p| Bool(p.dp_attn.unwrap_or(false))),
            side => self.side_field(side),
        }
    }

    fn side_field(&self, field: Field) -> FieldValue<'_> {
        use FieldValue::{Bool, Int, Missing, Text};
        let Some(roles) = self.roles() else { return Missing };
        let (role, name) = match field.as_str().split_once('.') {
            Some(("prefill", name)) => (&roles.prefill, name),
            Some((_, name)) => (&roles.decode, name),
            None => return Missing,
        };
        match name {
            "num-worker" => Int(role.num_worker),
            "tp" => Int(role.tp),
            "pp" => Int(role.pp),
            "dcp-size" => Int(role.dcp_size),
            "pcp-size" => Int(role.pcp_size),
            "ep" => Int(role.ep),
            "dp-attn" => Bool(role.dp_attn),
            _ => role.hardware.as_deref().map_or(Missing, Text),
        }
    }
}

/// The value of a row's field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldValue<'a> {
    /// The row's shape has no such field, or it was not given.
    Missing,
    /// Text.
    Text(&'a str),
    /// A number.
    Int(u64),
    /// A flag.
    Bool(bool),
}

impl std::fmt::Display for FieldValue<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing => f.write_str("-"),
            Self::Text(text) => f.write_str(text),
            Self::Int(value) => write!(f, "{value}"),
            Self::Bool(value) => write!(f, "{value}"),
        }
    }
}
