//! The one room for files: opened without following links, read within a bound, found with nothing left out in
//! silence, written whole or not at all, and never in another's place.
//!
//! The files come from other machines, from containers, and from programs that read model output.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use rayon::prelude::*;

/// The largest JSON file that is read whole, in bytes (256 MiB): a result of ten thousand tasks stays far under it.
pub const MAX_BYTES: u64 = 256 << 20;
/// How many folders deep a search goes; a deeper tree is no artifact.
pub const MAX_DEPTH: usize = 64;
/// The longest file name, in bytes.
pub const MAX_NAME: usize = 255;

/// Why a file is not read, where nothing went wrong while it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum Refusal {
    #[error("it is a link, and links are refused")]
    Link,
    #[error("it is no regular file")]
    NotRegular,
    #[error("it is larger than {}", limit(*.0))]
    TooLarge(u64),
}

/// A size that a file may have, in words.
fn limit(most: u64) -> String {
    match most < 1 << 20 {
        true => format!("{most} bytes"),
        false => format!("{} MiB", most >> 20),
    }
}

/// The way out where a file of at most so many bytes is not read for what it is, whoever wrote it; `None` where it can be
/// read, or is missing.
#[must_use]
pub fn way_out(path: &Path, most: u64) -> Option<&'static str> {
    let error = match open_sized(path) {
        Ok((_, size)) if size > most => io::Error::other(Refusal::TooLarge(most)),
        Ok(_) => return None,
        Err(error) => error,
    };
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Refusal>()) {
        Some(Refusal::Link) => Some("put the file itself in its place: a link could show any file of this machine"),
        Some(Refusal::NotRegular) => Some("put a regular file in its place, or remove what has its name"),
        Some(Refusal::TooLarge(_)) => Some("no eval writes so much: see what wrote it, and remove it"),
        None if error.kind() == io::ErrorKind::PermissionDenied => {
            Some("let this user read it: see who owns it, its mode, and those of its folder")
        }
        None => None,
    }
}

/// Opens a regular file for reading. A link is refused, and a pipe or a device does not block.
///
/// # Errors
/// As [`File::open`], and anything that is no regular file.
pub fn open(path: &Path) -> io::Result<File> {
    open_sized(path).map(|(file, _)| file)
}

/// [`open`], with the size of the file in bytes.
fn open_sized(path: &Path) -> io::Result<(File, u64)> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path);
    let file = file.map_err(|error| match error.raw_os_error() {
        Some(code) if code == Errno::ELOOP as i32 => io::Error::other(Refusal::Link),
        _ => error,
    })?;
    let metadata = file.metadata()?;
    match metadata.is_file() {
        true => Ok((file, metadata.len())),
        false => Err(io::Error::other(Refusal::NotRegular)),
    }
}

/// Opens a file that may leave this machine: [`open`], and no hard link either.
///
/// # Errors
/// As [`open`], and what [`foreign`] says.
pub fn open_own(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    match foreign(&file.metadata()?, path) {
        None => Ok(file),
        Some(why) => Err(io::Error::other(format!("the file is {why}"))),
    }
}

/// Why a file is not a job's own plain one; `None` where it is.
#[must_use]
pub fn foreign(metadata: &Metadata, path: &Path) -> Option<&'static str> {
    if path.file_name().is_none_or(|name| name.to_str().is_none()) {
        return Some("named in something other than UTF-8");
    }
    if metadata.is_symlink() {
        return Some("a symbolic link, which could show any file of this machine");
    }
    if !metadata.is_file() {
        return Some("a special file");
    }
    (metadata.nlink() > 1).then_some("a hard link, which could show any file of this machine")
}

/// The bytes of a regular file of at most [`MAX_BYTES`].
///
/// # Errors
/// As [`open`], and a larger file.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_up_to(path, MAX_BYTES)
}

/// The bytes of a regular file of at most so many.
///
/// # Errors
/// As [`open`], and a larger file, of which nothing is read.
pub fn read_up_to(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let (file, size) = open_sized(path)?;
    if size > most {
        return Err(io::Error::other(Refusal::TooLarge(most)));
    }
    // It may still grow.
    bounded_into(buffer(size, most), file, most)
}

/// Room for a file and one byte more, so that it takes one read, and another that finds its end.
fn buffer(size: u64, most: u64) -> Vec<u8> {
    Vec::with_capacity(usize::try_from(size.min(most)).unwrap_or(0) + 1)
}

/// The bytes of a file that a person named, up to a number: a link or a pipe is what was asked for.
///
/// # Errors
/// As [`File::open`], and more than that.
pub fn read_named(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    bounded(File::open(path)?, most)
}

/// Everything that a reader gives, up to a number of bytes.
///
/// # Errors
/// As reading, and more than that.
pub fn bounded(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    bounded_into(Vec::new(), from, most)
}

fn bounded_into(mut bytes: Vec<u8>, from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    from.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(Refusal::TooLarge(most)));
    }
    Ok(bytes)
}

