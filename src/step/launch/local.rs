//! The backend that starts a server on the runner's own host, drives the throughput client and the eval against it, and
//! stops it.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::backend::{Backend, Intent, Prepared};
use super::child;
use super::failure::{Failure, Kind};
use super::{LAUNCH_LOG, SERVER_LOG};
use crate::config::clusters::{Command as Template, Local as Settings};
use crate::config::problem::{Problem, Problems};
use crate::process::{self, Cancellation, Ending, Outcome, Watch};
use crate::step::eval::endpoint::Endpoint;

/// The eval's log in the workspace.
const EVAL_LOG: &str = "eval.log";
/// The file of the state folder that the eval reads its job from.
const ENVELOPE: &str = "envelope.json";
/// Lines of the server's log that an error repeats.
const TAIL: usize = 30;
/// How long the eval may take to end: it ends its own child first, and stages what is there.
const EVAL_GRACE: Duration = Duration::from_millis(4500);

/// How long after its clients a dying server may be seen dead.
const DEATH_NOTICE: Duration = Duration::from_millis(500);

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
                let hint = "give the cluster one in configs/runners.yaml, or plan evals only";
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
                Err(problem.hint("install it, or correct the cluster in configs/runners.yaml"))
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
        server: &Server,
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

    fn run(&self, job: &Prepared<'_>, cancel: &Cancellation, show: &mut dyn FnMut(&str)) -> Result<Outcome, Problem> {
        let started = std::time::Instant::now();
        let ended = self.attempt(job, cancel, show);
        let first = |failure: Failure| {
            failure
                .problems
                .0
                .into_iter()
                .next()
                .unwrap_or_else(|| Problem::file("", "failed"))
        };
        ended.map_err(first).map(|()| Outcome {
            ending: Ending::Code(0),
            stop: None,
            elapsed: started.elapsed(),
        })
    }

    fn attempt(&self, job: &Prepared<'_>, cancel: &Cancellation, show: &mut dyn FnMut(&str)) -> Result<(), Failure> {
        let broken = |error: io::Error| Failure::new(Kind::Infrastructure, Problem::file("", error.to_string()));
        let port = self.port().map_err(broken)?;
        let commands = self
            .commands(job, port)
            .map_err(|problem| Failure::new(Kind::Preflight, problem))?;
        let envelope = serde_json::to_vec(job.envelope).map_err(|error| broken(error.into()))?;
        std::fs::write(job.state.join(ENVELOPE), envelope).map_err(broken)?;

        let log = job.workspace.join(SERVER_LOG);
        show(&format!(
            "launch: starting the server on port {port}; its log is {}",
            log.display()
        ));
        let server = Server::start(&commands.server, job, cancel);
        let ready = Endpoint::parse(&url(port), None).and_then(|endpoint| {
            endpoint.wait(
                Duration::from_secs(self.settings.ready_timeout_seconds),
                &server.clients,
            )
        });
        let measured = match ready {
            Ok(()) => {
                show("launch: the server is healthy");
                self.measure(job, &commands, &server, show)
            }
            Err(problem) => Err(Failure::new(Kind::Engine, problem)),
        };
        let tail = Arc::clone(&server.tail);
        // A server that ended by itself is the reason of whatever failed after it.
        let death = server.stop(measured.is_err());
        match (cancel.signal(), death, measured) {
            (Some(signal), ..) => {
                let problem = Problem::file("", format!("the launch was ended by {signal}"));
                Err(Failure::new(Kind::Cancelled(signal), problem))
            }
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

/// The last lines of a log, as they may be shown.
#[derive(Debug, Default)]
struct Tail(Mutex<VecDeque<String>>);

impl Tail {
    /// How much of a line is kept, in characters.
    const WIDTH: usize = 400;

    fn lock(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: &str) {
        let mut lines = self.lock();
        if lines.len() == TAIL {
            lines.pop_front();
        }
        lines.push_back(line.chars().take(Self::WIDTH).collect());
    }

    fn lines(&self) -> Vec<String> {
        self.lock().iter().cloned().collect()
    }
}

/// A running server.
struct Server {
    /// What ends it.
    end: Cancellation,
    /// What ends its clients: the launch's own cancellation, or its death.
    clients: Cancellation,
    thread: JoinHandle<io::Result<Outcome>>,
    tail: Arc<Tail>,
}

impl Server {
    fn start(arguments: &[String], job: &Prepared<'_>, cancel: &Cancellation) -> Self {
        let (end, clients) = (cancel.part(None), cancel.part(None));
        let tail = Arc::<Tail>::default();
        let command = child::of_arguments(arguments, job);
        let watch = Watch {
            // Its lines are shown in an error, of which no line may be a command of the runner either.
            neutralise: true,
            ..child::watch(job, SERVER_LOG)
        };
        let (own_end, own_clients, own_tail) = (end.clone(), clients.clone(), Arc::clone(&tail));
        let thread = std::thread::spawn(move || {
            let outcome = process::run(command, &watch, &own_end, &mut |line| own_tail.push(line));
            own_clients.cancel();
            outcome
        });
        Self {
            end,
            clients,
            thread,
            tail,
        }
    }

    /// Ends it. A server that had ended before, or never started, is a failure. After a failure of its clients it is
    /// given a moment to be seen dead.
    fn stop(self, clients_failed: bool) -> Option<Failure> {
        let died = if clients_failed {
            !self.clients.sleep(DEATH_NOTICE)
        } else {
            self.clients.signal().is_some()
        };
        self.end.cancel();
        match self.thread.join() {
            Ok(Ok(outcome)) if died => {
                let problem = Problem::file("", format!("the server {outcome}"));
                Some(Failure::new(Kind::Engine, problem))
            }
            Ok(Ok(_)) => None,
            Ok(Err(error)) if died => Some(Failure::new(Kind::Engine, Problem::file("", error.to_string()))),
            Ok(Err(error)) => Some(Failure::new(Kind::Infrastructure, Problem::file("", error.to_string()))),
            Err(_) => Some(Failure::new(
                Kind::Infrastructure,
                Problem::file("", "the server's watcher panicked"),
            )),
        }
    }
}
