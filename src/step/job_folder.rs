//! The folder `.sweepctl/` of a checkout: what a job's scripts need to know of their job wherever the checkout is
//! mounted, also in containers that get a fixed list of variables.
//!
//! It holds this binary as `bin/sweepctl`, the job's envelope, and its variables as NUL-separated `NAME=VALUE`, which a
//! shell reads without evaluating anything. It never holds a secret: no variable whose name or value is one, and no
//! setting of a worker that carries one.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::config::problem::Problem;
use crate::matrix::envelope::Envelope;
use crate::secrets::{Mask, is_secret};
use crate::step::environment::Environment;

/// The folder's name, in the checkout's root.
pub(crate) const FOLDER: &str = ".sweepctl";
/// The job's envelope in it.
pub(crate) const ENVELOPE: &str = "envelope.json";
/// The job's variables in it.
pub(crate) const VARIABLES: &str = "variables";
/// The binary in it.
pub(crate) const BINARY: &str = "bin/sweepctl";
/// The shell library, which reads the folder.
pub(crate) const LIBRARY: &str = "benchmarks/benchmark_lib.sh";
/// Paths of the host, which mean nothing where the checkout is mounted elsewhere.
const OF_THE_HOST: [&str; 2] = ["INFMAX_WORKSPACE", "SWEEPCTL_ENVELOPE"];
/// What a launch is told of its eval beside the row, and its scripts have to know.
const OF_THE_LAUNCH: [&str; 4] = [
    "EVAL_TASKS_DIR",
    "EVAL_TASKS",
    "EVAL_INCLUDE_PATH",
    "EVAL_ENDPOINT_READY_TIMEOUT_SECONDS",
];
/// What stands in place of a secret setting.
const HIDDEN: &str = "***";
/// The largest library that is looked into, in bytes.
const MAX_LIBRARY: u64 = 1 << 20;

/// Lays the folder anew. `mask` hides the values that it must not hold.
///
/// # Errors
/// A checkout that cannot be written.
pub(crate) fn lay(
    workspace: &Path,
    envelope: &Envelope,
    environment: &Environment,
    mask: &Mask,
) -> Result<PathBuf, Problem> {
    let folder = workspace.join(FOLDER);
    write(&folder, envelope, environment, mask).map_err(|error| {
        let place = folder.display().to_string();
        Problem::file(&place, format!("the job's folder `{place}` cannot be written: {error}"))
            .hint("let the runner's user write to the checkout, and remove what another user left there")
    })?;
    Ok(folder)
}

fn write(folder: &Path, envelope: &Envelope, environment: &Environment, mask: &Mask) -> io::Result<()> {
    remove(folder)?;
    let make = |path: &Path| DirBuilder::new().mode(0o755).create(path);
    make(folder)?;
    // A umask may take from the mode, and containers run as other users.
    open_up(folder, 0o755)?;
    put(&folder.join(".gitignore"), b"*\n")?;
    let text = serde_json::to_string_pretty(&described(envelope, mask)?)?;
    put(&folder.join(ENVELOPE), format!("{text}\n").as_bytes())?;
    put(&folder.join(VARIABLES), &variables(environment, mask))?;
    make(&folder.join("bin"))?;
    open_up(&folder.join("bin"), 0o755)?;
    let binary = folder.join(BINARY);
    // A copy and no hard link: what runs as root in a container could write through a link into the runner's own.
    io::copy(&mut File::open(std::env::current_exe()?)?, &mut create(&binary)?)?;
    open_up(&binary, 0o755)
}

/// Removes the folder, or the link or file that stands in its place. Whether there was one.
///
/// # Errors
/// It cannot be removed.
pub(crate) fn remove(folder: &Path) -> io::Result<bool> {
    let removed = match folder.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => Err(error),
        // The standard library follows no link in there.
        Ok(metadata) if metadata.is_dir() => std::fs::remove_dir_all(folder),
        Ok(_) => std::fs::remove_file(folder),
    };
    removed.map(|()| true)
}

/// Whether the checkout's scripts cannot do without the folder: its shell library is the one of this tool.
#[must_use]
pub(crate) fn is_needed(workspace: &Path) -> bool {
    let library = workspace.join(LIBRARY);
    let small = library.metadata().is_ok_and(|metadata| metadata.len() <= MAX_LIBRARY);
    small && std::fs::read_to_string(library).is_ok_and(|text| text.contains(FOLDER))
}

fn put(path: &Path, content: &[u8]) -> io::Result<()> {
    create(path)?.write_all(content)?;
    open_up(path, 0o644)
}

/// A new file; one that is there, and a link, is refused.
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn open_up(path: &Path, mode: u32) -> io::Result<()> {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode))
}

/// The variables that may be known, each closed by a NUL.
fn variables(environment: &Environment, mask: &Mask) -> Vec<u8> {
    let own = OF_THE_LAUNCH
        .iter()
        .filter(|name| environment.get(name).is_none())
        .filter_map(|name| {
            Some((
                (*name).to_owned(),
                std::env::var(name).ok().filter(|value| !value.is_empty())?,
            ))
        });
    let told = environment
        .iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    told.chain(own)
        .filter(|(name, value)| {
            !OF_THE_HOST.contains(&name.as_str()) && !is_secret(name) && hidden(value, mask) == *value
        })
        .flat_map(|(name, value)| format!("{name}={value}\0").into_bytes())
        .collect()
}

/// The envelope without what its workers' settings hold of secrets.
fn described(envelope: &Envelope, mask: &Mask) -> io::Result<Value> {
    let mut value = serde_json::to_value(envelope)?;
    hide(&mut value, mask);
    Ok(value)
}

fn hide(value: &mut Value, mask: &Mask) {
    match value {
        Value::String(text) => {
            if let Some((name, _)) = text.split_once('=').filter(|(name, _)| is_secret(name)) {
                *text = format!("{name}={HIDDEN}");
            }
            *text = hidden(text, mask);
        }
        Value::Array(all) => all.iter_mut().for_each(|value| hide(value, mask)),
        Value::Object(all) => all.values_mut().for_each(|value| hide(value, mask)),
        _ => {}
    }
}

fn hidden(text: &str, mask: &Mask) -> String {
    mask.text(text.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_texts_are_masked() {
        let mut value = serde_json::json!({"a": ["HF_TOKEN=x", "X=hf_12345", "PLAIN=1"], "b": {"c": "hf_12345"}});
        hide(&mut value, &Mask::new(&["hf_12345", "1"]));
        let expected = serde_json::json!({"a": ["HF_TOKEN=***", "X=***", "PLAIN=1"], "b": {"c": "***"}});
        assert_eq!(value, expected);
    }
}
