//! `configs/clusters.yaml`: what starts a job on which runners.
//!
//! A runner belongs to the cluster that names it, else to the one that its fleet belongs to. A cluster has one
//! backend, and the fields of that backend alone, which `backends` has.

pub mod command;
pub(crate) mod decode;
mod host;
mod served;

use std::path::Path;
use std::sync::Arc;

use indexmap::IndexMap;
use schemars::JsonSchema;

use super::decode::{Decoder, Fields};
use super::problem::Problems;
use super::runners::Runners;
use super::source::Source;
use super::types::NodeKind;
use crate::backends;
pub use command::{Command, Template};
pub use host::{Gpus, Mount};
pub use served::Served;

/// What a backend starts a job with, as far as it is known before one is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs<'a> {
    /// Nothing of the checkout and of the engines.
    Nothing,
    /// The row's engine.
    Engine,
    /// The launch script that the cluster names, else the fleet's.
    Script(Option<&'a str>),
    /// The same; where the cluster names none and the fleet has none, the row's engine.
    ScriptOrEngine(Option<&'a str>),
}

/// The settings of a backend. What others ask of every backend is a method here; how its jobs run is none of it.
pub(crate) trait Settings {
    /// Reads its fields of a cluster.
    fn decode(d: &mut Decoder, fields: &mut Fields<'_, '_>) -> Option<Self>
    where
        Self: Sized;

    /// What it starts a job with.
    fn needs(&self) -> Needs<'_>;

    /// How it serves rows itself, where it does.
    fn served(&self) -> Option<&Served> {
        None
    }

    /// Whether jobs on so many nodes can be run to their end from here, without a workflow: their servers are this host's
    /// own, or a scheduler's. Launch scripts and srt-slurm expect a runner's checkout and its clean-up steps.
    fn runs_locally(&self, _nodes: NodeKind) -> bool {
        false
    }

    /// Whether a job has its runner's node to itself, GPUs and names of containers and Slurm jobs included.
    fn takes_a_node(&self) -> bool {
        true
    }

    /// Whether a launch script mounts the checkout into its image itself, at `/workspace`, as those of fleets do.
    fn script_mounts(&self) -> bool {
        true
    }
}

macro_rules! backend {
    ($($(#[doc = $doc:literal])+ $name:literal => $module:ident::$backend:ident,)+) => {
        /// What starts jobs.
        #[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
        #[schemars(tag = "backend", rename_all = "kebab-case")]
        pub enum Backend { $($(#[doc = $doc])+ $backend(backends::$module::$backend),)+ }

        impl Backend {
            /// Every backend's name, as in `backend: script`.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// The backend's name.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self { $(Self::$backend(_) => $name,)+ }
            }

            /// Its settings, as those of any backend.
            pub(crate) fn settings(&self) -> &dyn Settings {
                match self { $(Self::$backend(settings) => settings,)+ }
            }

            fn decode(d: &mut Decoder, f: &mut Fields<'_, '_>) -> Option<Self> {
                let choices = [$(($name, $name)),+];
                match f.required(d, "backend", |d, n, name| d.choice(n, name, &choices))? {
                    $($name => backends::$module::$backend::decode(d, f).map(Self::$backend),)+
                    _ => None,
                }
            }
        }
    };
}

backends::table!(backend);

/// The repository's own clusters file.
pub(crate) const FILE: &str = "configs/clusters.yaml";

/// The clusters file.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Clusters {
    /// What starts jobs on which runners.
    pub clusters: IndexMap<String, Cluster>,
}

impl Clusters {
    /// Reads a clusters file. With `runners`, a cluster of runners that no label stands for is a problem: it would never
    /// start a job.
    ///
    /// # Errors
    /// Every problem of the file.
    pub fn load(source: &Arc<Source>, runners: Option<&Runners>) -> Result<Self, Problems> {
        super::load(source, |d, node| {
            let mut fields = d.fields(node, "the clusters file")?;
            let labels = runners.map(|runners| &runners.labels);
            let clusters = fields.required(d, "clusters", |d, node, name| {
                Some(decode::clusters(d, node, name, labels))
            });
            fields.finish(d);
            Some(Self { clusters: clusters? })
        })
    }

    /// The clusters of a file; one that is missing or cannot be read has none, and `check` says what is wrong with it.
    #[must_use]
    pub fn or_none(path: &Path) -> Self {
        let source = Source::read(path).ok();
        let clusters = source.and_then(|source| Self::load(&Arc::new(source), None).ok());
        clusters.unwrap_or_default()
    }

    /// The cluster of a runner, with its name: the one that names the runner, else the one of its fleet.
    #[must_use]
    pub fn of(&self, runner: &str) -> Option<(&str, &Cluster)> {
        let named = |cluster: &Cluster| cluster.runners.iter().any(|name| name == runner);
        let of_fleet = |cluster: &Cluster| cluster.fleets.iter().any(|name| name == fleet(runner));
        let find = |is: &dyn Fn(&Cluster) -> bool| self.clusters.iter().find(|(_, cluster)| is(cluster));
        find(&named)
            .or_else(|| find(&of_fleet))
            .map(|(name, cluster)| (name.as_str(), cluster))
    }
}

/// A runner's fleet: its name up to the first `_`.
#[must_use]
pub fn fleet(runner: &str) -> &str {
    runner.split_once('_').map_or(runner, |(fleet, _)| fleet)
}

/// The launch script of a runner's fleet, from the repository's root; `None` for a name that is no file's.
#[must_use]
pub fn fleet_script(runner: &str) -> Option<String> {
    let fleet = fleet(runner);
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    (!fleet.is_empty() && fleet.chars().all(plain)).then(|| format!("runners/launch_{fleet}.sh"))
}

/// Runners whose jobs are started in one way.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Cluster {
    /// The fleets that belong to it; the one of its own name, where neither fleets nor runners are given.
    #[schemars(default, length(min = 1), inner(length(min = 1)))]
    pub fleets: Vec<String>,
    /// Runners that belong to it whatever their fleet's cluster is.
    #[schemars(default, length(min = 1), inner(length(min = 1)))]
    pub runners: Vec<String>,
    /// Minutes after which a job is ended that prints nothing and whose files stay as they are; no limit unless given.
    #[schemars(default, range(min = 1, max = 7200))]
    pub idle_minutes: Option<u64>,
    /// Variables of its jobs.
    #[schemars(default, with = "super::environment::Variables")]
    pub env: IndexMap<String, Template>,
    /// What its servers call their model, where no engine and no recipe says so.
    pub served_model_name: Option<Template>,
    /// What starts the jobs.
    #[schemars(flatten)]
    pub backend: Backend,
}

impl Backend {
    /// The launch script of a runner, from the checkout's root, where the backend looks for one.
    #[must_use]
    pub fn script_of(&self, runner: &str) -> Option<String> {
        match self.settings().needs() {
            Needs::Script(named) | Needs::ScriptOrEngine(named) => {
                named.map(str::to_owned).or_else(|| fleet_script(runner))
            }
            Needs::Nothing | Needs::Engine => None,
        }
    }

    /// The eval task of rows that name no suite, where the cluster has one of its own.
    #[must_use]
    pub fn eval_task(&self) -> Option<&str> {
        self.settings().served()?.eval_task.as_deref()
    }
}
