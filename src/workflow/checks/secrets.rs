//! Secrets by name, at every level: a called workflow sees only those that it declares and is given, and one that is
//! not given is empty without a word.

use std::sync::LazyLock;

use regex::Regex;

use crate::config::problem::{Problems, nearest};
use crate::config::tree::Node;
use crate::findings::workflow;
use crate::workflow::check::Files;
use crate::workflow::checks::nesting::MAX_LEVELS;
use crate::workflow::tree::{File, Job, get, is_same, pairs, words};

static USED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\bsecrets\s*\.\s*([A-Za-z_][A-Za-z0-9_-]*)").expect("the pattern is tested"));

/// What every workflow has.
const TOKEN: &str = "GITHUB_TOKEN";

/// Finds secrets that a called run does not have, that are passed and not declared, and required and not passed; in this
/// tool's files also calls that pass all.
pub(crate) fn check(files: &Files<'_>, problems: &mut Problems) {
    for file in files.workflows() {
        used(files, file, problems);
        for job in file.jobs() {
            passed(files, file, &job, problems);
        }
    }
}

/// The secrets that a called workflow uses and does not declare. A caller that passes all passes those too, and a job's
/// environment has secrets of its own; without a caller here nobody knows.
fn used(files: &Files<'_>, file: &File<'_>, problems: &mut Problems) {
    let jobs = files.workflows().flat_map(File::jobs);
    let mut callers = jobs.filter(|job| {
        files
            .callee(job)
            .is_some_and(|callee| callee.source.name == file.source.name)
    });
    let Some(first) = callers.next() else { return };
    if !file.is_callable() || inherits(&first) || callers.any(|job| inherits(&job)) {
        return;
    }
    let declared: Vec<&str> = file.declared("secrets").iter().map(|(name, _)| name.text()).collect();
    let jobs = file.jobs().filter(|job| job.get("environment").is_none());
    let of_file = file.get("env").map_or(&[][..], pairs).iter().map(|(_, value)| value);
    let nodes = of_file.chain(jobs.flat_map(|job| job.scalars()));
    for node in nodes.filter(|node| node.text().contains("${{")) {
        for found in USED.captures_iter(node.text()) {
            let name = &found[1];
            if !name.eq_ignore_ascii_case(TOKEN) && !declared.iter().any(|known| known.eq_ignore_ascii_case(name)) {
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

fn inherits(job: &Job<'_, '_>) -> bool {
    job.get("secrets").is_some_and(|node| node.text() == "inherit")
}

fn passed(files: &Files<'_>, file: &File<'_>, job: &Job<'_, '_>, problems: &mut Problems) {
    let secrets = job.get("secrets");
    if let Some(node) = secrets.filter(|_| inherits(job)) {
        if files.is_own(file) {
            let message = format!("`{}` passes every secret there is", job.id.text());
            problems.push(
                file.finding(&workflow::INHERITED_SECRETS, node.span, message)
                    .hint("name those that the called workflow declares"),
            );
        }
        return;
    }
    let Some(callee) = files.callee(job) else { return };
    let passed = secrets.map_or(&[][..], pairs);
    let declared = callee.declared("secrets");
    for (name, _) in passed {
        if !declared.iter().any(|(known, _)| is_same(known, name)) {
            let message = format!("{} declares no secret `{}`", callee.file_name(), name.text());
            let hint = nearest(name.text(), declared.iter().map(|(known, _)| known.text()));
            problems.push(file.finding(&workflow::UNKNOWN_SECRET, name.span, message).hint(hint));
        }
    }
    for (name, how) in declared {
        let is_required = get(how, "required").is_some_and(|node| node.text() == "true");
        let is_needed = || is_required || reaches_sweepctl(files, callee, name.text(), 0);
        if !passed.iter().any(|(known, _)| is_same(known, name)) && is_needed() {
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

/// Whether a step that runs this binary is given a secret of a called workflow, there or further down. Others may do without
/// a secret that is not required.
fn reaches_sweepctl(files: &Files<'_>, callee: &File<'_>, secret: &str, depth: usize) -> bool {
    let is_it = |node: &Node<'_>| {
        USED.captures_iter(node.text())
            .any(|found| found[1].eq_ignore_ascii_case(secret))
    };
    let of_step = |step: &Node<'_>| {
        let variables = get(step, "env").map_or(&[][..], pairs);
        words(step).contains(&"sweepctl") && variables.iter().any(|(_, value)| is_it(value))
    };
    let of_call = |job: &Job<'_, '_>| {
        let passed = job.get("secrets").map_or(&[][..], pairs);
        let mut handed_on = passed.iter().filter(|(_, value)| is_it(value));
        let below = files.callee(job).filter(|_| depth < MAX_LEVELS);
        below.is_some_and(|below| handed_on.any(|(name, _)| reaches_sweepctl(files, below, name.text(), depth + 1)))
    };
    callee
        .jobs()
        .any(|job| job.steps().iter().any(of_step) || of_call(&job))
}
