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
use crate::step::environment::Environment;

/// The folder's name, in the checkout's root.
pub const FOLDER: &str = ".sweepctl";
/// The job's envelope in it.
pub const ENVELOPE: &str = "envelope.json";
/// The job's variables in it.
pub const VARIABLES: &str = "variables";
/// The binary in it.
pub const BINARY: &str = "bin/sweepctl";
/// The shell library, which reads the folder.
pub const LIBRARY: &str = "benchmarks/benchmark_lib.sh";
/// Paths of the host, which mean nothing where the checkout is mounted elsewhere.
const OF_THE_HOST: [&str; 2] = ["INFMAX_WORKSPACE", "SWEEPCTL_ENVELOPE"];
/// Ends of the names of variables that are secrets.
const SECRET: [&str; 8] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "API_KEY",
    "ACCESS_KEY",
    "CREDENTIALS",
    "PRIVATE_KEY",
];
/// Shorter values are no secrets.
const MIN_SECRET: usize = 5;
/// What stands in place of a secret.
const MASK: &str = "***";
/// The largest library that is looked into, in bytes.
const MAX_LIBRARY: u64 = 1 << 20;

/// Lays the folder anew. `secrets` are values that it must not hold.
///
/// # Errors
/// A checkout that cannot be written.
pub fn lay(
    workspace: &Path,
    envelope: &Envelope,
    environment: &Environment,
    secrets: &[String],
) -> Result<PathBuf, Problem> {
    let folder = workspace.join(FOLDER);
    write(&folder, envelope, environment, secrets).map_err(|error| {
        let place = folder.display().to_string();
        Problem::file(&place, format!("the job's folder `{place}` cannot be written: {error}"))
            .hint("let the runner's user write to the checkout, and remove what another user left there")
    })?;
    Ok(folder)
}

fn write(folder: &Path, envelope: &Envelope, environment: &Environment, secrets: &[String]) -> io::Result<()> {
    remove(folder)?;
    let make = |path: &Path| DirBuilder::new().mode(0o755).create(path);
    make(folder)?;
    // A umask may take from the mode, and containers run as other users.
    open_up(folder, 0o755)?;
    put(&folder.join(".gitignore"), b"*\n")?;
    let text = serde_json::to_string_pretty(&described(envelope, secrets)?)?;
    put(&folder.join(ENVELOPE), format!("{text}\n").as_bytes())?;
    put(&folder.join(VARIABLES), &variables(environment, secrets))?;
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
pub fn remove(folder: &Path) -> io::Result<bool> {
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
pub fn is_needed(workspace: &Path) -> bool {
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
fn variables(environment: &Environment, secrets: &[String]) -> Vec<u8> {
    let told = environment
        .iter()
        .filter(|(name, value)| !OF_THE_HOST.contains(name) && !is_secret(name) && !holds_secret(value, secrets));
    told.flat_map(|(name, value)| format!("{name}={value}\0").into_bytes())
        .collect()
}

/// The envelope without what its workers' settings hold of secrets.
fn described(envelope: &Envelope, secrets: &[String]) -> io::Result<Value> {
    let mut value = serde_json::to_value(envelope)?;
    mask(&mut value, secrets);
    Ok(value)
}

fn mask(value: &mut Value, secrets: &[String]) {
    match value {
        Value::String(text) => {
            if let Some((name, _)) = text.split_once('=').filter(|(name, _)| is_secret(name)) {
                *text = format!("{name}={MASK}");
            }
            for secret in secrets.iter().filter(|secret| secret.len() >= MIN_SECRET) {
                if text.contains(secret.as_str()) {
                    *text = text.replace(secret.as_str(), MASK);
                }
            }
        }
        Value::Array(all) => all.iter_mut().for_each(|value| mask(value, secrets)),
        Value::Object(all) => all.values_mut().for_each(|value| mask(value, secrets)),
        _ => {}
    }
}

fn is_secret(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    SECRET.iter().any(|end| upper.ends_with(end))
}

fn holds_secret(value: &str, secrets: &[String]) -> bool {
    secrets
        .iter()
        .any(|secret| secret.len() >= MIN_SECRET && value.contains(secret.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets() {
        for name in [
            "HF_TOKEN",
            "modal_token_secret",
            "OPENAI_API_KEY",
            "DB_PASSWORD",
            "AWS_SECRET_ACCESS_KEY",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["MAX_NUM_TOKENS", "PREFILL_MAX_NUM_TOKENS", "CONC", "TOKENIZER", "KEY"] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn secrets_in_texts_are_masked() {
        let mut value = serde_json::json!({"a": ["HF_TOKEN=x", "X=hf_12345", "PLAIN=1"], "b": {"c": "hf_12345"}});
        mask(&mut value, &["hf_12345".to_owned(), "1".to_owned()]);
        let expected = serde_json::json!({"a": ["HF_TOKEN=***", "X=***", "PLAIN=1"], "b": {"c": "***"}});
        assert_eq!(value, expected);
    }
}
