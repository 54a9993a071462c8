//! What may leave a job: allow-lists of file names, and the only ways in which files are moved and copied.
//!
//! The files come from containers and from programs that read model output: a link or a special file is never
//! followed, opened for long or carried along, and no file ever replaces another.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use nix::fcntl::OFlag;

use crate::config::problem::Problem;
use crate::matrix::names::{ArtifactKind, is_illegal};

/// The files of an eval.
pub const EVAL: [&str; 10] = [
    "meta_env.json",
    "results*.json",
    "sample*.jsonl",
    "agent_preds.json",
    "predictions.jsonl",
    "swebench_report_*.json",
    "*_report.json",
    "*_results.jsonl",
    "*_artifacts.tar.gz",
    "*.traj*",
];
/// The logs of a server and of what schedules it.
pub const SERVER_LOGS: [&str; 6] = [
    "*.log",
    "*.log.gz",
    "*.out",
    "*.err",
    "*server_logs*.tar.gz",
    "*server_logs*.zip",
];
/// What was measured of the GPUs.
pub const GPU_METRICS: [&str; 5] = [
    "gpu_metrics*.csv",
    "gpu_metrics*.json*",
    "*_energy_start.csv",
    "*_energy_end.csv",
    "*_identity.json",
];
/// Throughput results of any job, by the form of their names.
pub const ANY_RESULT: [&str; 2] = ["agg_*.json", "*_disagg-*_spec-*_conc*.json"];
/// What agentic raw results leave out: inputs repeat the corpus, and raw exports are as large as the run is long.
pub const AGENTIC_LEFT_OUT: [&str; 2] = ["inputs.json", "profile_export_raw.jsonl"];
/// The folder that scripts on one node write to, in the workspace: raw results, a server's logs and settings.
pub const RESULTS_FOLDER: &str = "results";
/// The folder that launchers of many nodes bring raw results to, in the workspace.
pub const LOGS_AGENTIC_FOLDER: &str = "LOGS/agentic";
/// A server's settings, in [`RESULTS_FOLDER`].
pub const SERVER_CONFIG: &str = "*_config.json";
/// The folder of agentic raw results, in the workspace.
pub const AGENTIC_FOLDER: &str = "agentic_results";

/// The longest file name, in bytes.
const MAX_NAME: usize = 255;
/// How deep results may lie.
const MAX_DEPTH: usize = 16;

/// The names of a kind's files; `result` is the job's RESULT_FILENAME. Agentic raw results are a whole folder.
#[must_use]
pub fn allowed(kind: ArtifactKind, result: &str) -> Vec<String> {
    let own = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect();
    match kind {
        ArtifactKind::Eval => own(&EVAL),
        ArtifactKind::ServerLogs => own(&SERVER_LOGS),
        ArtifactKind::GpuMetrics => own(&GPU_METRICS),
        ArtifactKind::Agentic => own(&["*"]),
        ArtifactKind::Bmk | ArtifactKind::BmkAgentic => {
            let result = globset::escape(result);
            ["", "agg_"]
                .iter()
                .flat_map(|start| ["", "_*"].map(|end| format!("{start}{result}{end}.json")))
                .collect()
        }
    }
}

/// Files whose names are allowed, and those of them that are refused.
#[derive(Debug, Default)]
pub struct Found {
    /// Plain files, sorted.
    pub files: Vec<PathBuf>,
    /// Links, special files, names that are not UTF-8, and folders that could not be looked into.
    pub refused: Vec<Problem>,
}

/// The files of a folder whose names a list of globs allows; with `deep` those of its folders too. A folder that does
/// not exist holds none.
#[must_use]
pub fn find<S: AsRef<str>>(folder: &Path, globs: &[S], deep: bool) -> Found {
    let mut found = Found::default();
    let depth = if deep { MAX_DEPTH } else { 0 };
    walk(folder, &set(globs), (depth, deep), &mut found);
    found.files.sort();
    found
}

/// Globs as one set. Those of the lists are valid, and a result's name is escaped; one that is not allows nothing.
pub(super) fn set<S: AsRef<str>>(globs: &[S]) -> GlobSet {
    let mut builder = GlobSetBuilder::new();
    for glob in globs {
        if let Ok(glob) = GlobBuilder::new(glob.as_ref()).literal_separator(true).build() {
            builder.add(glob);
        }
    }
    builder.build().unwrap_or_default()
}

/// `(depth, deep)`: how many folders below this one are looked into, and whether more of them are a loss.
fn walk(folder: &Path, allowed: &GlobSet, (depth, deep): (usize, bool), found: &mut Found) {
    let unread = |error: std::io::Error| {
        let message = format!("the folder cannot be read, so what it holds is left out: {error}");
        Problem::file(&shown(folder), message).hint("a container wrote it as another user: make it readable there")
    };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => return found.refused.push(unread(error)),
    };
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => return found.refused.push(unread(error)),
        };
        let path = entry.path();
        let Ok(metadata) = path.symlink_metadata() else {
            continue;
        };
        if metadata.is_dir() {
            if depth > 0 {
                walk(&path, allowed, (depth - 1, deep), found);
            } else if deep {
                let message = format!("the folder lies more than {MAX_DEPTH} folders deep, so it is left out");
                let problem = Problem::file(&shown(&path), message);
                found.refused.push(problem.hint("write results less deep"));
            }
            continue;
        }
        if !allowed.is_match(entry.file_name()) {
            continue;
        }
        match refusal(&metadata, &path) {
            Some(problem) => found.refused.push(problem),
            None => found.files.push(path),
        }
    }
}

