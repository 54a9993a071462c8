//! Cleaning the folders that scripts and launchers write replays to. Their names are common ones, and a checkout may own
//! files there: what git tracks stays, and a `results/` without a replay loses only what has the name of a job's file.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::{Cleaned, tracked};
use crate::config::problem::Problem;
use crate::files::{self, MAX_DEPTH, Walk};
use crate::step::places::{SCRIPTS_FOLDER, SCRIPTS_MULTI_NODE};
use crate::step::replay::files::ARTIFACTS;
use crate::step::stage::{GPU_METRICS, SERVER_CONFIG, SERVER_LOGS, set, shown};

/// The notes that scripts write beside a replay.
const NOTES: [&str; 2] = ["benchmark_command.txt", "agentic_power_timezone_offset.txt"];
/// What the folders of a replay's concurrencies start with.
const POINT: &str = "conc_";

/// Removes what jobs left in those folders. Of an entry that went, wholly or in parts, the path is told.
pub(super) fn clean(workspace: &Path, cleaned: &mut Cleaned) {
    let entries = [left_in_results(workspace), left_in_logs(workspace)].concat();
    if entries.is_empty() {
        return;
    }
    let tracked = match tracked::files(workspace, &[SCRIPTS_FOLDER, "LOGS"]) {
        Ok(tracked) => tracked,
        Err(problem) => return cleaned.problems.push(problem),
    };
    for entry in entries {
        match remove(&entry, workspace, &tracked) {
            Ok(true) => cleaned.removed.push(entry),
            Ok(false) => {}
            Err(error) => {
                let problem = Problem::file(&shown(&entry), format!("it cannot be removed: {error}"));
                let hint = "a container wrote it as another user: remove it there";
                cleaned.problems.push(problem.hint(hint));
            }
        }
    }
}

/// What a job left in `results/`: all of it where a replay wrote there, else what has such a name.
fn left_in_results(workspace: &Path) -> Vec<PathBuf> {
    let entries = match entries(workspace, SCRIPTS_FOLDER) {
        Entries::Link(link) => return vec![link],
        Entries::Of(entries) => entries,
    };
    let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_dir());
    let is_replay = |entry: &PathBuf| {
        let name = entry.file_name().unwrap_or_default().to_string_lossy();
        name == ARTIFACTS || (name.starts_with(POINT) && is_folder(&entry.join(ARTIFACTS)))
    };
    if entries.iter().any(is_replay) {
        return entries;
    }
    let named = set(&[&SERVER_LOGS[..], &[SERVER_CONFIG], &GPU_METRICS, &NOTES].concat());
    let has_name = |entry: &PathBuf| !is_folder(entry) && named.is_match(entry.file_name().unwrap_or_default());
    entries.into_iter().filter(has_name).collect()
}

/// What a launcher left in `LOGS/agentic/`, which has no other use.
fn left_in_logs(workspace: &Path) -> Vec<PathBuf> {
    match entries(workspace, SCRIPTS_MULTI_NODE) {
        Entries::Link(link) => vec![link],
        Entries::Of(entries) => entries,
    }
}

/// What a folder holds, or the link on the way to it, behind which nothing is looked for.
enum Entries {
    Link(PathBuf),
    Of(Vec<PathBuf>),
}

fn entries(workspace: &Path, folder: &str) -> Entries {
    let mut at = workspace.to_owned();
    for part in folder.split('/') {
        at.push(part);
        if at.is_symlink() {
            return Entries::Link(at);
        }
    }
    let read = std::fs::read_dir(&at).into_iter().flatten();
    let mut paths: Vec<PathBuf> = read.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Entries::Of(paths)
}

/// Removes a file, a link, or a folder with what git does not track in it; whether anything went.
fn remove(entry: &Path, workspace: &Path, tracked: &HashSet<PathBuf>) -> std::io::Result<bool> {
    let stays = |path: &Path| {
        path.strip_prefix(workspace)
            .is_ok_and(|relative| tracked.contains(relative))
    };
    if !entry.symlink_metadata()?.is_dir() {
        if stays(entry) {
            return Ok(false);
        }
        return std::fs::remove_file(entry).map(|()| true);
    }
    let relative = entry.strip_prefix(workspace).unwrap_or(entry);
    if !tracked.iter().any(|path| path.starts_with(relative)) {
        return std::fs::remove_dir_all(entry).map(|()| true);
    }
    let Walk { folders, unseen } = files::search(entry, MAX_DEPTH)?;
    if let Some((_, error)) = unseen.into_iter().next() {
        return Err(error);
    }
    let mut removed = false;
    // The deepest first, so that a folder is empty once its own are gone.
    for folder in folders.iter().rev() {
        for name in &folder.names {
            let path = folder.path.join(name);
            if !stays(&path) {
                std::fs::remove_file(path)?;
                removed = true;
            }
        }
        // Only an empty folder can be removed so; those of tracked files are not.
        removed |= std::fs::remove_dir(&folder.path).is_ok();
    }
    Ok(removed)
}
