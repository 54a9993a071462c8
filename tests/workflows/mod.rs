//! The workflows: rendered, read by GitHub's own parser and by linters, and checked.

mod checks;
mod commands;
mod linters;
mod queue;
mod rendering;
mod settings;
mod starter;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sweepctl::config::labels::{self, Labels};
use sweepctl::config::problem::Problems;
use sweepctl::config::source::Source;
use sweepctl::config::workflows::Workflows;
use sweepctl::workflow::render::{Rendered, render};
use sweepctl::workflow::templates::Templates;

use crate::support::project;

/// A text under a name.
fn source(name: &str, text: &str) -> Arc<Source> {
    Arc::new(Source::from_bytes(name, text.into()).expect("plain text"))
}

/// The project's own settings, as text.
const SETTINGS: &str = include_str!("../../configs/workflows.yaml");

/// Renders with the project's own settings and labels, each edited.
fn rendered_with(
    settings: impl Fn(&str) -> String,
    labels: impl Fn(&str) -> String,
) -> Result<Vec<Rendered>, Problems> {
    let settings = Workflows::load(&source("workflows.yaml", &settings(SETTINGS)))?;
    let labels = Labels::load(&source("labels.yaml", &labels(labels::BUILT_IN)))?;
    render(&Templates::built_in(), &labels, &Arc::new(settings))
}

/// Replaces a text that must be there.
fn edit(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "the text has no {from:?}");
    text.replacen(from, to, 1)
}

/// A snapshot in the project's `snapshots` folder.
fn snapshot(name: &str, text: &str) {
    insta::with_settings!({
        snapshot_path => concat!(env!("CARGO_MANIFEST_DIR"), "/snapshots"),
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::assert_snapshot!(name, text);
    });
}

/// What changed from one rendering to another, as a diff of each file.
fn changes(before: &[Rendered], after: &[Rendered]) -> String {
    let text_of = |all: &[Rendered], path: &str| all.iter().find(|f| f.path == path).map(|f| f.text.clone());
    let mut paths: Vec<&str> = before.iter().chain(after).map(|file| file.path.as_str()).collect();
    paths.sort_unstable();
    paths.dedup();
    let mut out = String::new();
    for path in paths {
        match (text_of(before, path), text_of(after, path)) {
            (Some(_), None) => out.push_str(&format!("gone: {path}\n")),
            (before, Some(after)) => {
                let before = before.unwrap_or_default();
                let diff = similar::TextDiff::from_lines(&before, &after);
                out.push_str(&diff.unified_diff().context_radius(1).header(path, path).to_string());
            }
            (None, None) => {}
        }
    }
    out
}

/// The project's files that checks and linters read.
fn project_files() -> Vec<PathBuf> {
    let folder = project().join(".github/workflows");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("the workflows are rendered")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    assert!(files.len() >= 9, "{files:?}");
    files
}

/// A tool that `tests/tools` installs.
pub fn tool(path: &str) -> PathBuf {
    let folder = std::env::var_os("SWEEPCTL_TOOLS").map_or_else(|| project().join(".tools"), PathBuf::from);
    let tool = folder.join(path);
    assert!(tool.exists(), "{} is not there: run `tests/tools`", tool.display());
    tool
}

/// The PATH with a folder before it.
fn path_with(folder: &Path) -> std::ffi::OsString {
    let rest = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths([folder.to_path_buf()].into_iter().chain(std::env::split_paths(&rest))).expect("a PATH")
}
