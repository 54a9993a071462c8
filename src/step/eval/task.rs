//! Eval tasks: files in lm-eval's format.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::job::Job;
use crate::config::decode::Decoder;
use crate::config::problem::{Problem, Problems, nearest};
use crate::config::source::Source;
use crate::config::tree::Value;
use crate::findings::config;

/// The folder of tasks, from a repository's root.
pub(crate) const FOLDER: &str = "configs/evals";
/// Where repositories that come from elsewhere keep theirs; asked after [`FOLDER`].
const FOLDER_OF_SCRIPTS: &str = "utils/evals";
/// The task of jobs that name none.
pub(crate) const DEFAULT: &str = "gsm8k";

/// One task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Task {
    /// Its name in results, and the key of its threshold.
    pub name: String,
    /// Its file, absolute.
    pub file: PathBuf,
    /// Whether it is a group, which may name tasks that the harness brings.
    pub is_group: bool,
}

impl Task {
    /// What is asked for, else EVAL_TASKS_DIR, else EVAL_TASKS, else the suite, else [`DEFAULT`].
    ///
    /// # Errors
    /// As [`Self::find`].
    pub(crate) fn of_job(asked: Option<&str>, job: &Job, roots: &[PathBuf]) -> Result<Self, Problems> {
        let given = asked.or_else(|| given(|name| job.text(name)));
        Self::find(given.or_else(|| job.text("EVAL_SUITE")).unwrap_or(DEFAULT), roots)
    }

    /// The task of a file or of a folder with one, or the one of a name under `configs/evals` of one of `roots`.
    /// Relative paths are looked for in each of them.
    ///
    /// # Errors
    /// A name that is none (with the nearest), and a file that cannot be read or names no task.
    pub(crate) fn find(name: &str, roots: &[PathBuf]) -> Result<Self, Problems> {
        let looks_like_file = name.contains('/') || [".yaml", ".yml"].iter().any(|end| name.ends_with(end));
        let here = || std::iter::once(PathBuf::from(name)).chain(roots.iter().map(|root| root.join(name)));
        if looks_like_file {
            if let Some(folder) = here().find(|path| path.is_dir()) {
                return Self::read(&only_task(&folder)?);
            }
            let file = here().find(|path| path.is_file());
            return Self::read(&file.unwrap_or_else(|| PathBuf::from(name)));
        }
        let in_folder = |folder: &'static str| {
            let files = roots
                .iter()
                .map(move |root| root.join(folder).join(format!("{name}.yaml")));
            files.into_iter().find(|file| file.is_file())
        };
        if let Some(file) = in_folder(FOLDER).or_else(|| in_folder(FOLDER_OF_SCRIPTS)) {
            return Self::read(&file);
        }
        let known = known(roots);
        let message = format!("no eval task is named `{name}`");
        let hint = if known.is_empty() {
            format!("there is no `{FOLDER}` here: run from the repository's root, or name the task's file")
        } else {
            nearest(name, known.iter().map(String::as_str))
        };
        Err(Problem::file("", message).hint(hint).into())
    }

    /// Of the file only the results' name for the task is read here; the rest is lm-eval's.
    fn read(file: &Path) -> Result<Self, Problems> {
        let mut source = Source::read(file)?;
        // lm-eval's own tag, which the loader of all configs refuses.
        source.text = source.text.replace("!function ", "");
        let source = Arc::new(source);
        let (name, is_group) = crate::config::load(&source, |d, node| {
            let mut found = None;
            for (key, value) in d.entries(node, "the task") {
                if matches!(key.text(), "task" | "group") && matches!(value.value, Value::Scalar { .. }) {
                    found = Decoder::string(d, value, key.text()).map(|name| (name, key.text() == "group"));
                }
            }
            if found.is_none() {
                d.refuse(
                    &config::MISSING_FIELD,
                    node.span,
                    "the file names no task",
                    "add `task: NAME` at its top level",
                );
            }
            found
        })?;
        let absolute = std::fs::canonicalize(file)
            .map_err(|error| Problem::file(&source.name, format!("the task's folder cannot be read: {error}")))?;
        // lm-eval takes these for a list of tasks, or for a pattern.
        if absolute.to_string_lossy().contains([',', '*', '?', '[', ']']) {
            let message = format!("lm-eval cannot read a path such as `{}`", absolute.display());
            return Err(Problem::file(&source.name, message)
                .hint("move the task to a path without , * ? [ ]")
                .into());
        }
        Ok(Self {
            name,
            file: absolute,
            is_group,
        })
    }
}

/// The variables that name a task: a file or folder, else a name. The first that is set counts.
pub(crate) const VARIABLES: [&str; 2] = ["EVAL_TASKS_DIR", "EVAL_TASKS"];

/// The task that [`VARIABLES`] name. Empty ones count as unset.
pub(crate) fn given<'a>(variable: impl Fn(&'static str) -> Option<&'a str>) -> Option<&'a str> {
    let own = |name| variable(name).filter(|text| !text.trim().is_empty());
    VARIABLES.into_iter().find_map(own)
}

/// The only task file of a folder.
fn only_task(folder: &Path) -> Result<PathBuf, Problem> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "yaml" || end == "yml"))
        .collect();
    files.sort();
    match &files[..] {
        [only] => Ok(only.clone()),
        [] => Err(Problem::file(
            &folder.display().to_string(),
            format!("`{}` holds no task: no .yaml file", folder.display()),
        )),
        several => {
            let names: Vec<String> = several.iter().map(|file| file.display().to_string()).collect();
            let message = format!("`{}` holds several tasks: {}", folder.display(), names.join(", "));
            Err(Problem::file(&folder.display().to_string(), message).hint("name one of the files"))
        }
    }
}

/// The names of the tasks of a folder with task files, by which thresholds may go: a file that names none is none.
#[must_use]
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()));
    let is_task = |path: &PathBuf| {
        path.extension()
            .is_some_and(|extension| extension == "yaml" || extension == "yml")
    };
    let mut names: Vec<String> = files
        .filter(is_task)
        .filter_map(|path| Some(Task::read(&path).ok()?.name))
        .collect();
    names.sort();
    names
}

/// The names of the tasks under some roots.
fn known(roots: &[PathBuf]) -> Vec<String> {
    let mut names: Vec<String> = roots
        .iter()
        .filter_map(|root| std::fs::read_dir(root.join(FOLDER)).ok())
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| Some(name.strip_suffix(".yaml")?.to_owned()))
        .collect();
    names.sort();
    names.dedup();
    names
}
