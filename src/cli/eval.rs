//! `sweepctl eval`: what an eval job runs.

use clap::Subcommand;

use super::eval_validate::Validate;

/// The parts of an eval job.
#[derive(Debug, Subcommand)]
pub enum Eval {
    /// Judge an eval: fail unless it is whole and every score clears its threshold
    Validate(Validate),
}

impl Eval {
    /// Runs the command.
    ///
    /// # Errors
    /// Those of the part.
    pub fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Validate(validate) => validate.run(),
        }
    }
}
