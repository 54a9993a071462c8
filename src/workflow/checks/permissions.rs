//! What tokens may do: nothing by default, each job says its own, and a caller has what its callees ask for. A callee
//! that asks for more than its caller has fails the run at its start.

use crate::config::problem::Problems;
use crate::config::tree::Node;
use crate::config::workflows::permissions::{Access, Permissions};
use crate::findings::workflow;
use crate::workflow::check::Files;
use crate::workflow::checks::nesting::MAX_LEVELS;
use crate::workflow::model::union;
use crate::workflow::tree::{File, FileKind, pairs, permissions};

/// Finds workflows that grant by default, jobs that do not say what they need, and callers that have too little.
pub(crate) fn check(files: &Files<'_>, problems: &mut Problems) {
    for file in files.own() {
        defaults(file, problems);
    }
    for file in files.workflows() {
        for job in file.jobs() {
            let (Some(own), Some(callee)) = (job.permissions(), files.callee(&job)) else {
                continue;
            };
            // Scopes that are not known here are granted with all others.
            let granted = match job.get("permissions").map_or("", Node::text) {
                "write-all" => Access::Write,
                "read-all" => Access::Read,
                _ => Access::None,
            };
            for (scope, asked) in asked(files, callee, 0) {
                let has = own.get(&scope).copied().unwrap_or(granted);
                if asked > has {
                    let message = format!(
                        "`{}` has `{scope}: {}`, and {} asks for `{scope}: {}`",
                        job.id.text(),
                        has.name(),
                        callee.file_name(),
                        asked.name()
                    );
                    let span = job.get("permissions").map_or(job.id.span, |node| {
                        let of_scope = pairs(node).iter().find(|(key, _)| *key.text() == scope);
                        of_scope.map_or(node.span, |(_, value)| value.span)
                    });
                    problems.push(
                        file.finding(&workflow::TOO_FEW_PERMISSIONS, span, message)
                            .hint(format!("write `{scope}: {}`", asked.name())),
                    );
                }
            }
        }
    }
}

/// Finds what a workflow of this tool grants by default, and jobs that do not say what they need.
fn defaults(file: &File<'_>, problems: &mut Problems) {
    if file.kind != FileKind::Workflow {
        return;
    }
    match file.get("permissions") {
        Some(node) if permissions(node).values().all(|access| *access == Access::None) && node.text().is_empty() => {}
        Some(node) => {
            let problem = file.finding(
                &workflow::DEFAULT_PERMISSIONS,
                node.span,
                "every job of this workflow gets these permissions",
            );
            problems.push(problem.hint("write `permissions: {}`, and give each job its own"));
        }
        None => {
            let problem = file.finding(
                &workflow::DEFAULT_PERMISSIONS,
                file.start(),
                "the workflow's jobs get the repository's default permissions",
            );
            problems.push(problem.hint("add `permissions: {}`, and give each job its own"));
        }
    }
    for job in file.jobs() {
        if job.permissions().is_none() {
            let message = format!("`{}` does not say what its token may do", job.id.text());
            problems.push(
                file.finding(&workflow::NO_PERMISSIONS, job.id.span, message)
                    .hint("add `permissions:`, `{}` for nothing"),
            );
        }
    }
}

/// What the jobs of a workflow ask for together, those that they call included.
fn asked(files: &Files<'_>, file: &File<'_>, depth: usize) -> Permissions {
    let of_jobs = file.jobs().filter_map(|job| job.permissions());
    let of_callees = file
        .jobs()
        .filter(|_| depth < MAX_LEVELS)
        .filter_map(|job| Some(asked(files, files.callee(&job)?, depth + 1)));
    let all: Vec<Permissions> = of_jobs.chain(of_callees).collect();
    union(&all)
}
