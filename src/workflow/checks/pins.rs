//! Actions by commit: a tag can be moved to other code.

use crate::config::problem::{Problems, Span};
use crate::findings::workflow;
use crate::workflow::check::Files;
use crate::workflow::tree::{File, get};

/// Finds actions and workflows of other repositories that are not pinned to a commit, or do not say its version.
pub(crate) fn check(files: &Files<'_>, problems: &mut Problems) {
    for file in files.own() {
        let of_jobs: Vec<_> = file.jobs().filter_map(|job| job.get("uses")).collect();
        let of_steps = file.steps().filter_map(|step| get(step, "uses"));
        for uses in of_jobs.into_iter().chain(of_steps) {
            one(file, uses.text(), uses.span, problems);
        }
    }
}

fn one(file: &File<'_>, uses: &str, span: Span, problems: &mut Problems) {
    if uses.starts_with("./") {
        return;
    }
    let (name, pin) = uses.rsplit_once('@').unwrap_or((uses, ""));
    let digest = pin.strip_prefix("sha256:").filter(|_| uses.starts_with("docker://"));
    let (hex, length) = digest.map_or((pin, 40), |digest| (digest, 64));
    if hex.len() != length || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
        let problem = file.finding(&workflow::UNPINNED, span, format!("`{name}` is not pinned to a commit"));
        problems.push(problem.hint("write the 40 hex digits of a commit after `@`, and its version as a comment"));
        return;
    }
    let has_version = file
        .source
        .line(span.line)
        .split_once(" # ")
        .is_some_and(|(_, comment)| !comment.trim().is_empty());
    if !has_version {
        let problem = file.finding(
            &workflow::UNNAMED_PIN,
            span,
            format!("nobody can see which version of `{name}` this is"),
        );
        problems.push(problem.hint("add the version as a comment: `# v1.2.3`"));
    }
}
