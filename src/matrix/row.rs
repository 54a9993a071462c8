//! The row: one job.
//!
//! A row is a topology (everything that is deployed), the concurrency it is measured at, a name, and what its eval
//! is. Rows of one search-space entry share their topology, so that a sweep of thousands of rows stays small. The
//! JSON form is [`super::wire`].

use std::borrow::Cow;
use std::sync::Arc;

use crate::config::fields::{Field, Parallelism, Passed, Role, Shape, Side, SideField};
use crate::config::master::search_space::{Nodes, Roles};
use crate::config::policy::Evaluator;
use crate::config::recipe::Benchmark;
use crate::config::types::{Component, KvOffloading, NodeKind, ScenarioType, SeqLen, SpecDecoding};

/// What stands for the accuracy benchmark in the name of an eval's recipe.
const SUITE: &str = "{suite}";

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
    /// What is only passed on.
    pub passed: Passed,
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

    /// The accuracy benchmark that its eval is, by the suite's name, where it is one.
    #[must_use]
    pub fn benchmark(&self) -> Option<&str> {
        let evaluator = self.eval.evaluator.as_ref().filter(|_| self.runs_eval())?;
        evaluator.is_benchmark().then_some(evaluator.suite.as_str())
    }

    /// The recipe of srt-slurm that its job runs, as the config names it. Jobs that only evaluate may have one of their
    /// own, in whose name `{suite}` stands for the accuracy benchmark; without one such a name is nobody's.
    #[must_use]
    pub fn srt_recipe(&self) -> Option<Cow<'_, str>> {
        let passed = &self.topology.passed;
        let of_evals = passed.eval_srt_recipe.as_deref().filter(|_| self.eval.eval_only);
        let suite = self.benchmark().and_then(Benchmark::of_suite);
        let of_evals = of_evals.and_then(|name| match (name.contains(SUITE), suite) {
            (false, _) => Some(Cow::Borrowed(name)),
            (true, Some(suite)) => Some(Cow::Owned(name.replace(SUITE, suite.name()))),
            (true, None) => None,
        });
        of_evals.or_else(|| passed.srt_recipe.as_deref().map(Cow::Borrowed))
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

    /// Which of the four shapes its rows have.
    #[must_use]
    pub fn shape(&self) -> Shape {
        Shape {
            multinode: matches!(self.nodes, Nodes::Multi(_)),
            agentic: matches!(self.scenario, Scenario::Agentic(_)),
        }
    }

    /// The sizes of one node.
    #[must_use]
    pub fn single(&self) -> Option<&Parallelism> {
        match &self.nodes {
            Nodes::Single(parallelism) => Some(parallelism),
            Nodes::Multi(_) => None,
        }
    }

    /// The sides of a multi-node deployment.
    #[must_use]
    pub fn roles(&self) -> Option<&Roles> {
        match &self.nodes {
            Nodes::Single(_) => None,
            Nodes::Multi(roles) => Some(roles),
        }
    }

    /// The KV offload of agentic jobs.
    #[must_use]
    pub fn offload(&self) -> Option<&Offload> {
        match &self.scenario {
            Scenario::Fixed(_) => None,
            Scenario::Agentic(offload) => Some(offload),
        }
    }

    /// The value of a field, `None` where this topology has no such field.
    #[must_use]
    pub fn field(&self, field: Field) -> FieldValue<'_> {
        use FieldValue::{Bool, Int, Missing, Text};
        match field {
            Field::Image => Text(&self.image),
            Field::Model => Text(&self.model),
            Field::ModelPrefix => Text(&self.model_prefix),
            Field::Precision => Text(&self.precision),
            Field::Framework => Text(&self.framework),
            Field::Runner => Text(&self.runner),
            Field::SpecDecoding => Text(self.spec_decoding.as_str()),
            Field::Disagg => Bool(self.disagg),
            Field::Router => self.router.as_ref().map_or(Missing, FieldValue::Component),
            Field::KvP2pTransfer => self.kv_p2p_transfer.as_deref().map_or(Missing, Text),
            Field::ScenarioType => Text(self.scenario_type().as_str()),
            Field::Isl => self.seq().map_or(Missing, |s| Int(s.isl)),
            Field::Osl => self.seq().map_or(Missing, |s| Int(s.osl)),
            Field::MaxModelLen => self.seq().map_or(Missing, |s| Int(s.max_model_len())),
            Field::KvOffloading => self.offload().map_or(Missing, |o| Text(o.mode.as_str())),
            Field::KvOffloadBackend => {
                let backend = self.offload().and_then(|offload| offload.backend.as_ref());
                backend.map_or(Missing, FieldValue::Component)
            }
            Field::TotalCpuDramGb => self.offload().map_or(Missing, |o| Int(o.total_cpu_dram_gb)),
            Field::Duration => self.offload().map_or(Missing, |o| Int(o.duration)),
            Field::Size(size) => self.single().map_or(Missing, |sizes| FieldValue::of_size(sizes, size)),
            Field::Prefill => self.roles().map_or(Missing, |roles| FieldValue::Role(&roles.prefill)),
            Field::Decode => self.roles().map_or(Missing, |roles| FieldValue::Role(&roles.decode)),
            Field::Of(side, part) => self.roles().map_or(Missing, |roles| roles.side(side).part(part)),
            Field::Passed(field) => self.passed.get(field).map_or(Missing, Text),
            _ => Missing,
        }
    }
}

