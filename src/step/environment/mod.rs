//! The environment of a job: an envelope in, the variables that launch scripts read out.
//!
//! The table of [`Field`]s and [`VARIABLES`] are the only list of them. Every name stands in every job, and is empty where
//! the row has no such value, so that nothing of the runner's own environment can pass for the job's. Left out are
//! the names of other shapes (`CONC_LIST`, `PREFILL_*` and `DECODE_*` on one node) and those that are not known
//! (`MODEL_PATH`, `EVAL_MAX_MODEL_LEN`).

mod container;
mod own;
mod settings;

use indexmap::IndexMap;

use crate::config::fields::{Field, Parallelism, Side, SideField, Size};
use crate::config::master::search_space::Nodes;
use crate::config::problem::{Problem, Problems};
use crate::config::types::{KvOffloading, SeqLen};
use crate::matrix::envelope::Envelope;
use crate::matrix::names;
use crate::matrix::row::{Conc, FieldValue, Offload, Row};

pub use container::{by_name, env_file};
pub use own::{RANDOM_RANGE_RATIO, add};

/// The longest `NAME=VALUE` that Linux hands to a process, in bytes: `MAX_ARG_STRLEN` less the closing NUL.
pub const MAX_VARIABLE: usize = 131_071;

/// What a job's variables say beyond its envelope: known only where the job runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The name of the runner that took the job.
    pub runner_name: String,
    /// The checkout that srt-slurm mounts.
    pub workspace: String,
    /// The folder of the model's files, where known.
    pub model_path: Option<String>,
    /// Tokens of context that an eval needs; [`eval_max_model_len`] unless something better is known.
    pub eval_max_model_len: Option<u64>,
}

/// The context of eval-only single-node fixed jobs, in tokens: what their throughput row would be served with.
#[must_use]
pub fn eval_max_model_len(row: &Row) -> Option<u64> {
    match row.topology.nodes {
        Nodes::Single(_) if row.eval.eval_only => row.seq().map(SeqLen::max_model_len),
        _ => None,
    }
}

/// A job's variables, in the order of the tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment(IndexMap<String, String>);

impl Environment {
    /// The variables of a job.
    ///
    /// # Errors
    /// Every additional setting that may not become a variable, and every value that no process can be given.
    pub fn new(envelope: &Envelope, place: &Place) -> Result<Self, Problems> {
        let mut variables = of_row(envelope, place);
        let mut problems = Problems::default();
        if let Nodes::Multi(roles) = &envelope.row.topology.nodes {
            variables.extend(settings::variables(roles, &mut problems));
        }
        for (name, value) in &variables {
            if let Err(problem) = check(name, value) {
                problems.push(problem);
            }
        }
        problems.into_result()?;
        Ok(Self(variables))
    }

    /// A variable's value.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Every name.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// What goes to the file that `GITHUB_ENV` names: all but the variables that a runner keeps for itself.
    #[must_use]
    pub fn for_later_steps(&self) -> Vec<(String, String)> {
        self.iter()
            .filter(|(name, _)| !name.starts_with("RUNNER_") && !name.starts_with("GITHUB_"))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }
}

/// The variables of the tables, without the workers' own settings.
#[must_use]
pub fn of_row(envelope: &Envelope, place: &Place) -> IndexMap<String, String> {
    let job = Job {
        envelope,
        row: &envelope.row,
        place,
    };
    let fields = Field::of_rows().filter_map(|field| Some((field.variable()?, said(job.row.field(field)))));
    let other = VARIABLES.iter().filter_map(|(name, value)| Some((*name, value(&job)?)));
    let own = fields.chain(other).map(|(name, value)| (name.to_owned(), value));
    let mut variables: IndexMap<String, String> = own.collect();
    for side in Side::ALL {
        if let Some(roles) = job.row.topology.roles() {
            let role = roles.side(side);
            let named =
                side_variables().map(|(name, part)| (format!("{}{name}", side.variables()), said(role.part(part))));
            variables.extend(named);
        }
    }
    variables
}

/// Whether a process can be given a variable.
fn check(name: &str, value: &str) -> Result<(), Problem> {
    let bytes = name.len() + 1 + value.len();
    if value.contains('\0') {
        let message = format!("the value of {name} holds a NUL character, where every process would end it");
        return Err(Problem::file("", message).hint("correct the config that the row comes from, and plan again"));
    }
    if bytes > MAX_VARIABLE {
        let message = format!("{name} takes {bytes} bytes; a process can be given {MAX_VARIABLE}");
        return Err(Problem::file("", message).hint("shorten it in the config that the row comes from, and plan again"));
    }
    Ok(())
}

/// What a variable is made of.
struct Job<'a> {
    envelope: &'a Envelope,
    row: &'a Row,
    place: &'a Place,
}

