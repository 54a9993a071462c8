//! One line of the checklist.

use std::path::Path;

use serde::Serialize;

use super::material::Material;
use crate::files::shown;
use crate::plural;

/// The most files and findings that a line names; the rest is counted.
const MOST: usize = 100;

/// What a check came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// It holds.
    Pass,
    /// It does not.
    Fail,
    /// The run has nothing that it is about.
    NotApplicable,
}

impl Verdict {
    /// The word for people.
    #[must_use]
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::NotApplicable => "not applicable",
        }
    }
}

/// Why a check fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// The file that shows it, or that should be there.
    pub file: String,
    /// What is wrong with it.
    pub message: String,
}

/// A check and its verdict.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Line {
    /// Its name.
    pub check: &'static str,
    /// What it asks.
    pub asks: &'static str,
    /// What it came to.
    pub verdict: Verdict,
    /// Why, in a sentence.
    pub why: String,
    /// The files that show it.
    pub files: Vec<String>,
    /// Everything that is wrong.
    pub findings: Vec<Finding>,
}

impl Line {
    /// The cells of a table's row.
    pub(super) fn cells(&self) -> Vec<String> {
        let first = self.findings.first().map(|finding| &finding.file);
        let file = first.or(self.files.first()).cloned().unwrap_or_default();
        vec![
            self.check.to_owned(),
            self.verdict.as_str().to_owned(),
            file,
            self.why.clone(),
        ]
    }
}

/// A check on its way to its line.
pub(super) struct Look<'m> {
    root: &'m Path,
    check: &'static str,
    asks: &'static str,
    applies: bool,
    files: Vec<String>,
    findings: Vec<Finding>,
}

impl<'m> Look<'m> {
    pub(super) fn new(material: &'m Material, check: &'static str, asks: &'static str) -> Self {
        Self {
            root: &material.root,
            check,
            asks,
            applies: false,
            files: Vec::new(),
            findings: Vec::new(),
        }
    }

    /// Names a file that shows that the check holds.
    pub(super) fn saw(&mut self, path: &Path) {
        self.applies = true;
        let name = self.name(path);
        if !self.files.contains(&name) {
            self.files.push(name);
        }
    }

    /// The check is about something in this run, even where no file shows it.
    pub(super) fn applies(&mut self) {
        self.applies = true;
    }

    /// Adds a reason why it does not hold, and the file that shows it or is missing.
    pub(super) fn fail(&mut self, path: &Path, message: impl Into<String>) {
        self.applies = true;
        let finding = Finding {
            file: self.name(path),
            message: message.into(),
        };
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    fn name(&self, path: &Path) -> String {
        shown(path.strip_prefix(self.root).unwrap_or(path))
    }

    /// The line: `none` says why the check does not apply where it found nothing that it is about.
    pub(super) fn line(mut self, none: &str) -> Line {
        let verdict = match (self.findings.is_empty(), self.applies) {
            (false, _) => Verdict::Fail,
            (true, true) => Verdict::Pass,
            (true, false) => Verdict::NotApplicable,
        };
        let why = match (verdict, self.findings.as_slice()) {
            (Verdict::Fail, [first, rest @ ..]) => match rest.len() {
                0 => first.message.clone(),
                more => format!("{}; and {more} more", first.message),
            },
            (Verdict::NotApplicable, _) => none.to_owned(),
            _ => match self.files.len() {
                0 => String::new(),
                1 => "1 file shows it".to_owned(),
                files => format!("{} show it", plural::count(files, "file")),
            },
        };
        self.files.truncate(MOST);
        self.findings.truncate(MOST);
        Line {
            check: self.check,
            asks: self.asks,
            verdict,
            why,
            files: self.files,
            findings: self.findings,
        }
    }
}
