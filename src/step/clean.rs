//! Cleaning a workspace of what an earlier job left, so that nothing of it is uploaded for this one.

mod replays;
mod tracked;

use std::path::{Path, PathBuf};

use super::job_folder;
use super::places::Places;
use super::stage::{ANY_RESULT, EVAL, GPU_METRICS, SERVER_LOGS, set, shown};
use crate::config::problem::{Problem, Problems};

/// The folder in a stage folder that an eval sets older results aside in.
pub(crate) const STALE_FOLDER: &str = "stale";

/// What was cleared, and what could not be.
#[derive(Debug, Default)]
pub(crate) struct Cleaned {
    /// What was removed, sorted.
    pub removed: Vec<PathBuf>,
    /// What stands in the way.
    pub problems: Problems,
}

/// [`clean`], and the job's folder too: nothing of a launch is needed any more.
#[must_use]
pub(crate) fn clean_job(workspace: &Path) -> Cleaned {
    let mut cleaned = clean(workspace);
    let folder = workspace.join(job_folder::FOLDER);
    match job_folder::remove(&folder) {
        Ok(false) => {}
        Ok(true) => cleaned.removed.push(folder),
        Err(error) => {
            let problem = Problem::file(&shown(&folder), format!("it cannot be removed: {error}"));
            cleaned
                .problems
                .push(problem.hint("a container wrote it as another user: remove it there"));
        }
    }
    cleaned.removed.sort();
    cleaned
}

/// Removes from a workspace every file that an upload would gather there, and the folders of raw results. Links are
/// removed, never followed; everything else stays. Of `results/` and `LOGS/agentic/`, which are not ours by their names,
/// files that git tracks stay.
#[must_use]
pub(crate) fn clean(workspace: &Path) -> Cleaned {
    let mut cleaned = Cleaned::default();
    let globs: Vec<&str> = [&EVAL[..], &ANY_RESULT, &SERVER_LOGS, &GPU_METRICS].concat();
    let listed = set(&globs);
    let entries = match std::fs::read_dir(workspace) {
        Ok(entries) => entries,
        Err(error) => {
            let name = workspace.display().to_string();
            let problem = Problem::file(&name, format!("the workspace cannot be read: {error}"));
            cleaned
                .problems
                .push(problem.hint("name the workspace with --workspace"));
            return cleaned;
        }
    };
    let files = entries.flatten().filter(|entry| {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        listed.is_match(entry.file_name()) && !is_folder
    });
    let mut found: Vec<PathBuf> = files.map(|entry| entry.path()).collect();
    found.extend(Places::of(workspace).folders_of_results());
    found.push(workspace.join(STALE_FOLDER));
    for path in found {
        // Of a link only the link goes: the standard library does not follow it.
        let removed = match path.symlink_metadata() {
            Err(_) => continue,
            Ok(metadata) if metadata.is_dir() => std::fs::remove_dir_all(&path),
            Ok(_) => std::fs::remove_file(&path),
        };
        match removed {
            Ok(()) => cleaned.removed.push(path),
            Err(error) => {
                let problem = Problem::file(&shown(&path), format!("it cannot be removed: {error}"));
                cleaned
                    .problems
                    .push(problem.hint("a container wrote it as another user: remove it there"));
            }
        }
    }
    replays::clean(workspace, &mut cleaned);
    cleaned.removed.sort();
    cleaned
}