impl Job<'_> {
    fn offload(&self) -> Option<&Offload> {
        self.row.topology.offload()
    }

    fn points(&self) -> String {
        let points: Vec<String> = self.row.conc.points().iter().map(u64::to_string).collect();
        points.join(" ")
    }

    /// The one concurrency, where there is one.
    fn conc(&self) -> Option<u64> {
        match &self.row.conc {
            Conc::Point(point) => Some(*point),
            Conc::List(points) => points.first().copied().filter(|_| points.len() == 1),
        }
    }

    /// The eval's concurrency, or all of them; only multi-node rows have one of their own.
    fn eval_conc(&self) -> String {
        match (self.row.topology.roles(), self.row.eval.eval_all_concs) {
            (None, _) => String::new(),
            (Some(_), true) => self.points(),
            (Some(_), false) => number_or_empty(self.row.eval.eval_conc),
        }
    }
}

/// A variable's value; `None` where the variable is not set.
type Value = fn(&Job<'_>) -> Option<String>;

/// The variables of a job that are no field of its row as it stands.
#[rustfmt::skip]
const VARIABLES: &[(&str, Value)] = &[
    ("MODEL_NAME", |j| text(&j.row.topology.model)),
    ("MODEL_PATH", |j| j.place.model_path.clone()),
    ("EVAL_MAX_MODEL_LEN", |j| j.place.eval_max_model_len.map(|tokens| tokens.to_string())),
    ("GPU_COUNT", |j| number(j.row.topology.single().map(Parallelism::gpus))),
    ("CONC", |j| number(j.conc())),
    ("CONC_LIST", |j| j.row.topology.roles().map(|_| j.points())),
    ("DISAGG", |j| flag(j.row.topology.disagg)),
    ("IS_MULTINODE", |j| flag(j.row.topology.roles().is_some())),
    ("RUN_EVAL", |j| flag(j.row.runs_eval())),
    ("EVAL_ONLY", |j| flag(j.row.eval.eval_only)),
    ("EVAL_CONC", |j| Some(j.eval_conc())),
    ("EVAL_LIMIT", |j| maybe(j.envelope.overrides.asked.eval_limit.as_deref())),
    ("SCENARIO_TYPE", |j| text(j.row.scenario_type().as_str())),
    ("SCENARIO_SUBDIR", |j| text(if j.offload().is_some() { "agentic/" } else { "fixed_seq_len/" })),
    ("IS_AGENTIC", |j| bit(j.offload().is_some())),
    ("KV_OFFLOADING", |j| text(j.offload().map_or(KvOffloading::None, |o| o.mode).as_str())),
    ("KV_OFFLOAD_BACKEND", |j| maybe(j.offload().and_then(|o| o.backend.as_ref()).map(|b| b.name.as_str()))),
    ("KV_OFFLOAD_BACKEND_METADATA", |j| Some(said(j.row.field(Field::KvOffloadBackend)))),
    ("TOTAL_CPU_DRAM_GB", |j| number(Some(j.offload().map_or(0, |o| o.total_cpu_dram_gb)))),
    ("AIPERF_EXPERIMENTAL_FAST", |j| bit(j.envelope.overrides.asked.agentx_fast)),
    ("RUNNER_NAME", |j| text(&j.place.runner_name)),
    ("RESULT_FILENAME", |j| Some(names::result(j.row, &j.place.runner_name))),
    ("INFMAX_WORKSPACE", |j| text(&j.place.workspace)),
    ("PYTHONDONTWRITEBYTECODE", |_| text("1")),
];

/// The variables of one side of a multi-node job, after `PREFILL_` or `DECODE_`, and what each holds.
pub fn side_variables() -> impl Iterator<Item = (&'static str, SideField)> {
    let sizes = Size::ALL.iter().flat_map(|size| {
        let names = size.names().side_variables.iter();
        names.map(|name| (*name, SideField::Size(*size)))
    });
    let first = [("NUM_WORKERS", SideField::NumWorker)].into_iter();
    first.chain(sizes).chain([("HARDWARE", SideField::Hardware)])
}

/// A field's value as a variable; empty where the row has none.
fn said(value: FieldValue<'_>) -> String {
    match value {
        FieldValue::Missing => String::new(),
        value => value.to_string(),
    }
}

/// Whether a name is one of the tables', on any shape of row.
fn is_own(name: &str) -> bool {
    let of_a_side = |side: Side| {
        let rest = name.strip_prefix(side.variables());
        rest.is_some_and(|rest| side_variables().any(|(own, _)| own == rest))
    };
    VARIABLES.iter().any(|(own, _)| *own == name)
        || Field::of_rows().any(|field| field.variable() == Some(name))
        || Side::ALL.into_iter().any(of_a_side)
}

fn text(value: &str) -> Option<String> {
    Some(value.to_owned())
}

fn maybe(value: Option<&str>) -> Option<String> {
    Some(value.unwrap_or_default().to_owned())
}

fn number(value: Option<u64>) -> Option<String> {
    Some(number_or_empty(value))
}

fn number_or_empty(value: Option<u64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn flag(value: bool) -> Option<String> {
    Some(value.to_string())
}

fn bit(value: bool) -> Option<String> {
    Some(u8::from(value).to_string())
}
