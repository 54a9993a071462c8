//! The backend of hosts that run containers, through the command of docker or podman.

mod settings;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::config::clusters::{Gpus, Mount};
use crate::config::problem::{Problem, Problems};
use crate::files;
use crate::process::{self, Cancellation, Ending, Outcome, Watch};
use crate::step::environment::{by_name, env_file};
use crate::step::eval::client::given::GIVEN;
use crate::step::launch::backend::{Backend, Intent, Launches, Prepared, Show, Wanted};
use crate::step::launch::failure::{Failure, Kind};
use crate::step::launch::hub::Model;
use crate::step::launch::leftovers::plain;
use crate::step::launch::preflight::Node;
use crate::step::launch::script::LaunchScript;
use crate::step::launch::served::{Around, Place, Served};
use crate::step::launch::serving::Serving;
use crate::step::launch::{LAUNCH_LOG, child};
pub use settings::{Container, Runtime};

/// The label that says whose a container is.
const LABEL: &str = "sweepctl.runner";
/// The file of the state folder with the container's variables.
const ENV_FILE: &str = "container.env";
/// Variables of the host that a container gets by name, where they are set: what downloads a model. What
/// suites read comes beside them.
const FROM_HOST: [&str; 4] = ["HF_ENDPOINT", "HF_HUB_OFFLINE", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"];
/// The exit code of docker and podman themselves, where no container ran.
const NO_CONTAINER: i32 = 125;
/// How long the container command may take to list and remove; a cancelled step has little time.
const RELEASE_TIME: Duration = Duration::from_secs(3);

/// Runs a container of the row's image: with the fleet's script, or, where the checkout has none, with the server of the
/// row's engine, which clients on the host then measure.
struct ContainerBackend {
    settings: Container,
    script: LaunchScript,
    engine: Result<Serving, Problem>,
    place: Place,
}

/// What a job runs in its container.
enum Way<'a> {
    Script,
    Engine(Served<'a>),
}

impl Launches for Container {
    fn backend(&self, wanted: Wanted<'_>) -> Result<Box<dyn Backend>, Problem> {
        Ok(Box::new(ContainerBackend {
            script: LaunchScript::new(self.path.as_deref(), wanted.runner)?,
            settings: self.clone(),
            engine: wanted.engine,
            place: Place::of(&self.served, wanted.task, LAUNCH_LOG),
        }))
    }
}

impl ContainerBackend {
    /// A script of the checkout wins over the engine.
    fn way(&self, workspace: &Path) -> Result<Way<'_>, Problem> {
        match self.script.or_engine(workspace, &self.engine)? {
            None => Ok(Way::Script),
            Some(serving) => Ok(Way::Engine(Served {
                serving,
                place: &self.place,
                around: &self.settings,
            })),
        }
    }

    /// The command that runs the fleet's script.
    fn script_command(&self, job: &Prepared<'_>) -> Result<Vec<String>, Problem> {
        let script = self.script.find(job.workspace)?.display().to_string();
        self.settings.arguments(job, Vec::new(), &["bash".to_owned(), script])
    }
}

