//! A job without a launch script: a server, the throughput client and the eval against it, and its end.
//!
//! The server runs as it is, or inside something ([`Around`]); its clients run on this host.

mod server;

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use self::server::{Server, Tail, say};
use super::backend::{Prepared, Show};
use super::failure::{Failure, Kind};
use super::serving::{FILES, Serving, filled};
use super::{SERVER_LOG, child};
use crate::config::clusters::{self, Template};
use crate::config::problem::Problem;
use crate::process::{self, Cancellation, Outcome, Watch};
use crate::step::eval::endpoint::Endpoint;

/// The eval's log in the workspace.
const EVAL_LOG: &str = "eval.log";
/// The file of the state folder that the eval reads its job from.
const ENVELOPE: &str = "envelope.json";
/// How long a client may take to end: it ends its own child first, and keeps what is there.
const CLIENT_GRACE: Duration = Duration::from_millis(4500);

/// What a server runs in.
pub(crate) trait Around {
    /// The command that starts it there; `server` listens on `port`, and reads files of the folder `files`, if any.
    ///
    /// # Errors
    /// A job that cannot run there.
    fn around(
        &self,
        job: &Prepared<'_>,
        server: Vec<String>,
        port: u16,
        files: Option<&Path>,
    ) -> Result<Vec<String>, Problem>;
}

/// A server on the host itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bare;

impl Around for Bare {
    fn around(&self, _: &Prepared<'_>, server: Vec<String>, _: u16, _: Option<&Path>) -> Result<Vec<String>, Problem> {
        Ok(server)
    }
}

/// What of a cluster's settings a served job needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The server's port; a free one is taken unless given.
    pub port: Option<u16>,
    /// Seconds within which the server must be ready.
    pub ready: u64,
    /// The eval's task, where it is not the row's own.
    pub task: Option<String>,
    /// The client's log in the workspace.
    pub client_log: &'static str,
}

impl Place {
    /// The place of a cluster's settings.
    #[must_use]
    pub(crate) fn of(settings: &clusters::Served, task: Option<String>, client_log: &'static str) -> Self {
        Self {
            port: settings.port,
            ready: settings.ready_timeout_seconds,
            task,
            client_log,
        }
    }
}

/// A job that is served.
pub(crate) struct Served<'a> {
    /// Its commands.
    pub serving: &'a Serving,
    /// Where.
    pub place: &'a Place,
    /// What the server runs in.
    pub around: &'a dyn Around,
}

/// A file that is written before anything starts, with its text.
pub(crate) type Written = (PathBuf, String);

/// The argument vectors of one job.
struct Commands {
    server: Vec<String>,
    client: Option<Vec<String>>,
    eval: Option<Vec<String>>,
}

