//! What was replayed, told by its content: the traces, and their digest.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::client::Installed;
use super::settings::Traces;
use crate::config::problem::Problem;
use crate::matrix::fingerprint::hex;
use crate::process::{self, Watch};
use crate::step::replay::expected::hub_cache;
use crate::step::tools::Installer;

/// The most files that traces may lie in.
const MAX_FILES: usize = 20_000;
/// How deep they may lie.
const MAX_DEPTH: usize = 4;

/// The traces of a replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Corpus {
    /// `hub` or `local`.
    pub source: &'static str,
    /// The client's loader.
    pub loader: String,
    /// The data set at the hub, or the file or folder.
    pub dataset: String,
    /// The commit of the data set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The SHA-256 over the files: of a line `DIGEST  PATH` each, sorted by path, as `sha256sum` prints them.
    pub sha256: String,
    /// How many files they are.
    pub files: usize,
}

impl Corpus {
    /// Downloads the traces unless they are here, and takes their digest.
    ///
    /// # Errors
    /// A data set that cannot be had, and traces that cannot be read.
    pub fn bring(traces: &Traces, client: &Installed, installer: &mut Installer<'_>) -> Result<Self, Problem> {
        match traces {
            Traces::Local(path) => Self::local(path),
            Traces::Hub(source) => {
                download(&source.dataset, client, installer)?;
                let cache = hub_cache(|name| std::env::var_os(name)).unwrap_or_default();
                let folder = cache.join(format!("datasets--{}", source.dataset.replace('/', "--")));
                Self::cached(&source.loader, &source.dataset, &folder)
            }
        }
    }

    /// Traces of a file or a folder.
    ///
    /// # Errors
    /// Traces that cannot be read, and none at all.
    pub fn local(path: &Path) -> Result<Self, Problem> {
        let name = path.display().to_string();
        let failed = |why: String| unreadable(&name, &why);
        let (sha256, files) = digest(path, path).map_err(|error| failed(error.to_string()))?;
        if files == 0 {
            return Err(failed("there is no file in it".to_owned()));
        }
        Ok(Self {
            source: "local",
            loader: "weka_trace".to_owned(),
            dataset: name,
            revision: None,
            sha256,
            files,
        })
    }

    /// A data set in a folder of the hub's cache, which keeps the commit under `refs/main` and the files of each commit as
    /// links into the folder's `blobs`.
    fn cached(loader: &str, dataset: &str, folder: &Path) -> Result<Self, Problem> {
        let failed = |why: &str| unreadable(dataset, why);
        let revision = std::fs::read_to_string(folder.join("refs/main")).unwrap_or_default();
        let revision = revision.trim();
        if revision.is_empty() || !revision.chars().all(|c| c.is_ascii_alphanumeric()) {
            return Err(failed("the hub's cache names no commit of it"));
        }
        let snapshot = folder.join("snapshots").join(revision);
        let (sha256, files) = digest(&snapshot, folder).map_err(|error| failed(&error.to_string()))?;
        if files == 0 {
            return Err(failed("the hub's cache holds no file of it"));
        }
        Ok(Self {
            source: "hub",
            loader: loader.to_owned(),
            dataset: dataset.to_owned(),
            revision: Some(revision.to_owned()),
            sha256,
            files,
        })
    }
}

fn unreadable(name: &str, why: &str) -> Problem {
    Problem::file("", format!("the traces `{name}` cannot be read: {why}"))
        .hint("what is replayed is recorded by its digest; see `--traces` and HF_HUB_CACHE")
}

/// Has the hub's own client download a data set. Without a network it finds what the cache holds.
fn download(dataset: &str, client: &Installed, installer: &mut Installer<'_>) -> Result<(), Problem> {
    let mut command = Command::new(client.program("hf"));
    command.args(["download", "--repo-type", "dataset", dataset]);
    let outcome = process::run(command, &Watch::default(), installer.cancel, installer.show)
        .map_err(|error| Problem::file("", error.to_string()))?;
    match outcome.is_success() {
        true => Ok(()),
        false => Err(
            Problem::file("", format!("the download of the traces `{dataset}` {outcome}"))
                .hint("its output above says why; --traces takes a local copy, for diagnosis only"),
        ),
    }
}

