//! Git: a file at a ref, the configs at a ref, what the changelog gained.
//!
//! Everything is read from the object database, so it works in worktrees, bare repositories, shallow clones and on
//! detached heads, and never runs a hook or a filter.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use git2::{Commit, ErrorClass, ErrorCode, IndexEntry, IndexTime, Oid, Repository};

use crate::config::problem::{Problem, Problems, nearest};
use crate::config::source::{MAX_BYTES, Source};

/// The changelog, from the repository's root.
pub const CHANGELOG: &str = "perf-changelog.yaml";

/// An opened repository.
pub struct Repo {
    repository: Repository,
}

/// A commit with the name it was asked for by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    /// The ref as it was given.
    pub name: String,
    id: Oid,
}

impl Revision {
    /// The commit's full hash.
    #[must_use]
    pub fn hash(&self) -> String {
        self.id.to_string()
    }
}

impl Repo {
    /// Opens the repository that holds a folder.
    ///
    /// # Errors
    /// No repository, one of another owner, and formats that libgit2 does not read, each with its way out.
    pub fn open(folder: &Path) -> Result<Self, Problem> {
        match Repository::discover(folder) {
            Ok(repository) => Ok(Self { repository }),
            Err(error) => Err(open_problem(folder, &error)),
        }
    }

    /// The commit of a ref: a branch, a tag, a (short) hash, `HEAD~2`, or what else git calls a revision.
    ///
    /// # Errors
    /// A ref that is unknown here, with the fetch that would bring it.
    pub fn revision(&self, name: &str) -> Result<Revision, Problem> {
        let found = self
            .repository
            .revparse_single(name)
            .and_then(|object| object.peel_to_commit());
        match found {
            Ok(commit) => Ok(Revision {
                name: name.to_owned(),
                id: commit.id(),
            }),
            Err(error) => Err(self.revision_problem(name, &error)),
        }
    }

    fn revision_problem(&self, name: &str, error: &git2::Error) -> Problem {
        if error.code() == ErrorCode::Ambiguous {
            return Problem::file("", format!("`{name}` names more than one commit")).hint("write more of the hash");
        }
        let problem = Problem::file("", format!("no commit is known as `{name}` here"));
        // People run what a hint says: only what can name a ref of a remote is put into a command.
        let is_ref = git2::Reference::is_valid_name(&format!("refs/heads/{name}"))
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_./+".contains(&byte))
            && !name.starts_with('-');
        let fetch = is_ref.then(|| format!("`git fetch origin {name}`"));
        if self.repository.is_shallow() {
            let commands = fetch.into_iter().chain(["`git fetch --unshallow`".to_owned()]);
            let commands = commands.collect::<Vec<_>>().join(", or ");
            return problem.hint(format!(
                "this clone is shallow: run {commands}, or check out with `fetch-depth: 0`"
            ));
        }
        let names = self.repository.references().ok().into_iter().flat_map(|references| {
            references
                .filter_map(|reference| Some(reference.ok()?.shorthand().ok()?.to_owned()))
                .collect::<Vec<_>>()
        });
        let names: Vec<String> = names.collect();
        if names.is_empty() {
            return problem.hint("this repository has no commit yet: make one");
        }
        let near = nearest(name, names.iter().map(String::as_str));
        match fetch {
            Some(fetch) => problem.hint(format!("{near}; or fetch it with {fetch}")),
            None => problem.hint(near),
        }
    }

    /// The text of a file at a revision; `None` where there is no such file.
    ///
    /// # Errors
    /// A path that is no file, content that was not fetched, and text that [`Source::from_bytes`] refuses.
    pub fn file(&self, revision: &Revision, path: &str) -> Result<Option<Arc<Source>>, Problem> {
        let Some(bytes) = self.bytes(revision, path)? else {
            return Ok(None);
        };
        Source::from_bytes(&display_name(revision, path), bytes).map(|source| Some(Arc::new(source)))
    }

