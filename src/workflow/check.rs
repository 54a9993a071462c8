//! What GitHub only says at run time, computed from the files: each check is a file of its own under `checks`.

use std::sync::Arc;

use super::checks;
use super::render::RENDERED;
use super::tree::{File, FileKind, Job, calls, get, words};
use crate::config::problem::{Problem, Problems};
use crate::config::source::Source;
use crate::config::tree::{self, Node};
use crate::findings::workflow;

/// The action that puts this binary on the path.
const SETUP_ACTION: &str = "setup-sweepctl";

/// All files of a repository that are checked together.
#[derive(Debug)]
pub struct Files<'s> {
    files: Vec<File<'s>>,
    /// The names of files that are there and cannot be parsed.
    unread: Vec<String>,
    /// Of each file, whether this tool has a part in it.
    own: Vec<bool>,
}

impl<'s> Files<'s> {
    /// Parses files; those that are no YAML are said, and are not among them.
    #[must_use]
    pub fn parse(sources: &'s [Arc<Source>]) -> (Self, Problems) {
        let mut problems = Problems::default();
        let mut files = Vec::new();
        let mut unread = Vec::new();
        for source in sources {
            let is_action = source.name.ends_with("/action.yml") || source.name.ends_with("/action.yaml");
            let kind = if is_action {
                FileKind::Action
            } else {
                FileKind::Workflow
            };
            match File::parse(source, kind) {
                Ok(file) => files.push(file),
                Err(more) => {
                    unread.push(source.name.clone());
                    problems.extend(more);
                }
            }
        }
        let own = own(&files);
        (Self { files, unread, own }, problems)
    }

    /// The files that this tool has a part in: those that it renders, those that run it, those that lead to such a file or
    /// are called by one, and beside them the actions. What other workflows should look like is their owners' to say, and
    /// linters' that know nothing of sweeps.
    pub(super) fn own(&self) -> impl Iterator<Item = &File<'s>> {
        let own = self.files.iter().zip(&self.own);
        own.filter_map(|(file, is_own)| is_own.then_some(file))
    }

    /// Whether a file is one of [`Self::own`].
    pub(super) fn is_own(&self, file: &File<'_>) -> bool {
        self.own().any(|own| own.source.name == file.source.name)
    }

    /// Whether a workflow that is called is there, and cannot be read.
    pub(super) fn is_unread(&self, file_name: &str) -> bool {
        self.unread
            .iter()
            .any(|name| name.rsplit('/').next() == Some(file_name))
    }

    /// The action of this repository that a step uses: `./` and the path of its folder.
    pub(super) fn action(&self, step: &Node<'_>) -> Option<&File<'s>> {
        let folder = get(step, "uses")?.text().strip_prefix("./")?.trim_end_matches('/');
        let mut actions = self.files.iter().filter(|file| file.kind == FileKind::Action);
        actions.find(|action| {
            let of_action = action.source.name.rsplit_once('/').map_or("", |(folder, _)| folder);
            of_action == folder || of_action.ends_with(&format!("/{folder}"))
        })
    }

    /// All files.
    pub(super) fn all(&self) -> impl Iterator<Item = &File<'s>> {
        self.files.iter()
    }

    /// The workflows.
    pub(super) fn workflows(&self) -> impl Iterator<Item = &File<'s>> {
        self.files.iter().filter(|file| file.kind == FileKind::Workflow)
    }

    /// The workflow of this repository that a job calls.
    pub(super) fn callee(&self, job: &Job<'_, '_>) -> Option<&File<'s>> {
        let (name, _) = job.callee()?;
        self.workflows().find(|file| file.file_name() == name)
    }

    /// Whether a job, or one of those that it leads to, launches: what a runner has inside its label does not tell.
    pub(super) fn takes_gpu(&self, job: &Job<'_, '_>) -> bool {
        self.reaches(job, 0)
    }

    fn reaches(&self, job: &Job<'_, '_>, depth: usize) -> bool {
        // Deeper calls are findings of their own.
        job.steps().iter().any(launches)
            || depth < checks::nesting::MAX_LEVELS
                && self
                    .callee(job)
                    .is_some_and(|callee| callee.jobs().any(|job| self.reaches(&job, depth + 1)))
    }
}

/// Whether a label is that of a standard runner of GitHub's own, such as `ubuntu-24.04-arm` or `macos-latest`. Larger ones
/// have the names that their owner gives them.
pub(super) fn is_hosted(label: &str) -> bool {
    let version = ["ubuntu-", "windows-", "macos-"]
        .iter()
        .find_map(|system| label.strip_prefix(system));
    let version = version.map(|version| {
        ["-arm", "-intel"]
            .iter()
            .find_map(|end| version.strip_suffix(end))
            .unwrap_or(version)
    });
    version.is_some_and(|version| {
        let is_number = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        matches!(version, "latest" | "slim") || is_number
    })
}

