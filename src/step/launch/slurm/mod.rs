//! The `slurm` backend: a row is a batch job under the runner's name.
//!
//! The job is written down before anything else can fail ([`jobs`]), followed with its log ([`follow`]), and cancelled
//! by its id ([`release`]). Values travel in sbatch's own environment, whole: an `--export` list could carry neither
//! commas nor line ends.

mod call;
mod follow;
mod jobs;
mod nodes;
pub mod on_node;
mod release;
mod state;
mod submit;
mod tail;

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::config::clusters::Slurm;
use crate::config::problem::{Problem, Problems};
use crate::process::{Cancellation, Ending, Outcome, Stop};
use crate::secrets::Mask;
use crate::step::results::file;

use super::LAUNCH_LOG;
use super::backend::{Backend, Intent, Prepared, Show};
use super::preflight::Node;
use super::script::Script;
use on_node::OnNode;
use submit::Submitted;

pub(super) use follow::{Job, follow};
pub(super) use jobs::{Record, folder, queue};
pub use nodes::{gpus_per_node, of_role};
pub(super) use release::{CANCEL, end, release};
pub(super) use state::is_over;
pub(super) use submit::check;

/// The folder of this backend in the state folder.
const FOLDER: &str = "slurm";

/// Jobs of a runner that hands them to Slurm.
#[derive(Debug, Clone)]
pub struct SlurmBackend {
    /// The cluster's settings.
    pub settings: Slurm,
    /// GPUs of one node, where known: see [`gpus_per_node`].
    pub gpus_per_node: Option<u64>,
    /// What no line of a log may show.
    pub mask: Mask,
    /// What serves rows without a launch script.
    pub on_node: OnNode,
}

/// The file of the batch script in this backend's folder.
const BATCH_FILE: &str = "batch.sh";

/// What the batch job runs.
enum Batch {
    /// A launch script, from the checkout's root.
    Script(String),
    /// A command that serves the row on the node.
    Served(Vec<String>),
}

impl Batch {
    fn command(self) -> Vec<String> {
        match self {
            Self::Script(path) => vec!["bash".to_owned(), path],
            Self::Served(command) => command,
        }
    }
}

impl SlurmBackend {
    /// The launch script, where the checkout has it or the cluster names it; else the row is served on the node.
    fn batch(&self, job: &Prepared<'_>) -> Result<Batch, Problem> {
        let script = Script::new(self.settings.path.as_deref(), job.runner)?;
        Ok(match script.or_engine(job.workspace, &self.on_node.serving)? {
            None => Batch::Script(script.path),
            Some(_) => Batch::Served(self.on_node.command(job)?),
        })
    }

    /// The arguments of sbatch.
    fn arguments(&self, job: &Prepared<'_>, token: &str) -> Result<Vec<String>, Problems> {
        let mut problems = Problems::default();
        let mut take = |result: Result<String, Problem>| {
            result.unwrap_or_else(|problem| {
                problems.push(problem);
                String::new()
            })
        };
        let settings = &self.settings;
        let folder = job.state.join(FOLDER);
        let name = take(job_name(job.runner).map(str::to_owned));
        let log = take(pattern(&folder).map(|folder| format!("{folder}/job-%j.raw")));
        let time = settings.time.clone();
        let mut arguments = vec![
            "--parsable".to_owned(),
            // A job that Slurm starts anew after a node failure would be measured unseen.
            "--no-requeue".to_owned(),
            "--export=ALL".to_owned(),
            format!("--job-name={name}"),
            format!("--comment={token}"),
            format!("--partition={}", settings.partition),
            format!(
                "--time={}",
                time.unwrap_or_else(|| job.envelope.timeout_minutes.to_string())
            ),
            format!("--chdir={}", job.workspace.display()),
            format!("--output={log}"),
        ];
        arguments.extend(settings.account.iter().map(|account| format!("--account={account}")));
        if !settings.extra.iter().any(|option| gives_nodes(option)) {
            let topology = &job.envelope.row.topology;
            let count = nodes::nodes(topology, self.gpus_per_node).map(|count| count.to_string());
            arguments.push(format!("--nodes={}", take(count)));
        }
        arguments.extend(settings.extra.iter().cloned());
        match self.batch(job) {
            Ok(batch) => {
                arguments.push(folder.join(BATCH_FILE).display().to_string());
                arguments.extend(batch.command());
            }
            Err(problem) => problems.push(problem),
        }
        if let Err(refused) = submit::check(job.environment) {
            problems.extend(refused);
        }
        problems.into_result()?;
        Ok(arguments)
    }

