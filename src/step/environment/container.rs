//! How a container gets a job's variables: most through an env-file, the rest by name.
//!
//! An env-file has no quoting that docker and podman agree on: docker takes a line as it stands and refuses long
//! ones, podman strips quotes. What such a file cannot carry unharmed is passed as `--env NAME`, whose value both take
//! from their own environment. Together the two are always all variables.

use super::Environment;

/// The longest line of an env-file, in bytes; docker reads lines of up to 64 KiB.
const MAX_LINE: usize = 32 * 1024;

/// The text of an env-file with every variable that it can carry.
#[must_use]
pub fn env_file(environment: &Environment) -> String {
    environment
        .iter()
        .filter(|(name, value)| fits(name, value))
        .map(|(name, value)| format!("{name}={value}\n"))
        .collect()
}

/// The names of the variables that [`env_file`] leaves out: pass each as `--env NAME`, and set them for the
/// container's command line.
pub fn by_name(environment: &Environment) -> impl Iterator<Item = &str> {
    environment
        .iter()
        .filter(|(name, value)| !fits(name, value))
        .map(|(name, _)| name)
}

/// Whether every reader of env-files gives the value back as it is.
fn fits(name: &str, value: &str) -> bool {
    let plain = |c: char| !c.is_control() && !matches!(c, '"' | '\'' | '`' | '\\' | '#' | '$');
    name.len() + 1 + value.len() <= MAX_LINE && value.trim() == value && value.chars().all(plain)
}