/// Whether a step launches what a job measures.
pub(super) fn launches(step: &Node<'_>) -> bool {
    calls(step, &["launch"]) && !calls(step, &["launch", "--release"])
}

/// Of each file, whether this tool has a part in it.
fn own(files: &[File<'_>]) -> Vec<bool> {
    let leads = |from: &File<'_>, to: &File<'_>| {
        to.kind == FileKind::Workflow
            && from
                .jobs()
                .any(|job| job.callee().is_some_and(|(name, _)| name == to.file_name()))
    };
    let mut own: Vec<bool> = files.iter().map(runs_sweepctl).collect();
    loop {
        let more = |at: &usize| {
            let linked =
                |other: usize| own[other] && (leads(&files[*at], &files[other]) || leads(&files[other], &files[*at]));
            !own[*at] && (0..files.len()).any(linked)
        };
        let found: Vec<usize> = (0..files.len()).filter(more).collect();
        if found.is_empty() {
            break;
        }
        found.into_iter().for_each(|at| own[at] = true);
    }
    let any = own.contains(&true);
    for (own, file) in own.iter_mut().zip(files) {
        *own |= any && file.kind == FileKind::Action;
    }
    own
}

fn runs_sweepctl(file: &File<'_>) -> bool {
    let of_step = |step: &Node<'_>| {
        let uses = get(step, "uses").map_or("", Node::text);
        words(step).contains(&"sweepctl") || uses.contains(SETUP_ACTION)
    };
    file.source.text.starts_with(RENDERED) || file.steps().any(of_step)
}

/// One check: adds what it finds.
type Check = fn(&Files<'_>, &mut Problems);

const CHECKS: &[Check] = &[
    checks::always::check,
    checks::artifacts::check,
    checks::calls::check,
    checks::concurrency::check,
    checks::conditions::check,
    checks::credentials::check,
    checks::expressions::check,
    checks::launches::check,
    checks::limits::check,
    checks::names::check,
    checks::needs::check,
    checks::nesting::check,
    checks::permissions::check,
    checks::pins::check,
    checks::secrets::check,
    checks::timeouts::check,
    checks::triggers::check,
    checks::verdicts::check,
];

/// A file as GitHub's parser takes it. A line that only closes lists or mappings may stand as far left as it likes there;
/// YAML asks for more indentation than its key has. A file that can be parsed is left as it is.
#[must_use]
pub fn as_github_reads(source: Source) -> Source {
    let source = Arc::new(source);
    if tree::parse(&source).is_ok() {
        return Source::clone(&source);
    }
    let is_end = |line: &str| !line.trim().is_empty() && line.trim().bytes().all(|byte| b"]},".contains(&byte));
    let moved: Vec<String> = source
        .text
        .split_inclusive('\n')
        .map(|line| {
            if is_end(line) {
                " ".repeat(FAR) + line
            } else {
                line.to_owned()
            }
        })
        .collect();
    let moved = Arc::new(Source::new(source.name.clone(), moved.concat()));
    let is_better = tree::parse(&moved).is_ok();
    Source::clone(if is_better { &moved } else { &source })
}

/// More spaces than keys of workflows stand behind.
const FAR: usize = 40;

/// Checks workflow and action files together.
///
/// # Errors
/// Every finding, each at its place. Files that are no YAML are said, and the others are checked without them.
pub fn check(sources: &[Arc<Source>]) -> Result<(), Problems> {
    check_named(sources, &[])
}

/// [`check`], where the files of some names are held to the rules of this tool's own, whoever wrote them.
///
/// # Errors
/// As [`check`].
pub fn check_named(sources: &[Arc<Source>], named: &[String]) -> Result<(), Problems> {
    let (mut files, mut problems) = Files::parse(sources);
    for (own, file) in files.own.iter_mut().zip(&files.files) {
        *own |= named.contains(&file.source.name);
    }
    for source in sources {
        if source.text.len() > checks::limits::MAX_FILE_BYTES {
            problems.push(too_large(source));
        }
    }
    for check in CHECKS {
        check(&files, &mut problems);
    }
    problems.into_result()
}

fn too_large(source: &Source) -> Problem {
    let message = format!(
        "the file holds {} bytes, GitHub takes {} of a workflow",
        source.text.len(),
        checks::limits::MAX_FILE_BYTES
    );
    workflow::FILE_SIZE
        .file(&source.name, message)
        .hint("call a workflow of its own for a part of the jobs")
}