impl Container {
    /// The command's name.
    fn runtime(&self) -> &'static str {
        let choice = Runtime::CHOICES.iter().find(|(_, value)| *value == self.runtime);
        choice.map_or("docker", |(name, _)| name)
    }

    /// The argument vector of a container that runs a program; `more` are options. The checkout stands at its own path in
    /// the container, so that paths mean the same inside.
    ///
    /// # Errors
    /// An image that the command would read as an option.
    fn arguments(&self, job: &Prepared<'_>, more: Vec<String>, program: &[String]) -> Result<Vec<String>, Problem> {
        let image = image(job)?;
        let workspace = job.workspace.display();
        let runner = plain(job.runner);
        let mut all: Vec<String> = [
            self.runtime(),
            "run",
            "--rm",
            "--init",
            &format!("--name=sweepctl-{runner}"),
            &format!("--label={LABEL}={runner}"),
            &format!("--env-file={}", job.state.join(ENV_FILE).display()),
        ]
        .map(str::to_owned)
        .to_vec();
        let from_host = FROM_HOST.into_iter().chain(GIVEN).filter(|name| {
            job.environment.get(name).is_none() && std::env::var_os(name).is_some_and(|value| !value.is_empty())
        });
        for name in by_name(job.environment).chain(from_host) {
            all.extend(["--env".to_owned(), name.to_owned()]);
        }
        all.extend(gpu_options(self.gpus).iter().map(|option| (*option).to_owned()));
        if let Some(size) = &self.shm_size {
            all.push(format!("--shm-size={size}"));
        }
        if let Some(network) = &self.network {
            all.push(format!("--network={network}"));
        }
        for mount in &self.mounts {
            let end = if mount.read_only { ":ro" } else { "" };
            all.push(format!("--volume={}:{}{end}", mount.host, mount.container));
        }
        all.extend(more);
        let (program, arguments) = program
            .split_first()
            .map_or(("", &[][..]), |(p, rest)| (p.as_str(), rest));
        all.extend([
            format!("--volume={workspace}:{workspace}"),
            format!("--workdir={workspace}"),
            // Images of engines start a server by themselves.
            format!("--entrypoint={program}"),
            image.to_owned(),
        ]);
        all.extend(arguments.iter().cloned());
        Ok(all)
    }

    /// Removes the containers of a runner.
    fn release(&self, runner: &str, state: &Path) -> Result<Vec<String>, Problem> {
        let _ = std::fs::remove_file(state.join(ENV_FILE));
        let filter = format!("label={LABEL}={}", plain(runner));
        let ids = ask(self.runtime(), &["ps", "--all", "--quiet", "--filter", &filter])?;
        // Anything else is a warning of the command.
        let is_id = |id: &&String| !id.is_empty() && id.chars().all(|c| c.is_ascii_hexdigit());
        let ids: Vec<&str> = ids.iter().filter(is_id).map(String::as_str).collect();
        if !ids.is_empty() {
            remove(self.runtime(), &ids)?;
        }
        Ok(ids.iter().map(|id| format!("container {id}")).collect())
    }

    /// Where a folder of the container lies on the host; `None` where it is the image's own.
    fn on_host(&self, folder: &Path) -> Option<PathBuf> {
        let of_mount = |mount: &Mount| Some(Path::new(&mount.host).join(folder.strip_prefix(&mount.container).ok()?));
        self.mounts.iter().find_map(of_mount)
    }

    /// The mounted folders, on the host.
    fn host_folders(&self) -> Vec<PathBuf> {
        self.mounts.iter().map(|mount| PathBuf::from(&mount.host)).collect()
    }

    /// Whether the image is here, or its registry knows it.
    fn is_known(&self, node: &Node<'_>) -> Result<(), Problem> {
        let runtime = self.runtime();
        let image = image(node.job)?;
        if node.ask(runtime, &["image", "inspect", image]).is_ok() {
            return Ok(());
        }
        let known = node.ask(runtime, &["manifest", "inspect", image]).map(drop);
        known.map_err(|problem| {
            let message = format!(
                "the image `{image}` is not here and cannot be reached: {}",
                problem.message
            );
            Problem::file("", message).hint(format!("try `{runtime} pull {image}` on the node"))
        })
    }
}

impl Around for Container {
    fn around(
        &self,
        job: &Prepared<'_>,
        server: Vec<String>,
        port: u16,
        files: Option<&Path>,
    ) -> Result<Vec<String>, Problem> {
        let files = files.map(|files| format!("--volume={0}:{0}:ro", files.display()));
        let shared = self.network.as_deref() == Some("host");
        let published = (!shared).then(|| format!("--publish=127.0.0.1:{port}:{port}"));
        self.arguments(job, files.into_iter().chain(published).collect(), &server)
    }
}

/// Writes the file that the container's variables come from.
fn write_env(job: &Prepared<'_>) -> Result<(), Problem> {
    let file = job.state.join(ENV_FILE);
    files::write_private(&file, env_file(job.environment).as_bytes()).map_err(|error| {
        let name = file.display().to_string();
        Problem::file(&name, format!("the container's variables cannot be written: {error}"))
    })
}

/// Removes containers, whatever still runs in them.
///
/// # Errors
/// As [`ask`].
pub(super) fn remove(runtime: &str, ids: &[&str]) -> Result<(), Problem> {
    let at_once: Vec<&str> = at_once(runtime).into_iter().collect();
    ask(runtime, &[&["rm", "--force"], &at_once[..], ids].concat()).map(drop)
}

/// The option of `rm --force` that waits for nothing: podman gives what ignores SIGTERM ten seconds more, which a
/// cancelled step does not have; docker gives none.
pub(super) fn at_once(runtime: &str) -> Option<&'static str> {
    (runtime == "podman").then_some("--time=0")
}