impl Served<'_> {
    /// The commands, in order, and the files that are written first.
    ///
    /// # Errors
    /// Placeholders without a value, and a job that cannot run there.
    pub(crate) fn intend(&self, job: &Prepared<'_>) -> Result<(Vec<Vec<String>>, Vec<Written>), Problem> {
        // Without a port of its own the server gets one that is free when it starts.
        let port = self.place.port.unwrap_or(0);
        let Commands { server, client, eval } = self.commands(job, port)?;
        let files = self.files(job, port)?;
        Ok(([Some(server), client, eval].into_iter().flatten().collect(), files))
    }

    /// What must be right before the server is started.
    #[must_use]
    pub(crate) fn check(&self, job: &Prepared<'_>) -> Vec<Result<(), Problem>> {
        let mut results = vec![self.place.port.map_or(Ok(()), is_free)];
        let mut programs: Vec<String> = Vec::new();
        match self.commands(job, 1) {
            Ok(commands) => {
                programs.extend(commands.server.first().cloned());
                programs.extend(commands.client.as_ref().and_then(|command| command.first().cloned()));
            }
            Err(problem) => results.push(Err(problem)),
        }
        if self.serving.client.is_none() && !job.envelope.row.eval.eval_only {
            let message = format!(
                "the job measures throughput, and {} has no client for it",
                self.serving.whose
            );
            let hint = "give the cluster a `throughput-command` in configs/clusters.yaml, or plan evals only";
            results.push(Err(Problem::file("", message).hint(hint)));
        }
        for program in programs.iter().filter(|program| !child::is_there(program)) {
            let message = format!("the program `{program}` of {} is not here", self.serving.whose);
            let hint = "install it, or correct configs/clusters.yaml and configs/engines.yaml";
            results.push(Err(Problem::file("", message).hint(hint)));
        }
        results
    }

    fn port(&self) -> io::Result<u16> {
        match self.place.port {
            Some(port) => Ok(port),
            None => Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port()),
        }
    }

    fn commands(&self, job: &Prepared<'_>, port: u16) -> Result<Commands, Problem> {
        let row = &job.envelope.row;
        let client = self.serving.client.as_ref().filter(|_| !row.eval.eval_only);
        let server = self.fill("server", &self.serving.server, job, port)?;
        let files = (!self.serving.files.is_empty()).then(|| job.state.join(FILES));
        Ok(Commands {
            server: self.around.around(job, server, port, files.as_deref())?,
            client: client
                .map(|client| self.fill("client", client, job, port))
                .transpose()?,
            eval: row.runs_eval().then(|| self.eval(job, port)),
        })
    }

    fn files(&self, job: &Prepared<'_>, port: u16) -> Result<Vec<Written>, Problem> {
        let envelope = serde_json::to_string(job.envelope).map_err(|error| Problem::file("", error.to_string()))?;
        let mut files = vec![(job.state.join(ENVELOPE), envelope)];
        for (name, lines) in &self.serving.files {
            let lines = self.fill(name, lines, job, port)?;
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            files.push((job.state.join(FILES).join(name), text));
        }
        Ok(files)
    }

    fn fill(&self, what: &str, templates: &[Template], job: &Prepared<'_>, port: u16) -> Result<Vec<String>, Problem> {
        filled(templates, job, port).map_err(|missing| {
            Problem::file(
                "",
                format!("the {what} of {} cannot be filled: {missing}", self.serving.whose),
            )
            .hint("leave the placeholder out, or give jobs of this kind another cluster or engine")
        })
    }

    fn eval(&self, job: &Prepared<'_>, port: u16) -> Vec<String> {
        let points: Vec<String> = job.envelope.row.eval_concs().iter().map(u64::to_string).collect();
        let mut arguments = [
            "sweepctl",
            "eval",
            "run",
            "--endpoint",
            &url(port),
            "--concurrency",
            &points.join(" "),
            "--stage-to",
            &job.workspace.display().to_string(),
            "--envelope",
            &job.state.join(ENVELOPE).display().to_string(),
        ]
        .map(str::to_owned)
        .to_vec();
        if let Some(task) = &self.place.task {
            arguments.extend(["--task".to_owned(), task.clone()]);
        }
        arguments
    }

    fn measure(
        &self,
        job: &Prepared<'_>,
        commands: &Commands,
        server: &Server<'_>,
        show: &mut dyn FnMut(&str),
    ) -> Result<(), Failure> {
        if let Some(arguments) = &commands.client {
            show("launch: measuring throughput");
            let watch = Watch {
                grace: CLIENT_GRACE,
                ..child::watch(job, self.place.client_log)
            };
            let client = child::of_arguments(arguments, job);
            let outcome = process::run(client, &watch, &server.clients, show);
            finished(outcome, Kind::Benchmark, "the throughput client")?;
        }
        if let Some(arguments) = &commands.eval {
            show("launch: evaluating");
            let watch = Watch {
                grace: CLIENT_GRACE,
                ..child::watch(job, EVAL_LOG)
            };
            let outcome = process::run(child::of_arguments(arguments, job), &watch, &server.clients, show);
            // Its own exit code 1 says that it failed; that of a combined job never does.
            finished(outcome, Kind::Eval, "the eval")?;
        }
        Ok(())
    }

    /// Starts the server, measures, and ends it.
    ///
    /// # Errors
    /// What failed, and why.
    pub(crate) fn attempt(
        &self,
        job: &Prepared<'_>,
        cancel: &Cancellation,
        show: &mut Show<'_>,
    ) -> Result<(), Failure> {
        let broken = |error: io::Error| Failure::new(Kind::Infrastructure, Problem::file("", error.to_string()));
        let unfit = |problem: Problem| Failure::new(Kind::Preflight, problem);
        let port = self.port().map_err(broken)?;
        let commands = self.commands(job, port).map_err(unfit)?;
        for (path, text) in self.files(job, port).map_err(unfit)? {
            let folder = path.parent().unwrap_or(&path);
            std::fs::create_dir_all(folder).map_err(broken)?;
            crate::files::write_atomic(&path, text.as_bytes()).map_err(broken)?;
        }
        let log = job.workspace.join(SERVER_LOG);
        let show = Mutex::<&mut Show<'_>>::new(show);
        say(&show, &format!("launch: starting the server on port {port}"));
        let (tail, death, measured) = std::thread::scope(|scope| {
            let server = Server::start(scope, &commands.server, job, cancel, &show);
            let ready = Endpoint::parse(&url(port), None).and_then(|endpoint| {
                let time = Duration::from_secs(self.place.ready);
                endpoint.wait_at(&self.serving.health, time, &server.clients)
            });
            let measured = match ready {
                Ok(()) => {
                    say(&show, "launch: the server is healthy");
                    self.measure(job, &commands, &server, &mut |line| say(&show, line))
                }
                Err(problem) => Err(Failure::new(Kind::Engine, problem)),
            };
            (Arc::clone(&server.tail), server.stop(measured.is_err()), measured)
        });
        match (cancel.signal(), death, measured) {
            (Some(signal), ..) => {
                let problem = Problem::file("", format!("the launch was ended by {signal}"));
                Err(Failure::new(Kind::Cancelled(signal), problem))
            }
            // A server that ended by itself is the reason of whatever failed after it.
            (None, Some(death), _) => Err(with_tail(death, &log, &tail)),
            (None, None, Err(failure)) if failure.kind == Kind::Engine => Err(with_tail(failure, &log, &tail)),
            (None, None, measured) => measured,
        }
    }
}

fn finished(outcome: io::Result<Outcome>, kind: Kind, what: &str) -> Result<(), Failure> {
    match outcome {
        Ok(outcome) => Failure::check(&outcome, kind, what),
        Err(error) => Err(Failure::new(Kind::Infrastructure, Problem::file("", error.to_string()))),
    }
}

fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

fn is_free(port: u16) -> Result<(), Problem> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .map(drop)
        .map_err(|error| {
            Problem::file("", format!("port {port} of the server is taken: {error}")).hint(
                "end what listens there (`sweepctl launch --release` ends what this runner left), or leave the cluster's \
             `port` out, and a free one is taken",
            )
        })
}

/// A failure with the last lines of the server's log.
fn with_tail(mut failure: Failure, log: &Path, tail: &Tail) -> Failure {
    if let Some(problem) = failure.problems.0.first_mut() {
        problem.log = tail.lines();
        problem.hint = Some(match problem.log.as_slice() {
            [] => format!("its log, {}, is empty", log.display()),
            _ => format!("above is the end of its log, {}", log.display()),
        });
    }
    failure
}
