//! The launch script of a fleet, for the backends that look for one.

use std::path::{Path, PathBuf};

use super::serving::Serving;
use crate::config::clusters;
use crate::config::problem::Problem;

/// A script of the checkout that starts jobs.
#[derive(Debug, Clone)]
pub(crate) struct LaunchScript {
    /// The script, from the checkout's root.
    pub path: String,
    /// Whether the cluster names it.
    named: bool,
}

impl LaunchScript {
    /// The script of a cluster's settings, or the one of the runner's fleet.
    ///
    /// # Errors
    /// A runner whose fleet cannot name a file.
    pub(crate) fn new(path: Option<&str>, runner: &str) -> Result<Self, Problem> {
        let named = path.is_some();
        let path = path.map(str::to_owned).or_else(|| clusters::fleet_script(runner));
        path.map(|path| Self { path, named }).ok_or_else(|| {
            Problem::file("", format!("no launch script can be named after the runner `{runner}`"))
                .hint("give the cluster a `path` in configs/clusters.yaml")
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
