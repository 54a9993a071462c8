//! What becomes of a script's replay: its aggregate, and whether its power was measured.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use clap::Args;

use super::envelope_file;
use crate::config::problem::{Problem, Problems};
use crate::files;

/// The field of an aggregate that says the GPUs' power.
const POWER: &str = "avg_power_w";

/// Writes the aggregate of a replay: that of `result process --replay`, under the name that the script gave.
///
/// # Errors
/// No envelope, and everything that keeps the replay from counting.
pub(super) fn aggregate(folder: &Path, out: &Path) -> anyhow::Result<()> {
    let envelope = envelope_file::of_job().ok_or_else(|| {
        let problem = Problem::file("", "a replay is held against its job's row, and there is no envelope");
        Problems::from(problem.hint("launch the script with `sweepctl launch`, or set SWEEPCTL_ENVELOPE to its file"))
    })?;
    let made = tempfile::tempdir()?;
    let status = Command::new(std::env::current_exe()?)
        .args(["result", "process", "--result-filename", "replay", "--replay"])
        .arg(folder)
        .arg("--envelope")
        .arg(envelope)
        .arg("--out")
        .arg(made.path())
        .stdout(std::io::stderr())
        .status()?;
    let written = std::fs::read_dir(made.path())?.flatten().next();
    let Some(written) = written.filter(|_| status.success()) else {
        let problem = Problem::file("", format!("the replay in {} does not count", folder.display()));
        return Err(Problems::from(problem.hint("the lines above say why")).into());
    };
    files::write_atomic(out, &std::fs::read(written.path())?)
        .with_context(|| format!("{} cannot be written", out.display()))
}

/// `library check-power`
#[derive(Debug, Args)]
pub struct PowerArgs {
    /// Where the replay's metrics lie
    #[arg(long)]
    result_dir: PathBuf,
    /// The aggregate
    #[arg(long)]
    agg_result: PathBuf,
    /// The job's GPUs
    #[arg(long)]
    expected_num_gpus: u64,
    /// Fail without power
    #[arg(long)]
    require_power: bool,
}

impl PowerArgs {
    /// Fails where power was required and the aggregate has none.
    ///
    /// # Errors
    /// So it is.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let text = std::fs::read_to_string(&self.agg_result).unwrap_or_default();
        let aggregate: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        if !self.require_power || aggregate[POWER].is_number() {
            return Ok(());
        }
        let (folder, gpus) = (self.result_dir.display(), self.expected_num_gpus);
        let message = format!("power is required, and {} has no {POWER}", self.agg_result.display());
        let hint = format!("see {folder}/gpu_metrics.csv: it needs samples of all {gpus} GPUs over the whole replay");
        Err(Problems::from(Problem::file("", message).hint(hint)).into())
    }
}
