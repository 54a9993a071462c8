//! Puts the git revision into `--version`.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=SWEEPCTL_REVISION");
    println!("cargo::rerun-if-changed=.git/HEAD");
    println!("cargo::rerun-if-changed=.git/refs/heads");
    let revision = std::env::var("SWEEPCTL_REVISION").ok().or_else(git_revision);
    let package = env!("CARGO_PKG_VERSION");
    let version = match revision {
        Some(revision) => format!("{package} ({revision})"),
        None => package.to_owned(),
    };
    println!("cargo::rustc-env=SWEEPCTL_VERSION={version}");
}

/// The short hash of the checkout; `None` outside one, as in a source archive.
fn git_revision() -> Option<String> {
    let output = Command::new("git")
        .args(["rev-parse", "--short=10", "HEAD"])
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
