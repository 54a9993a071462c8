//! A launch in a process of its own, as a step is one: this test binary started anew, so that it can be signalled and
//! killed.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sweepctl::backends::slurm::on_node::OnNode;
use sweepctl::backends::slurm::{Slurm, SlurmBackend};
use sweepctl::backends::srt::{Srt, SrtBackend};
use sweepctl::config::fleet::FleetFiles;
use sweepctl::config::problem::Problem;
use sweepctl::config::recipe::Schema;
use sweepctl::matrix::envelope::Envelope;
use sweepctl::process::Cancellation;
use sweepctl::secrets::Mask;
use sweepctl::step::environment::{Environment, Place};
use sweepctl::step::launch::backend::{Backend, Prepared};

use super::cluster::cluster;
use crate::support;

/// The variable that carries the order to the other process.
const ORDER: &str = "SWEEPCTL_TEST_LAUNCH";
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// What to launch.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// Whether the backend is `srt`.
    pub srt: bool,
    /// Whether an earlier launch is released instead.
    pub release: bool,
    /// The runner.
    pub runner: String,
    /// The partition.
    pub partition: String,
    /// The time limit.
    pub time: Option<String>,
    /// The envelope.
    pub envelope: Value,
    /// The checkout.
    pub workspace: PathBuf,
    /// The state folder.
    pub state: PathBuf,
    /// What no line may show.
    pub secrets: Vec<String>,
}

impl Order {
    /// A job of one node that runs a script.
    pub fn new(folder: &Path, runner: &str, script: &str) -> Self {
        let fleet = runner.split('_').next().unwrap_or(runner);
        let workspace = folder.join("checkout");
        support::write(&workspace, &format!("runners/launch_{fleet}.sh"), script);
        Self {
            srt: false,
            release: false,
            runner: runner.to_owned(),
            partition: "main".to_owned(),
            time: None,
            envelope: envelope(row()),
            state: folder.join(format!("state-{runner}")),
            workspace,
            secrets: Vec::new(),
        }
    }

    /// The environment of the job.
    pub fn environment(&self) -> Environment {
        let envelope: Envelope = serde_json::from_value(self.envelope.clone()).expect("an envelope");
        let place = Place {
            runner_name: self.runner.clone(),
            workspace: self.workspace.display().to_string(),
            ..Place::default()
        };
        Environment::new(&envelope, &place).expect("an environment")
    }

    /// The backend.
    pub fn backend(&self) -> Box<dyn Backend> {
        if self.srt {
            let settings = Srt {
                recipes_dir: None,
                workspace: Some("/shared/checkout".to_owned()),
                schema: Schema::Two,
            };
            return Box::new(SrtBackend {
                settings,
                gpus_per_node: Some(4),
                mask: Mask::new(&self.secrets),
            });
        }
        let settings = Slurm {
            partition: self.partition.clone(),
            time: self.time.clone(),
            ..Slurm::default()
        };
        Box::new(SlurmBackend {
            settings,
            gpus_per_node: Some(64),
            mask: Mask::new(&self.secrets),
            on_node: OnNode {
                serving: Err(Problem::file("", "there is no engine")),
                fleet: FleetFiles::default(),
                task: None,
            },
        })
    }

