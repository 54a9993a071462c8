//! Whether a node is fit for a job, before anything is started on it: a bad node says so with its name, and does not
//! eat the job.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::backend::{Backend, Prepared};
use super::child;
use super::failure::{Failure, Kind};
use super::hub::{Answer, Model};
use crate::config::clusters::Gpus;
use crate::config::problem::{Problem, Problems};
use crate::process::{self, Cancellation, Stop, Watch};

/// How long all checks may take together, unless told otherwise.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);
/// What a GPU without a job may hold, in MiB: drivers keep some hundred.
const MAX_USED_MIB: u64 = 2048;
/// How long the hub may take to answer.
const HUB_TIME: Duration = Duration::from_secs(10);
/// How often the wait for it looks whether it was cancelled.
const TICK: Duration = Duration::from_millis(40);
/// How many of a tool's last lines are repeated.
const SAID: usize = 3;
/// The most lines that are read of a tool.
const MAX_LINES: usize = 20_000;

/// Checks a node, all checks within one deadline. What may go wrong later is said.
///
/// # Errors
/// Everything that is wrong with it, under its name.
pub(crate) fn check(
    backend: &dyn Backend,
    job: &Prepared<'_>,
    deadline: Duration,
    cancel: &Cancellation,
    show: &mut dyn FnMut(&str),
) -> Result<(), Failure> {
    let limit = cancel.part(Some(deadline));
    let mut node = Node {
        job,
        cancel: &limit,
        end: Instant::now() + deadline,
        problems: Problems::default(),
        show,
    };
    backend.preflight(&mut node);
    let mut problems = node.problems;
    if let Some(signal) = cancel.signal() {
        let problem = Problem::file("", format!("the checks of the node were ended by {signal}"));
        return Err(Failure::new(Kind::Cancelled(signal), problem));
    }
    if problems.0.is_empty() {
        return Ok(());
    }
    let node = node_name();
    for problem in &mut problems.0 {
        problem.message = format!("node `{node}`: {}", problem.message);
    }
    Err(Failure::new(Kind::Preflight, problems))
}

/// The node's own name.
fn node_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "of this runner".to_owned(),
        name => name.to_owned(),
    }
}

/// A node that is checked for a job: what any backend may ask of it.
pub struct Node<'a> {
    /// The job.
    pub job: &'a Prepared<'a>,
    cancel: &'a Cancellation,
    end: Instant,
    problems: Problems,
    show: &'a mut dyn FnMut(&str),
}

