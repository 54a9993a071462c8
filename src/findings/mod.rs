//! What can be found: each kind of finding once, with the id that people, code scanning and other programs know it by.
//!
//! An id never changes its meaning; one that is no longer found is not given to something else. docs/findings.md is
//! written from here (`sweepctl findings --markdown`).

pub(crate) mod changelog;
pub(crate) mod config;
pub(crate) mod files;
pub(crate) mod plan;
pub(crate) mod recipe;
pub mod refusals;
pub mod sarif;
pub(crate) mod workflow;

use serde::Serialize;

use crate::config::problem::{Place, Problem, Span};
use crate::config::source::Source;

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The command refuses, or fails.
    Error,
    /// Something to look at: the command goes on.
    Warning,
    /// Something to know.
    Notice,
}

impl Severity {
    /// As people and annotations write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Notice => "notice",
        }
    }
}

/// One kind of finding.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The stable name, `area/what`.
    pub id: &'static str,
    /// How much it weighs, unless the place where it is found says otherwise.
    pub severity: Severity,
    /// What is found, in a few words.
    pub title: &'static str,
    /// Why it is one.
    pub why: &'static str,
    /// The way out.
    pub remedy: &'static str,
}

impl Finding {
    /// A finding of a whole file.
    #[must_use]
    pub fn file(&'static self, file: &str, message: impl Into<String>) -> Problem {
        Problem::found(self, file, message)
    }

    /// A finding at a place.
    #[must_use]
    pub fn at(&'static self, source: &Source, span: Span, message: impl Into<String>) -> Problem {
        self.file(&source.name, message).spanning(source, span)
    }

    /// A finding at a place that was kept.
    #[must_use]
    pub fn here(&'static self, place: &Place, message: impl Into<String>) -> Problem {
        place.found(self, message)
    }

    /// The part of the id before the `/`.
    #[must_use]
    pub fn area(&self) -> &'static str {
        self.id.split('/').next().unwrap_or_default()
    }

    /// The page that explains it.
    #[must_use]
    pub fn page(&self) -> String {
        format!("{PAGE}#{}", self.anchor())
    }

    /// Its heading's anchor on that page, as GitHub makes it of the id.
    #[must_use]
    pub fn anchor(&self) -> String {
        self.id.replace('/', "")
    }
}

/// Defines findings and the list of them.
macro_rules! findings {
    ($($name:ident = $severity:ident $id:literal $title:literal $why:literal $remedy:literal;)+) => {
        $(
            #[doc = $title]
            pub(crate) static $name: $crate::findings::Finding = $crate::findings::Finding {
                id: $id,
                severity: $crate::findings::Severity::$severity,
                title: $title,
                why: $why,
                remedy: $remedy,
            };
        )+
        /// All of them, in the order of the page.
        pub(crate) static ALL: &[&$crate::findings::Finding] = &[$(&$name),+];
    };
}
use findings;

/// Every finding there is.
pub fn all() -> impl Iterator<Item = &'static Finding> {
    [
        files::ALL,
        config::ALL,
        changelog::ALL,
        plan::ALL,
        recipe::ALL,
        workflow::ALL,
        refusals::ALL,
    ]
    .into_iter()
    .flatten()
    .copied()
}

/// The page of the documentation that lists them.
#[must_use]
pub fn page() -> String {
    let mut out = String::from(PAGE_HEAD);
    let mut area = "";
    for finding in all() {
        if finding.area() != area {
            area = finding.area();
            out.push_str(&format!("\n## {area}\n"));
        }
        out.push_str(&format!(
            "\n### {}\n\n**{}** ({}). {} {}\n",
            finding.id,
            finding.title,
            finding.severity.name(),
            finding.why,
            finding.remedy
        ));
    }
    out
}

/// Where the page is read.
const PAGE: &str = "https://github.com/sweepctl/sweepctl/blob/main/docs/findings.md";

const PAGE_HEAD: &str = "\
# Findings

<!-- Written by `sweepctl findings --markdown`; a test holds the two together. -->

Everything that `sweepctl` refuses or warns of has an id that does not change its meaning. It stands in brackets behind
the severity:

```text
error[config/unknown-field]: unknown field `precison` in config `gpt-oss-vllm`
 --> configs/nvidia-master.yaml:7:3
  |
7 |   precison: fp4
  |   ^^^^^^^^
  |
  = help: did you mean `precision`?
```

An **error** makes the command exit with 1. A **warning** and a **notice** do not.

`check`, `workflow check` and `changelog check` take `--format text|json|sarif`; `--json` is short for `--format json`.
What is found is always said as text on standard error. With `--json`, which most commands take, a refusal also prints
`{\"findings\": [...]}` on standard output, each with `id`, `severity`, `file`, `line`, `column`, `end-column` (columns
count characters from 1), `message` and `remedy`; a command that printed a JSON of its own has what is wrong there, so that
standard output is one document. On GitHub Actions the id is the title of the annotation.

An id that ends in `/refused` is that of a whole area: its message says the rest.

## Code scanning

With `--format sarif` a SARIF 2.1.0 log is printed, also where nothing is found, so that alerts of what was fixed are closed. A job
that uploads it shows findings in the Security tab and on the lines of a pull request:

```yaml
jobs:
  check:
    runs-on: ubuntu-latest
    permissions:
      contents: read
      security-events: write
    steps:
      - uses: actions/checkout@<commit>
        with:
          persist-credentials: false
      - uses: ./.github/actions/setup-sweepctl
      - run: sweepctl check --format sarif >sweepctl.sarif
      - if: ${{ !cancelled() }}
        uses: github/codeql-action/upload-sarif@<commit>
        with:
          sarif_file: sweepctl.sarif
          category: sweepctl-check
```

A private repository also needs `actions: read`, and code scanning switched on. Pull requests of forks have no token that
may upload: there the annotations remain. Each log has a category of its own, so `workflow check` is uploaded in a second
step as `sweepctl-workflow-check`. Paths are relative to the repository's root. A finding of a whole file stands on its
first line, and one without a file stands in `no-file`: code scanning takes no log in which a result lacks a place.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_words_and_say_what_to_do() {
        let mut ids: Vec<&str> = all().map(|finding| finding.id).collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count, "an id is given twice");
        for finding in all() {
            let is_word = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
            let parts: Vec<&str> = finding.id.split('/').collect();
            assert!(
                parts.len() == 2 && parts.iter().all(|part| is_word(part)),
                "{}",
                finding.id
            );
            for text in [finding.title, finding.why, finding.remedy] {
                assert!(text.len() > 5, "{}: {text:?}", finding.id);
            }
            assert!(
                finding.why.ends_with('.') && finding.remedy.ends_with('.'),
                "{}",
                finding.id
            );
        }
    }

    #[test]
    fn anchors_are_unique() {
        let mut anchors: Vec<String> = all().map(Finding::anchor).collect();
        let count = anchors.len();
        anchors.sort_unstable();
        anchors.dedup();
        assert_eq!(anchors.len(), count);
    }
}
