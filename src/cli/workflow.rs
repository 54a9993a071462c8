//! `sweepctl workflow`: what is checked of workflow files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand};
use serde::Serialize;

use super::format::{self, Format, FormatArgs};
use super::output;
use super::render::workflow_settings;
use super::simulate::Simulate;
use crate::config::problem::Problems;
use crate::config::source::Source;
use crate::findings::files as findings;
use crate::workflow::check;

/// `sweepctl workflow`
#[derive(Debug, Subcommand)]
pub(crate) enum Workflow {
    /// Find what GitHub reports only when a workflow runs
    Check(Check),
    /// Show which jobs would run for an event and a plan, and why the others would not
    Simulate(Box<Simulate>),
}

/// The folders of the actions that are rendered.
const ACTIONS: [&str; 2] = ["setup-sweepctl", "fetch-artifacts"];

const HELP: &str = "\
Computed from the files, without the network. Of every workflow: a caller's permissions contain what its callees ask \
for; secrets and inputs fit; at most four levels; names stand once; `needs` holds what expressions name; an artifact that \
is fetched by name can have been uploaded before; a group that cancels is not everyone's; matrices and files within \
GitHub's limits. Of those that sweepctl has a part in also: secrets reach the steps that they are for; no `always()` on a \
job that launches; no job is skipped behind an optional one; a verdict always runs and judges every job; a node is cleaned \
first, its results are uploaded whatever happened and before the gate, and it is released; no expression in a script; \
actions pinned by commit; a time limit and permissions on every job; no credentials left by a checkout.

Of a folder, files that `unmanaged` in configs/workflows.yaml names and the repository's own composite actions are read \
for their calls and not checked, and not counted; name one to check it, as if sweepctl had a part in it.

Examples:
  sweepctl workflow check
      .github/workflows and .github/actions
  sweepctl workflow check .github/workflows/run-sweep.yml
      findings of one file; its callees are read too";

/// `sweepctl workflow check`
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Check {
    /// Files, and folders that hold a `.github` or workflow files [default: this folder]
    #[arg(value_name = "PATH", default_value = ".", hide_default_value = true)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    format: FormatArgs,
}

#[derive(Debug, Serialize)]
struct Checked {
    file: String,
    bytes: usize,
}

impl Workflow {
    /// Runs the subcommand.
    ///
    /// # Errors
    /// As the subcommand.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Check(check) => check.run(),
            Self::Simulate(simulate) => simulate.run(),
        }
    }
}

impl Check {
    /// Checks and prints.
    ///
    /// # Errors
    /// Every finding, and files that cannot be read.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let mut problems = Problems::default();
        let mut asked = Vec::new();
        let mut beside = Vec::new();
        for path in &self.paths {
            let found = if path.is_dir() {
                let unmanaged = unmanaged(path);
                let is_own = |file: &PathBuf| unmanaged.contains(file) || is_own_action(file);
                let (others, found) = in_folder(path).into_iter().partition(is_own);
                beside.extend::<Vec<PathBuf>>(others);
                found
            } else {
                vec![path.clone()]
            };
            if found.is_empty() {
                let place = path.display().to_string();
                let problem = findings::NOTHING_TO_CHECK.file(&place, format!("`{place}` holds no workflow"));
                problems.push(problem.hint("run from the repository's root, where `.github/` is"));
            }
            asked.extend(found);
            if let Some(folder) = path.parent().filter(|_| path.is_file()) {
                beside.extend(yaml_files(folder));
            }
        }
        let mut sources: Vec<Arc<Source>> = Vec::new();
        for path in asked.iter().chain(beside.iter().filter(|path| !asked.contains(path))) {
            match Source::read(path) {
                Ok(source) => sources.push(Arc::new(check::as_github_reads(source))),
                Err(problem) => problems.push(problem),
            }
        }
        let names: Vec<String> = asked.iter().map(|path| path.display().to_string()).collect();
        let files = self.paths.iter().filter(|path| path.is_file());
        let by_name: Vec<String> = files.map(|path| path.display().to_string()).collect();
        if let Err(found) = check::check_named(&sources, &by_name) {
            problems
                .0
                .extend(found.0.into_iter().filter(|problem| names.contains(&problem.file)));
        }
        problems.into_result()?;
        self.say(sources.iter().filter(|source| names.contains(&source.name)))
    }

    fn say<'s>(&self, sources: impl Iterator<Item = &'s Arc<Source>>) -> anyhow::Result<()> {
        let checked: Vec<Checked> = sources
            .map(|source| Checked {
                file: source.name.clone(),
                bytes: source.text.len(),
            })
            .collect();
        match self.format.chosen() {
            Format::Json => return output::json(&checked),
            Format::Sarif => return format::sarif("workflow-check", &[]),
            Format::Text => {}
        }
        let rows: Vec<Vec<String>> = checked
            .iter()
            .map(|c| vec![c.file.clone(), c.bytes.to_string()])
            .collect();
        output::text(&output::table(&["file", "bytes"], &rows))
    }
}

/// The workflows and actions of a repository, or the files of a folder of workflows.
pub(super) fn in_folder(folder: &Path) -> Vec<PathBuf> {
    let github = github(folder);
    if !github.is_dir() {
        return yaml_files(folder);
    }
    let mut files = yaml_files(&github.join("workflows"));
    let mut actions: Vec<PathBuf> = std::fs::read_dir(github.join("actions"))
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .flat_map(|folder| yaml_files(&folder))
        .collect();
    actions.sort();
    files.extend(actions);
    files
}

/// Whether a file is a composite action of the repository's own, and not the one that is rendered.
fn is_own_action(file: &Path) -> bool {
    let folder = file.parent().unwrap_or(Path::new(""));
    folder
        .parent()
        .is_some_and(|parent| parent.ends_with(".github/actions"))
        && !ACTIONS.iter().any(|action| folder.ends_with(action))
}

/// The workflows below a root that are not this tool's, as the settings say.
fn unmanaged(root: &Path) -> Vec<PathBuf> {
    // Settings that do not load are what `check` is for.
    let names = workflow_settings(root).map_or_else(|_| Vec::new(), |settings| settings.unmanaged);
    names
        .iter()
        .map(|name| github(root).join("workflows").join(name))
        .collect()
}

/// The folder `.github` below a root, without a leading `./`.
fn github(root: &Path) -> PathBuf {
    let github = root.join(".github");
    github.strip_prefix(".").map(Path::to_path_buf).unwrap_or(github)
}

fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_file() && path.extension().is_some_and(|end| end == "yml" || end == "yaml"))
        .collect();
    files.sort();
    files
}
