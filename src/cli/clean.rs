//! `sweepctl clean`: a workspace without an earlier job's results.

use std::path::PathBuf;

use clap::Args;

use super::output;
use crate::step::clean;
use crate::step::stage::shown;

/// Remove what an earlier job left in the workspace
///
/// Runs before a job and after its uploads. It removes what an upload would gather: eval results, throughput
/// results, server logs and GPU metrics at the workspace's top, its folders of raw agentic and set-aside results,
/// .sweepctl, where a launch describes its job, and what jobs left in LOGS/agentic/ and results/. There files that git
/// tracks stay, and of a results/ without a replay (aiperf_artifacts/) all but logs, settings and GPU metrics. Links are
/// removed, never followed.
#[derive(Debug, Args)]
pub(crate) struct Clean {
    /// The workspace
    #[arg(long, value_name = "DIR", env = "GITHUB_WORKSPACE", default_value = ".")]
    workspace: PathBuf,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
}

impl Clean {
    /// Cleans, and prints what it removed.
    ///
    /// # Errors
    /// Everything that could not be removed.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let cleaned = clean::clean_job(&self.workspace);
        for path in &cleaned.removed {
            eprintln!("removed {}", shown(path));
        }
        if output::wants_json(self.json) {
            output::json(&serde_json::json!({
                "removed": cleaned.removed,
                "problems": cleaned.problems.messages(),
            }))?;
        } else {
            println!("{} removed from {}", cleaned.removed.len(), self.workspace.display());
        }
        Ok(cleaned.problems.into_result()?)
    }
}
