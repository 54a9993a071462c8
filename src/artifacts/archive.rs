//! Unpacking an archive that a stranger made: nothing leaves its folder, and no more arrives than is allowed.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use zip::ZipArchive;
use zip::result::ZipError;

use crate::config::problem::printable;
use crate::files;

/// What one archive may hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Files and folders.
    pub entries: usize,
    /// Bytes, unpacked.
    pub bytes: u64,
}

/// The most of an archive that is read to learn what it holds, in bytes: 10,000 entries with the longest of names stay
/// far under it.
const MAX_DIRECTORY: u64 = 16 << 20;
/// The bits of a mode that say what kind of file it is, and the two kinds that are unpacked.
const KIND: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const FOLDER: u32 = 0o040_000;

/// Unpacks an archive into an empty folder, and gives its files with their sizes. What it says it holds is judged before
/// anything is written.
///
/// # Errors
/// What is wrong with the archive, in a few words, and files that cannot be written.
pub(crate) fn unpack(archive: File, into: &Path, limits: Limits) -> Result<BTreeMap<String, u64>, String> {
    let left = Rc::new(Cell::new(MAX_DIRECTORY));
    let reader = Metered {
        inner: BufReader::new(archive),
        left: Rc::clone(&left),
    };
    let mut archive = ZipArchive::new(reader).map_err(|error| unreadable(&error))?;
    left.set(u64::MAX);
    judge(&mut archive, limits)?;
    let mut written = BTreeMap::new();
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(|error| unreadable(&error))?;
        let name = entry.name().map_err(|error| unreadable(&error))?.into_owned();
        let (is_folder, size) = (entry.is_dir(), entry.size());
        let path = into.join(inside(&name)?);
        let failed = |error: io::Error| format!("`{}` cannot be unpacked: {error}", printable(&name));
        if is_folder {
            std::fs::create_dir_all(&path).map_err(failed)?;
            continue;
        }
        std::fs::create_dir_all(path.parent().unwrap_or(into)).map_err(failed)?;
        let mut file = create(&path, &name)?;
        // One more byte than was said tells an entry that holds more.
        let copied = io::copy(&mut (&mut entry).take(size.saturating_add(1)), &mut file).map_err(failed)?;
        if copied != size {
            return Err(format!("`{}` holds something else than it says", printable(&name)));
        }
        written.insert(name, size);
    }
    Ok(written)
}

/// Holds what an archive says that it holds against the limits.
fn judge<R: Read + Seek>(archive: &mut ZipArchive<R>, limits: Limits) -> Result<(), String> {
    if archive.len() > limits.entries {
        return Err(format!("it holds more than {} files", limits.entries));
    }
    if archive.has_duplicate_names() {
        return Err("it holds a name twice".to_owned());
    }
    let mut bytes: u64 = 0;
    for index in 0..archive.len() {
        let entry = archive.by_index_data(index).map_err(|error| unreadable(&error))?;
        let name = entry.name().map_err(|error| unreadable(&error))?.into_owned();
        inside(&name)?;
        let kind = entry.unix_mode().map(|mode| mode & KIND);
        if !matches!(kind, None | Some(0 | REGULAR | FOLDER)) || entry.is_symlink() {
            return Err(format!("`{}` is a link or a special file", printable(&name)));
        }
        if entry.encrypted() {
            return Err(format!("`{}` is encrypted", printable(&name)));
        }
        bytes = bytes.saturating_add(entry.size());
        if bytes > limits.bytes {
            return Err(format!("it holds more than {} MiB", limits.bytes >> 20));
        }
    }
    Ok(())
}

/// A file that was not there.
fn create(path: &Path, name: &str) -> Result<File, String> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    file.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => format!("`{}` stands in it twice", printable(name)),
        _ => format!("`{}` cannot be unpacked: {error}", printable(name)),
    })
}

/// The path of an entry below the folder; a folder's name ends in `/`.
fn inside(name: &str) -> Result<PathBuf, String> {
    let parts: Vec<&str> = name.strip_suffix('/').unwrap_or(name).split('/').collect();
    let is_bad = |part: &&str| {
        part.is_empty() || *part == "." || *part == ".." || part.contains(['\\', '\0']) || part.len() > files::MAX_NAME
    };
    if parts.len() > files::MAX_DEPTH || parts.iter().any(is_bad) {
        return Err(format!("`{}` is no path inside of it", printable(name)));
    }
    Ok(parts.iter().collect())
}

fn unreadable(error: &ZipError) -> String {
    match error {
        ZipError::Io(error) => format!("it cannot be read: {error}"),
        other => format!("it is no archive that can be read: {}", printable(&other.to_string())),
    }
}

/// A reader that gives so many bytes at most.
struct Metered<R> {
    inner: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        let left = self.left.get().checked_sub(count as u64);
        self.left
            .set(left.ok_or_else(|| io::Error::other("its directory is too large"))?);
        Ok(count)
    }
}

impl<R: Seek> Seek for Metered<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}
