//! The folder that artifacts are fetched into: a folder of each name, and what is remembered of them.
//!
//! `OUT/.fetch` holds the lock, a note of each artifact that arrived, and what is still on its way. A note is written
//! before its artifact is put in place, and an artifact counts only with its note and every file that the note names.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg, OFlag};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Listed;
use crate::config::problem::Problem;
use crate::files;
use crate::matrix::fingerprint::hex;

/// The folder of what is remembered, and of what is on its way; collectors do not look into it.
pub(crate) const WORK: &str = ".fetch";
const NOTES: &str = "notes";
const COMING: &str = "coming";

/// What is remembered of an artifact that arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Note {
    /// Its name.
    pub name: String,
    /// Its number.
    pub id: u64,
    /// The digest that it was held against, or that of what came.
    pub digest: String,
    /// Its files, with their sizes in bytes.
    pub files: BTreeMap<String, u64>,
}

impl Note {
    /// The sizes of its files together, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.values().sum()
    }
}

/// What the folder holds under a name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// Nothing.
    Nothing,
    /// The artifact, whole.
    Whole(Note),
    /// Something that was fetched, and is older or no longer whole.
    Stale,
    /// Something that was not fetched.
    Foreign,
}

/// The folder, locked.
pub(crate) struct Folder {
    out: PathBuf,
    work: PathBuf,
    _lock: Flock<File>,
}

impl Folder {
    /// Makes the folder where it is not there, and locks it. What an earlier fetch left half done is removed.
    ///
    /// # Errors
    /// A folder that cannot be made, or in which another fetch is at work.
    pub(crate) fn open(out: &Path) -> Result<Self, Problem> {
        let shown = files::shown(out);
        let failed = |error: io::Error| Problem::file(&shown, format!("`{shown}` cannot be fetched into: {error}"));
        std::fs::create_dir_all(out).map_err(failed)?;
        let work = out.join(WORK);
        made(&work).map_err(failed)?;
        made(&work.join(NOTES)).map_err(failed)?;
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(OFlag::O_NOFOLLOW.bits())
            .open(work.join("lock"))
            .map_err(failed)?;
        let lock = Flock::lock(lock, FlockArg::LockExclusiveNonblock).map_err(|_| {
            Problem::file(&shown, format!("another fetch is at work in `{shown}`"))
                .hint("wait for it, or name another folder with --out")
        })?;
        let coming = work.join(COMING);
        if coming.symlink_metadata().is_ok() {
            std::fs::remove_dir_all(&coming).map_err(failed)?;
        }
        made(&coming).map_err(failed)?;
        Ok(Self {
            out: out.to_owned(),
            work,
            _lock: lock,
        })
    }

    /// The folder of what is remembered.
    pub(crate) fn work(&self) -> &Path {
        &self.work
    }

    /// What stands under an artifact's name.
    pub(crate) fn held(&self, artifact: &Listed) -> Held {
        let place = self.out.join(&artifact.name);
        let Ok(metadata) = place.symlink_metadata() else {
            return Held::Nothing;
        };
        let Some(note) = self.note(&artifact.name).filter(|_| metadata.is_dir()) else {
            return Held::Foreign;
        };
        let same = note.id == artifact.id && artifact.digest.as_ref().is_none_or(|digest| *digest == note.digest);
        let is_there = |(name, bytes): (&String, &u64)| {
            let file = place.join(name).symlink_metadata();
            file.is_ok_and(|file| file.is_file() && file.len() == *bytes)
        };
        match same && note.files.iter().all(is_there) {
            true => Held::Whole(note),
            false => Held::Stale,
        }
    }

    /// A folder of its own for what is on its way; it goes with its value.
    ///
    /// # Errors
    /// As making one.
    pub(crate) fn coming(&self) -> io::Result<tempfile::TempDir> {
        tempfile::tempdir_in(self.work.join(COMING))
    }

