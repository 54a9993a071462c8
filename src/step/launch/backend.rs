//! What a backend is: it says what it would do, does it, and cleans up after a launch that was killed.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::config::problem::{Problem, Problems};
use crate::matrix::envelope::Envelope;
use crate::process::{Cancellation, Outcome};
use crate::step::environment::Environment;
use crate::step::launch::failure::{Failure, Kind};
use crate::step::launch::preflight::Node;

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

    /// Releases what an earlier launch of this runner left running, also when that launch was killed. Says what it
    /// released.
    ///
    /// # Errors
    /// Something that is still there.
    fn release(&self, runner: &str, state: &Path) -> Result<Vec<String>, Problem>;
}
