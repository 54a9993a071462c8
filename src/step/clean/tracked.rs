//! What git tracks in a workspace.

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use git2::{Index, IndexEntry, Repository};

use crate::config::problem::Problem;

/// The files in some folders below `root` that the index of its repository holds, as paths from `root`; none where there
/// is no repository. The index alone is read, so that neither the repository's owner nor its settings matter.
///
/// # Errors
/// An index that cannot be read.
pub(super) fn files(root: &Path, folders: &[&str]) -> Result<HashSet<PathBuf>, Problem> {
    let failed = |reason: String| {
        let name = root.display().to_string();
        let message = format!("what git tracks in {name} cannot be read: {reason}");
        Problem::file(&name, message).hint("check the repository out anew, or remove its results by hand")
    };
    let absolute = root.canonicalize().map_err(|error| failed(error.to_string()))?;
    let Some(work_tree) = absolute.ancestors().find(|folder| folder.join(".git").exists()) else {
        return Ok(HashSet::new());
    };
    let folder = Repository::discover_path(work_tree, std::iter::empty::<&Path>())
        .map_err(|error| failed(error.message().to_owned()))?;
    let index = Index::open(&folder.join("index")).map_err(|error| failed(error.message().to_owned()))?;
    let below = absolute.strip_prefix(work_tree).unwrap_or(Path::new(""));
    let relative = |entry: IndexEntry| {
        let path = PathBuf::from(OsString::from_vec(entry.path));
        let path = path.strip_prefix(below).ok()?.to_owned();
        folders.iter().any(|folder| path.starts_with(folder)).then_some(path)
    };
    Ok(index.iter().filter_map(relative).collect())
}
