//! The starter: the inputs of a first sweep.

pub(crate) mod example;

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use self::example::Example;
use super::render::{Rendered, WORKFLOWS};
use crate::config::kind::Kind;
use crate::config::problem::{Problem, Problems};
use crate::config::runners::Runners;
use crate::config::source::Source;
use crate::config::{engines, labels, policy, thresholds, workflows};

/// The starter's runners, the config that runs on them, and the cluster that they form.
const RUNNERS: &str = crate::config::runners::FILE;
const STARTER: &str = "configs/starter-master.yaml";
const CLUSTERS: &str = crate::config::clusters::FILE;

/// What happened to a file of the starter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Outcome {
    /// It was written.
    Written,
    /// It was there, and stays as it is.
    Kept,
    /// It was there, and is now another.
    Replaced,
}

impl Outcome {
    /// Its name.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Kept => "kept",
            Self::Replaced => "replaced",
        }
    }
}

/// The starter's inputs by path: configs with their schemas, eval tasks, and the changelog. `root` is looked at for
/// workflow files of its own, which the settings then name; with an example the first sweep is one on that hardware.
#[must_use]
pub(crate) fn inputs(root: &Path, example: Option<&Example>) -> Vec<(String, String)> {
    let settings = workflows::BUILT_IN.replace("unmanaged: []", &unmanaged(root));
    let Sweep {
        master,
        runners,
        clusters,
        changelog,
    } = sweep(example);
    // Without the starter's runners, a config and a cluster for them would name what is not there.
    let has_runners = has_runners(root, &runners);
    let mut files = vec![
        (STARTER, master),
        (RUNNERS, runners),
        (CLUSTERS, clusters),
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
        ("perf-changelog.yaml", changelog),
    ]
    .into_iter()
    .filter(|(path, _)| has_runners || ![STARTER, CLUSTERS].contains(path))
    .map(|(path, text)| (path.to_owned(), text))
    .collect::<Vec<_>>();
    files.extend(Kind::ALL.iter().map(|kind| {
        let path = format!("configs/schemas/{}.schema.json", kind.name());
        (path, format!("{:#}\n", kind.schema()))
    }));
    files
}

/// Whether the runners file of a repository, where it has one, has every runner of the starter's under its label.
fn has_runners(root: &Path, starter: &str) -> bool {
    let load = |source| Runners::load(&Arc::new(source)).map(|runners| runners.labels);
    let file = root.join(RUNNERS);
    if file.symlink_metadata().is_err() {
        return true;
    }
    let own = Source::read(&file).map_err(Problems::from).and_then(load);
    let starter = load(Source::new(RUNNERS.to_owned(), starter.to_owned()));
    let (Ok(own), Ok(starter)) = (own, starter) else {
        return false;
    };
    let has = |label: &str, runner| own.get(label).is_some_and(|names| names.contains(runner));
    starter
        .iter()
        .all(|(label, names)| names.iter().all(|runner| has(label, runner)))
}

/// What is measured, on which runners, what starts jobs there, and the changelog that asks for it.
struct Sweep {
    master: String,
    runners: String,
    clusters: String,
    changelog: String,
}

fn sweep(example: Option<&Example>) -> Sweep {
    let changelog = include_str!("starter/perf-changelog.yaml");
    match example {
        None => Sweep {
            master: include_str!("starter/starter-master.yaml").to_owned(),
            runners: include_str!("starter/runners.yaml").to_owned(),
            clusters: include_str!("starter/clusters.yaml").to_owned(),
            changelog: changelog.to_owned(),
        },
        Some(example) => Sweep {
            master: example.master(),
            runners: example.runners(),
            clusters: example.clusters(),
            changelog: changelog.replace("smoke-local-mock", &example.key()).replace(
                "First sweep: a smoke test that needs no GPU.",
                "First sweep: one model on one GPU.",
            ),
        },
    }
}

/// The rendered files that a repository has in another form.
#[must_use]
pub(crate) fn replaced(root: &Path, rendered: &[Rendered]) -> Vec<String> {
    let differs = |file: &&Rendered| {
        let path = root.join(&file.path);
        // Anything that is there and cannot be read is another one.
        path.symlink_metadata().is_ok() && std::fs::read(&path).ok().as_deref() != Some(file.text.as_bytes())
    };
    rendered.iter().filter(differs).map(|file| file.path.clone()).collect()
}

/// The workflow files that are there and are not rendered, as the setting that lets them stay.
fn unmanaged(root: &Path) -> String {
    let rendered = workflows::Workflows::built_in().workflows;
    let is_own = |name: &String| !rendered.iter().any(|stem| *name == format!("{stem}.yml"));
    let mut names: Vec<String> = std::fs::read_dir(root.join(WORKFLOWS))
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(is_own)
        .collect();
    names.sort();
    format!("unmanaged: {}", serde_json::json!(names))
}

/// Writes the files that are not there, and those of `replace`, and gives what happened to each.
///
/// # Errors
/// Files that cannot be written, and folders that a link leads out of the root.
pub(crate) fn write(
    root: &Path,
    files: &[(String, String)],
    replace: &[String],
) -> Result<Vec<(String, Outcome)>, Problems> {
    let mut all = Vec::new();
    let mut problems = Problems::default();
    for (path, text) in files {
        match one(root, path, text, replace.contains(path)) {
            Ok(outcome) => all.push((path.clone(), outcome)),
            Err(problem) => problems.push(problem),
        }
    }
    problems.into_result()?;
    Ok(all)
}

fn one(root: &Path, path: &str, text: &str, replace: bool) -> Result<Outcome, Problem> {
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
    let written = if replace {
        // Of a link the link itself goes.
        std::fs::remove_file(&target).map_err(failed)?;
        Outcome::Replaced
    } else {
        Outcome::Written
    };
    // Creating fails on anything that is there, a link too: nothing else is overwritten.
    match OpenOptions::new().write(true).create_new(true).open(&target) {
        Ok(mut file) => file.write_all(text.as_bytes()).map(|()| written).map_err(failed),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(Outcome::Kept),
        Err(error) => Err(failed(error)),
    }
}