    /// The bytes of a file at a revision; `None` where there is no such file.
    ///
    /// # Errors
    /// A path that is no file, and content that was not fetched.
    pub fn bytes(&self, revision: &Revision, path: &str) -> Result<Option<Vec<u8>>, Problem> {
        let failed = |error: &git2::Error| object_problem(revision, path, error);
        let tree = self
            .commit(revision)
            .and_then(|commit| commit.tree())
            .map_err(|e| failed(&e))?;
        let entry = match tree.get_path(Path::new(path)) {
            Ok(entry) => entry,
            Err(error) if error.code() == ErrorCode::NotFound && error.class() == ErrorClass::Tree => return Ok(None),
            Err(error) => return Err(failed(&error)),
        };
        if entry.filemode() == 0o120_000 {
            let message = format!("`{path}` is a symbolic link at {}", revision.name);
            return Err(Problem::file(path, message).hint("commit the file itself"));
        }
        let size = self.repository.odb().and_then(|odb| odb.read_header(entry.id()));
        if size.map_err(|e| failed(&e))?.0 as u64 > MAX_BYTES {
            return Err(Source::too_large(&display_name(revision, path)));
        }
        let object = entry.to_object(&self.repository).map_err(|e| failed(&e))?;
        let blob = object
            .as_blob()
            .ok_or_else(|| Problem::file(path, format!("`{path}` is no file at {}", revision.name)))?;
        Ok(Some(blob.content().to_vec()))
    }

    /// A file that must be there.
    ///
    /// # Errors
    /// As [`Repo::file`], and a file that is not there.
    pub fn required_file(&self, revision: &Revision, path: &str) -> Result<Arc<Source>, Problem> {
        self.file(revision, path)?.ok_or_else(|| {
            Problem::file(path, format!("`{path}` does not exist at {}", revision.name))
                .hint("check the path, or name another ref")
        })
    }

    /// The names of a folder's files at a revision that end so, sorted.
    ///
    /// # Errors
    /// Objects that were not fetched.
    pub fn files_ending(&self, revision: &Revision, folder: &str, end: &str) -> Result<Vec<String>, Problem> {
        let failed = |error: &git2::Error| object_problem(revision, folder, error);
        let tree = self
            .commit(revision)
            .and_then(|commit| commit.tree())
            .map_err(|e| failed(&e))?;
        let Ok(entry) = tree.get_path(Path::new(folder)) else {
            return Ok(Vec::new());
        };
        let object = entry.to_object(&self.repository).map_err(|e| failed(&e))?;
        let mut names: Vec<String> = object
            .as_tree()
            .into_iter()
            .flat_map(|tree| tree.iter())
            .filter_map(|entry| entry.name().ok().map(str::to_owned))
            .filter(|name| name.ends_with(end))
            .map(|name| format!("{folder}/{name}"))
            .collect();
        names.sort();
        Ok(names)
    }

