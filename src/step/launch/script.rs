//! The backend of fleets that bring their own launch script.

mod uses;

use std::path::{Path, PathBuf};

use super::backend::{Backend, Intent, Prepared, Show};
use super::preflight::Node;
use super::serving::Serving;
use super::{LAUNCH_LOG, child};
use crate::config::clusters::{self, Uses};
use crate::config::problem::{Problem, Problems};
use crate::process::{self, Cancellation, Outcome};

/// Runs a script of the checkout, with bash.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    /// The script, from the checkout's root.
    pub path: String,
    /// Whether the cluster names it.
    named: bool,
    /// What it starts that may outlive it.
    uses: Uses,
}

impl Script {
    /// The script of a cluster's settings, or the one of the runner's fleet.
    ///
    /// # Errors
    /// A runner whose fleet cannot name a file.
    pub(crate) fn new(path: Option<&str>, runner: &str) -> Result<Self, Problem> {
        let named = path.is_some();
        let path = path.map(str::to_owned).or_else(|| clusters::fleet_script(runner));
        let uses = Uses::default();
        path.map(|path| Self { path, named, uses }).ok_or_else(|| {
            Problem::file("", format!("no launch script can be named after the runner `{runner}`"))
                .hint("give the cluster a `path` in configs/clusters.yaml")
        })
    }

    /// The script of a cluster's settings, with what it uses.
    ///
    /// # Errors
    /// As [`Script::new`].
    pub(crate) fn with(settings: &clusters::Script, runner: &str) -> Result<Self, Problem> {
        Ok(Self {
            uses: settings.uses.clone(),
            ..Self::new(settings.path.as_deref(), runner)?
        })
    }

    /// The script's file, if it is there.
    ///
    /// # Errors
    /// It is not.
    pub(crate) fn find(&self, workspace: &Path) -> Result<PathBuf, Problem> {
        let file = workspace.join(&self.path);
        if file.is_file() {
            return Ok(file);
        }
        let message = format!("there is no launch script `{}`", file.display());
        Err(Problem::file(&self.path, message).hint("write it, or name another by the cluster's `path`"))
    }
}

impl Script {
    /// What serves instead of the script: nothing where the checkout has one, or the cluster names one.
    ///
    /// # Errors
    /// There is neither a script nor an engine.
    pub(crate) fn or_engine<'e>(
        &self,
        workspace: &Path,
        engine: &'e Result<Serving, Problem>,
    ) -> Result<Option<&'e Serving>, Problem> {
        if self.named || workspace.join(&self.path).is_file() {
            return Ok(None);
        }
        engine.as_ref().map(Some).map_err(|problem| {
            let mut problem = problem.clone();
            problem.message = format!("there is no launch script `{}`, and {}", self.path, problem.message);
            problem
        })
    }
}

impl Backend for Script {
    fn intend(&self, job: &Prepared<'_>) -> Result<Intent, Problems> {
        let file = job.workspace.join(&self.path).display().to_string();
        Ok(Intent {
            backend: "script",
            commands: vec![vec!["bash".to_owned(), file]],
            files: Vec::new(),
        })
    }

    fn preflight(&self, node: &mut Node<'_>) {
        node.note(self.find(node.job.workspace).map(drop));
        node.model_folder(|path| Some(path.to_owned()));
    }

    fn run(&self, job: &Prepared<'_>, cancel: &Cancellation, show: &mut Show<'_>) -> Result<Outcome, Problems> {
        let mut command = child::command("bash", job);
        command.arg(self.find(job.workspace)?).current_dir(job.workspace);
        let outcome = process::run(command, &child::watch(job, LAUNCH_LOG), cancel, show);
        // What it started may outlive it: an allocation of Slurm does.
        let within = if cancel.signal().is_some() {
            uses::CANCEL
        } else {
            uses::RELEASE
        };
        let released = uses::release(&self.uses, job.runner, within);
        let outcome = outcome.map_err(|error| Problem::file("", error.to_string()))?;
        for released in released? {
            show(&format!("launch: released {released} of this job"));
        }
        Ok(outcome)
    }

    fn release(&self, runner: &str, _: &Path) -> Result<Vec<String>, Problem> {
        // Its processes are marked, and the launch ends those.
        uses::release(&self.uses, runner, uses::RELEASE)
    }
}
