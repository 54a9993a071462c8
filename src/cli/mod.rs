//! The commands: one file each, with its arguments and the call it makes.

pub mod envelope_file;
pub mod eval;
pub mod generate;
pub mod inputs;
pub mod output;
pub mod sweep;
pub mod upload;

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
    /// Size and run an accuracy eval
    #[command(subcommand)]
    Eval(eval::Eval),
    Upload(upload::Upload),
    Sweep(sweep::Sweep),
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
        Command::Eval(eval) => eval.run(),
        Command::Upload(upload) => upload.run(),
        Command::Sweep(sweep) => sweep.run(),
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
