//! Whether a node is fit for a job, before anything is started on it: a bad node says so with its name, and does not
//! eat the job.

use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::backend::Prepared;
use super::child;
use super::container::{self, Container};
use super::failure::{Failure, Kind};
use super::hub::{self, Answer, Model};
use super::local::Local;
use super::script::Script;
use super::slurm::SlurmBackend;
use crate::config::clusters::Gpus;
use crate::config::problem::{Problem, Problems};
use crate::process::{self, Cancellation, Stop, Watch};

/// How long all checks may take together, unless told otherwise.
pub const DEADLINE: Duration = Duration::from_secs(60);
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

/// What is checked on a node.
#[derive(Debug, Clone, Copy)]
pub enum Needs<'a> {
    /// A launch script.
    Script(&'a Script),
    /// A server's program and its port.
    Local(&'a Local),
    /// A container command, an image, a script and GPUs.
    Container(&'a Container, Gpus),
    /// A controller that answers, and the launch script where there is one; its nodes are Slurm's own to check.
    Slurm(Option<&'a SlurmBackend>),
}

/// Checks a node, all checks within one deadline. What may go wrong later is said.
///
/// # Errors
/// Everything that is wrong with it, under its name.
pub fn check(
    needs: Needs<'_>,
    job: &Prepared<'_>,
    deadline: Duration,
    cancel: &Cancellation,
    show: &mut dyn FnMut(&str),
) -> Result<(), Failure> {
    let limit = cancel.part(Some(deadline));
    let checks = Checks {
        job,
        cancel: &limit,
        end: Instant::now() + deadline,
    };
    let mut problems = checks.all(needs, show);
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

struct Checks<'a> {
    job: &'a Prepared<'a>,
    cancel: &'a Cancellation,
    end: Instant,
}

impl Checks<'_> {
    fn all(&self, needs: Needs<'_>, show: &mut dyn FnMut(&str)) -> Problems {
        let mut problems = Problems::default();
        let mut note =
            |result: Result<(), Problem>| problems.extend(result.err().map_or_else(Problems::default, Problems::from));
        match needs {
            Needs::Script(script) => note(script.find(self.job.workspace).map(drop)),
            Needs::Local(local) => {
                for result in local.check(self.job) {
                    note(result);
                }
            }
            Needs::Container(container, gpus) => {
                note(container.script().find(self.job.workspace).map(drop));
                match gpus {
                    Gpus::None => {}
                    Gpus::Nvidia => note(self.nvidia()),
                    Gpus::Amd => note(self.amd()),
                }
                note(self.image(container));
            }
            Needs::Slurm(slurm) => {
                note(slurm.map_or(Ok(()), |slurm| slurm.find_script(self.job).map(drop)));
                note(self.ask("scontrol", &["ping"]).map(drop).map_err(|problem| {
                    problem.hint("see whether slurmctld runs on that host, and whether SLURM_CONF names this cluster")
                }));
            }
        }
        let container = match needs {
            Needs::Container(container, _) => Some(container),
            _ => None,
        };
        note(self.model(container));
        match self.of_hub(needs).map(|model| self.hub(model)) {
            None | Some(Answer::There) => {}
            Some(Answer::Refused(problem)) => note(Err(problem)),
            Some(Answer::Unknown(why)) => show(&format!("launch: warning: {why}")),
        }
        problems
    }

    /// The model that an engine of this host would look for at the hub; none where its folder is known.
    fn of_hub(&self, needs: Needs<'_>) -> Option<Model> {
        let variable = |name| self.job.environment.get(name);
        let name = variable("MODEL").filter(|_| variable("MODEL_PATH").is_none())?;
        match needs {
            Needs::Local(local) if !local.is_mock() && !Path::new(name).is_dir() => {
                let home: Vec<_> = hub::home().into_iter().collect();
                Model::new(name, &home, hub::cache().into_iter().collect())
            }
            // Each mount may be its home, or its cache.
            Needs::Container(container, _) => Model::new(name, &container.mounts(), container.mounts()),
            _ => None,
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

    /// Whether the image is here, or its registry knows it.
    fn image(&self, container: &Container) -> Result<(), Problem> {
        let runtime = container.runtime();
        let image = container::image(self.job)?;
        if self.ask(runtime, &["image", "inspect", image]).is_ok() {
            return Ok(());
        }
        self.ask(runtime, &["manifest", "inspect", image])
            .map(drop)
            .map_err(|problem| {
                let message = format!(
                    "the image `{image}` is not here and cannot be reached: {}",
                    problem.message
                );
                Problem::file("", message).hint(format!("try `{runtime} pull {image}` on the node"))
            })
    }

    /// A model that is a folder must be one, on the host where a container mounts it.
    fn model(&self, container: Option<&Container>) -> Result<(), Problem> {
        let path = match self.job.environment.get("MODEL_PATH") {
            Some(path) if path.starts_with('/') => Path::new(path),
            _ => return Ok(()),
        };
        let on_host = match container {
            Some(container) => container.on_host(path),
            None => Some(path.to_owned()),
        };
        let Some(folder) = on_host else { return Ok(()) };
        std::fs::read_dir(&folder).map(drop).map_err(|error| {
            let message = format!("the model's folder `{}` cannot be read: {error}", folder.display());
            Problem::file("", message).hint("see whether its file system is mounted on the node")
        })
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
            let message = format!("{tool} lists {} GPUs, the job takes {needed}", used.len());
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

    /// Runs a tool to its end, for as long as the checks may still take.
    fn ask(&self, program: &str, arguments: &[&str]) -> Result<Vec<String>, Problem> {
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