/// Writes a file beside its place and renames it there: readers see the old one or the new one.
///
/// # Errors
/// A folder that cannot be created or written.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Empty for a bare name, which is this folder to both calls.
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let file = beside(folder, |file| file.write_all(bytes))?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Writes a file that its user alone reads, as [`write_atomic`] does.
///
/// # Errors
/// As [`write_atomic`].
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    // A temporary file is its owner's alone.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// A temporary file of a folder. Later steps may run as another user: such a file is its owner's alone, and a result
/// is everyone's to read.
fn beside(folder: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix(".sweepctl-").tempfile_in(folder)?;
    write(file.as_file_mut())?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    file.as_file().set_permissions(mode)?;
    Ok(file)
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
                if let Some(why) = foreign(&target.symlink_metadata()?, &target) {
                    std::fs::remove_file(&target)?;
                    return Err(io::Error::other(format!("the file is {why}")));
                }
                return Ok(target);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            // Another file system, or one without links; of a file that is gone the copy says so.
            Err(_) => {
                let target = copy_into(file, folder, name)?;
                std::fs::remove_file(file)?;
                return Ok(target);
            }
        }
    }
    Err(taken(name))
}

/// Copies a plain file into a folder, as [`move_into`] moves it.
///
/// # Errors
/// As [`move_into`].
pub fn copy_into(file: &Path, folder: &Path, name: &str) -> io::Result<PathBuf> {
    let mut from = open_own(file)?;
    write_into(folder, name, |copy| io::copy(&mut from, copy).map(drop))
}

/// Writes a file into a folder under a name, as [`move_into`] moves one.
///
/// # Errors
/// As [`move_into`], and what `write` reports.
pub fn write_into(folder: &Path, name: &str, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<PathBuf> {
    let mut copy = beside(folder, write)?;
    for target in free_names(folder, name) {
        match copy.persist_noclobber(&target) {
            Ok(_) => return Ok(target),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => copy = error.file,
            Err(error) => return Err(error.error),
        }
    }
    Err(taken(name))
}

fn taken(name: &str) -> io::Error {
    io::Error::other(format!("`{name}` is taken too often"))
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

/// What a search found, and where it could not look.
#[derive(Debug, Default)]
pub struct Walk {
    /// Every folder that could be listed, the root first, in the order of their paths.
    pub folders: Vec<Folder>,
    /// Folders that could not be, and those that lie too deep, each with the reason.
    pub unseen: Vec<(PathBuf, io::Error)>,
}

/// Every folder under a root, down to `depth` folders below it. With a depth of 0 only the root is asked for, and the
/// folders in it are none that were missed.
///
/// # Errors
/// A root that cannot be read.
pub fn search(root: &Path, depth: usize) -> io::Result<Walk> {
    let (names, mut pending) = list(root)?;
    let mut walk = Walk::default();
    walk.folders.push(Folder {
        path: root.to_owned(),
        names,
    });
    for _ in 0..depth {
        let mut below = Vec::new();
        for (path, listed) in list_all(std::mem::take(&mut pending)) {
            match listed {
                Ok((names, folders)) => {
                    walk.folders.push(Folder { path, names });
                    below.extend(folders);
                }
                Err(error) => walk.unseen.push((path, error)),
            }
        }
        pending = below;
    }
    if depth > 0 {
        let deep = || io::Error::other(format!("it lies more than {depth} folders deep"));
        walk.unseen.extend(pending.into_iter().map(|folder| (folder, deep())));
    }
    walk.folders.sort_by_cached_key(|folder| by_parts(&folder.path));
    walk.unseen.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(walk)
}

/// From how many folders on it pays to list them side by side.
const MANY: usize = 32;

/// What each folder holds.
fn list_all(folders: Vec<PathBuf>) -> Vec<(PathBuf, io::Result<Listed>)> {
    let listed = |folder: PathBuf| {
        let listed = list(&folder);
        (folder, listed)
    };
    match folders.len() < MANY {
        true => folders.into_iter().map(listed).collect(),
        false => folders.into_par_iter().map(listed).collect(),
    }
}

/// What sorts as a path does, part by part, and compares faster.
fn by_parts(path: &Path) -> Vec<u8> {
    let bytes = path.as_os_str().as_encoded_bytes().iter();
    bytes.map(|byte| if *byte == b'/' { 0 } else { *byte }).collect()
}

/// Every folder under a root, as [`search`] finds them.
///
/// # Errors
/// A root that cannot be read, and with it a folder that cannot be listed or lies too deep.
pub fn walk(root: &Path, depth: usize) -> io::Result<Vec<Folder>> {
    let found = search(root, depth)?;
    match found.unseen.into_iter().next() {
        None => Ok(found.folders),
        Some((path, error)) => Err(io::Error::new(error.kind(), format!("{}: {error}", escaped(&path)))),
    }
}

/// Sorted names of what is no folder, and the paths of folders.
type Listed = (Vec<OsString>, Vec<PathBuf>);

/// What a folder holds. A link to a folder is a link.
fn list(path: &Path) -> io::Result<Listed> {
    let (mut names, mut folders) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => folders.push(entry.path()),
            false => names.push(entry.file_name()),
        }
    }
    names.sort();
    Ok((names, folders))
}

