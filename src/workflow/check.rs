//! What GitHub only says at run time, computed from the files: each check is a file of its own under `checks`.

use std::sync::Arc;

use super::checks;
use super::tree::{File, FileKind, Job};
use crate::config::problem::{Problem, Problems};
use crate::config::source::Source;
use crate::findings::workflow;

/// All files of a repository that are checked together.
#[derive(Debug)]
pub struct Files<'s> {
    files: Vec<File<'s>>,
}

impl<'s> Files<'s> {
    /// Parses files; those that are no YAML are said, and are not among them.
    #[must_use]
    pub fn parse(sources: &'s [Arc<Source>]) -> (Self, Problems) {
        let mut problems = Problems::default();
        let mut files = Vec::new();
        for source in sources {
            let is_action = source.name.ends_with("/action.yml") || source.name.ends_with("/action.yaml");
            let kind = if is_action {
                FileKind::Action
            } else {
                FileKind::Workflow
            };
            match File::parse(source, kind) {
                Ok(file) => files.push(file),
                Err(more) => problems.extend(more),
            }
        }
        (Self { files }, problems)
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

    /// Whether a job, or one of those that it leads to, takes a runner that is not GitHub's own.
    pub(super) fn takes_gpu(&self, job: &Job<'_, '_>) -> bool {
        self.reaches(job, 0)
    }

    fn reaches(&self, job: &Job<'_, '_>, depth: usize) -> bool {
        if let Some(runner) = job.get("runs-on") {
            return !is_hosted(runner.text());
        }
        // Deeper calls are findings of their own.
        depth < checks::nesting::MAX_LEVELS
            && self
                .callee(job)
                .is_some_and(|callee| callee.jobs().any(|job| self.reaches(&job, depth + 1)))
    }
}

fn is_hosted(runner: &str) -> bool {
    ["ubuntu-", "windows-", "macos-"]
        .iter()
        .any(|start| runner.starts_with(start))
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

/// Checks workflow and action files together.
///
/// # Errors
/// Every finding, each at its place. Files that are no YAML are said, and the others are checked without them.
pub fn check(sources: &[Arc<Source>]) -> Result<(), Problems> {
    let (files, mut problems) = Files::parse(sources);
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
