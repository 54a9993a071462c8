//! Whether what a run left is evidence: the checklist that results pass before they are compared or published.
//!
//! Each check is a file of its own that looks at the artifacts of one run and gives one line: it passes, it fails, or it
//! does not apply, with the files that show it. Nothing is downloaded and nothing is written.

mod agreement;
mod backends;
mod collection;
mod diagnostic;
mod evals;
mod identity;
mod intent;
mod line;
mod material;
mod provenance;

use std::path::{Path, PathBuf};

use serde::Serialize;

pub(crate) use self::line::{Line, Verdict};
pub(crate) use self::material::{Material, PROVENANCE, Run};
use crate::config::problem::{Problem, Problems};
use crate::config::thresholds::Thresholds;

/// What is looked at.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The folder that the artifacts of one run were downloaded to, each in a folder of its name.
    pub dir: PathBuf,
    /// The plan, where it is not `plan` in that folder.
    pub plan: Option<PathBuf>,
    /// The run that the artifacts should be of, where one was named.
    pub run: Option<u64>,
    /// Which score passes.
    pub thresholds: Thresholds,
}

/// What was found.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Evidence {
    /// Whether no check fails.
    pub complete: bool,
    /// Whether something in it is for diagnosis only, and is no measurement.
    pub diagnostic: bool,
    /// The run, as far as something names it.
    pub run: Run,
    /// Every check, in the order of the checklist.
    pub checks: Vec<Line>,
}

/// Goes through the checklist.
///
/// # Errors
/// A folder that cannot be searched. What is missing in it is a check that fails.
pub(crate) fn look(request: &Request) -> Result<Evidence, Problems> {
    let material = Material::read(request)?;
    let checks = vec![
        intent::matrix(&material),
        evals::full_split(&material)?,
        evals::batch_points(&material),
        evals::gate(&material),
        agreement::look(&material)?,
        provenance::look(&material),
        backends::look(&material),
        diagnostic::look(&material)?,
        identity::image(&material),
        identity::commit(&material),
        identity::attempt(&material),
        collection::look(&material),
    ];
    Ok(Evidence {
        complete: checks.iter().all(|line| line.verdict != Verdict::Fail),
        diagnostic: diagnostic::is_any(&material)?,
        run: material.run(),
        checks,
    })
}

impl Evidence {
    /// How many checks have a verdict.
    #[must_use]
    pub(crate) fn count(&self, verdict: Verdict) -> usize {
        self.checks.iter().filter(|line| line.verdict == verdict).count()
    }

    /// The columns of [`Self::rows`].
    pub(crate) const HEAD: [&'static str; 4] = ["check", "verdict", "file", "why"];

    /// One row a check, for a table.
    #[must_use]
    pub(crate) fn rows(&self) -> Vec<Vec<String>> {
        self.checks.iter().map(Line::cells).collect()
    }

    /// One line of Markdown for a README: the verdict, what it stands on, and the run and commit that it is of.
    #[must_use]
    pub(crate) fn badge(&self) -> String {
        let (passed, failed) = (self.count(Verdict::Pass), self.count(Verdict::Fail));
        let word = match (self.complete, self.diagnostic) {
            (false, _) => "incomplete",
            (true, true) => "diagnostic only",
            (true, false) => "complete",
        };
        let mut text = format!("**Evidence: {word}** ({passed} of {} checks", passed + failed);
        let failing: Vec<&str> = self.failing().map(|line| line.check).collect();
        match failing.is_empty() {
            true => text.push(')'),
            false => text.push_str(&format!("; fails: {})", failing.join(", "))),
        }
        if let Some(run) = self.run.id {
            text.push_str(&format!(", run {run}"));
        }
        if let Some(attempt) = self.run.attempt {
            text.push_str(&format!(" attempt {attempt}"));
        }
        if let Some(commit) = &self.run.commit {
            let short: String = commit.chars().take(12).collect();
            text.push_str(&format!(", commit `{short}`"));
        }
        text
    }

    /// The checks that fail.
    pub(crate) fn failing(&self) -> impl Iterator<Item = &Line> {
        self.checks.iter().filter(|line| line.verdict == Verdict::Fail)
    }
}

/// Reads a JSON value of a file that is not trusted; the error ends a sentence about the file.
fn json(path: &Path) -> Result<serde_json::Value, String> {
    let bytes = crate::files::read(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "is missing".to_owned(),
        _ => format!("cannot be read: {error}"),
    })?;
    serde_json::from_slice(&bytes).map_err(|error| format!("is no JSON: {error}"))
}

/// The folder of an artifact cannot be searched.
fn unsearched(dir: &Path, error: &std::io::Error) -> Problem {
    let name = crate::files::shown(dir);
    Problem::file(&name, format!("{name} cannot be searched: {error}"))
        .hint("name the folder that the artifacts of a run were downloaded to")
}
