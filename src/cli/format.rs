//! How findings and answers are printed: text, JSON or SARIF.

use std::path::Path;

use clap::{ArgMatches, Args, ValueEnum};
use serde::Serialize;

use super::output;
use crate::config::problem::Problem;
use crate::findings::{Severity, sarif};

/// A form of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// For programs
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
}

/// `--format` and its short form, of the commands that check.
#[derive(Debug, Args)]
pub(crate) struct FormatArgs {
    /// What to print [default: text on a terminal, else json]
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        conflicts_with = "json",
        hide_possible_values = true
    )]
    format: Option<Format>,
    /// Print JSON, also on a terminal: short for `--format json`
    #[arg(long)]
    json: bool,
}

impl FormatArgs {
    /// What was asked for, or what the place of the output asks for.
    #[must_use]
    pub(crate) fn chosen(&self) -> Format {
        match self.format {
            Some(format) => format,
            None if output::wants_json(self.json) => Format::Json,
            None => Format::Text,
        }
    }

    /// Whether a form was asked for.
    #[must_use]
    pub(crate) fn is_asked(&self) -> bool {
        self.json || self.format.is_some()
    }
}

/// The commands whose output is findings: a program that reads it gets them without asking. The gate of the changelog, whose
/// findings may be as many as the lines of a rewritten file, prints them where that is asked.
const CHECKS: [&str; 3] = ["check", "workflow-check", "recipe-check"];

/// What the command line asks of findings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The form beside the text on standard error; `None` where none was asked for.
    format: Option<Format>,
    /// The words of the command, `workflow-check`.
    command: String,
}

impl Asked {
    /// Reads the flags of whatever command it is: each names them alike.
    #[must_use]
    pub(crate) fn of(mut matches: &ArgMatches) -> Self {
        let mut words = Vec::new();
        while let Some((word, inner)) = matches.subcommand() {
            words.push(word);
            matches = inner;
        }
        // A flag of another type has another meaning there.
        let format = matches.try_get_one::<Format>("format").ok().flatten().copied();
        let json = matches.try_get_one::<bool>("json").ok().flatten() == Some(&true);
        let command = words.join("-");
        let is_json = json || (CHECKS.contains(&command.as_str()) && output::wants_json(false));
        Self {
            format: format.or(is_json.then_some(Format::Json)),
            command,
        }
    }
}

impl Asked {
    /// Whether findings take the place of the text on standard error: commands whose output is rows write nothing to
    /// standard output where they refuse, so that a pipe never takes findings for rows.
    #[must_use]
    pub(crate) fn replaces_text(&self) -> bool {
        let gives_rows = self.command == "plan" || self.command.starts_with("generate");
        gives_rows && self.format == Some(Format::Json)
    }
}

/// A finding as JSON.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Found<'p> {
    id: &'static str,
    severity: Severity,
    file: &'p str,
    line: Option<usize>,
    column: Option<usize>,
    end_column: Option<usize>,
    message: &'p str,
    remedy: &'p str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    log: &'p [String],
}

#[derive(Debug, Serialize)]
struct AllFound<'p> {
    findings: Vec<Found<'p>>,
}

/// Prints findings in the form that was asked for; text is said elsewhere. A command that printed a document of its own has
/// its problems there: standard output is one document, which programs read whole.
///
/// # Errors
/// As [`output::write`].
pub(crate) fn findings(asked: &Asked, problems: &[Problem]) -> anyhow::Result<()> {
    match asked.format {
        None | Some(Format::Text) => Ok(()),
        Some(_) if output::has_document() => Ok(()),
        Some(Format::Json) => {
            let all = AllFound {
                findings: problems.iter().map(found).collect(),
            };
            if asked.replaces_text() {
                eprintln!("{}", serde_json::to_string(&all)?);
                return Ok(());
            }
            output::json(&all)
        }
        Some(Format::Sarif) => sarif(&asked.command, problems),
    }
}

fn found(problem: &Problem) -> Found<'_> {
    Found {
        id: problem.finding.id,
        severity: problem.severity,
        file: &problem.file,
        line: problem.span.map(|span| span.line),
        column: problem.span.map(|span| span.column),
        end_column: problem.span.map(|span| problem.end_column(span)),
        message: &problem.message,
        remedy: problem.remedy(),
        log: &problem.log,
    }
}

/// Prints a SARIF log of a command's findings.
///
/// # Errors
/// As [`output::write`], and a working folder that is gone.
pub(crate) fn sarif(command: &str, problems: &[Problem]) -> anyhow::Result<()> {
    let here = std::env::current_dir()?;
    let is_root = |folder: &&Path| folder.join(".git").exists();
    let repository = here.ancestors().find(is_root).unwrap_or(&here).to_path_buf();
    output::json(&sarif::log(command, problems, &sarif::Roots { here, repository }))
}
