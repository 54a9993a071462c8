//! Gathering what a job uploads: the allowed files of one kind, in a clean folder under the artifact's name.

use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use super::eval::meta_env;
use super::logs;
use super::places::{self, Places};
use super::results::meta::{self, MetaEnv, Owner};
use super::stage::{self, AGENTIC_LEFT_OUT, Found, SERVER_CONFIG};
use crate::config::problem::{Problem, Problems};
use crate::config::types::NodeKind;
use crate::matrix::envelope::Envelope;
use crate::matrix::names::{self, ArtifactKind, is_legal_artifact};
use crate::secrets::Mask;

/// The most files of one artifact: an upload of more takes longer than most jobs.
pub(crate) const MAX_FILES: usize = 10_000;
/// The most bytes of one artifact (10 GiB): runners' disks and the download of all of them set the limit.
pub(crate) const MAX_BYTES: u64 = 10 << 30;

/// What is gathered, and from where.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The kind.
    pub kind: ArtifactKind,
    /// Folders to gather from, in the workspace; where none is named, those that the kind's results lie in.
    pub from: Vec<PathBuf>,
    /// Where results lie.
    pub places: Places,
    /// When the job was launched, where that is known.
    pub launched: Option<SystemTime>,
    /// The folder that the artifact's folder is made in.
    pub to: PathBuf,
    /// The job's RESULT_FILENAME.
    pub result: String,
    /// The run and its attempt; empty locally.
    pub run: (String, String),
}

/// What was gathered.
#[derive(Debug)]
pub(crate) struct Gathered {
    /// The artifact's name.
    pub name: String,
    /// Its folder.
    pub path: PathBuf,
    /// Its files, as they lie in the folder.
    pub files: Vec<PathBuf>,
    /// Their bytes.
    pub bytes: u64,
    /// Whether an empty one is an error.
    pub required: bool,
    /// What was refused.
    pub problems: Problems,
    /// What is worth a look.
    pub warnings: Vec<Problem>,
}

/// One folder with its allowed files.
struct Set {
    folder: PathBuf,
    found: Found,
    /// The metadata that replaces what its writer got wrong.
    described: Option<MetaEnv>,
}

/// Gathers an artifact. Files are copied, for later steps read them where they lie, and logs without secrets; a file that is refused keeps the
/// others from nothing, but a set of another job is refused whole.
///
/// # Errors
/// A kind that the job has no results of, an artifact that is there already, a folder outside the workspace, a set
/// of another job, or too much of it: nothing is gathered.
pub(crate) fn gather(request: &Request, envelope: &Envelope) -> Result<Gathered, Problems> {
    let kind = request.kind;
    if !ArtifactKind::of(&envelope.row).contains(&kind) {
        let message = format!(
            "the job `{}` has no results of kind `{}`",
            envelope.name,
            kind.prefix(false)
        );
        return Err(Problem::file("", message)
            .hint("leave the step out, or look at the job's mode")
            .into());
    }
    let name = names::artifact(kind, envelope);
    if !is_legal_artifact(&name) {
        return Err(Problem::file("", format!("`{name}` cannot name an artifact")).into());
    }
    let mut gathered = Gathered {
        path: request.to.join(&name),
        name,
        files: Vec::new(),
        bytes: 0,
        required: is_required(kind, envelope),
        problems: Problems::default(),
        warnings: Vec::new(),
    };
    let mut sets = sets(request, envelope)?;
    if kind == ArtifactKind::Eval {
        sets = own_set(sets, envelope, request, &mut gathered.warnings)?;
    }
    within_limits(&sets)?;
    let looked_in: Vec<String> = sets.iter().map(|set| stage::shown(&set.folder)).collect();
    let is_new = !request.to.exists();
    make_folder(&gathered.path, &request.to)?;
    let mask = Mask::of_environment();
    for set in sets {
        gathered.problems.extend(Problems(set.found.refused));
        for file in &set.found.files {
            let copied = match &set.described {
                Some(meta) if file.file_name() == Some(meta::NAME.as_ref()) => {
                    meta.write(&gathered.path).map(|()| gathered.path.join(meta::NAME))
                }
                _ => copy(file, &set.folder, &gathered.path, &mask),
            };
            match copied {
                Ok(target) => {
                    gathered.bytes += target.metadata().map_or(0, |m| m.len());
                    gathered.files.push(target);
                }
                Err(error) => gathered.problems.push(Problem::file(
                    &stage::shown(file),
                    format!("the file cannot be gathered: {error}"),
                )),
            }
        }
    }
    if gathered.required && gathered.files.is_empty() {
        let problem = nothing(request, &gathered.name, &looked_in);
        gathered.problems.push(problem);
    }
    if gathered.files.is_empty() && !gathered.problems.0.is_empty() {
        // Only an empty folder can be removed so.
        let _ = std::fs::remove_dir(&gathered.path);
        if is_new {
            let _ = std::fs::remove_dir(&request.to);
        }
    }
    Ok(gathered)
}