/// A path for people, and for published files: without a leading `./`. Whoever writes it down escapes it.
#[must_use]
pub fn shown(path: &Path) -> String {
    let text = path.to_string_lossy();
    text.strip_prefix("./").unwrap_or(&text).to_owned()
}

/// A path on one line of a log: no name that a container chose starts a line of its own.
#[must_use]
pub fn escaped(path: &Path) -> String {
    let escape = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    path.to_string_lossy().chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_search_could_not_see_is_said() {
        let root = tempfile::tempdir().expect("a folder");
        let deep = root.path().join("a/b/c");
        std::fs::create_dir_all(&deep).expect("folders");
        std::fs::write(deep.join("results.json"), "{}").expect("a file");
        let whole = search(root.path(), 3).expect("a search");
        assert_eq!((whole.folders.len(), whole.unseen.len()), (4, 0));
        assert!(whole.folders[3].has("results.json"));
        let cut = search(root.path(), 2).expect("a search");
        assert_eq!(cut.folders.len(), 3);
        assert_eq!(cut.unseen[0].0, deep);
        let error = walk(root.path(), 2).expect_err("too deep").to_string();
        assert!(error.contains("a/b/c: it lies more than 2 folders deep"), "{error}");
        assert_eq!(search(root.path(), 0).expect("a search").unseen.len(), 0);
    }

    #[test]
    fn any_number_of_folders_stands_in_the_order_of_paths() {
        for count in [2, 2 * MANY] {
            let root = tempfile::tempdir().expect("a folder");
            for at in 0..count {
                for folder in [format!("{at:03}/b"), format!("{at:03}-b"), format!("{at:03}.b/c/d")] {
                    std::fs::create_dir_all(root.path().join(folder)).expect("a folder");
                }
            }
            let found = walk(root.path(), 3).expect("a search").into_iter();
            let paths: Vec<PathBuf> = found.map(|folder| folder.path).collect();
            assert_eq!(paths.len(), 1 + 6 * count);
            assert!(paths.is_sorted(), "{paths:?}");
            let cut = search(root.path(), 2).expect("a search");
            assert_eq!((cut.folders.len(), cut.unseen.len()), (1 + 5 * count, count));
            assert!(cut.unseen.iter().all(|(path, _)| path.ends_with("c/d")));
        }
    }

    #[test]
    fn reading_is_bounded_and_follows_no_link() {
        let root = tempfile::tempdir().expect("a folder");
        let file = root.path().join("a");
        write_atomic(&file, b"12345").expect("a file");
        assert_eq!(bounded(open(&file).expect("a file"), 5).expect("bytes"), b"12345");
        let error = bounded(open(&file).expect("a file"), 4).expect_err("too large");
        assert_eq!(error.to_string(), "it is larger than 4 bytes");
        std::os::unix::fs::symlink(&file, root.path().join("l")).expect("a link");
        std::fs::hard_link(&file, root.path().join("h")).expect("a link");
        assert!(open(&root.path().join("l")).is_err());
        assert!(open(&root.path().join("h")).is_ok());
        assert!(
            open_own(&root.path().join("h"))
                .expect_err("a hard link")
                .to_string()
                .contains("hard link")
        );
        assert!(open(root.path()).is_err(), "a folder");
    }

    #[test]
    fn a_limit_is_said_in_the_unit_that_fits() {
        let said = |most: u64| bounded(std::io::repeat(0), most).expect_err("too large").to_string();
        assert_eq!(said((1 << 20) - 1), "it is larger than 1048575 bytes");
        assert_eq!(said(1 << 20), "it is larger than 1 MiB");
    }

    #[test]
    fn what_is_taken_is_not_replaced_and_no_other_failure_is_taken_for_that() {
        let root = tempfile::tempdir().expect("a folder");
        let write = |name: &str| write_into(root.path(), name, |file| file.write_all(name.as_bytes()));
        let names = [(); 3].map(|()| write("a.json").expect("a file"));
        assert_eq!(
            names,
            ["a.json", "a_2.json", "a_3.json"].map(|name| root.path().join(name))
        );
        let error = write("none/a.json").expect_err("no such folder");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let error = move_into(&root.path().join("b"), root.path(), "a.json").expect_err("no such file");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_suffix_stands_before_the_extension_and_a_name_stays_short() {
        assert_eq!(suffixed(".env", "_2"), ".env_2");
        assert_eq!(suffixed("a.b.json", "_2"), "a.b_2.json");
        assert_eq!(suffixed("a.tar.gz", "_2"), "a_2.tar.gz");
        let long = suffixed(&format!("{}.json", "a".repeat(300)), "_10");
        assert_eq!(long, format!("{}_10.json", "a".repeat(MAX_NAME - 8)));
    }
}
