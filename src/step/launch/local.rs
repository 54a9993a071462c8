//! The backend that starts a server on the runner's own host, drives the throughput client and the eval against it, and
//! stops it.

mod server;

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use self::server::{Server, Tail, say};
use super::backend::{Backend, Intent, Prepared, Show};
use super::child;
use super::failure::{Failure, Kind};
use super::hub::{self, Model};
use super::preflight::Node;
use super::{LAUNCH_LOG, SERVER_LOG};
use crate::config::clusters::{Command as Template, Local as Settings};
use crate::config::problem::{Problem, Problems};
use crate::process::{self, Cancellation, Ending, Outcome, Watch};
use crate::step::eval::endpoint::Endpoint;

/// The eval's log in the workspace.
const EVAL_LOG: &str = "eval.log";
/// The file of the state folder that the eval reads its job from.
const ENVELOPE: &str = "envelope.json";
/// How long the eval may take to end: it ends its own child first, and stages what is there.
const EVAL_GRACE: Duration = Duration::from_millis(4500);

/// A server, and what is measured of it, on this host.
#[derive(Debug, Clone)]
pub struct Local {
    settings: Settings,
    task: Option<String>,
}

impl Local {
    /// The backend of a cluster's settings; `task` is the eval's, where it is not the row's own.
    #[must_use]
    pub fn new(settings: &Settings, task: Option<String>) -> Self {
        Self {
            settings: settings.clone(),
            task,
        }
    }

    /// Whether the server is the mock server, which loads no model.
    #[must_use]
    pub fn is_mock(&self) -> bool {
        self.settings.server_command.program() == "sweepctl"
    }

    /// What must be right before the server is started.
    #[must_use]
    pub fn check(&self, job: &Prepared<'_>) -> Vec<Result<(), Problem>> {
        let row = &job.envelope.row;
        let mut results = vec![self.settings.port.map_or(Ok(()), is_free)];
        let mut commands = vec![("server-command", &self.settings.server_command)];
        match &self.settings.throughput_command {
            _ if row.eval.eval_only => {}
            Some(command) => commands.push(("throughput-command", command)),
            None => {
                let message = "the job measures throughput, and the runner's cluster has no `throughput-command`";
                let hint = "give the cluster one in configs/clusters.yaml, or plan evals only";
                results.push(Err(Problem::file("", message).hint(hint)));
            }
        }
        for (name, command) in commands {
            results.push(fill(name, command, job, 1).and_then(|arguments| {
                let program = arguments.first().map_or("", String::as_str);
                if child::is_there(program) {
                    return Ok(());
                }
                let problem = Problem::file("", format!("the program `{program}` of `{name}` is not here"));
                Err(problem.hint("install it, or correct the cluster in configs/clusters.yaml"))
            }));
        }
        results
    }

    fn port(&self) -> io::Result<u16> {
        match self.settings.port {
            Some(port) => Ok(port),
            None => Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port()),
        }
    }

    /// The argument vectors, in order: the server's, the client's, the eval's.
    fn commands(&self, job: &Prepared<'_>, port: u16) -> Result<Commands, Problem> {
        let row = &job.envelope.row;
        let measures = !row.eval.eval_only;
        let throughput = self.settings.throughput_command.as_ref().filter(|_| measures);
        Ok(Commands {
            server: fill("server-command", &self.settings.server_command, job, port)?,
            throughput: throughput
                .map(|command| fill("throughput-command", command, job, port))
                .transpose()?,
            eval: row.runs_eval().then(|| self.eval(job, port)),
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
        if let Some(task) = &self.task {
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
        if let Some(arguments) = &commands.throughput {
            show("launch: measuring throughput");
            let watch = child::watch(job, LAUNCH_LOG);
            let outcome = process::run(child::of_arguments(arguments, job), &watch, &server.clients, show);
            finished(outcome, Kind::Benchmark, "the throughput client")?;
        }
        if let Some(arguments) = &commands.eval {
            show("launch: evaluating");
            let watch = Watch {
                grace: EVAL_GRACE,
                ..child::watch(job, EVAL_LOG)
            };
            let outcome = process::run(child::of_arguments(arguments, job), &watch, &server.clients, show);
            // Its own exit code 1 says that it failed; that of a combined job never does.
            finished(outcome, Kind::Eval, "the eval")?;
        }
        Ok(())
    }
}

/// The argument vectors of one job.
struct Commands {
    server: Vec<String>,
    throughput: Option<Vec<String>>,
    eval: Option<Vec<String>>,
}

fn finished(outcome: io::Result<Outcome>, kind: Kind, what: &str) -> Result<(), Failure> {
    match outcome {
        Ok(outcome) => Failure::check(&outcome, kind, what),
        Err(error) => Err(Failure::new(Kind::Infrastructure, Problem::file("", error.to_string()))),
    }
}

/// The arguments of a cluster's command for a job. An eval-only job's server is started with the eval's context.
fn fill(name: &str, command: &Template, job: &Prepared<'_>, port: u16) -> Result<Vec<String>, Problem> {
    let variable = |name: &str| job.environment.get(name).map(str::to_owned);
    let value = |name: &str| match name {
        "PORT" => Some(port.to_string()),
        "MAX_MODEL_LEN" => variable("EVAL_MAX_MODEL_LEN").or_else(|| variable(name)),
        _ => variable(name),
    };
    command.fill(value).map_err(|missing| {
        Problem::file(
            "",
            format!("`{name}` of the runner's cluster cannot be filled: {missing}"),
        )
        .hint("leave the placeholder out, or give jobs of this kind another cluster")
    })
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

impl Backend for Local {
    fn intend(&self, job: &Prepared<'_>) -> Result<Intent, Problems> {
        // Without a port of its own the server gets one that is free when it starts.
        let commands = self.commands(job, self.settings.port.unwrap_or(0))?;
        let envelope = serde_json::to_string(job.envelope).map_err(|error| Problem::file("", error.to_string()))?;
        let Commands {
            server,
            throughput,
            eval,
        } = commands;
        Ok(Intent {
            backend: "local",
            commands: [Some(server), throughput, eval].into_iter().flatten().collect(),
            files: vec![(job.state.join(ENVELOPE), envelope)],
        })
    }

    fn preflight(&self, node: &mut Node<'_>) {
        for result in self.check(node.job) {
            node.note(result);
        }
        node.model_folder(|path| Some(path.to_owned()));
        if !self.is_mock() {
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
        let broken = |error: io::Error| Failure::new(Kind::Infrastructure, Problem::file("", error.to_string()));
        let port = self.port().map_err(broken)?;
        let commands = self
            .commands(job, port)
            .map_err(|problem| Failure::new(Kind::Preflight, problem))?;
        let envelope = serde_json::to_vec(job.envelope).map_err(|error| broken(error.into()))?;
        std::fs::write(job.state.join(ENVELOPE), envelope).map_err(broken)?;

        let log = job.workspace.join(SERVER_LOG);
        let show = Mutex::<&mut Show<'_>>::new(show);
        say(&show, &format!("launch: starting the server on port {port}"));
        let (tail, death, measured) = std::thread::scope(|scope| {
            let server = Server::start(scope, &commands.server, job, cancel, &show);
            let ready = Endpoint::parse(&url(port), None).and_then(|endpoint| {
                endpoint.wait(
                    Duration::from_secs(self.settings.ready_timeout_seconds),
                    &server.clients,
                )
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

    fn release(&self, _: &str, _: &Path) -> Result<Vec<String>, Problem> {
        // Its processes are marked, and the launch ends those.
        Ok(Vec::new())
    }
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