impl Row {
    /// The value of a field; `Missing` where the row has no such field, or says nothing of it.
    #[must_use]
    pub fn field(&self, field: Field) -> FieldValue<'_> {
        use FieldValue::{Bool, Int, Missing, Text};
        let eval = &self.eval;
        let evaluator = eval.evaluator.as_ref();
        match field {
            Field::Conc => match &self.conc {
                Conc::Point(point) => Int(*point),
                Conc::List(points) => FieldValue::List(points),
            },
            Field::ExpName => Text(&self.exp_name),
            Field::RunEval => eval.run_eval.map_or(Missing, Bool),
            Field::EvalOnly if eval.eval_only => Bool(true),
            Field::EvalConc => eval.eval_conc.map_or(Missing, Int),
            Field::EvalAllConcs if eval.eval_all_concs => Bool(true),
            Field::EvalFramework => evaluator.map_or(Missing, |e| Text(&e.framework)),
            Field::EvalSuite => evaluator.map_or(Missing, |e| Text(&e.suite)),
            Field::RecipeFingerprint => self.recipe_fingerprint.as_deref().map_or(Missing, Text),
            field => self.topology.field(field),
        }
    }
}

impl Roles {
    /// One side.
    #[must_use]
    pub fn side(&self, side: Side) -> &Role {
        match side {
            Side::Prefill => &self.prefill,
            Side::Decode => &self.decode,
        }
    }
}

impl Role {
    /// The value of a part of a side.
    #[must_use]
    pub fn part(&self, part: SideField) -> FieldValue<'_> {
        match part {
            SideField::NumWorker => FieldValue::Int(self.num_worker),
            SideField::Size(size) => FieldValue::of_size(&self.sizes, size),
            SideField::Hardware => self.hardware.as_deref().map_or(FieldValue::Missing, FieldValue::Text),
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
    /// Several numbers.
    List(&'a [u64]),
    /// A named part of the deployment.
    Component(&'a Component),
    /// A side.
    Role(&'a Role),
}

impl FieldValue<'_> {
    fn of_size(sizes: &Parallelism, size: crate::config::fields::Size) -> Self {
        match (size.is_flag(), sizes.get(size)) {
            (true, flag) => Self::Bool(flag != 0),
            (false, number) => Self::Int(number),
        }
    }
}

impl std::fmt::Display for FieldValue<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing => f.write_str("-"),
            Self::Text(text) => f.write_str(text),
            Self::Int(value) => write!(f, "{value}"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::List(points) => {
                let points: Vec<String> = points.iter().map(u64::to_string).collect();
                f.write_str(&points.join(" "))
            }
            // Two strings always have a JSON form.
            Self::Component(component) => f.write_str(&serde_json::to_string(component).unwrap_or_default()),
            Self::Role(role) => write!(f, "{}x {}", role.num_worker, role.sizes.shown()),
        }
    }
}
