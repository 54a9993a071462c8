//! The jobs of a runner, written down so that they can be found after the launch was killed.
//!
//! Each submission has a file in the state folder before it is made. sbatch itself writes the job's id into it: from
//! the moment that Slurm has a job, its id is on the disk, whatever becomes of this process. The file's name is also
//! the job's comment, so that a job whose id did not arrive can still be told from every other one.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::call::{self, Failure};
use crate::config::problem::Problem;
use crate::step::results::file;

/// How long squeue may take.
const LIMIT: std::time::Duration = std::time::Duration::from_secs(10);
/// How the name of a record begins.
const PREFIX: &str = "sweepctl-";

/// A backend's folder in the state folder: this user's alone, because logs may hold secrets.
///
/// # Errors
/// A folder that cannot be created.
pub(crate) fn folder(state: &Path, name: &str) -> Result<PathBuf, Problem> {
    let folder = state.join(name);
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    made.map_err(|error| unwritable(&folder, &error))?;
    Ok(folder)
}

fn unwritable(path: &Path, error: &io::Error) -> Problem {
    let name = path.display().to_string();
    Problem::file(&name, format!("`{name}` cannot be written: {error}"))
}

/// One submission and the ids that came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    path: PathBuf,
}

impl Record {
    /// A new one, without ids.
    ///
    /// # Errors
    /// A state folder that cannot be written.
    pub(crate) fn create(state: &Path) -> Result<Self, Problem> {
        let folder = folder(state, "jobs")?;
        let made = tempfile::Builder::new()
            .prefix(PREFIX)
            .rand_bytes(12)
            .tempfile_in(&folder);
        let kept = made.and_then(|file| file.keep().map_err(|error| error.error));
        let (_, path) = kept.map_err(|error| unwritable(&folder, &error))?;
        Ok(Self { path })
    }

    /// Every one that is left in a state folder.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub(crate) fn all(state: &Path) -> Result<Vec<Self>, Problem> {
        let folder = state.join("jobs");
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.and_then(Iterator::collect::<io::Result<Vec<_>>>),
        };
        let name = folder.display().to_string();
        let entries = entries.map_err(|error| Problem::file(&name, format!("`{name}` cannot be read: {error}")))?;
        let ours = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(PREFIX)) && path.is_file()
        };
        let mut paths: Vec<PathBuf> = entries.iter().map(std::fs::DirEntry::path).filter(ours).collect();
        paths.sort();
        Ok(paths.into_iter().map(|path| Self { path }).collect())
    }

    /// What no other submission has; the job's comment.
    #[must_use]
    pub(crate) fn token(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// The ids that are written down. A line counts once it is whole; `12;cluster` is what sbatch prints on a
    /// federation.
    #[must_use]
    pub(crate) fn ids(&self) -> Vec<String> {
        let bytes = file::read(&self.path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let whole = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        whole
            .map(|line| line.split_once(';').map_or(line, |(id, _)| id))
            .filter(|id| is_id(id))
            .map(str::to_owned)
            .collect()
    }

    /// Writes one more id down.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(crate) fn add(&self, id: &str) -> Result<(), Problem> {
        let mut ids = self.ids();
        if !ids.iter().any(|known| known == id) {
            ids.push(id.to_owned());
        }
        let text: String = ids.iter().map(|id| format!("{id}\n")).collect();
        file::write_atomic(&self.path, text.as_bytes()).map_err(|error| unwritable(&self.path, &error))
    }

    /// The file, for a command that writes an id itself.
    ///
    /// # Errors
    /// A file that cannot be opened.
    pub(crate) fn writer(&self) -> Result<File, Problem> {
        let opened = OpenOptions::new().append(true).open(&self.path);
        opened.map_err(|error| unwritable(&self.path, &error))
    }

    /// Forgets the submission: none of its jobs is left.
    ///
    /// # Errors
    /// A file that cannot be removed.
    pub(crate) fn forget(self) -> Result<(), Problem> {
        std::fs::remove_file(&self.path).map_err(|error| unwritable(&self.path, &error))
    }

    /// Whether a job came of this submission: its id is written down, or it carries the token.
    #[must_use]
    pub(crate) fn owns(&self, ids: &[String], job: &Queued) -> bool {
        ids.contains(&job.id) || job.comment == self.token()
    }
}

/// Whether a text is a job's id.
#[must_use]
pub(super) fn is_id(text: &str) -> bool {
    !text.is_empty() && text.len() <= 12 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A job of this user's, as the queue lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Queued {
    /// Its id.
    pub id: String,
    /// Its state.
    pub state: String,
    /// Its name.
    pub name: String,
    /// Its comment.
    pub comment: String,
}

/// This user's jobs, those that ended lately too.
///
/// # Errors
/// Slurm does not answer.
pub(crate) fn queue() -> Result<Vec<Queued>, Failure> {
    let text = call::ask("squeue", &["--me", "-h", "-t", "all", "-o", "%i|%T|%j|%k"], LIMIT)?;
    Ok(text.lines().filter_map(queued).collect())
}

/// `id|state|name|comment`; a name may hold the separator.
fn queued(line: &str) -> Option<Queued> {
    let (id, rest) = line.split_once('|')?;
    let (state, rest) = rest.split_once('|')?;
    let (name, comment) = rest.rsplit_once('|')?;
    Some(Queued {
        id: id.to_owned(),
        state: state.to_owned(),
        name: name.to_owned(),
        comment: comment.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_lines_with_an_id_count() {
        let state = tempfile::tempdir().expect("a folder");
        let record = Record::create(state.path()).expect("a record");
        assert_eq!(record.ids(), Vec::<String>::new());
        std::fs::write(&record.path, "12;east\nnot an id\n34\n5").expect("a file");
        assert_eq!(record.ids(), ["12", "34"]);
        record.add("56").expect("an id");
        record.add("12").expect("an id");
        assert_eq!(record.ids(), ["12", "34", "56"]);
        assert_eq!(
            Record::all(state.path()).expect("records"),
            std::slice::from_ref(&record)
        );
        record.forget().expect("it is removed");
        assert_eq!(Record::all(state.path()).expect("records"), []);
    }

    #[test]
    fn a_job_is_owned_by_its_id_or_its_token() {
        let state = tempfile::tempdir().expect("a folder");
        let record = Record::create(state.path()).expect("a record");
        let ids = ["1".to_owned()];
        let job = |line: &str| queued(line).expect("a job");
        assert!(record.owns(&ids, &job("1|RUNNING|r_0|(null)")));
        assert!(!record.owns(&ids, &job("11|RUNNING|r_0|(null)")));
        assert!(record.owns(&[], &job(&format!("2|PENDING|a|b|{}", record.token()))));
        assert_eq!(job("3|PENDING|a|b|c").name, "a|b");
    }
}
