//! Files from other machines: bounded, regular, found without following links, written whole or not at all.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

/// The largest JSON file that is read whole, in bytes (256 MiB): a result of ten thousand tasks stays far under it.
pub const MAX_BYTES: u64 = 256 << 20;
/// How many folders deep a search goes; a deeper tree is no artifact.
pub const MAX_DEPTH: usize = 64;

/// Opens a regular file for reading. A link is refused, and a pipe or a device does not block.
///
/// # Errors
/// As [`File::open`], and anything that is no regular file.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path);
    let file = file.map_err(|error| match error.raw_os_error() {
        Some(code) if code == nix::errno::Errno::ELOOP as i32 => {
            io::Error::other("it is a link, and links are refused")
        }
        _ => error,
    })?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    Ok(file)
}

/// The bytes of a regular file of at most [`MAX_BYTES`].
///
/// # Errors
/// As [`open`], and a larger file.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("it is larger than {} MiB", MAX_BYTES >> 20)));
    }
    Ok(bytes)
}

/// Writes a file beside its place and renames it there: readers see the old one or the new one.
///
/// # Errors
/// A folder that cannot be created or written.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::Builder::new().prefix(".sweepctl-").tempfile_in(folder)?;
    file.write_all(bytes)?;
    // Later steps may run as another user: a temporary file is its owner's alone, a result is everyone's to read.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    file.as_file().set_permissions(mode)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// A folder, and the names of what it holds besides folders; links are among the names, and nothing is behind them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// Its path, starting with the searched root.
    pub path: PathBuf,
    /// Sorted names.
    pub names: Vec<OsString>,
}

impl Folder {
    /// Whether a name is among them.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.names.iter().any(|n| n == OsStr::new(name))
    }

    /// The names that start and end so.
    pub fn named<'a>(&'a self, start: &'a str, end: &'a str) -> impl Iterator<Item = &'a OsString> {
        self.names.iter().filter(move |name| {
            let name = name.as_encoded_bytes();
            name.len() >= start.len() + end.len()
                && name.starts_with(start.as_bytes())
                && name.ends_with(end.as_bytes())
        })
    }
}

/// Every folder under a root, the root first, in the order of their paths, down to `depth` folders below it.
///
/// # Errors
/// A root that cannot be read, and with it a folder that cannot be listed.
pub fn walk(root: &Path, depth: usize) -> io::Result<Vec<Folder>> {
    let mut folders = Vec::new();
    let mut pending = vec![(root.to_owned(), 0)];
    while let Some((path, level)) = pending.pop() {
        let mut folder = Folder {
            path,
            names: Vec::new(),
        };
        for entry in std::fs::read_dir(&folder.path)? {
            let entry = entry?;
            // The type of the entry itself: a link to a folder is a link.
            if !entry.file_type()?.is_dir() {
                folder.names.push(entry.file_name());
            } else if level < depth {
                pending.push((folder.path.join(entry.file_name()), level + 1));
            }
        }
        folder.names.sort();
        folders.push(folder);
    }
    folders.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(folders)
}

/// A path for people, and for published files: without a leading `./`.
#[must_use]
pub fn shown(path: &Path) -> String {
    let text = path.to_string_lossy();
    text.strip_prefix("./").unwrap_or(&text).to_owned()
}