/// That a job left nothing of what it had to, and what was looked for.
fn nothing(request: &Request, name: &str, looked_in: &[String]) -> Problem {
    let globs = stage::allowed(request.kind, &request.result);
    let folders = match looked_in {
        [] => "a folder that is there".to_owned(),
        folders => folders.join(", "),
    };
    let message = format!(
        "there is nothing to upload as `{name}`: no {} in {folders}",
        globs.join(", ")
    );
    let hint = match request.kind {
        ArtifactKind::Bmk | ArtifactKind::BmkAgentic => {
            "the job's own step says why it left no results; they are named by RESULT_FILENAME, else by the job and its \
             runner: --runner-name or RUNNER_NAME"
        }
        _ => "the job's own step says why it left no results",
    };
    Problem::file("", message).hint(hint)
}

/// Whether a job of a row fails without an artifact. Logs and metrics may be missing where a job ended early.
fn is_required(kind: ArtifactKind, envelope: &Envelope) -> bool {
    match kind {
        ArtifactKind::Eval => envelope.row.eval.eval_only,
        ArtifactKind::Bmk | ArtifactKind::BmkAgentic | ArtifactKind::Agentic => true,
        ArtifactKind::ServerLogs | ArtifactKind::GpuMetrics => false,
    }
}

/// The folders that are looked into, each with its files.
fn sets(request: &Request, envelope: &Envelope) -> Result<Vec<Set>, Problems> {
    let mut problems = Problems::default();
    let mut folders = Vec::new();
    let named = !request.from.is_empty();
    for folder in if named {
        request.from.clone()
    } else {
        usual(request, envelope)
    } {
        match inside(&folder, request) {
            Ok(Some(folder)) if !folders.contains(&folder) => folders.push(folder),
            Ok(_) => {}
            Err(problem) => problems.push(problem),
        }
    }
    problems.into_result()?;
    let globs = stage::allowed(request.kind, &request.result);
    let deep = request.kind == ArtifactKind::Agentic;
    let set = |folder: PathBuf| {
        let mut globs = globs.clone();
        if request.kind == ArtifactKind::ServerLogs && folder.ends_with(places::SCRIPTS_FOLDER) {
            globs.push(SERVER_CONFIG.to_owned());
        }
        let mut found = stage::find(&folder, &globs, deep);
        // Beside the metadata alone: a repository may use these names itself.
        if request.kind == ArtifactKind::Eval
            && envelope.row.benchmark().is_some()
            && found.files.contains(&folder.join(meta::NAME))
        {
            let left = stage::of_benchmark(&folder);
            found.files.extend(left.files);
            found.refused.extend(left.refused);
        }
        if deep {
            let left_out = |file: &Path| {
                AGENTIC_LEFT_OUT
                    .iter()
                    .any(|name| file.file_name() == Some(name.as_ref()))
            };
            found.files.retain(|file| !left_out(file));
            found.refused.retain(|problem| !left_out(Path::new(&problem.file)));
        }
        Set {
            folder,
            found,
            described: None,
        }
    };
    Ok(folders.into_iter().map(set).collect())
}

/// Where a kind's results lie; on one node scripts write logs and metrics beside their replays too.
fn usual(request: &Request, envelope: &Envelope) -> Vec<PathBuf> {
    let places = &request.places;
    let nodes = envelope.row.node_kind();
    match request.kind {
        ArtifactKind::Agentic => places.replays(nodes),
        ArtifactKind::Eval => places.evals(request.launched),
        ArtifactKind::ServerLogs | ArtifactKind::GpuMetrics if nodes == NodeKind::Single => {
            vec![places.workspace.clone(), places.workspace.join(places::SCRIPTS_FOLDER)]
        }
        _ => vec![places.workspace.clone()],
    }
}

/// A folder without links, if it is there; it must lie in the workspace or where Slurm jobs write.
fn inside(folder: &Path, request: &Request) -> Result<Option<PathBuf>, Problem> {
    let Ok(real) = std::fs::canonicalize(folder) else {
        return Ok(None);
    };
    let Places {
        workspace,
        logs,
        run_logs,
    } = &request.places;
    let roots = [workspace, logs, run_logs];
    let mut roots = roots.iter().filter_map(|root| std::fs::canonicalize(root).ok());
    if roots.any(|root| real.starts_with(root)) {
        return Ok(Some(real));
    }
    let message = format!(
        "`{}` lies outside the workspace {}",
        real.display(),
        workspace.display()
    );
    Err(Problem::file(&folder.display().to_string(), message).hint("gather from folders of the workspace"))
}