/// Asks a container command something, within [`RELEASE_TIME`]; gives the lines of its answer.
///
/// # Errors
/// It does not answer, or says no.
pub(super) fn ask(runtime: &str, arguments: &[&str]) -> Result<Vec<String>, Problem> {
    let mut command = Command::new(runtime);
    command.args(arguments);
    let watch = Watch {
        deadline: Some(RELEASE_TIME),
        grace: Duration::from_millis(200),
        ..Watch::default()
    };
    let mut lines = Vec::new();
    let outcome = process::run(command, &watch, &Cancellation::never(), &mut |line| {
        lines.push(line.to_owned())
    });
    let said = match outcome {
        Ok(outcome) if outcome.is_success() => return Ok(lines),
        Ok(outcome) => format!("`{runtime} {}` {outcome}: {}", arguments.join(" "), lines.join("; ")),
        Err(error) => error.to_string(),
    };
    Err(Problem::file("", said).hint(format!("see whether {runtime} answers on this host")))
}

impl Backend for ContainerBackend {
    fn intend(&self, job: &Prepared<'_>) -> Result<Intent, Problems> {
        let (commands, mut files) = match self.way(job.workspace)? {
            Way::Script => (vec![self.script_command(job)?], Vec::new()),
            Way::Engine(served) => served.intend(job)?,
        };
        files.insert(0, (job.state.join(ENV_FILE), env_file(job.environment)));
        Ok(Intent {
            backend: "container",
            commands,
            files,
        })
    }

    fn preflight(&self, node: &mut Node<'_>) {
        match self.way(node.job.workspace) {
            Ok(Way::Script) => {}
            Ok(Way::Engine(served)) => served.check(node.job).into_iter().for_each(|result| node.note(result)),
            Err(problem) => node.note(Err(problem)),
        }
        node.gpus(self.settings.gpus);
        node.note(self.settings.is_known(node));
        node.model_folder(|path| self.settings.on_host(path));
        // Each mount may be its home, or its cache.
        node.model_of_hub(|name| Model::new(name, &self.settings.host_folders(), self.settings.host_folders()));
    }

    fn run(&self, job: &Prepared<'_>, cancel: &Cancellation, show: &mut Show<'_>) -> Result<Outcome, Problems> {
        write_env(job)?;
        let command = self.script_command(job)?;
        let mut command = child::of_arguments(&command, job);
        command.current_dir(job.workspace);
        let outcome = process::run(command, &child::watch(job, LAUNCH_LOG), cancel, show);
        // The command is only a client: where it was killed, its container still runs.
        let released = self.release(job.runner, job.state);
        let outcome = outcome.map_err(|error| Problem::file("", error.to_string()))?;
        released?;
        if outcome.stop.is_none() && outcome.ending == Ending::Code(NO_CONTAINER) {
            let message = format!(
                "{} could not run the container; its output above says why",
                self.settings.runtime()
            );
            let problem =
                Problem::file("", message).hint("try the same on the node: `launch --dry-run` prints the command");
            return Err(problem.into());
        }
        Ok(outcome)
    }

    fn attempt(&self, job: &Prepared<'_>, cancel: &Cancellation, show: &mut Show<'_>) -> Result<(), Failure> {
        let broken = |problem: Problem| Failure::new(Kind::Infrastructure, problem);
        let way = self.way(job.workspace);
        let Way::Engine(served) = way.map_err(|problem| Failure::new(Kind::Preflight, problem))? else {
            return match self.run(job, cancel, show) {
                Ok(outcome) => Failure::check(&outcome, Kind::Benchmark, "the job"),
                Err(problems) => Err(Failure::new(Kind::Infrastructure, problems)),
            };
        };
        write_env(job).map_err(broken)?;
        let ended = served.attempt(job, cancel, show);
        let released = self.release(job.runner, job.state).map_err(broken);
        ended.and(released.map(drop))
    }

    fn release(&self, runner: &str, state: &Path) -> Result<Vec<String>, Problem> {
        self.settings.release(runner, state)
    }
}

/// The row's image.
///
/// # Errors
/// A text that is no image's name.
pub(super) fn image<'a>(job: &'a Prepared<'_>) -> Result<&'a str, Problem> {
    let image = job.environment.get("IMAGE").unwrap_or_default();
    let legal = |c: char| c.is_ascii_alphanumeric() || "._-/:@+#".contains(c);
    if image.starts_with(|c: char| c.is_ascii_alphanumeric()) && image.chars().all(legal) {
        return Ok(image);
    }
    let shown: String = image.chars().take(80).flat_map(char::escape_debug).collect();
    let problem = Problem::file("", format!("`{shown}` is no name of a container image"));
    Err(problem.hint("correct `image` in the config that the row comes from"))
}

fn gpu_options(gpus: Gpus) -> &'static [&'static str] {
    match gpus {
        Gpus::None => &[],
        Gpus::Nvidia => &["--gpus=all"],
        Gpus::Amd => &[
            "--device=/dev/kfd",
            "--device=/dev/dri",
            "--group-add=video",
            "--security-opt=seccomp=unconfined",
        ],
    }
}
