//! The commands: one file each, with its arguments and the call it makes.

pub mod changelog;
pub mod generate;
pub mod inputs;
pub mod output;
pub mod plan;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::problem::{Problem, Problems};

/// Done.
pub const DONE: u8 = 0;
/// Refused or failed.
pub const REFUSED: u8 = 1;
/// Wrong usage.
pub const USAGE: u8 = 2;

#[derive(Debug, Parser)]
#[command(name = "sweepctl", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the rows of configs, without a changelog
    #[command(subcommand)]
    Generate(generate::Generate),
    /// Print the jobs that a change of the changelog asks for
    Plan(plan::PlanArgs),
    /// Check what a change does to perf-changelog.yaml, and repair it
    #[command(subcommand)]
    Changelog(changelog::ChangelogCommand),
}

/// Parses the arguments, runs the command and maps its error to an exit code.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors to clap's exit code.
            let code = if error.use_stderr() { USAGE } else { DONE };
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    let result = match cli.command {
        Command::Generate(generate) => generate.run(),
        Command::Plan(plan) => plan.run(),
        Command::Changelog(changelog) => changelog.run(),
    };
    match result {
        Ok(()) => ExitCode::from(DONE),
        Err(error) => ExitCode::from(report(&error)),
    }
}

fn report(error: &anyhow::Error) -> u8 {
    if let Some(usage) = error.downcast_ref::<clap::Error>() {
        let _ = usage.print();
        return USAGE;
    }
    if let Some(problems) = error.downcast_ref::<Problems>() {
        anstream::eprintln!("{problems}");
    } else {
        anstream::eprintln!("{}", Problem::file("", format!("{error:#}")));
    }
    REFUSED
}

/// A usage error that clap's own rules cannot express.
fn usage(kind: clap::error::ErrorKind, message: impl std::fmt::Display) -> anyhow::Error {
    use clap::CommandFactory;
    Cli::command().error(kind, message).into()
}
