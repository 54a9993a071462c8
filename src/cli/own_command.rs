//! Other commands of this program, run as its own children: what they do is what a person would do by hand.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::config::problem::{Problem, Problems};
use crate::github::client::Client;
use crate::github::recover::{self, PLAN};
use crate::github::text;

/// Fetches the plan of a run into a folder, and gives its place.
///
/// # Errors
/// As [`run`].
pub(super) fn fetch_plan(client: &Client, run_id: u64, folder: &Path) -> anyhow::Result<PathBuf> {
    let place = folder.display().to_string();
    let mut words = ["fetch", PLAN, "--out", &place].map(str::to_owned).to_vec();
    words.extend(recover::of_run(run_id, &client.repository().to_string()));
    run(&words, &[])?;
    Ok(folder.join(PLAN))
}

/// Runs this program with other arguments; what it prints goes beside this command's own output.
///
/// # Errors
/// A command that fails.
pub(super) fn run(words: &[String], variables: &[(&str, String)]) -> anyhow::Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::from(std::io::stderr()));
    // What the runner reads is for this command's own step.
    for name in ["GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_ENV"] {
        command.env_remove(name);
    }
    command.envs(variables.iter().map(|(name, value)| (*name, value)));
    let status = command.status()?;
    if status.success() {
        return Ok(());
    }
    let problem = Problem::file("", format!("`{}` failed ({status})", text::one_line(&shown(words))));
    Err(Problems::from(
        problem.hint("its messages are above; what was fetched is kept, so the same again goes on there"),
    )
    .into())
}

/// A command as a person would type it.
#[must_use]
pub(super) fn shown(words: &[String]) -> String {
    let words = ["sweepctl"].into_iter().chain(words.iter().map(String::as_str));
    shlex::try_join(words).unwrap_or_default()
}
