//! `sweepctl init`: a starter for a repository that adopts sweepctl.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::output;
use super::render::rendered;
use super::shell_library;
use crate::step::job_folder::LIBRARY;
use crate::workflow::init::{self, Outcome};
use crate::workflow::templates::FOLDER;

const HELP: &str = "\
Existing files are kept as they are, and listed. Workflows are rendered with the settings and labels \
that the repository then has; its other workflow files are named in `unmanaged`, so that `render --check` knows them.

Example:
  sweepctl init .
  git add configs perf-changelog.yaml .github
  sweepctl check && sweepctl render --check";

/// `sweepctl init`
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct Init {
    /// The repository's root
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Write the shell library anew over one that is there
    #[arg(long)]
    replace: bool,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Line {
    file: String,
    outcome: Outcome,
}

impl Init {
    /// Writes what is missing, and prints what was written and what was kept.
    ///
    /// # Errors
    /// Files that cannot be written, and settings or templates of the repository's own that cannot be read.
    pub fn run(&self) -> anyhow::Result<()> {
        let mut all = init::write(&self.dir, &init::inputs(&self.dir))?;
        let (workflows, _) = rendered(&self.dir, Path::new(FOLDER))?;
        let workflows: Vec<(String, String)> = workflows.into_iter().map(|file| (file.path, file.text)).collect();
        all.extend(init::write(&self.dir, &workflows)?);
        let library = [(LIBRARY.to_owned(), shell_library::TEXT.to_owned())];
        match self.replace {
            true => all.extend(init::replace(&self.dir, &library)?),
            false => all.extend(init::write(&self.dir, &library)?),
        }
        let lines: Vec<Line> = all.into_iter().map(|(file, outcome)| Line { file, outcome }).collect();
        if output::wants_json(self.json) {
            return output::json(&lines);
        }
        let rows: Vec<Vec<String>> = lines
            .iter()
            .map(|line| vec![line.file.clone(), line.outcome.name().to_owned()])
            .collect();
        output::text(&output::table(&["file", ""], &rows))?;
        output::text("\nNext: describe your runners and configs, then `sweepctl check`. See docs/adopting.md.\n")
    }
}