    /// The launch script's file is there, if the job runs one.
    ///
    /// # Errors
    /// It is not, or is a link.
    pub fn find_script(&self, job: &Prepared<'_>) -> Result<(), Problem> {
        match self.batch(job)? {
            Batch::Script(path) => plain_file(job.workspace, Path::new(&path)).map(drop),
            Batch::Served(_) => Ok(()),
        }
    }
}

impl Backend for SlurmBackend {
    fn intend(&self, job: &Prepared<'_>) -> Result<Intent, Problems> {
        let mut command = vec!["sbatch".to_owned()];
        command.extend(self.arguments(job, "<a token of this launch>")?);
        let mut files = vec![(job.state.join(FOLDER).join(BATCH_FILE), submit::BATCH.to_owned())];
        if let Batch::Served(_) = self.batch(job)? {
            let envelope = serde_json::to_string(job.envelope).map_err(|error| Problem::file("", error.to_string()))?;
            files.push((OnNode::envelope(job.state), envelope));
        }
        Ok(Intent {
            backend: "slurm",
            commands: vec![command],
            files,
        })
    }

    fn preflight(&self, node: &mut Node<'_>) {
        node.note(self.find_script(node.job));
        controller(node);
    }

    fn run(&self, job: &Prepared<'_>, cancel: &Cancellation, show: &mut Show<'_>) -> Result<Outcome, Problems> {
        let started = Instant::now();
        let intent = self.intend(job)?;
        self.find_script(job)?;
        let folder = folder(job.state, FOLDER)?;
        for (path, text) in &intent.files {
            file::write_atomic(path, text.as_bytes()).map_err(|error| {
                let name = path.display().to_string();
                Problem::file(&name, format!("`{name}` cannot be written: {error}"))
            })?;
        }
        let record = Record::create(job.state)?;
        let arguments = self.arguments(job, &record.token())?;
        let id = match submit::submit(&arguments, job.environment, job.workspace, &record, cancel, show)? {
            Submitted::Job(id) => id,
            Submitted::Cancelled => return Ok(never_ran(cancel, started)),
        };
        show(&format!("Slurm job {id} is submitted to {}", self.settings.partition));
        let followed = Job {
            id: &id,
            log: folder.join(format!("job-{id}.raw")).into(),
            own_log: true,
            copy: &job.workspace.join(LAUNCH_LOG),
            mask: &self.mask,
            started,
        };
        // Nobody would look after a job that cannot be followed.
        let end = || drop(end(std::slice::from_ref(&id), CANCEL, &mut || {}));
        let outcome = follow(&followed, cancel, show).inspect_err(|_| end())?;
        record.forget()?;
        Ok(outcome)
    }

    fn release(&self, runner: &str, state: &Path) -> Result<Vec<String>, Problem> {
        release(runner, state)
    }
}

/// The controller answers; its nodes are Slurm's own to check.
pub(super) fn controller(node: &mut Node<'_>) {
    let answer = node.ask("scontrol", &["ping"]).map(drop);
    node.note(answer.map_err(|problem| {
        problem.hint("see whether slurmctld runs on that host, and whether SLURM_CONF names this cluster")
    }));
    node.model_folder(|path| Some(path.to_owned()));
}

