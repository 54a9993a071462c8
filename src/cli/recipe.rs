//! `sweepctl recipe`: accuracy benchmarks in recipes of srt-slurm.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::{Args, Subcommand};
use serde::Serialize;

use super::format::{self, Format, FormatArgs};
use super::{annotate, output};
use crate::config::problem::{Problem, Problems};
use crate::config::recipe::accuracy::{self, Setting};
use crate::config::recipe::{Benchmark, check};
use crate::config::source::Source;
use crate::findings::{Severity, files as findings};
use crate::step::results::file;

/// `sweepctl recipe`
#[derive(Debug, Subcommand)]
pub(crate) enum RecipeCommand {
    /// Write an accuracy benchmark into a recipe, with every parameter and its default
    ///
    /// Comments and the order of the file stay. Where the recipe runs that benchmark already, its values stay too, but
    /// for those that --set names. What `recipe check` finds in the result is said as warnings.
    Accuracy(Accuracy),
    /// Find what would fail, or mislead, once the servers of a recipe are up
    Check(Check),
}

/// `recipe accuracy`
#[derive(Debug, Args)]
pub(crate) struct Accuracy {
    /// The benchmark
    #[arg(value_enum, value_name = "BENCHMARK")]
    benchmark: Benchmark,
    /// The recipe, of schema 1 or 2
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Set a parameter; lists with commas (`sweepctl docs accuracy` has them all)
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    settings: Vec<Setting>,
    /// Print the recipe, and leave the file as it is
    #[arg(long)]
    print: bool,
}

/// `recipe check`
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Recipes
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    format: FormatArgs,
}

fn setting(text: &str) -> Result<Setting, String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok(Setting {
            name: name.to_owned(),
            value: value.to_owned(),
        }),
        _ => Err("a name, `=` and a value, such as num_examples=100".to_owned()),
    }
}

impl RecipeCommand {
    /// Runs the subcommand.
    ///
    /// # Errors
    /// As the subcommand.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Accuracy(accuracy) => accuracy.run(),
            Self::Check(check) => check.run(),
        }
    }
}

impl Accuracy {
    /// Writes the benchmark.
    ///
    /// # Errors
    /// A file that cannot be read or written, or is no recipe, and settings that do not fit.
    fn run(&self) -> anyhow::Result<()> {
        let source = read(&self.file)?;
        let text = accuracy::update(&source, self.benchmark, &self.settings)?;
        let edited = Arc::new(Source::new(source.name.clone(), text));
        annotate::warn(&check::check(&edited)?.problems);
        if self.print {
            return output::text(&edited.text);
        }
        if edited.text != source.text {
            file::write_atomic(&self.file, edited.text.as_bytes())
                .with_context(|| format!("`{}` cannot be written", source.name))?;
            return output::text(&format!("wrote {} into {}\n", self.benchmark.name(), source.name));
        }
        output::text(&format!(
            "{} runs {} as asked already\n",
            source.name,
            self.benchmark.name()
        ))
    }
}

/// Reads a recipe. A link is not followed: the file that is written would be another one.
fn read(path: &Path) -> Result<Arc<Source>, Problems> {
    if path.is_symlink() {
        let name = path.display().to_string();
        let problem = findings::NOT_REGULAR.file(&name, format!("`{name}` is a link, not a regular file"));
        return Err(problem.hint("name the file that it leads to").into());
    }
    Ok(Arc::new(Source::read(path)?))
}

#[derive(Debug, Serialize)]
struct Checked {
    file: String,
    schema: u8,
    benchmark: Option<&'static str>,
}

impl Check {
    /// Checks and prints.
    ///
    /// # Errors
    /// Everything that is refused, of every file.
    fn run(&self) -> anyhow::Result<()> {
        let (mut checked, mut found) = (Vec::new(), Vec::new());
        for path in &self.files {
            let recipe = Source::read(path)
                .map_err(Problems::from)
                .and_then(|source| check::check(&Arc::new(source)));
            match recipe {
                Err(problems) => found.extend(problems.0),
                Ok(recipe) => {
                    checked.push(Checked {
                        file: path.display().to_string(),
                        schema: recipe.schema,
                        benchmark: recipe.benchmark.map(Benchmark::name),
                    });
                    found.extend(recipe.problems);
                }
            }
        }
        if found.iter().any(|problem| problem.severity == Severity::Error) {
            return Ok(Problems(found).into_result()?);
        }
        self.print(&checked, &found)
    }

    fn print(&self, checked: &[Checked], warnings: &[Problem]) -> anyhow::Result<()> {
        annotate::warn(warnings);
        match self.format.chosen() {
            Format::Json => return output::json(&checked),
            Format::Sarif => return format::sarif("recipe-check", warnings),
            Format::Text => {}
        }
        let row = |one: &Checked| {
            vec![
                one.file.clone(),
                one.schema.to_string(),
                one.benchmark.unwrap_or("-").to_owned(),
            ]
        };
        let rows: Vec<Vec<String>> = checked.iter().map(row).collect();
        output::text(&output::table(&["file", "schema", "accuracy"], &rows))
    }
}