/// The digest of a file, or of all files below a folder, and how many they are. Links may lead to files below `root`.
fn digest(path: &Path, root: &Path) -> io::Result<(String, usize)> {
    let root = root.canonicalize()?;
    let mut files = Vec::new();
    if path.metadata()?.is_file() {
        files.push((
            path.to_owned(),
            path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        ));
    } else {
        list(path, path, 0, &mut files)?;
    }
    files.sort_by(|a, b| a.1.cmp(&b.1));
    let mut all = Sha256::new();
    for (file, name) in &files {
        if !file.canonicalize()?.starts_with(&root) {
            return Err(io::Error::other(format!("`{name}` is a link that leads elsewhere")));
        }
        all.update(format!("{}  {name}\n", of_file(file)?).as_bytes());
    }
    Ok((hex(&all.finalize()), files.len()))
}

fn list(folder: &Path, top: &Path, depth: usize, files: &mut Vec<(PathBuf, String)>) -> io::Result<()> {
    for entry in folder.read_dir()? {
        let path = entry?.path();
        // A linked folder is none: only files of the cache are links.
        if path.symlink_metadata()?.is_dir() {
            if depth == MAX_DEPTH {
                return Err(io::Error::other("its folders lie too deep"));
            }
            list(&path, top, depth + 1, files)?;
        } else if path.metadata()?.is_file() {
            let name = path.strip_prefix(top).unwrap_or(&path).display().to_string();
            files.push((path, name));
        }
        if files.len() > MAX_FILES {
            return Err(io::Error::other(format!("it holds more than {MAX_FILES} files")));
        }
    }
    Ok(())
}

fn of_file(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut digest = Sha256::new();
    let mut part = vec![0; 1 << 20];
    loop {
        match file.read(&mut part)? {
            0 => return Ok(hex(&digest.finalize())),
            count => digest.update(&part[..count]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_corpus_is_told_by_its_content() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            std::fs::write(path, text).expect("a file");
        };
        assert!(Corpus::local(folder.path()).is_err(), "empty");
        write("b.json", "2");
        write("a/1.json", "1");
        let first = Corpus::local(folder.path()).expect("a corpus");
        // sha256sum a/1.json b.json | sha256sum
        let expected = "f92ece80e9f5c52e3a41145672ee4d8ea64a1a4d7a67c940238ac98110099749";
        assert_eq!((first.files, first.sha256.as_str()), (2, expected));
        write("b.json", "3");
        assert_ne!(Corpus::local(folder.path()).expect("a corpus").sha256, first.sha256);
        write("b.json", "2");
        assert_eq!(Corpus::local(folder.path()).expect("a corpus"), first);
        std::os::unix::fs::symlink("/etc/hostname", folder.path().join("c.json")).expect("a link");
        assert!(Corpus::local(folder.path()).is_err(), "a link elsewhere");
    }

    #[test]
    fn a_data_set_is_found_in_the_cache() {
        let cache = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            let path = cache.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            std::fs::write(path, text).expect("a file");
        };
        let of = || Corpus::cached("l", "o/d", cache.path());
        assert!(of().is_err(), "no commit");
        write("refs/main", "abc\n");
        assert!(of().is_err(), "no snapshot");
        write("blobs/x", "1");
        std::fs::create_dir_all(cache.path().join("snapshots/abc")).expect("a folder");
        std::os::unix::fs::symlink("../../blobs/x", cache.path().join("snapshots/abc/t.jsonl")).expect("a link");
        let found = of().expect("a corpus");
        assert_eq!((found.revision.as_deref(), found.files), (Some("abc"), 1));
        write("refs/main", "../../..");
        assert!(of().is_err(), "no commit's name");
    }
}
