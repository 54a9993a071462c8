//! The backend of fleets that bring their own launch script.

mod release;
mod settings;

use std::path::Path;

use crate::config::problem::{Problem, Problems};
use crate::process::{self, Cancellation, Outcome};
use crate::step::launch::backend::{Backend, Intent, Launches, Prepared, Show, Wanted};
use crate::step::launch::preflight::Node;
use crate::step::launch::script::LaunchScript;
use crate::step::launch::{LAUNCH_LOG, child};
pub(crate) use settings::Script;

/// Runs a script of the checkout, with bash.
struct ScriptBackend {
    script: LaunchScript,
    settings: Script,
}

impl Launches for Script {
    fn backend(&self, wanted: Wanted<'_>) -> Result<Box<dyn Backend>, Problem> {
        Ok(Box::new(ScriptBackend {
            script: LaunchScript::new(self.path.as_deref(), wanted.runner)?,
            settings: self.clone(),
        }))
    }
}

impl Backend for ScriptBackend {
    fn intend(&self, job: &Prepared<'_>) -> Result<Intent, Problems> {
        let file = job.workspace.join(&self.script.path).display().to_string();
        Ok(Intent {
            backend: "script",
            commands: vec![vec!["bash".to_owned(), file]],
            files: Vec::new(),
        })
    }

    fn preflight(&self, node: &mut Node<'_>) {
        node.note(self.script.find(node.job.workspace).map(drop));
        node.model_folder(|path| Some(path.to_owned()));
    }

    fn run(&self, job: &Prepared<'_>, cancel: &Cancellation, show: &mut Show<'_>) -> Result<Outcome, Problems> {
        let mut command = child::command("bash", job);
        command.arg(self.script.find(job.workspace)?).current_dir(job.workspace);
        let outcome = process::run(command, &child::watch(job, LAUNCH_LOG), cancel, show);
        // What it started may outlive it: an allocation of Slurm does.
        let within = if cancel.signal().is_some() {
            release::CANCEL
        } else {
            release::RELEASE
        };
        let released = release::release(&self.settings, job.runner, within);
        let outcome = outcome.map_err(|error| Problem::file("", error.to_string()))?;
        for released in released? {
            show(&format!("launch: released {released} of this job"));
        }
        Ok(outcome)
    }

    fn release(&self, runner: &str, _: &Path) -> Result<Vec<String>, Problem> {
        // Its processes are marked, and the launch ends those.
        release::release(&self.settings, runner, release::RELEASE)
    }
}
