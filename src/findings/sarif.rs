//! Findings as a SARIF 2.1.0 log, for code scanning.
//!
//! Format: <https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>; which of it GitHub reads:
//! <https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning>.

use std::path::{Component, Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::{Finding, Severity, all};
use crate::config::problem::{Problem, printable};

/// The schema that a log names.
pub const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Stands for a file where a problem has none, such as a missing ref, or is that of the repository as a whole: code
/// scanning refuses an empty URI, and takes one that leads nowhere.
const NO_FILE: &str = "no-file";

/// What stays as it is in the path of a URI.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Where the paths of problems start, and the root that a log's paths are relative to.
#[derive(Debug, Clone)]
pub struct Roots {
    /// The folder that the command runs in, absolute.
    pub here: PathBuf,
    /// The root of the repository, absolute: `here`, or a folder above it.
    pub repository: PathBuf,
}

/// The log of one run. `name` tells the logs of several checks of one repository apart.
#[must_use]
pub fn log(name: &str, problems: &[Problem], roots: &Roots) -> Value {
    let rules: Vec<&Finding> = all().collect();
    let results: Vec<Value> = problems.iter().map(|problem| result(problem, &rules, roots)).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {
                "driver": {
                    "name": "sweepctl",
                    "semanticVersion": env!("CARGO_PKG_VERSION"),
                    "rules": rules.iter().map(|finding| rule(finding)).collect::<Vec<_>>(),
                }
            },
            "automationDetails": { "id": format!("sweepctl/{name}/") },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }]
    })
}

fn rule(finding: &Finding) -> Value {
    let help = format!("{} {}", finding.why, finding.remedy);
    json!({
        "id": finding.id,
        "name": finding.id,
        "shortDescription": { "text": finding.title },
        "fullDescription": { "text": finding.why },
        "help": { "text": help, "markdown": help },
        "helpUri": finding.page(),
        "defaultConfiguration": { "level": level(finding.severity) },
        "properties": { "tags": [finding.area()] },
    })
}

fn result(problem: &Problem, rules: &[&Finding], roots: &Roots) -> Value {
    let index = rules.iter().position(|rule| *rule == problem.finding);
    let mut text = printable(&problem.message);
    text.push('\n');
    text.push_str(&printable(problem.remedy()));
    json!({
        "ruleId": problem.finding.id,
        "ruleIndex": index,
        "level": level(problem.severity),
        "message": { "text": text },
        "locations": [{ "physicalLocation": place(problem, roots) }],
    })
}

/// The place, always with a file and a line: code scanning takes no log in which one result lacks them.
fn place(problem: &Problem, roots: &Roots) -> Value {
    let path = problem.path();
    let named = match path.as_os_str().is_empty() {
        true => String::new(),
        false => uri(&path, roots),
    };
    let uri = if named.is_empty() { NO_FILE } else { &named };
    let region = match problem.span {
        Some(span) => json!({
            "startLine": span.line,
            "startColumn": span.column,
            "endLine": span.line,
            "endColumn": problem.end_column(span),
        }),
        None => json!({ "startLine": 1 }),
    };
    json!({ "artifactLocation": { "uri": uri }, "region": region })
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Notice => "note",
    }
}

/// A path relative to the repository's root, as a URI: no machine's own folders, and any byte of a name.
fn uri(path: &Path, roots: &Roots) -> String {
    let absolute = normal(&roots.here.join(path));
    let root = normal(&roots.repository);
    let shared = absolute
        .components()
        .zip(root.components())
        .take_while(|(a, b)| a == b)
        .count();
    let up = root.components().skip(shared).map(|_| "..".to_owned());
    let down = absolute.components().skip(shared).map(|part| {
        let text = part.as_os_str().to_string_lossy();
        utf8_percent_encode(&text, PATH).to_string()
    });
    up.chain(down).collect::<Vec<_>>().join("/")
}

/// A path without `.` and `..`, by its text: the file may be one of a commit.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::files;

    #[test]
    fn every_result_has_a_file_and_a_line() {
        let roots = Roots {
            here: "/home/me/fleet".into(),
            repository: "/home/me/fleet".into(),
        };
        for (file, uri) in [
            ("", "no-file"),
            (".", "no-file"),
            ("configs", "configs"),
            ("a.yaml", "a.yaml"),
        ] {
            let place = place(&files::MISSING.file(file, "missing"), &roots);
            assert_eq!(place["artifactLocation"]["uri"], uri, "{file:?}");
            assert_eq!(place["region"], json!({ "startLine": 1 }), "{file:?}");
        }
    }

    #[test]
    fn paths_become_relative_uris() {
        let roots = Roots {
            here: "/home/me/fleet/sub".into(),
            repository: "/home/me/fleet".into(),
        };
        for (path, expected) in [
            ("configs/a.yaml", "sub/configs/a.yaml"),
            ("./../b c.yaml", "b%20c.yaml"),
            ("/home/me/fleet/configs/ü#?.yaml", "configs/%C3%BC%23%3F.yaml"),
            ("a:b%.yaml", "sub/a%3Ab%25.yaml"),
            ("/home/me/other/x.yaml", "../other/x.yaml"),
        ] {
            assert_eq!(uri(Path::new(path), &roots), expected, "{path}");
        }
    }
}
