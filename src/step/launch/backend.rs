//! What a backend is: it says what it would do, does it, and cleans up after a launch that was killed. Which one a job has
//! its runner's cluster says.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::backends;
use crate::config::clusters::{self, Cluster};
use crate::config::fleet::Fleet;
use crate::config::problem::{Problem, Problems, nearest};
use crate::matrix::envelope::Envelope;
use crate::process::{Cancellation, Outcome};
use crate::step::environment::Environment;
use crate::step::launch::failure::{Failure, Kind};
use crate::step::launch::preflight::Node;
use crate::step::launch::serving::Serving;

/// A job on its runner, ready to be launched.
pub struct Prepared<'a> {
    /// The job.
    pub envelope: &'a Envelope,
    /// Its variables; a child gets every one.
    pub environment: &'a Environment,
    /// The runner's name; leftovers of other runners are never touched.
    pub runner: &'a str,
    /// The checkout, where results are left.
    pub workspace: &'a Path,
    /// A folder of this runner's own that outlives a killed step: logs, job ids, generated files.
    pub state: &'a Path,
}

/// What a launch would do, for people and tests.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Intent {
    /// The backend's name.
    pub backend: &'static str,
    /// The argument vectors, in order.
    pub commands: Vec<Vec<String>>,
    /// The files that it would write, with their texts.
    pub files: Vec<(PathBuf, String)>,
}

/// What a launch shows, line by line; a server's lines come from a thread of their own.
pub type Show<'a> = dyn FnMut(&str) + Send + 'a;

/// How jobs run on one kind of cluster.
pub trait Backend {
    /// What [`Backend::run`] would do; touches nothing.
    ///
    /// # Errors
    /// Settings that do not fit the job.
    fn intend(&self, job: &Prepared<'_>) -> Result<Intent, Problems>;

    /// Checks the node before anything is started on it.
    fn preflight(&self, node: &mut Node<'_>);

    /// Runs the job to its end, showing its output line by line, and releases all that it took when it is cancelled.
    ///
    /// # Errors
    /// A job that could not be started, or was lost; a job that failed is an [`Outcome`].
    fn run(&self, job: &Prepared<'_>, cancel: &Cancellation, show: &mut Show<'_>) -> Result<Outcome, Problems>;

    /// [`Backend::run`], with its failures told apart.
    ///
    /// # Errors
    /// A job that did not succeed, and why.
    fn attempt(&self, job: &Prepared<'_>, cancel: &Cancellation, show: &mut Show<'_>) -> Result<(), Failure> {
        match self.run(job, cancel, show) {
            Ok(outcome) => Failure::check(&outcome, Kind::Benchmark, "the job")
                .map_err(|failure| failure.with_code(outcome.code())),
            Err(problems) => Err(Failure::new(Kind::Infrastructure, problems)),
        }
    }

    /// Whether its jobs may run scripts of the checkout, which read the job's folder there.
    fn runs_scripts(&self) -> bool {
        true
    }

    /// Releases what an earlier launch of this runner left running, also when that launch was killed. Says what it
    /// released.
    ///
    /// # Errors
    /// Something that is still there.
    fn release(&self, runner: &str, state: &Path) -> Result<Vec<String>, Problem>;
}

/// What a backend is wanted for.
pub(crate) struct Wanted<'a> {
    /// The runner's fleet.
    pub fleet: &'a Fleet,
    /// The job's label.
    pub label: &'a str,
    /// The runner.
    pub runner: &'a str,
    /// The engine's server and clients.
    pub engine: Result<Serving, Problem>,
    /// The eval task that the job was given, where it was.
    pub task: Option<String>,
}

/// The settings of a cluster as the backend that they set.
pub(crate) trait Launches {
    /// The backend of a runner's jobs.
    ///
    /// # Errors
    /// Settings that do not fit the runner.
    fn backend(&self, wanted: Wanted<'_>) -> Result<Box<dyn Backend>, Problem>;

    /// What serves a job on the node that the backend's scheduler gave it; `None` where it has no scheduler.
    fn on_node(&self, _engine: Result<Serving, Problem>, _task: Option<String>) -> Option<Box<dyn Backend>> {
        None
    }
}

macro_rules! launches {
    ($($(#[doc = $doc:literal])+ $name:literal => $module:ident::$backend:ident,)+) => {
        fn launches(cluster: &Cluster) -> &dyn Launches {
            match &cluster.backend { $(clusters::Backend::$backend(settings) => settings,)+ }
        }
    };
}

backends::table!(launches);

/// The backend of the runner's cluster; `job` is what it shall run, if anything, `label` the job's, and `task` the eval
/// task that the job was given, where it was.
///
/// # Errors
/// A runner without a cluster, and settings that do not fit it.
pub fn of(
    fleet: &Fleet,
    job: Option<&Envelope>,
    label: &str,
    runner: &str,
    task: Option<String>,
) -> Result<Box<dyn Backend>, Problem> {
    let engine = match job {
        Some(envelope) => Serving::of_row(&fleet.engines, &envelope.row, envelope.config_key.as_deref()),
        None => Err(Problem::file("", "there is no job to serve")),
    };
    let wanted = Wanted {
        fleet,
        label,
        runner,
        engine,
        task,
    };
    launches(cluster(fleet, label, runner)?).backend(wanted)
}

/// What serves a job on the node that the scheduler of the runner's cluster gave it.
///
/// # Errors
/// A runner without a cluster, and a cluster without a scheduler.
pub(crate) fn on_node(
    fleet: &Fleet,
    envelope: &Envelope,
    runner: &str,
    task: Option<String>,
) -> Result<Box<dyn Backend>, Problem> {
    let engine = Serving::of_row(&fleet.engines, &envelope.row, envelope.config_key.as_deref());
    launches(cluster(fleet, runner, runner)?)
        .on_node(engine, task)
        .ok_or_else(|| {
            let problem = Problem::file("", format!("the cluster of `{runner}` gives its jobs no node"));
            problem.hint("this is what a batch job calls on its node")
        })
}

/// The cluster of a runner. Where nothing names a runner, its job's label stands for it, and labels have no cluster.
fn cluster<'f>(fleet: &'f Fleet, label: &str, runner: &str) -> Result<&'f Cluster, Problem> {
    let Some((_, cluster)) = fleet.clusters.of(runner) else {
        let behind = fleet.runners.labels.get(label).filter(|_| label == runner);
        let started = behind.into_iter().flatten();
        let started: Vec<&str> = started
            .map(String::as_str)
            .filter(|name| fleet.clusters.of(name).is_some())
            .collect();
        if !started.is_empty() {
            let message = format!("`{label}` is a label, and it is not known which of its runners starts the job");
            let hint = format!("name one with --runner-name or RUNNER_NAME: {}", started.join(", "));
            return Err(Problem::file("", message).hint(hint));
        }
        let fleets = fleet.clusters.clusters.values().flat_map(|cluster| &cluster.fleets);
        let known: Vec<&str> = fleets.map(String::as_str).collect();
        let message = format!("no cluster starts jobs on the runner `{runner}`");
        let hint = format!("add one to configs/clusters.yaml; {}", nearest(runner, known));
        return Err(Problem::file("", message).hint(hint));
    };
    Ok(cluster)
}