    /// The newest commit, from a revision back along first parents, whose changelog differs from its parent's, with
    /// that parent. `None` for the parent of a commit that brings the first changelog as the first commit.
    ///
    /// # Errors
    /// A history without such a commit, or one that ends in a shallow clone before it.
    pub fn changelog_changes<'r>(&'r self, from: &Revision) -> impl Iterator<Item = Result<Change, Problem>> + 'r {
        let mut next = Some(from.id);
        std::iter::from_fn(move || {
            while let Some(id) = next {
                match self.changelog_change(id) {
                    Ok((parent, change)) => {
                        next = parent;
                        if let Some(change) = change {
                            return Some(Ok(change));
                        }
                    }
                    Err(error) => {
                        next = None;
                        return Some(Err(error));
                    }
                }
            }
            None
        })
    }

    fn changelog_change(&self, id: Oid) -> Result<(Option<Oid>, Option<Change>), Problem> {
        let revision = |id: Oid| Revision {
            name: id.to_string(),
            id,
        };
        let failed = |error: git2::Error| self.revision_problem(&id.to_string(), &error);
        let commit = self.repository.find_commit(id).map_err(failed)?;
        let parent = match commit.parent_id(0) {
            Ok(parent) => Some(self.repository.find_commit(parent).map_err(failed)?),
            // Where a shallow clone was cut, a commit looks like a first one.
            Err(_) if self.is_cut_at(id) => {
                let problem = Problem::file("", format!("the history ends at {id} before an entry was added"));
                return Err(problem
                    .hint("this clone is shallow: run `git fetch --unshallow`, or check out with `fetch-depth: 0`"));
            }
            Err(_) => None,
        };
        let blob = |commit: &Commit<'_>| {
            commit
                .tree()
                .and_then(|tree| tree.get_path(Path::new(CHANGELOG)).map(|entry| entry.id()))
                .ok()
        };
        let now = blob(&commit);
        let before = parent.as_ref().and_then(blob);
        let change = (now.is_some() && now != before).then(|| Change {
            base: parent.as_ref().map(|p| revision(p.id())),
            head: revision(id),
        });
        Ok((parent.map(|p| p.id()), change))
    }

    /// A commit's message, with bytes that are no UTF-8 replaced.
    ///
    /// # Errors
    /// A commit that is not here.
    pub fn message(&self, revision: &Revision) -> Result<String, Problem> {
        let commit = self
            .commit(revision)
            .map_err(|error| self.revision_problem(&revision.name, &error))?;
        Ok(String::from_utf8_lossy(commit.message_raw_bytes()).into_owned())
    }

    /// The first parent of a commit; `None` for one that has none.
    ///
    /// # Errors
    /// A parent that a shallow clone left out: it is not the same as none.
    pub fn first_parent(&self, revision: &Revision) -> Result<Option<Revision>, Problem> {
        let failed = |error: git2::Error| self.revision_problem(&revision.name, &error);
        let commit = self.commit(revision).map_err(failed)?;
        // libgit2 hides the parents of a shallow clone's last commits; the commit itself still names them.
        let written = commit
            .raw_header_bytes()
            .split(|byte| *byte == b'\n')
            .find_map(|line| line.strip_prefix(b"parent "));
        let Some(parent) = written else { return Ok(None) };
        self.revision(&String::from_utf8_lossy(parent)).map(Some)
    }

    /// Whether a shallow clone has this commit without its parents.
    fn is_cut_at(&self, id: Oid) -> bool {
        let cuts = std::fs::read_to_string(self.repository.commondir().join("shallow")).unwrap_or_default();
        cuts.lines().any(|line| line.trim() == id.to_string())
    }

    /// The best common ancestor of two revisions.
    ///
    /// # Errors
    /// Histories that have none here.
    pub fn merge_base(&self, one: &Revision, other: &Revision) -> Result<Revision, Problem> {
        match self.repository.merge_base(one.id, other.id) {
            Ok(id) => Ok(Revision {
                name: id.to_string(),
                id,
            }),
            Err(_) => {
                let message = format!("`{}` and `{}` have no common ancestor here", one.name, other.name);
                let hint = if self.repository.is_shallow() {
                    "this clone is shallow: run `git fetch --unshallow`, or check out with `fetch-depth: 0`"
                } else {
                    "check the two refs"
                };
                Err(Problem::file("", message).hint(hint))
            }
        }
    }

    /// The work tree's folder; `None` in a bare repository.
    #[must_use]
    pub fn work_tree(&self) -> Option<PathBuf> {
        self.repository.workdir().map(Path::to_path_buf)
    }

    /// The three sides of a merge conflict in a file, from the index: ancestor, ours, theirs.
    ///
    /// # Errors
    /// No conflict in that file.
    pub fn conflict(&self, path: &str) -> Result<Conflict, Problem> {
        let failed = |error: git2::Error| Problem::file(path, format!("the index cannot be read: {}", error.message()));
        let index = self.repository.index().map_err(failed)?;
        let side = |stage: i32| -> Result<Option<Vec<u8>>, Problem> {
            let Some(entry) = index.get_path(Path::new(path), stage) else {
                return Ok(None);
            };
            let blob = self.repository.find_blob(entry.id).map_err(failed)?;
            Ok(Some(blob.content().to_vec()))
        };
        let conflict = Conflict {
            ancestor: side(1)?,
            ours: side(2)?,
            theirs: side(3)?,
        };
        if conflict.ours.is_none() && conflict.theirs.is_none() {
            return Err(Problem::file(path, format!("`{path}` has no merge conflict"))
                .hint("run this while `git merge` or `git rebase` waits for you to resolve it"));
        }
        Ok(conflict)
    }

    /// What waits to be resolved.
    #[must_use]
    pub fn operation(&self) -> Operation {
        use git2::RepositoryState as State;
        match self.repository.state() {
            State::Merge => Operation::Merge,
            State::Rebase | State::RebaseInteractive | State::RebaseMerge => Operation::Rebase,
            _ => Operation::Other,
        }
    }

    /// The address of a remote; `None` where there is no such remote.
    #[must_use]
    pub fn remote(&self, name: &str) -> Option<String> {
        self.repository.find_remote(name).ok()?.url().ok().map(str::to_owned)
    }

    /// The name of the checked-out branch; `None` on a detached head.
    #[must_use]
    pub fn branch(&self) -> Option<String> {
        let head = self.repository.head().ok().filter(git2::Reference::is_branch)?;
        head.shorthand().ok().map(str::to_owned)
    }

    /// Puts bytes into the index as a file's content, as they are and without filters, and so settles its conflict.
    ///
    /// # Errors
    /// An index that cannot be read or written.
    pub fn stage(&self, path: &str, bytes: &[u8]) -> Result<(), Problem> {
        let failed = |error: git2::Error| {
            let message = format!("`{path}` cannot be staged: {}", error.message());
            Problem::file(path, message).hint(format!("run `git add {path}`"))
        };
        let mut index = self.repository.index().map_err(failed)?;
        let known = [0, 2, 3]
            .into_iter()
            .find_map(|stage| index.get_path(Path::new(path), stage));
        let entry = IndexEntry {
            ctime: IndexTime::new(0, 0),
            mtime: IndexTime::new(0, 0),
            dev: 0,
            ino: 0,
            mode: known.map_or(0o100_644, |entry| entry.mode),
            uid: 0,
            gid: 0,
            file_size: 0,
            id: Oid::ZERO_SHA1,
            flags: 0,
            flags_extended: 0,
            path: path.as_bytes().to_vec(),
        };
        index
            .add_frombuffer(&entry, bytes)
            .and_then(|()| index.write())
            .map_err(failed)
    }

    fn commit(&self, revision: &Revision) -> Result<Commit<'_>, git2::Error> {
        self.repository.find_commit(revision.id)
    }
}

