//! A framework's source: fetched, or copied from where somebody put it, and checked by its content.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use flate2::read::GzDecoder;
use git2::{ObjectType, Oid};
use sha2::{Digest, Sha256};

use crate::config::frameworks::Archive;
use crate::config::problem::Problem;
use crate::files;
use crate::http;
use crate::matrix::fingerprint::hex;
use crate::step::tools::{self, Installer};

/// How much is read of an archive, unpacked, in bytes.
const MAX_UNPACKED: u64 = 2 << 30;
/// The largest file that is taken, in bytes.
const MAX_FILE: u64 = 256 << 20;
/// How long a download may take.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(900);
/// How many redirects lead to one.
const REDIRECTS: u32 = 10;
/// How deep a copy may lie.
const MAX_DEPTH: usize = 16;

/// The files of a source, by their paths.
type Files = BTreeMap<String, Vec<u8>>;

/// The folder of a framework's source, brought there once.
///
/// # Errors
/// A source that cannot be had, and one that is not what the digest says.
pub(super) fn bring(
    name: &str,
    archive: &Archive,
    copy: Option<&Path>,
    tools: &Path,
    installer: &mut Installer<'_>,
) -> Result<PathBuf, Problem> {
    let folder = tools.join(format!("{name}-source-{}", &archive.sha256[..12]));
    let marker = format!("{}\n{:?}\n", archive.sha256, archive.git_ids);
    tools::build_once(&folder, &marker, &|| true, installer, |installer| {
        let from = copy.map_or_else(|| archive.url.clone(), |copy| copy.display().to_string());
        (installer.show)(&format!("the source of {name} comes from {from}"));
        let failed = |why: String| {
            let problem = Problem::file("", format!("the source of {name} cannot be had from {from}: {why}"));
            problem.hint("name a copy with --source FOLDER or FILE.tar.gz, or set SWEEPCTL_EVAL_SOURCES")
        };
        let files = match copy {
            Some(copy) if copy.is_dir() => of_folder(copy, archive),
            Some(copy) => files::open(copy).and_then(|file| of_archive(file, archive)),
            None => download(&archive.url).and_then(|body| of_archive(body, archive)),
        };
        let files = files.map_err(|error| failed(error.to_string()))?;
        check(archive, &files).map_err(|why| {
            let problem = Problem::file("", format!("the source of {name} from {from} is another: {why}"));
            problem.hint(format!("it must be that of commit {}", archive.r#ref))
        })?;
        unpack(&folder, &files).map_err(|error| failed(error.to_string()))
    })?;
    Ok(folder)
}

/// The first digits of a digest, for the name of a folder.
#[must_use]
pub(super) fn short(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))[..12].to_owned()
}

/// Checks files against the digests.
fn check(archive: &Archive, files: &Files) -> Result<(), String> {
    let mut list = String::new();
    for (path, bytes) in files {
        match archive.git_ids.get(path) {
            None => list += &format!("{}  {path}\n", hex(&Sha256::digest(bytes))),
            Some(id) => {
                let found = Oid::hash_object(ObjectType::Blob, bytes).map_err(|error| error.to_string())?;
                if found.to_string() != *id {
                    return Err(format!("git's id of {path} is {found}, not {id}"));
                }
            }
        }
    }
    if let Some(missing) = archive.git_ids.keys().find(|path| !files.contains_key(*path)) {
        return Err(format!("{missing} is missing"));
    }
    let found = hex(&Sha256::digest(list.as_bytes()));
    match found == archive.sha256 {
        true => Ok(()),
        false => Err(format!(
            "the digest of its {} is {found}, not {}",
            crate::plural::count(files.len(), "file"),
            archive.sha256
        )),
    }
}

fn unpack(folder: &Path, files: &Files) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for (path, bytes) in files {
        let target = folder.join(path);
        std::fs::create_dir_all(target.parent().unwrap_or(folder))?;
        std::fs::write(target, bytes)?;
    }
    Ok(())
}

/// Whether a path is one that is taken; all are within the source.
fn is_taken(archive: &Archive, path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_)))
        && archive.paths.iter().any(|taken| path.starts_with(taken))
}

fn of_folder(copy: &Path, archive: &Archive) -> io::Result<Files> {
    let mut files = Files::new();
    for taken in &archive.paths {
        let path = copy.join(taken);
        let found = match path.is_dir() {
            true => files::walk(&path, MAX_DEPTH)?
                .into_iter()
                .flat_map(|folder| folder.names.into_iter().map(move |name| folder.path.join(name)))
                .collect(),
            false => vec![path],
        };
        for file in found {
            let inner = file.strip_prefix(copy).unwrap_or(&file).to_string_lossy().into_owned();
            // What a run of the copy left there is none of it.
            if !inner.contains("__pycache__/") {
                files.insert(inner, files::bounded(files::open(&file)?, MAX_FILE)?);
            }
        }
    }
    Ok(files)
}

/// The plain files of an archive that are taken; links and special files are passed over, and the digest misses them.
fn of_archive(from: impl Read, archive: &Archive) -> io::Result<Files> {
    let mut files = Files::new();
    let mut tar = tar::Archive::new(GzDecoder::new(from).take(MAX_UNPACKED));
    for entry in tar.entries()? {
        let entry = entry?;
        let path: PathBuf = entry.path()?.components().skip(1).collect();
        if entry.header().entry_type().is_file() && is_taken(archive, &path) {
            let name = path.to_string_lossy().into_owned();
            files.insert(name, files::bounded(entry, MAX_FILE)?);
        }
    }
    Ok(files)
}

fn download(url: &str) -> io::Result<File> {
    let request = http::Request::get(url, DOWNLOAD_TIMEOUT)
        .limit(MAX_UNPACKED)
        .redirects(REDIRECTS)
        .with_proxy();
    let mut file = tempfile::tempfile()?;
    let answer = request.send_to(&mut file).map_err(io::Error::other)?;
    if answer.status.as_u16() >= 400 {
        return Err(io::Error::other(format!("http status: {}", answer.status.as_u16())));
    }
    io::Seek::rewind(&mut file)?;
    Ok(file)
}
