//! `sweepctl init`: a starter for a repository that adopts sweepctl.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::output;
use super::render::rendered;
use super::shell_library;
use crate::backends::container::Runtime;
use crate::config::problem::{Problem, Problems};
use crate::config::workflows::Workflows;
use crate::step::job_folder::LIBRARY;
use crate::workflow::init::example::{Engine, Example};
use crate::workflow::init::{self, Outcome};
use crate::workflow::render::{self, Drift, Rendered};
use crate::workflow::templates::FOLDER;

/// The settings of workflows, from a repository's root.
const SETTINGS: &str = "configs/workflows.yaml";

const HELP: &str = "\
Existing files are kept as they are, and listed. Workflows are rendered with the settings and labels \
that the repository then has; its other workflow files are named in `unmanaged`, so that `render --check` knows them. A \
workflow of a name that is rendered is replaced with --replace alone: without it nothing is written.

Examples:
  sweepctl init .
  sweepctl init --hardware h100 --runtime docker --engine vllm
      one runner label, its cluster, and one config that runs there
  git add configs perf-changelog.yaml .github
  sweepctl check && sweepctl render --check";

/// `sweepctl init`
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Init {
    /// The repository's root
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Replace the repository's own workflows of the names that are rendered, and its shell library
    #[arg(long)]
    replace: bool,
    /// The GPUs that the first sweep runs on, such as h100 or mi355x [default: none, a mock server]
    #[arg(long, value_name = "NAME", help_heading = "An example for your hardware", requires_all = ["runtime", "engine"])]
    hardware: Option<String>,
    /// What runs its containers
    #[arg(long, value_name = "NAME", help_heading = "An example for your hardware", requires = "hardware", value_parser = runtime)]
    runtime: Option<Runtime>,
    /// What serves the model
    #[arg(long, value_name = "NAME", help_heading = "An example for your hardware", requires = "hardware", value_parser = engine)]
    engine: Option<Engine>,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Line {
    file: String,
    outcome: Outcome,
}

fn runtime(text: &str) -> Result<Runtime, String> {
    chosen(text, &Runtime::CHOICES)
}

fn engine(text: &str) -> Result<Engine, String> {
    chosen(text, &Engine::CHOICES)
}

fn chosen<T: Copy>(text: &str, choices: &[(&str, T)]) -> Result<T, String> {
    let found = choices.iter().find(|(name, _)| *name == text);
    let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    found
        .map(|(_, value)| *value)
        .ok_or_else(|| format!("one of {}", names.join(", ")))
}

impl Init {
    /// Writes what is missing, and prints what was written and what was kept.
    ///
    /// # Errors
    /// Workflows of the repository's own that stand in the way, files that cannot be written, and settings or templates
    /// of the repository's own that cannot be read. Before the first of them nothing is written.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let example = match (&self.hardware, self.runtime, self.engine) {
            (Some(hardware), Some(runtime), Some(engine)) => {
                Some(Example::new(hardware, runtime, engine).map_err(Problems::from)?)
            }
            _ => None,
        };
        let (workflows, settings) = rendered(&self.dir, Path::new(FOLDER))?;
        let replaced = init::replaced(&self.dir, &workflows);
        self.stands_in_the_way(&workflows, &replaced, &settings)?;
        let mut all = init::write(&self.dir, &init::inputs(&self.dir, example.as_ref()), &[])?;
        let workflows: Vec<(String, String)> = workflows.into_iter().map(|file| (file.path, file.text)).collect();
        let library = Rendered {
            path: LIBRARY.to_owned(),
            text: shell_library::TEXT.to_owned(),
        };
        // A library of the repository's own stays without a word: scripts may need it.
        let library_too = self
            .replace
            .then(|| init::replaced(&self.dir, std::slice::from_ref(&library)));
        all.extend(init::write(&self.dir, &workflows, &replaced)?);
        let library_too = library_too.unwrap_or_default();
        all.extend(init::write(&self.dir, &[(library.path, library.text)], &library_too)?);
        let lines: Vec<Line> = all.into_iter().map(|(file, outcome)| Line { file, outcome }).collect();
        if output::wants_json(self.json) {
            return output::json(&lines);
        }
        let rows: Vec<Vec<String>> = lines
            .iter()
            .map(|line| vec![line.file.clone(), line.outcome.name().to_owned()])
            .collect();
        output::text(&output::table(&["file", ""], &rows))?;
        output::text(
            "\nNext: describe your runners and configs, then `sweepctl check`. See `sweepctl docs adopting`.\n",
        )
    }

    /// Refuses what would leave a tree that `render --check` refuses.
    fn stands_in_the_way(
        &self,
        workflows: &[Rendered],
        replaced: &[String],
        settings: &Workflows,
    ) -> Result<(), Problems> {
        let mut problems = Problems::default();
        for path in replaced.iter().filter(|_| !self.replace) {
            let text = std::fs::read_to_string(self.dir.join(path)).unwrap_or_default();
            let lines = crate::plural::count(text.lines().count(), "line");
            let message = format!("`{path}` ({lines}) is there, and would be replaced by a rendered one");
            problems.push(
                Problem::file(path, message)
                    .hint("keep it under another name, or replace it with --replace; git has it"),
            );
        }
        // Without settings of its own the starter's name them.
        if self.dir.join(SETTINGS).exists() {
            for drift in render::drift(&self.dir, workflows, &settings.unmanaged)? {
                if let Drift::Unknown(path) = drift {
                    let problem = Problem::file(&path, format!("nothing renders `{path}`"));
                    problems.push(problem.hint(format!("name it in `unmanaged` of {SETTINGS}, or remove it")));
                }
            }
        }
        problems.into_result()
    }
}
