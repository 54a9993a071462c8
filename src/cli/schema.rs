//! `sweepctl schema`, `completions` and `man`: what other tools read about this one.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

use super::{help, output};
use crate::config::kind::Kind;
use crate::config::problem::{Problem, Problems};

/// `sweepctl schema`
#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// The kind of file
    kind: Kind,
}

impl Schema {
    /// Prints the JSON Schema.
    ///
    /// # Errors
    /// Output that cannot be written.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        output::text(&(serde_json::to_string_pretty(&self.kind.schema())? + "\n"))
    }
}

/// `sweepctl completions`
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    /// Prints the completion script.
    ///
    /// # Errors
    /// Output that cannot be written.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut help::command(), "sweepctl", &mut script);
        output::write(&script)
    }
}

/// `sweepctl man`
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Write a page for each command to this folder [default: print the main page]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Man {
    /// Prints or writes the manual pages.
    ///
    /// # Errors
    /// Files that cannot be written.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let command = help::command();
        if let Some(out) = &self.out {
            let written = std::fs::create_dir_all(out).and_then(|()| clap_mangen::generate_to(command, out));
            return Ok(written.map_err(|error| {
                let place = out.display().to_string();
                let problem = Problem::file(&place, format!("the pages cannot be written to `{place}`: {error}"));
                Problems::from(problem.hint("name another folder with --out"))
            })?);
        }
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        output::write(&page)
    }
}