fn refusal(metadata: &std::fs::Metadata, path: &Path) -> Option<Problem> {
    let refuse = |why: &str| {
        let problem = Problem::file(&shown(path), format!("the artifact file is {why}"));
        Some(problem.hint("write a plain file of that name"))
    };
    if path.file_name().is_none_or(|name| name.to_str().is_none()) {
        return refuse("named in something other than UTF-8");
    }
    if metadata.is_symlink() {
        return refuse("a symbolic link, which could show any file of this machine");
    }
    if !metadata.is_file() {
        return refuse("a special file");
    }
    if metadata.nlink() > 1 {
        return refuse("a hard link, which could show any file of this machine");
    }
    None
}

/// Moves a plain file into a folder under a name, or the first free `<name>_2`, `<name>_3` ... It is there whole or
/// not at all.
///
/// # Errors
/// A file that is no plain one any more, or a folder that cannot be written.
pub fn move_into(file: &Path, folder: &Path, name: &str) -> io::Result<PathBuf> {
    for target in free_names(folder, name) {
        // A hard link is the one rename that never replaces a file.
        match std::fs::hard_link(file, &target) {
            Ok(()) => {
                std::fs::remove_file(file)?;
                let metadata = target.symlink_metadata()?;
                if let Some(problem) = refusal(&metadata, &target) {
                    std::fs::remove_file(&target)?;
                    return Err(io::Error::other(problem.message));
                }
                return Ok(target);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(error),
            // Another file system, or one without links.
            Err(_) => {
                let target = copy_into(file, folder, name)?;
                std::fs::remove_file(file)?;
                return Ok(target);
            }
        }
    }
    Err(io::Error::other(format!("`{name}` is taken too often")))
}

/// Copies a plain file into a folder, as [`move_into`] moves it.
///
/// # Errors
/// As [`move_into`].
pub fn copy_into(file: &Path, folder: &Path, name: &str) -> io::Result<PathBuf> {
    let mut from = open(file)?;
    write_into(folder, name, |copy| io::copy(&mut from, copy).map(drop))
}

/// Writes a file into a folder under a name, as [`move_into`] moves one.
///
/// # Errors
/// As [`move_into`], and what `write` reports.
pub fn write_into(folder: &Path, name: &str, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<PathBuf> {
    let mut copy = tempfile::Builder::new().prefix(".sweepctl-").tempfile_in(folder)?;
    write(copy.as_file_mut())?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    copy.as_file().set_permissions(mode)?;
    for target in free_names(folder, name) {
        match copy.persist_noclobber(&target) {
            Ok(_) => return Ok(target),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => copy = error.file,
            Err(error) => return Err(error.error),
        }
    }
    Err(io::Error::other(format!("`{name}` is taken too often")))
}

/// Opens a plain file, and nothing else: a link is not followed, and a pipe is not waited for.
///
/// # Errors
/// As [`File::open`], and anything but a plain file.
pub fn open(file: &Path) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits()).open(file)?;
    match refusal(&opened.metadata()?, file) {
        None => Ok(opened),
        Some(problem) => Err(io::Error::other(problem.message)),
    }
}

/// `<name>`, `<name>_2` ... in a folder.
fn free_names(folder: &Path, name: &str) -> impl Iterator<Item = PathBuf> {
    const TRIES: usize = 1000;
    let numbered = (2..=TRIES).map(|n| suffixed(name, &format!("_{n}")));
    std::iter::once(suffixed(name, ""))
        .chain(numbered)
        .map(|name| folder.join(name))
}

/// A name with a suffix before its extension. A name that gets too long for a file loses the end of its stem.
#[must_use]
pub fn suffixed(name: &str, suffix: &str) -> String {
    let (stem, extension) = match name.strip_suffix(".tar.gz") {
        Some(stem) => (stem, ".tar.gz"),
        None => name.split_at(name.rfind('.').filter(|at| *at > 0).unwrap_or(name.len())),
    };
    let room = MAX_NAME.saturating_sub(suffix.len() + extension.len());
    let mut end = stem.len().min(room);
    while !stem.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{suffix}{extension}", &stem[..end])
}

/// A path as messages show it: no name that a container chose starts a line of its own.
#[must_use]
pub fn shown(path: &Path) -> String {
    let text = path.display().to_string();
    let escape = |c: char| {
        if c.is_control() {
            c.escape_default().to_string()
        } else {
            c.to_string()
        }
    };
    text.chars().map(escape).collect()
}

/// A name as artifacts may hold it: what an upload refuses is replaced by `-`.
#[must_use]
pub fn uploadable(name: &str) -> String {
    name.chars().map(|c| if is_illegal(c) { '-' } else { c }).collect()
}
