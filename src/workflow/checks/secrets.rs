//! Secrets by name, at every level: a called workflow sees only those that it declares and is given, and one that is
//! not given is empty without a word.

use std::sync::LazyLock;

use regex::Regex;

use crate::config::problem::{Problems, nearest};
use crate::findings::workflow;
use crate::workflow::check::Files;
use crate::workflow::tree::{File, pairs};

static USED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\bsecrets\s*\.\s*([A-Za-z_][A-Za-z0-9_-]*)").expect("the pattern is tested"));

/// What every workflow has.
const TOKEN: &str = "GITHUB_TOKEN";

/// Finds secrets that are used and not declared, passed and not declared, declared and not passed, or passed all.
pub fn check(files: &Files<'_>, problems: &mut Problems) {
    for file in files.workflows() {
        used(file, problems);
        passed(files, file, problems);
    }
}

fn used(file: &File<'_>, problems: &mut Problems) {
    // A workflow that is only called has no secrets but those that it declares.
    if !file.is_callable() {
        return;
    }
    let declared: Vec<&str> = file.declared("secrets").iter().map(|(name, _)| name.text()).collect();
    for node in file.scalars() {
        if !node.text().contains("${{") {
            continue;
        }
        for found in USED.captures_iter(node.text()) {
            let name = &found[1];
            if name != TOKEN && !declared.contains(&name) {
                let message = format!("the secret `{name}` is not declared, so a called run has none");
                let known = nearest(name, declared.iter().copied());
                let hint = format!("declare it under `on.workflow_call.secrets` ({known})");
                problems.push(
                    file.finding(&workflow::UNDECLARED_SECRET, node.span, message)
                        .hint(hint),
                );
            }
        }
    }
}

fn passed(files: &Files<'_>, file: &File<'_>, problems: &mut Problems) {
    for job in file.jobs() {
        let secrets = job.get("secrets");
        if let Some(node) = secrets.filter(|node| node.text() == "inherit") {
            let message = format!("`{}` passes every secret there is", job.id.text());
            problems.push(
                file.finding(&workflow::INHERITED_SECRETS, node.span, message)
                    .hint("name those that the called workflow declares"),
            );
            continue;
        }
        let Some(callee) = files.callee(&job) else { continue };
        let passed = secrets.map_or(&[][..], pairs);
        let declared = callee.declared("secrets");
        for (name, _) in passed {
            if !declared.iter().any(|(known, _)| known.text() == name.text()) {
                let message = format!("{} declares no secret `{}`", callee.file_name(), name.text());
                let hint = nearest(name.text(), declared.iter().map(|(known, _)| known.text()));
                problems.push(file.finding(&workflow::UNKNOWN_SECRET, name.span, message).hint(hint));
            }
        }
        for (name, _) in declared {
            if !passed.iter().any(|(known, _)| known.text() == name.text()) {
                let message = format!(
                    "`{}` does not pass the secret `{}`, which {} declares",
                    job.id.text(),
                    name.text(),
                    callee.file_name()
                );
                let span = job.get("uses").map_or(job.id.span, |node| node.span);
                let hint = format!("add `{0}: ${{{{ secrets.{0} }}}}` under `secrets`", name.text());
                problems.push(file.finding(&workflow::SECRET_NOT_PASSED, span, message).hint(hint));
            }
        }
    }
}
