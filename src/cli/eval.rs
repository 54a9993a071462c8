//! `sweepctl eval`: what an eval job runs.

use clap::Subcommand;

use super::eval_validate::Validate;

/// The parts of an eval job.
#[derive(Debug, Subcommand)]
pub enum Eval {
    /// Judge an eval: fail unless it is whole and every score clears its threshold
    ///
    /// It fails on a score under its threshold or that is no number from 0 to 1, a task of which nothing was
    /// checked, missing samples, silent answers, files that cannot be read, and concurrencies that were asked for and
    /// are not there. Every problem is listed. A task's threshold is models.<prefix>.<task> of the thresholds file,
    /// then default.<task>, then --min-score.
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
