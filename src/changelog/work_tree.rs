//! The changelog in the work tree: read without following links, written whole or not at all.

use std::fs::{self, Permissions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use crate::config::problem::Problem;
use crate::config::source::Source;
use crate::findings::files;
use crate::repo::CHANGELOG;

/// Reads the changelog of a work tree.
///
/// # Errors
/// A file that is missing or no plain file, and text that [`Source`] refuses.
pub(crate) fn read(root: &Path) -> Result<Arc<Source>, Problem> {
    let path = root.join(CHANGELOG);
    plain_file(&path)?;
    Source::read_as(&path, CHANGELOG).map(Arc::new)
}

/// Replaces the changelog of a work tree, with the file's permissions; a reader sees the old text or the new one.
///
/// # Errors
/// A folder that cannot be written, and a path that is no plain file.
pub(crate) fn replace(root: &Path, text: &str) -> Result<(), Problem> {
    let path = root.join(CHANGELOG);
    if fs::symlink_metadata(&path).is_ok() {
        plain_file(&path)?;
    }
    write(root, &path, text).map_err(|error| {
        files::UNREADABLE
            .file(CHANGELOG, format!("`{CHANGELOG}` cannot be written: {error}"))
            .hint("nothing was changed; check the folder's permissions and the free space")
    })
}

fn write(root: &Path, path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(root)?;
    file.write_all(text.as_bytes())?;
    file.as_file().set_permissions(permissions(path))?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

fn permissions(path: &Path) -> Permissions {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).map_or_else(|_| Permissions::from_mode(0o644), |metadata| metadata.permissions())
}

fn plain_file(path: &Path) -> Result<(), Problem> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(files::NOT_REGULAR
            .file(CHANGELOG, format!("`{CHANGELOG}` is no plain file"))
            .hint("replace the link or folder by the file itself")),
        // What is missing is told by who reads it.
        _ => Ok(()),
    }
}
