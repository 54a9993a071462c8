//! What steps upload as artifacts, as far as the files say it.

use super::check::Files;
use super::checks::nesting::MAX_LEVELS;
use super::tree::{FileKind, Job, get, uses};
use crate::config::problem::Span;
use crate::config::tree::Node;

/// The action that uploads under a name that its step gives.
const UPLOAD: &str = "actions/upload-artifact";
/// What `actions/upload-artifact` calls an artifact without a name.
const DEFAULT_NAME: &str = "artifact";
/// Actions that upload nothing; of any other that is not written down in this repository nobody knows it.
const SILENT: [&str; 2] = ["actions/", "Swatinem/rust-cache@"];

/// An artifact's name in a file, which may hold expressions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name<'n> {
    /// Its text.
    pub text: &'n str,
    /// Where it stands.
    pub span: Span,
}

/// What may have been uploaded by some time.
#[derive(Debug, Clone, Default)]
pub(super) struct Uploaded<'f> {
    names: Vec<&'f str>,
    /// Whether there may be others, of any name.
    open: bool,
}

impl<'f> Uploaded<'f> {
    /// Adds what a job and those that it calls upload.
    pub(super) fn add_job(&mut self, files: &'f Files<'_>, job: &Job<'f, '_>, depth: usize) {
        self.add_steps(files, job.steps(), depth);
        if job.get("uses").is_none() {
            return;
        }
        match files.callee(job).filter(|_| depth < MAX_LEVELS) {
            Some(callee) => callee.jobs().for_each(|job| self.add_job(files, &job, depth + 1)),
            None => self.open = true,
        }
    }

    /// Adds what a step uploads.
    pub(super) fn add_step(&mut self, files: &'f Files<'_>, step: &'f Node<'_>, depth: usize) {
        let action = get(step, "uses").map_or("", Node::text);
        if uses(step, UPLOAD) {
            match name(step) {
                Some(name) => self.names.push(name.text),
                None => self.open = true,
            }
        } else if action.starts_with("./") {
            match files.action(step).filter(|_| depth < MAX_LEVELS) {
                Some(action) if action.kind == FileKind::Action && action.steps().next().is_some() => {
                    action.steps().for_each(|step| self.add_step(files, step, depth + 1));
                }
                _ => self.open = true,
            }
        } else if !action.is_empty() {
            let is_silent = SILENT.iter().any(|silent| action.starts_with(silent));
            self.open |= !is_silent || action.starts_with("actions/upload-");
        }
    }

    fn add_steps(&mut self, files: &'f Files<'_>, steps: &'f [Node<'_>], depth: usize) {
        steps.iter().for_each(|step| self.add_step(files, step, depth));
    }

    /// Whether an artifact of a name may be among them.
    pub(super) fn may_have(&self, name: &str) -> bool {
        self.open || self.names.iter().any(|known| fits(known, name))
    }

    /// The names that are known.
    pub(super) fn known(&self) -> impl Iterator<Item = &'f str> {
        self.names.iter().copied().filter(|name| !name.contains("${{"))
    }
}

/// The name that a step uploads under. `None` for a step that uploads nothing by `actions/upload-artifact`, and where only
/// the run knows the name.
pub(super) fn name<'n>(step: &'n Node<'_>) -> Option<Name<'n>> {
    let with = |key: &str| get(step, "with").and_then(|with| get(with, key));
    if !uses(step, UPLOAD) {
        return None;
    }
    // A file that is uploaded as it is keeps its name, whatever name is given.
    if with("archive").is_some_and(|node| node.text() == "false") {
        let path = with("path")?;
        let text = path.text().trim();
        let file = text.rsplit(['/', '\\']).next().unwrap_or_default();
        let is_one = !text.contains(['\n', '*', '?', '[']) && !text.contains("${{");
        return is_one.then_some(Name {
            text: file,
            span: path.span,
        });
    }
    let of = |text, span| Name { text, span };
    let default = || of(DEFAULT_NAME, get(step, "uses").map_or(step.span, |node| node.span));
    Some(with("name").map_or_else(default, |node| of(node.text(), node.span)))
}

/// Whether a name with expressions may become another; an expression may become any text.
fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split("${{");
    let Some(mut rest) = parts.next().and_then(|start| name.strip_prefix(start)) else {
        return false;
    };
    let mut literals = parts
        .map(|part| part.split_once("}}").map_or("", |(_, literal)| literal))
        .peekable();
    if literals.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(literal) = literals.next() {
        if literals.peek().is_none() {
            return rest.ends_with(literal);
        }
        match rest.split_once(literal) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn an_expression_may_become_any_text() {
        for (pattern, name, expected) in [
            ("plan", "plan", true),
            ("plan", "plans", false),
            ("${{ inputs.name }}", "plan", true),
            ("logs-${{ matrix.os }}", "logs-linux", true),
            ("logs-${{ matrix.os }}", "results-linux", false),
            ("a-${{ x }}-b-${{ y }}-c", "a-1-b-2-c", true),
            ("a-${{ x }}-b-${{ y }}-c", "a-1-2-c", false),
            ("${{ x }}.zip", "packages.tar", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} and {name}");
        }
    }
}
