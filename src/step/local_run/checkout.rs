//! The checkout of a job whose launch script is the repository's own: what git tracks, as it stands in the work tree.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use git2::{IndexEntry, Repository};

/// Copies the tracked files of the repository that `from` lies in to a folder, changes that are not committed included.
/// A file that was removed is left out, and a link stays a link.
///
/// # Errors
/// No repository, and files that cannot be copied.
pub(super) fn lay(from: &Path, to: &Path) -> io::Result<()> {
    let failed = |error: git2::Error| io::Error::other(format!("the repository cannot be read: {}", error.message()));
    let repository = Repository::discover(from).map_err(failed)?;
    let Some(root) = repository.workdir() else {
        return Err(io::Error::other("the repository has no work tree"));
    };
    let index = repository.index().map_err(failed)?;
    for path in index.iter().filter_map(path) {
        copy(&root.join(&path), &to.join(&path))?;
    }
    Ok(())
}

/// The path of an entry; a file that leads elsewhere is none of the checkout's.
fn path(entry: IndexEntry) -> Option<PathBuf> {
    let path = PathBuf::from(OsString::from_vec(entry.path));
    let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    is_inside.then_some(path)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let metadata = match from.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(()),
        Err(error) => return Err(error),
    };
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder)?;
    }
    if metadata.is_symlink() {
        return symlink(std::fs::read_link(from)?, to);
    }
    // A folder stands for a submodule, or in place of a file that is no longer there.
    if metadata.is_file() {
        std::fs::copy(from, to)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_tracks_is_copied_as_it_stands() {
        let (from, to) = (
            tempfile::tempdir().expect("a folder"),
            tempfile::tempdir().expect("a folder"),
        );
        let repository = Repository::init(from.path()).expect("a repository");
        std::fs::create_dir(from.path().join("a")).expect("a folder");
        for name in ["a/script.sh", "gone", "untracked"] {
            std::fs::write(from.path().join(name), name).expect("a file");
        }
        symlink("/nowhere", from.path().join("link")).expect("a link");
        let mut index = repository.index().expect("an index");
        for name in ["a/script.sh", "gone", "link"] {
            index.add_path(Path::new(name)).expect("an entry");
        }
        index.write().expect("it is written");
        std::fs::write(from.path().join("a/script.sh"), "changed").expect("a file");
        std::fs::remove_file(from.path().join("gone")).expect("it goes");
        lay(&from.path().join("a"), to.path()).expect("a checkout");
        assert_eq!(
            std::fs::read_to_string(to.path().join("a/script.sh")).expect("a file"),
            "changed"
        );
        assert_eq!(
            std::fs::read_link(to.path().join("link")).expect("a link"),
            Path::new("/nowhere")
        );
        assert!(!to.path().join("gone").exists() && !to.path().join("untracked").exists());
        let nowhere = tempfile::tempdir().expect("a folder");
        assert!(lay(nowhere.path(), to.path()).is_err());
    }
}
