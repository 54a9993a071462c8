//! Gathering what the jobs of a sweep left: every set, every aggregate, and what of the plan did not arrive.
//!
//! What cannot be read loses only itself, and is said. Folders are read side by side.

mod asked;
mod attempts;
pub(crate) mod eval_row;
pub mod evals;
mod keys;
pub(crate) mod ledger;
pub(crate) mod reused;
pub(crate) mod summary;
pub mod throughput;

use std::path::Path;

use super::results::file;
use crate::artifacts::folder;
use crate::config::problem::Problem;

/// Hex digits of a job's id.
const ID_DIGITS: usize = 12;

/// How published files name a file under `root`: as `root` was named, but never by a machine's own folders.
fn source(root: &Path, path: &Path) -> String {
    let rest = path.strip_prefix(root).unwrap_or(path);
    if root.is_absolute() {
        let name = Path::new(root.file_name().unwrap_or_default());
        return file::shown(&name.join(rest));
    }
    file::shown(&root.join(rest))
}

/// The id of the job whose artifact a path lies in: the names of artifacts end in it.
fn job_in_path(root: &Path, path: &Path) -> Option<String> {
    let rest = path.strip_prefix(root.parent().unwrap_or(root)).ok()?;
    rest.components().rev().find_map(|part| {
        let part = part.as_os_str().to_str()?;
        let (_, id) = part.rsplit_once('_')?;
        let is_id = id.len() == ID_DIGITS && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        is_id.then(|| id.to_owned())
    })
}

/// Every folder under the root, and those that could not be searched; none where there is no such folder, as after a
/// download of nothing. What `fetch` has on its way there is no result yet.
pub(super) fn folders(root: &Path) -> Result<(Vec<file::Folder>, Vec<Problem>), Problem> {
    let coming = root.join(folder::WORK);
    match file::search(root, file::MAX_DEPTH) {
        Ok(mut found) => {
            found.folders.retain(|folder| !folder.path.starts_with(&coming));
            let unseen = found.unseen.iter().map(|(path, error)| unseen(root, path, error));
            Ok((found.folders, unseen.collect()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Default::default()),
        Err(error) => {
            let name = file::shown(root);
            Err(Problem::file(&name, format!("{name} cannot be searched: {error}"))
                .hint("name the folder that the artifacts were downloaded to"))
        }
    }
}

/// A folder that loses what is in it, and nothing else.
fn unseen(root: &Path, path: &Path, error: &std::io::Error) -> Problem {
    let name = source(root, path);
    Problem::file(&name, format!("{name} cannot be searched: {error}"))
        .hint("what is in it does not count: look at what that artifact holds")
}

/// A result that cannot be read, under the name that it is shown by; `reason` is the end of a sentence about it.
fn unread(name: &str, path: &Path, reason: &str) -> Problem {
    let hint = file::way_out(path, file::MAX_BYTES).unwrap_or("see the log of its eval");
    Problem::file(name, format!("{name} {reason}")).hint(hint)
}