/// What git is in the middle of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `git merge`, also by `git pull`.
    Merge,
    /// `git rebase`, also by `git pull --rebase`.
    Rebase,
    /// Something else, or nothing.
    Other,
}

/// A commit that changed the changelog, and its first parent.
#[derive(Debug, Clone)]
pub struct Change {
    /// The parent; `None` for a first commit.
    pub base: Option<Revision>,
    /// The commit.
    pub head: Revision,
}

/// The sides of a merge conflict; `None` where a side has no such file.
#[derive(Debug)]
pub struct Conflict {
    /// The common ancestor.
    pub ancestor: Option<Vec<u8>>,
    /// The branch that is merged into.
    pub ours: Option<Vec<u8>>,
    /// The branch that is merged.
    pub theirs: Option<Vec<u8>>,
}

/// `<ref>:<path>`, a full hash shortened: how messages name a file at a revision.
#[must_use]
pub fn display_name(revision: &Revision, path: &str) -> String {
    let full = revision.name.len() == 40 && revision.name.bytes().all(|b| b.is_ascii_hexdigit());
    let name = if full { &revision.name[..9] } else { &revision.name };
    format!("{name}:{path}")
}

fn open_problem(folder: &Path, error: &git2::Error) -> Problem {
    let place = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    let place = place.display().to_string();
    let message = error.message();
    if error.code() == ErrorCode::Owner {
        return Problem::file(&place, "the repository belongs to another user").hint(format!(
            "run as its owner, or `git config --global --add safe.directory {place}`"
        ));
    }
    if message.contains("refstorage") || message.contains("reftable") {
        return Problem::file(
            &place,
            "the repository keeps its refs in a reftable, which is not supported",
        )
        .hint("clone it anew with `git clone --ref-format=files`");
    }
    if message.contains("objectformat") || message.contains("object format") {
        return Problem::file(
            &place,
            "the repository uses SHA-256 object names, which are not supported",
        )
        .hint("use a clone with SHA-1 object names");
    }
    if error.code() == ErrorCode::NotFound {
        return Problem::file(&place, "this is no git repository").hint("run inside the repository");
    }
    Problem::file(&place, format!("the repository cannot be opened: {message}"))
}

fn object_problem(revision: &Revision, path: &str, error: &git2::Error) -> Problem {
    if error.code() == ErrorCode::NotFound {
        let message = format!("the content of `{path}` at {} was not fetched", revision.name);
        return Problem::file(path, message).hint(
            "this looks like a partial clone: run `git fetch --refetch --no-filter`, or check out without `filter`",
        );
    }
    Problem::file(
        path,
        format!("`{path}` at {} cannot be read: {}", revision.name, error.message()),
    )
}

/// All problems of several reads, or all values.
///
/// # Errors
/// Every problem.
pub fn all<T>(results: impl IntoIterator<Item = Result<T, Problem>>) -> Result<Vec<T>, Problems> {
    let mut problems = Problems::default();
    let mut values = Vec::new();
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err(problem) => problems.push(problem),
        }
    }
    problems.into_result()?;
    Ok(values)
}
