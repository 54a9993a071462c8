//! `sweepctl envelope`: the envelope that a job was given, as a file for its steps.

use std::path::PathBuf;

use clap::Args;

use super::{envelope_file, output};
use crate::config::problem::{Problems, printable};
use crate::matrix::envelope::Envelope;
use crate::matrix::names::ArtifactKind;
use crate::runner::{self, RunnerFile};

/// `sweepctl envelope`
#[derive(Debug, Args)]
pub(crate) struct OpenEnvelope {
    /// The file to write
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// Whether the job evaluates, instead of the row's own run-eval
    #[arg(long, value_name = "BOOL")]
    run_eval: Option<bool>,
    /// Whether the job does nothing else, instead of the row's own eval-only
    #[arg(long, value_name = "BOOL")]
    eval_only: Option<bool>,
    /// Write outputs to the file that GITHUB_OUTPUT names: `run_eval`, `eval_only`, and `kinds`, a JSON list of what the
    /// job may upload
    #[arg(long)]
    github_output: bool,
}

impl OpenEnvelope {
    /// Reads the envelope from standard input, applies the flags and writes it.
    ///
    /// # Errors
    /// Text that is no envelope, flags that contradict each other, and a file that cannot be written.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let mut envelope = envelope_file::read(std::path::Path::new("-"))?;
        envelope
            .set_flags(self.run_eval, self.eval_only)
            .map_err(Problems::from)?;
        std::fs::write(&self.output, serde_json::to_vec(&envelope)?)
            .map_err(|error| anyhow::anyhow!("`{}` cannot be written: {error}", self.output.display()))?;
        if self.github_output {
            runner::append(RunnerFile::Output, &outputs(&envelope)?)?;
        }
        output::text(&format!("{} {}\n", envelope.id, printable(&envelope.name)))
    }
}

fn outputs(envelope: &Envelope) -> anyhow::Result<[(String, String); 3]> {
    let row = &envelope.row;
    let kinds: Vec<&str> = ArtifactKind::of(row).into_iter().map(ArtifactKind::name).collect();
    Ok([
        ("run_eval".to_owned(), row.runs_eval().to_string()),
        ("eval_only".to_owned(), row.eval.eval_only.to_string()),
        ("kinds".to_owned(), serde_json::to_string(&kinds)?),
    ])
}