    /// Puts an artifact in place, whole: the folder `whole` of `coming` becomes that of its name.
    ///
    /// # Errors
    /// Files that cannot be moved or written.
    pub(crate) fn place(&self, coming: &tempfile::TempDir, whole: &Path, note: &Note) -> io::Result<()> {
        let place = self.out.join(&note.name);
        // An older one goes first: its files must not pass for those of the new note.
        match std::fs::rename(&place, coming.path().join("older")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        files::write_atomic(&self.note_path(&note.name), &serde_json::to_vec(note)?)?;
        std::fs::rename(whole, &place)
    }

    fn note(&self, name: &str) -> Option<Note> {
        let bytes = files::read(&self.note_path(name)).ok()?;
        let note: Note = serde_json::from_slice(&bytes).ok()?;
        (note.name == name).then_some(note)
    }

    /// Names may be as long as file names are, and notes end in `.json`: they are called by a hash.
    fn note_path(&self, name: &str) -> PathBuf {
        let hash = hex(&Sha256::digest(name.as_bytes()));
        self.work.join(NOTES).join(format!("{hash}.json"))
    }
}

/// Makes a folder, or finds it there; a link is none.
fn made(path: &Path) -> io::Result<()> {
    match DirBuilder::new().create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.symlink_metadata()?.is_dir() => Ok(()),
        ended => ended,
    }
}

/// Whether an artifact's name can be that of a folder here: it is no hidden one, and not too long for a file.
pub(crate) fn is_legal(name: &str) -> bool {
    !name.starts_with('.') && name.len() <= files::MAX_NAME
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(id: u64) -> Listed {
        Listed {
            name: "bmk_a".to_owned(),
            id,
            digest: Some("sha256:1".to_owned()),
            ..Listed::default()
        }
    }

    fn put(folder: &Folder, id: u64, text: &str) {
        let coming = folder.coming().expect("a folder");
        let whole = coming.path().join("whole");
        std::fs::create_dir(&whole).expect("a folder");
        std::fs::write(whole.join("a.json"), text).expect("a file");
        let note = Note {
            name: "bmk_a".to_owned(),
            id,
            digest: "sha256:1".to_owned(),
            files: BTreeMap::from([("a.json".to_owned(), text.len() as u64)]),
        };
        folder.place(&coming, &whole, &note).expect("it is placed");
    }

    #[test]
    fn an_artifact_counts_with_its_note_and_all_of_its_files() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(root.path()).expect("a folder");
        assert_eq!(folder.held(&artifact(1)), Held::Nothing);
        put(&folder, 1, "12");
        assert!(matches!(folder.held(&artifact(1)), Held::Whole(note) if note.bytes() == 2));
        assert_eq!(folder.held(&artifact(2)), Held::Stale, "a newer one");
        let other = Listed {
            digest: Some("sha256:2".to_owned()),
            ..artifact(1)
        };
        assert_eq!(folder.held(&other), Held::Stale, "another content");
        put(&folder, 2, "345");
        assert!(matches!(folder.held(&artifact(2)), Held::Whole(_)));
        assert_eq!(std::fs::read(root.path().join("bmk_a/a.json")).expect("a file"), b"345");
        std::fs::write(root.path().join("bmk_a/a.json"), "3").expect("a file");
        assert_eq!(folder.held(&artifact(2)), Held::Stale, "a file was cut");
        std::fs::remove_file(root.path().join("bmk_a/a.json")).expect("removed");
        assert_eq!(folder.held(&artifact(2)), Held::Stale, "a file is gone");
    }

    #[test]
    fn what_was_not_fetched_is_foreign_and_one_fetch_works_at_a_time() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(root.path()).expect("a folder");
        std::fs::create_dir(root.path().join("bmk_a")).expect("a folder");
        assert_eq!(folder.held(&artifact(1)), Held::Foreign);
        std::fs::remove_dir(root.path().join("bmk_a")).expect("removed");
        std::os::unix::fs::symlink("/etc", root.path().join("bmk_a")).expect("a link");
        assert_eq!(folder.held(&artifact(1)), Held::Foreign);
        assert!(Folder::open(root.path()).is_err(), "it is locked");
        drop(folder);
        std::fs::write(root.path().join(".fetch/coming/left"), "x").expect("a file");
        let folder = Folder::open(root.path()).expect("a folder");
        assert!(!folder.work().join("coming/left").exists());
    }
}