/// The outcome of a launch that was cancelled before it had a job. Its record stays for the release: Slurm may yet
/// take the job.
pub(super) fn never_ran(cancel: &Cancellation, started: Instant) -> Outcome {
    Outcome {
        ending: Ending::Signal(nix::libc::SIGTERM),
        stop: cancel.signal().map(Stop::Cancelled),
        elapsed: started.elapsed(),
    }
}

/// A runner's name as a job's: what squeue prints of it on one line is the name.
pub(super) fn job_name(runner: &str) -> Result<&str, Problem> {
    if runner.is_empty() || runner.trim() != runner || runner.chars().any(char::is_control) {
        let message = format!("the runner's name `{}` cannot be a job's", runner.escape_debug());
        return Err(Problem::file("", message).hint("name the runner without spaces around and without line ends"));
    }
    Ok(runner)
}

/// A folder as sbatch's `--output` takes it: `%` has a meaning there, and `\` turns all meaning off.
fn pattern(path: &Path) -> Result<String, Problem> {
    match path.to_str() {
        Some(text) if !text.contains('\\') => Ok(text.replace('%', "%%")),
        _ => Err(
            Problem::file("", format!("logs cannot be kept in `{}`", path.display()))
                .hint("keep the state in a folder whose path is UTF-8 and has no `\\`"),
        ),
    }
}

/// Whether an option of sbatch says how many nodes there are.
fn gives_nodes(option: &str) -> bool {
    option.starts_with("-N") || option.starts_with("--nodes=") || option.starts_with("--nodes ")
}

/// A file of the checkout: its path leads down from the root, and none of its parts is a link.
///
/// # Errors
/// A path that leads elsewhere, and anything but a plain file.
pub(crate) fn plain_file(root: &Path, path: &Path) -> Result<PathBuf, Problem> {
    let name = path.display().to_string();
    let refuse = |why: &str, hint: &str| Err(Problem::file(&name, format!("`{name}` {why}")).hint(hint));
    let mut found = root.to_owned();
    let mut kind = None;
    for part in path.components() {
        let std::path::Component::Normal(part) = part else {
            return refuse(
                "leads out of the checkout",
                "write a path from the repository's root, without `..`",
            );
        };
        found.push(part);
        match found.symlink_metadata() {
            Ok(metadata) if metadata.is_symlink() => {
                return refuse(
                    "is or crosses a link",
                    "put the file itself there: links are not followed",
                );
            }
            Ok(metadata) => kind = Some(metadata.file_type()),
            Err(error) => return refuse(&format!("cannot be read: {error}"), "commit it, or correct the path"),
        }
    }
    match kind {
        Some(kind) if kind.is_file() => Ok(found),
        _ => refuse("is no file", "correct the path"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_means_itself_in_a_pattern() {
        assert_eq!(pattern(Path::new("/s/100%j")), Ok("/s/100%%j".to_owned()));
        assert!(pattern(Path::new("/s\\x")).is_err());
    }

    #[test]
    fn files_are_plain_and_inside() {
        let root = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(root.path().join("a")).expect("a folder");
        std::fs::write(root.path().join("a/f"), "").expect("a file");
        std::os::unix::fs::symlink("a", root.path().join("l")).expect("a link");
        let found = |path: &str| plain_file(root.path(), Path::new(path)).map_err(|problem| problem.message);
        assert_eq!(found("a/f"), Ok(root.path().join("a/f")));
        assert!(found("l/f").expect_err("a link").contains("link"));
        for path in ["../a/f", "/etc/passwd", "a/../a/f"] {
            assert!(found(path).expect_err(path).contains("leads out"), "{path}");
        }
        assert!(found("a").expect_err("a folder").contains("no file"));
        assert!(found("a/g").expect_err("nothing").contains("cannot be read"));
    }

    #[test]
    fn names_that_squeue_would_not_give_back_are_refused() {
        assert_eq!(job_name("h200-alder_04"), Ok("h200-alder_04"));
        for name in ["", " a", "a\n", "a\nb"] {
            assert!(job_name(name).is_err(), "{name:?}");
        }
    }
}
