//! The templates: those built in, and a repository's own in their place.

use std::collections::BTreeMap;
use std::path::Path;

use crate::config::problem::{Problem, Problems, nearest};
use crate::config::source::Source;

/// Where a repository keeps templates of its own.
pub const FOLDER: &str = "workflows-templates";
/// The folder of partials in it.
const PARTIALS: &str = "partials";
/// The end of a template's name.
const END: &str = ".yml";

macro_rules! built_in {
    ($($name:literal),+ $(,)?) => {
        /// The built-in templates by name.
        const BUILT_IN: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../workflows-templates/", $name)))),+];
    };
}

built_in! {
    "benchmark-multinode-tmpl.yml",
    "benchmark-tmpl.yml",
    "ci.yml",
    "collect-evals.yml",
    "collect-results.yml",
    "e2e-tests.yml",
    "fetch-artifacts.js",
    "fetch-artifacts.yml",
    "release.yml",
    "run-sweep.yml",
    "setup-sweepctl.yml",
    "sweep-shard.yml",
    "partials/benchmark.yml",
    "partials/collect.yml",
    "partials/steps.yml",
    "partials/sweep.yml",
}

/// Templates by name: `<workflow>.yml`, `partials/<name>.yml`, and the script of an action.
#[derive(Debug, Clone)]
pub struct Templates(BTreeMap<String, Source>);

impl Templates {
    /// The built-in templates.
    ///
    /// # Panics
    /// Never in a release: tests render every one.
    #[must_use]
    pub fn built_in() -> Self {
        let source = |(name, text): &(&str, &str)| {
            let place = format!("<built-in>/{FOLDER}/{name}");
            let source = Source::from_bytes(&place, (*text).into()).expect("the built-in templates are tested");
            ((*name).to_owned(), source)
        };
        Self(BUILT_IN.iter().map(source).collect())
    }

    /// The built-in templates, with a folder's own in their place and beside them. A folder that is not there has none.
    ///
    /// # Errors
    /// Files that cannot be read, and a workflow's template that `workflows` does not render: it may be misspelt.
    pub fn with_folder(folder: &Path, workflows: &[String]) -> Result<Self, Problems> {
        let mut templates = Self::built_in();
        let mut problems = Problems::default();
        for prefix in ["", PARTIALS] {
            for name in files(&folder.join(prefix)) {
                let path = folder.join(prefix).join(&name);
                let name = if prefix.is_empty() {
                    name
                } else {
                    format!("{prefix}/{name}")
                };
                let stem = name.trim_end_matches(END);
                let is_rendered = workflows.iter().any(|workflow| workflow == stem);
                if prefix.is_empty() && !is_rendered && !templates.0.contains_key(&name) {
                    let place = path.display().to_string();
                    let known = templates
                        .0
                        .keys()
                        .map(String::as_str)
                        .filter(|name| !name.contains('/'));
                    let hint = format!("name it in `workflows`, or correct its name: {}", nearest(&name, known));
                    problems.push(Problem::file(&place, format!("nothing renders the template `{name}`")).hint(hint));
                    continue;
                }
                match Source::read(&path) {
                    Ok(source) => drop(templates.0.insert(name, source)),
                    Err(problem) => problems.push(problem),
                }
            }
        }
        problems.into_result()?;
        Ok(templates)
    }

    /// A template by name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Source> {
        self.0.get(name)
    }

    /// The names of all.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// The templates of a folder, by name; links and folders are none.
fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let is_file = entry.file_type().ok()?.is_file();
            entry
                .file_name()
                .into_string()
                .ok()
                .filter(|name| is_file && name.ends_with(END))
        })
        .collect();
    names.sort();
    names
}
