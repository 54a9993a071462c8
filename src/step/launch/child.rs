//! How a launch starts a process: with every variable of its job, and its mark.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

use super::backend::Prepared;
use super::leftovers;
use crate::process::Watch;

/// A command with a job's environment.
#[must_use]
pub(crate) fn command(program: impl AsRef<OsStr>, job: &Prepared<'_>) -> Command {
    let mut command = Command::new(program);
    command.envs(job.environment.iter());
    if let Some(mark) = leftovers::current(job.state) {
        command.env(leftovers::VARIABLE, mark);
    }
    command
}

/// A program and its arguments as a command. `sweepctl` is this very binary, wherever it lies.
#[must_use]
pub(crate) fn of_arguments(arguments: &[String], job: &Prepared<'_>) -> Command {
    let (program, rest) = arguments
        .split_first()
        .map_or(("", &[][..]), |(p, rest)| (p.as_str(), rest));
    let mut command = command(program_path(program), job);
    command.args(rest);
    command
}

/// Where a program of a cluster's command is found.
#[must_use]
pub(crate) fn program_path(program: &str) -> PathBuf {
    if program == "sweepctl"
        && let Ok(own) = std::env::current_exe()
    {
        return own;
    }
    PathBuf::from(program)
}

/// Whether a program can be started: a path to a file, or a name on PATH.
#[must_use]
pub(crate) fn is_there(program: &str) -> bool {
    let path = program_path(program);
    if path.components().count() > 1 {
        return path.is_file();
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(&path).is_file())
}

/// How a child is watched; its whole output is kept in a log of the workspace.
#[must_use]
pub(crate) fn watch(job: &Prepared<'_>, log: &str) -> Watch {
    Watch {
        log: Some(job.workspace.join(log)),
        ..Watch::default()
    }
}
