//! The starter: the inputs of a first sweep.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use serde::Serialize;

use super::render::WORKFLOWS;
use crate::config::kind::Kind;
use crate::config::problem::{Problem, Problems};
use crate::config::{engines, labels, policy, thresholds, workflows};

/// What happened to a file of the starter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It was written.
    Written,
    /// It was there, and stays as it is.
    Kept,
    /// It was there, and is written anew.
    Replaced,
}

impl Outcome {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Kept => "kept",
            Self::Replaced => "replaced",
        }
    }
}

/// The starter's inputs by path: configs with their schemas, eval tasks, and the changelog. `root` is looked at for
/// workflow files of its own, which the settings then name.
#[must_use]
pub fn inputs(root: &Path) -> Vec<(String, String)> {
    let settings = workflows::BUILT_IN.replace("unmanaged: []", &unmanaged(root));
    let mut files = vec![
        (
            "configs/starter-master.yaml",
            include_str!("starter/starter-master.yaml").to_owned(),
        ),
        ("configs/runners.yaml", include_str!("starter/runners.yaml").to_owned()),
        (
            "configs/clusters.yaml",
            include_str!("starter/clusters.yaml").to_owned(),
        ),
        ("configs/engines.yaml", engines::BUILT_IN.to_owned()),
        ("configs/labels.yaml", labels::BUILT_IN.to_owned()),
        ("configs/eval-policy.yaml", policy::BUILT_IN.to_owned()),
        ("configs/thresholds.yaml", thresholds::BUILT_IN.to_owned()),
        ("configs/workflows.yaml", settings),
        (
            "configs/evals/gsm8k.yaml",
            include_str!("../../configs/evals/gsm8k.yaml").to_owned(),
        ),
        (
            "configs/evals/gsm8k_smoke.yaml",
            include_str!("../../configs/evals/gsm8k_smoke.yaml").to_owned(),
        ),
        (
            "configs/evals/data/gsm8k_smoke.jsonl",
            include_str!("../../configs/evals/data/gsm8k_smoke.jsonl").to_owned(),
        ),
        (
            "configs/evals/data/gsm8k_smoke_examples.jsonl",
            include_str!("../../configs/evals/data/gsm8k_smoke_examples.jsonl").to_owned(),
        ),
        (
            "perf-changelog.yaml",
            include_str!("starter/perf-changelog.yaml").to_owned(),
        ),
    ]
    .into_iter()
    .map(|(path, text)| (path.to_owned(), text))
    .collect::<Vec<_>>();
    files.extend(Kind::ALL.iter().map(|kind| {
        let path = format!("configs/schemas/{}.schema.json", kind.name());
        (path, format!("{:#}\n", kind.schema()))
    }));
    files
}

/// The workflow files that are there, as the setting that lets them stay.
fn unmanaged(root: &Path) -> String {
    let mut names: Vec<String> = std::fs::read_dir(root.join(WORKFLOWS))
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    format!("unmanaged: {}", serde_json::json!(names))
}

/// Writes the files that are not there, and gives what happened to each.
///
/// # Errors
/// Files that cannot be written, and folders that a link leads out of the root.
pub fn write(root: &Path, files: &[(String, String)]) -> Result<Vec<(String, Outcome)>, Problems> {
    let mut all = Vec::new();
    let mut problems = Problems::default();
    for (path, text) in files {
        match one(root, path, text) {
            Ok(outcome) => all.push((path.clone(), outcome)),
            Err(problem) => problems.push(problem),
        }
    }
    problems.into_result()?;
    Ok(all)
}

/// Writes files, also over others.
///
/// # Errors
/// As [`write`].
pub fn replace(root: &Path, files: &[(String, String)]) -> Result<Vec<(String, Outcome)>, Problems> {
    let mut all = write(root, files)?;
    for ((path, outcome), (_, text)) in all.iter_mut().zip(files) {
        let target = root.join(&*path);
        if *outcome == Outcome::Kept && std::fs::read_to_string(&target).ok().as_ref() != Some(text) {
            crate::files::write_atomic(&target, text.as_bytes())
                .map_err(|error| Problem::file(path, format!("`{path}` cannot be written: {error}")))?;
            *outcome = Outcome::Replaced;
        }
    }
    Ok(all)
}

fn one(root: &Path, path: &str, text: &str) -> Result<Outcome, Problem> {
    let target = root.join(path);
    let place = target.display().to_string();
    let failed = |error: std::io::Error| Problem::file(&place, format!("`{place}` cannot be written: {error}"));
    let folder = target.parent().unwrap_or(root);
    std::fs::create_dir_all(folder).map_err(failed)?;
    let inside = folder
        .canonicalize()
        .map_err(failed)?
        .starts_with(root.canonicalize().map_err(failed)?);
    if !inside {
        let problem = Problem::file(&place, format!("a link leads `{place}` out of the repository"));
        return Err(problem.hint("remove the link"));
    }
    // Creating fails on anything that is there, a link too: nothing is overwritten.
    match OpenOptions::new().write(true).create_new(true).open(&target) {
        Ok(mut file) => file
            .write_all(text.as_bytes())
            .map(|()| Outcome::Written)
            .map_err(failed),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(Outcome::Kept),
        Err(error) => Err(failed(error)),
    }
}