impl Node<'_> {
    /// Keeps what a check found.
    pub fn note(&mut self, result: Result<(), Problem>) {
        self.problems.0.extend(result.err());
    }

    /// A variable of the job.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.job.environment.get(name)
    }

    /// The GPUs are there, as many as the job takes of one node, and nothing is on them.
    pub fn gpus(&mut self, gpus: Gpus) {
        let result = match gpus {
            Gpus::None => Ok(()),
            Gpus::Nvidia => self.nvidia(),
            Gpus::Amd => self.amd(),
        };
        self.note(result);
    }

    /// The hub has the model that an engine would look for there, where no folder of it is known; `of` says how this
    /// host looks for a name. What cannot be known is shown.
    pub fn model_of_hub(&mut self, of: impl FnOnce(&str) -> Option<Model>) {
        let name = self.variable("MODEL").filter(|_| self.variable("MODEL_PATH").is_none());
        match name.and_then(of).map(|model| self.hub(model)) {
            None | Some(Answer::There) => {}
            Some(Answer::Refused(problem)) => self.note(Err(problem)),
            Some(Answer::Unknown(why)) => (self.show)(&format!("launch: warning: {why}")),
        }
    }

    /// What the hub's cache or the hub says of a model, while the checks may still take time.
    fn hub(&self, model: Model) -> Answer {
        if model.is_cached() {
            return Answer::There;
        }
        let time = self.end.saturating_duration_since(Instant::now()).min(HUB_TIME);
        let (sender, receiver) = channel();
        // A name that is looked up for long cannot be interrupted, and nobody waits for it.
        std::thread::spawn(move || sender.send(model.ask(time)));
        let started = Instant::now();
        loop {
            match receiver.recv_timeout(TICK) {
                Ok(answer) => return answer,
                Err(RecvTimeoutError::Timeout) if self.cancel.signal().is_none() && started.elapsed() < time => {}
                Err(_) => return Answer::Unknown("the hub was asked for the model, and gave no answer".to_owned()),
            }
        }
    }

    /// A model that is a folder must be one, where it lies on this host; `on_host` says where, or that the folder is none
    /// of this host's.
    pub fn model_folder(&mut self, on_host: impl FnOnce(&Path) -> Option<PathBuf>) {
        let path = self.variable("MODEL_PATH").filter(|path| path.starts_with('/'));
        let Some(folder) = path.and_then(|path| on_host(Path::new(path))) else {
            return;
        };
        self.note(std::fs::read_dir(&folder).map(drop).map_err(|error| {
            let message = format!("the model's folder `{}` cannot be read: {error}", folder.display());
            Problem::file("", message).hint("see whether its file system is mounted on the node")
        }));
    }

    fn nvidia(&self) -> Result<(), Problem> {
        let query = ["--query-gpu=index,memory.used", "--format=csv,noheader,nounits"];
        let lines = self.ask("nvidia-smi", &query)?;
        let used: Option<Vec<u64>> = lines
            .iter()
            .map(|line| line.rsplit(',').next()?.trim().parse().ok())
            .collect();
        let used = used.ok_or_else(|| garbled("nvidia-smi", &lines))?;
        self.gpus_are_empty("nvidia-smi", &used)
    }

    fn amd(&self) -> Result<(), Problem> {
        let lines = self.ask("amd-smi", &["metric", "--mem-usage", "--json"])?;
        let text = lines.join("\n");
        let used = serde_json::from_str::<AmdReport>(&text)
            .ok()
            .map(AmdReport::used_mib)
            .ok_or_else(|| garbled("amd-smi", &lines))?;
        self.gpus_are_empty("amd-smi", &used)
    }

    /// There are as many GPUs as the job takes on one node, and nothing is on them. `used` is in MiB.
    fn gpus_are_empty(&self, tool: &str, used: &[u64]) -> Result<(), Problem> {
        let needed: usize = self
            .job
            .environment
            .get("GPU_COUNT")
            .and_then(|n| n.parse().ok())
            .unwrap_or(1);
        if used.len() < needed {
            let message = format!(
                "{tool} lists {}, the job takes {needed}",
                crate::plural::count(used.len(), "GPU")
            );
            return Err(Problem::file("", message).hint("a GPU has fallen off the bus, or the row is for other nodes"));
        }
        let busy: Vec<String> = used
            .iter()
            .enumerate()
            .filter(|(_, used)| **used > MAX_USED_MIB)
            .map(|(gpu, used)| format!("GPU {gpu} holds {used} MiB"))
            .collect();
        if busy.is_empty() {
            return Ok(());
        }
        let message = format!("its GPUs are not empty: {}", busy.join(", "));
        Err(Problem::file("", message).hint("something of another job runs there: end it, or drain the node"))
    }

    /// The lines of a tool that runs to its end, for as long as the checks may still take.
    ///
    /// # Errors
    /// A tool that is not there, fails, or does not answer.
    pub fn ask(&self, program: &str, arguments: &[&str]) -> Result<Vec<String>, Problem> {
        let mut command = Command::new(program);
        command.args(arguments);
        let watch = Watch {
            grace: Duration::from_millis(300),
            ..Watch::default()
        };
        let mut lines = Vec::new();
        let outcome = process::run(command, &watch, self.cancel, &mut |line| {
            if lines.len() < MAX_LINES {
                lines.push(line.to_owned());
            }
        });
        let asked = format!("`{program} {}`", arguments.join(" "));
        match outcome {
            Ok(outcome) if outcome.is_success() => Ok(lines),
            Ok(outcome) if matches!(outcome.stop, Some(Stop::Cancelled(_))) => {
                Err(Problem::file("", format!("{asked} does not answer")).hint("drain the node and look at it"))
            }
            Ok(outcome) => {
                let says = |line: &&String| line.chars().any(char::is_alphanumeric);
                let last: Vec<&str> = lines.iter().filter(says).rev().take(SAID).map(String::as_str).collect();
                let last: Vec<&str> = last.into_iter().rev().collect();
                let message = format!("{asked} {outcome}: {}", last.join("; "));
                Err(Problem::file("", message).hint("drain the node and look at it"))
            }
            Err(error) if !child::is_there(program) => {
                Err(Problem::file("", error.to_string()).hint(format!("install {program} on the node")))
            }
            Err(error) => Err(Problem::file("", error.to_string())),
        }
    }
}

fn garbled(tool: &str, lines: &[String]) -> Problem {
    let first: String = lines
        .first()
        .into_iter()
        .flat_map(|line| line.chars())
        .take(120)
        .collect();
    Problem::file(
        "",
        format!("{tool} answers something else than its GPUs' memory: `{first}`"),
    )
    .hint("drain the node and look at it")
}

/// What `amd-smi metric --mem-usage --json` prints; newer ones wrap the list.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum AmdReport {
    List(Vec<AmdGpu>),
    Wrapped { gpu_data: Vec<AmdGpu> },
}

#[derive(Debug, Deserialize)]
struct AmdGpu {
    mem_usage: AmdMemory,
}

#[derive(Debug, Deserialize)]
struct AmdMemory {
    used_vram: AmdValue,
}

#[derive(Debug, Deserialize)]
struct AmdValue {
    /// In `unit`, which is MB and means MiB.
    value: u64,
}

impl AmdReport {
    fn used_mib(self) -> Vec<u64> {
        let (Self::List(gpus) | Self::Wrapped { gpu_data: gpus }) = self;
        gpus.iter().map(|gpu| gpu.mem_usage.used_vram.value).collect()
    }
}
