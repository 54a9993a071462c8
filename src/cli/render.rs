//! `sweepctl render`: the workflows, from templates and configs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde::Serialize;

use super::inputs::both;
use super::output;
use crate::config::labels::{self, Labels};
use crate::config::problem::{Problem, Problems, printable};
use crate::config::source::Source;
use crate::config::workflows::{self, Workflows};
use crate::plural;
use crate::workflow::render::{self, Drift, Rendered};
use crate::workflow::templates::{FOLDER, Templates};

const HELP: &str = "\
Inputs, from the repository's root: configs/workflows.yaml (files, pins, permissions, timeouts, extra steps and jobs), \
configs/labels.yaml (the labels that restart a sweep), and templates. A template or partial in workflows-templates/ \
stands in for the built-in one of the same name.

Examples:
  sweepctl render                 write workflows and the composite action
  sweepctl render --check         what CI runs: exit 1 where files differ
  sweepctl render --out /tmp/w    write elsewhere, to look at the result first";

/// `sweepctl render`
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Render {
    /// Write nothing; show what differs, and fail where anything does or where a file is not known
    #[arg(long)]
    check: bool,
    /// The folder that .github/ is written to, or compared in
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// The repository's own templates
    #[arg(long, value_name = "DIR", default_value = FOLDER)]
    templates: PathBuf,
    /// Print JSON: the files and what became of them; with --check the findings
    #[arg(long)]
    json: bool,
}

/// A file of the output.
#[derive(Serialize)]
struct Line<'r> {
    file: &'r str,
    outcome: &'static str,
}

impl Render {
    /// Renders, and writes or compares.
    ///
    /// # Errors
    /// Everything wrong with the configs or the templates; with `--check`, every file that differs.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let (rendered, settings) = rendered(Path::new("."), &self.templates)?;
        if self.check {
            return self.compare(&rendered, &settings);
        }
        let written = render::write(&self.out, &rendered)?;
        if self.json {
            return self.list(&rendered, &written);
        }
        let mut text: String = written.iter().map(|path| format!("wrote {path}\n")).collect();
        text.push_str(&format!(
            "{} of {} up to date\n",
            rendered.len() - written.len(),
            plural::count(rendered.len(), "file")
        ));
        output::text(&text)
    }

    fn list(&self, rendered: &[Rendered], written: &[String]) -> anyhow::Result<()> {
        let outcome = |file: &Rendered| match written.contains(&file.path) {
            true => "written",
            false => "up-to-date",
        };
        let lines = rendered.iter().map(|file| Line {
            file: &file.path,
            outcome: outcome(file),
        });
        output::json(&lines.collect::<Vec<_>>())
    }

    fn compare(&self, rendered: &[Rendered], settings: &Workflows) -> anyhow::Result<()> {
        let mut problems = Problems::default();
        for drift in render::drift(&self.out, rendered, &settings.unmanaged)? {
            problems.push(match drift {
                Drift::Missing(path) => {
                    Problem::file(&path, format!("`{path}` is not there")).hint("run `sweepctl render`")
                }
                Drift::Differs(path, diff) => {
                    let lines: String = diff.lines().map(|line| printable(line) + "\n").collect();
                    if !self.json {
                        output::text(&lines)?;
                    }
                    Problem::file(&path, format!("`{path}` is not what it is rendered from"))
                        .hint("change the template or the configs, then run `sweepctl render`")
                }
                Drift::Unknown(path) => Problem::file(&path, format!("nothing renders `{path}`"))
                    .hint("remove it, or name it in `unmanaged` of configs/workflows.yaml"),
            });
        }
        problems.into_result()?;
        match self.json {
            true => self.list(rendered, &[]),
            false => Ok(()),
        }
    }
}

/// Every file of a repository, rendered, and the settings that it was rendered with.
///
/// # Errors
/// Everything wrong with the configs or the templates.
pub(crate) fn rendered(root: &Path, templates: &Path) -> Result<(Vec<Rendered>, Arc<Workflows>), Problems> {
    let labels = own_or(root, "configs/labels.yaml", labels::BUILT_IN).and_then(|source| Labels::load(&source));
    let (labels, settings) = both(labels, workflow_settings(root))?;
    let settings = Arc::new(settings);
    let templates = Templates::with_folder(&root.join(templates), &settings.workflows)?;
    let rendered = render::render(&templates, &labels, &settings)?;
    Ok((rendered, settings))
}

/// A repository's settings of workflows, or the built-in ones.
///
/// # Errors
/// Everything wrong with the file.
pub(crate) fn workflow_settings(root: &Path) -> Result<Workflows, Problems> {
    own_or(root, "configs/workflows.yaml", workflows::BUILT_IN).and_then(|source| Workflows::load(&source))
}

fn own_or(root: &Path, path: &str, built_in: &str) -> Result<Arc<Source>, Problems> {
    let own = root.join(path);
    let source = match own.exists() {
        true => Source::read_as(&own, path)?,
        false => Source::from_bytes(&format!("<built-in>/{path}"), built_in.into())?,
    };
    Ok(Arc::new(source))
}
