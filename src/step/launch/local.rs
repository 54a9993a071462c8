//! The backend that starts a server on the runner's own host, drives the throughput client and the eval against it, and
//! stops it.

use std::path::Path;

use super::LAUNCH_LOG;
use super::backend::{Backend, Intent, Prepared, Show};
use super::failure::Failure;
use super::hub::{self, Model};
use super::preflight::Node;
use super::served::{Around, Bare, Place, Served};
use super::serving::Serving;
use crate::config::clusters::Local as Settings;
use crate::config::problem::{Problem, Problems};
use crate::process::{Cancellation, Ending, Outcome};

/// A server, and what is measured of it, on this host.
pub(crate) struct Local {
    serving: Result<Serving, Problem>,
    place: Place,
    around: Box<dyn Around>,
}

impl Local {
    /// The backend of a cluster's settings; `engine` serves where the cluster has no server of its own, and `task` is
    /// the eval's, where it is not the row's own.
    #[must_use]
    pub(crate) fn new(settings: &Settings, engine: Result<Serving, Problem>, task: Option<String>) -> Self {
        Self {
            serving: Serving::of_cluster(settings).map_or(engine, Ok),
            place: Place::of(&settings.served, task, LAUNCH_LOG),
            around: Box::new(Bare),
        }
    }

    /// An engine's server inside something.
    #[must_use]
    pub(crate) fn inside(engine: Result<Serving, Problem>, place: Place, around: Box<dyn Around>) -> Self {
        Self {
            serving: engine,
            place,
            around,
        }
    }

    fn served(&self) -> Result<Served<'_>, Problem> {
        Ok(Served {
            serving: self.serving.as_ref().map_err(Clone::clone)?,
            place: &self.place,
            around: &*self.around,
        })
    }
}

impl Backend for Local {
    fn intend(&self, job: &Prepared<'_>) -> Result<Intent, Problems> {
        let (commands, files) = self.served()?.intend(job)?;
        Ok(Intent {
            backend: "local",
            commands,
            files,
        })
    }

    fn preflight(&self, node: &mut Node<'_>) {
        let served = match self.served() {
            Ok(served) => served,
            Err(problem) => return node.note(Err(problem)),
        };
        for result in served.check(node.job) {
            node.note(result);
        }
        node.model_folder(|path| Some(path.to_owned()));
        if !served.serving.is_mock() {
            node.model_of_hub(|name| {
                let home: Vec<_> = hub::home().into_iter().collect();
                let model = || Model::new(name, &home, hub::cache().into_iter().collect());
                if Path::new(name).is_dir() { None } else { model() }
            });
        }
    }

    fn run(&self, job: &Prepared<'_>, cancel: &Cancellation, show: &mut Show<'_>) -> Result<Outcome, Problems> {
        let started = std::time::Instant::now();
        let ended = self.attempt(job, cancel, show);
        ended.map_err(|failure| failure.problems).map(|()| Outcome {
            ending: Ending::Code(0),
            stop: None,
            elapsed: started.elapsed(),
        })
    }

    fn attempt(&self, job: &Prepared<'_>, cancel: &Cancellation, show: &mut Show<'_>) -> Result<(), Failure> {
        let unfit = |problem: Problem| Failure::new(super::failure::Kind::Preflight, problem);
        self.served().map_err(unfit)?.attempt(job, cancel, show)
    }

    fn release(&self, _: &str, _: &Path) -> Result<Vec<String>, Problem> {
        // Its processes are marked, and the launch ends those.
        Ok(Vec::new())
    }
}