    /// Calls something with the job.
    pub fn with<T>(&self, call: impl FnOnce(&dyn Backend, &Prepared<'_>) -> T) -> T {
        let envelope: Envelope = serde_json::from_value(self.envelope.clone()).expect("an envelope");
        let prepared = Prepared {
            envelope: &envelope,
            environment: &self.environment(),
            runner: &self.runner,
            workspace: &self.workspace,
            state: &self.state,
        };
        call(&*self.backend(), &prepared)
    }

    /// Starts it in a process of its own.
    pub fn start(&self) -> Launch {
        self.start_with(|_| {})
    }

    /// [`Self::start`], with more of an environment.
    pub fn start_with(&self, more: impl FnOnce(&mut Command)) -> Launch {
        let mut command = Command::new(std::env::current_exe().expect("a binary"));
        command
            .args([
                "--exact",
                "slurm::launcher::launcher",
                "--ignored",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(ORDER, serde_json::to_string(self).expect("JSON"))
            .env("SLURM_CONF", &cluster().conf)
            .env_remove("GITHUB_ACTIONS")
            .stdout(Stdio::piped());
        more(&mut command);
        let mut child = command.spawn().expect("the test binary runs");
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Launch {
            child,
            lines,
            shown: Vec::new(),
            end: String::new(),
        }
    }

    /// Releases what an earlier launch left, and gives what was said.
    pub fn release(&self) -> Vec<String> {
        let order = Self {
            release: true,
            ..self.clone()
        };
        let mut launch = order.start();
        assert_eq!(launch.finish(), "released", "{:?}", launch.shown);
        launch.shown.clone()
    }
}

/// A row of one node.
pub fn row() -> Value {
    json!({
        "image": "none", "model": "org/Model", "model-prefix": "model", "precision": "bf16", "framework": "vllm",
        "runner": "h200", "isl": 1024, "osl": 1024, "tp": 1, "pp": 1, "dcp-size": 1, "pcp-size": 1, "ep": 1,
        "dp-attn": false, "spec-decoding": "none", "conc": 4, "max-model-len": 2304, "exp-name": "model_1k1k",
        "disagg": false, "run-eval": false, "eval-only": false,
    })
}

/// An envelope of a row.
pub fn envelope(row: Value) -> Value {
    json!({"id": "0123456789ab", "name": "a job", "runs-on": "h200", "timeout-minutes": 10, "row": row})
}

/// A launch that runs.
pub struct Launch {
    child: Child,
    lines: Receiver<String>,
    /// What it has shown.
    pub shown: Vec<String>,
    end: String,
}

impl Launch {
    /// Takes one more line; whether there was one.
    fn take(&mut self, end: Instant) -> bool {
        match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                if let Some(shown) = line.strip_prefix("show: ") {
                    self.shown.push(shown.to_owned());
                } else if let Some(end) = line.strip_prefix("end: ") {
                    end.clone_into(&mut self.end);
                }
                true
            }
            Err(RecvTimeoutError::Timeout) => panic!("the launch takes too long: {:?}", self.shown),
            Err(RecvTimeoutError::Disconnected) => false,
        }
    }

    /// Waits until a line is shown that holds a text.
    pub fn wait_for(&mut self, text: &str) {
        let end = Instant::now() + PATIENCE;
        while !self.shown.iter().any(|line| line.contains(text)) {
            assert!(self.take(end), "`{text}` was not shown: {:?} {}", self.shown, self.end);
        }
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).expect("it runs");
    }

    /// Kills it, as the runner does at last.
    pub fn kill(mut self) {
        self.signal(Signal::SIGKILL);
        self.child.wait().expect("it ends");
    }

    /// How it ended.
    pub fn finish(&mut self) -> String {
        self.finish_within(PATIENCE)
    }

    /// How it ended, within some time.
    pub fn finish_within(&mut self, time: Duration) -> String {
        let end = Instant::now() + time;
        while self.take(end) {}
        self.child.wait().expect("it ends");
        self.end.clone()
    }
}

impl Drop for Launch {
    /// A test that failed leaves none behind; one that has ended takes no harm.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Carries out an order; without one it is no test.
#[test]
#[ignore = "a process that other tests start"]
fn launcher() {
    let Ok(text) = std::env::var(ORDER) else { return };
    let order: Order = serde_json::from_str(&text).expect("an order");
    let cancel = Cancellation::install().expect("signal handlers");
    println!();
    if order.release {
        match order.backend().release(&order.runner, &order.state) {
            Ok(said) => said.iter().for_each(|line| println!("show: {line}")),
            Err(problem) => return println!("end: {}", problem.message),
        }
        return println!("end: released");
    }
    let end = order.with(|backend, job| backend.run(job, &cancel, &mut |line| println!("show: {line}")));
    match end {
        Ok(outcome) => println!("end: {outcome}"),
        Err(problems) => {
            let messages: Vec<&str> = problems.0.iter().map(|problem| problem.message.as_str()).collect();
            println!("end: problem: {}", messages.join("; "));
        }
    }
}