/// The one set that is this job's: folders of earlier jobs may still be there on a runner that stays.
fn own_set(
    sets: Vec<Set>,
    envelope: &Envelope,
    request: &Request,
    warnings: &mut Vec<Problem>,
) -> Result<Vec<Set>, Problems> {
    let mut foreign = Problems::default();
    let mut own: Option<Set> = None;
    for mut set in sets {
        if set.found.files.is_empty() && set.found.refused.is_empty() {
            continue;
        }
        match whose(&mut set, envelope, request) {
            Ok(notices) => {
                warnings.extend(notices);
                if let Some(first) = &own {
                    let message = format!(
                        "its results are left out: those in {} come first",
                        first.folder.display()
                    );
                    warnings.push(Problem::file(&stage::shown(&set.folder), message));
                } else {
                    own = Some(set);
                }
            }
            Err(problem) => foreign.push(problem),
        }
    }
    match own {
        Some(own) => {
            warnings.extend(foreign.0);
            Ok(vec![own])
        }
        None => foreign.into_result().map(|()| Vec::new()),
    }
}

/// Whether a set is the job's by its `meta_env.json`, and what is worth a notice; without one nothing says so. Metadata
/// whose writer got fields wrong is written anew.
fn whose(set: &mut Set, envelope: &Envelope, request: &Request) -> Result<Option<Problem>, Problem> {
    let file = set.folder.join(meta::NAME);
    let name = stage::shown(&file);
    if !set.found.files.contains(&file) {
        let problem = Problem::file(&name, "results without it cannot be told from another job's");
        return Ok(Some(problem));
    }
    let found = MetaEnv::read(&file).map_err(|reason| Problem::file(&name, format!("{name} {reason}")))?;
    let run = (request.run.0.as_str(), request.run.1.as_str());
    let younger = request.launched.and_then(|launched| {
        let metadata = file.symlink_metadata().ok()?;
        Some(places::is_younger(&metadata, launched))
    });
    match found.owner(envelope, run, younger) {
        Owner::Job => Ok(None),
        Owner::JobMisdescribed(wrong) => {
            set.described = Some(meta_env::anew(envelope, run, &found));
            let message = format!("it is written anew from the envelope: {}", meta::sentences(&wrong));
            Ok(Some(Problem::file(&name, message)))
        }
        Owner::Other(why) => {
            let message = format!("these are the results of another job: {}", meta::sentences(&why));
            Err(Problem::file(&name, message).hint("clean the workspace before each job: `sweepctl clean`"))
        }
    }
}

fn within_limits(sets: &[Set]) -> Result<(), Problem> {
    let files = sets.iter().flat_map(|set| &set.found.files);
    let (mut count, mut bytes) = (0, 0_u64);
    for file in files {
        count += 1;
        bytes = bytes.saturating_add(file.symlink_metadata().map_or(0, |m| m.len()));
    }
    if count > MAX_FILES || bytes > MAX_BYTES {
        let message = format!("{count} files of {bytes} bytes are more than {MAX_FILES} files or {MAX_BYTES} bytes");
        return Err(Problem::file("", message).hint("gather from a narrower folder with --from"));
    }
    Ok(())
}

/// Makes the artifact's folder; one that is there is an upload of the same name.
fn make_folder(path: &Path, parent: &Path) -> Result<(), Problem> {
    std::fs::create_dir_all(parent)
        .and_then(|()| std::fs::create_dir(path))
        .map_err(|error| {
            let name = path.display().to_string();
            if error.kind() == std::io::ErrorKind::AlreadyExists {
                return Problem::file(
                    &name,
                    "an artifact of this name was gathered before; artifacts are immutable",
                )
                .hint("gather each kind once a job");
            }
            Problem::file(&name, format!("the folder cannot be made: {error}"))
        })
}

/// Copies a file to where it lay in its folder, every part of the path under a name that uploads take.
fn copy(file: &Path, folder: &Path, to: &Path, mask: &Mask) -> std::io::Result<PathBuf> {
    let relative = file.strip_prefix(folder).map_err(std::io::Error::other)?;
    let parts: Vec<String> = relative
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(stage::uploadable(&name.to_string_lossy())),
            _ => None,
        })
        .collect();
    let Some((name, folders)) = parts.split_last() else {
        return Err(std::io::Error::other("the file has no name"));
    };
    let target = to.join(folders.iter().collect::<PathBuf>());
    std::fs::create_dir_all(&target)?;
    logs::copy_into(file, &target, name, mask)
}
