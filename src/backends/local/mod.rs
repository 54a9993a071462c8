//! The backend that starts a server on the runner's own host, drives the throughput client and the eval against it, and
//! stops it.

mod settings;

use std::path::Path;

use indexmap::IndexMap;

use crate::config::engines::HEALTH;
use crate::config::problem::{Problem, Problems};
use crate::process::{Cancellation, Ending, Outcome};
use crate::step::launch::LAUNCH_LOG;
use crate::step::launch::backend::{Backend, Intent, Launches, Prepared, Show, Wanted};
use crate::step::launch::failure::{Failure, Kind};
use crate::step::launch::hub::{self, Model};
use crate::step::launch::preflight::Node;
use crate::step::launch::served::{Around, Bare, Place, Served};
use crate::step::launch::serving::Serving;
pub(crate) use settings::Local;

/// A server, and what is measured of it, on this host.
pub(crate) struct LocalBackend {
    /// The server and its client.
    pub serving: Result<Serving, Problem>,
    /// How the server is waited for, and which eval follows.
    pub place: Place,
    /// What the server runs in.
    pub around: Box<dyn Around>,
}

impl Launches for Local {
    fn backend(&self, wanted: Wanted<'_>) -> Result<Box<dyn Backend>, Problem> {
        Ok(Box::new(LocalBackend {
            serving: self.serving().map_or(wanted.engine, Ok),
            place: Place::of(&self.served, wanted.task, LAUNCH_LOG),
            around: Box::new(Bare),
        }))
    }
}

impl Local {
    /// The commands that a cluster names, whatever its rows' engine is; `None` where it leaves them to the engine.
    fn serving(&self) -> Option<Serving> {
        let server = self.server_command.as_ref()?;
        Some(Serving {
            whose: "the runner's cluster".to_owned(),
            server: server.0.clone(),
            client: self.throughput_command.as_ref().map(|command| command.0.clone()),
            health: HEALTH.to_owned(),
            files: IndexMap::new(),
        })
    }
}

impl LocalBackend {
    fn served(&self) -> Result<Served<'_>, Problem> {
        Ok(Served {
            serving: self.serving.as_ref().map_err(Clone::clone)?,
            place: &self.place,
            around: &*self.around,
        })
    }
}

impl Backend for LocalBackend {
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
        let unfit = |problem: Problem| Failure::new(Kind::Preflight, problem);
        self.served().map_err(unfit)?.attempt(job, cancel, show)
    }

    fn runs_scripts(&self) -> bool {
        false
    }

    fn release(&self, _: &str, _: &Path) -> Result<Vec<String>, Problem> {
        // Its processes are marked, and the launch ends those.
        Ok(Vec::new())
    }
}
