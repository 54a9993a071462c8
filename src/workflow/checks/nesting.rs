//! How deeply workflows call each other.

use crate::config::problem::Problems;
use crate::findings::workflow;
use crate::workflow::check::Files;
use crate::workflow::tree::File;

/// The levels that GitHub Enterprise allows, the first caller counted; github.com allows ten.
pub(crate) const MAX_LEVELS: usize = 4;

/// Finds chains of calls that are too long, and those that never end.
pub(crate) fn check(files: &Files<'_>, problems: &mut Problems) {
    let is_called = |file: &File<'_>| {
        let called = |other: &File<'_>| {
            other
                .jobs()
                .any(|job| job.callee().is_some_and(|(name, _)| name == file.file_name()))
        };
        files.workflows().any(called)
    };
    // A file that is called is looked at from its callers; one that only its own chain calls has none.
    for file in files.workflows() {
        if !is_called(file) || leads_back(files, file, &mut vec![file.file_name()]) {
            follow(files, file, &mut vec![file.file_name()], problems);
        }
    }
}

fn leads_back<'f>(files: &'f Files<'_>, file: &'f File<'_>, chain: &mut Vec<&'f str>) -> bool {
    file.jobs().any(|job| {
        let Some(callee) = files.callee(&job) else { return false };
        if callee.file_name() == chain[0] {
            return true;
        }
        if chain.contains(&callee.file_name()) {
            return false;
        }
        chain.push(callee.file_name());
        let found = leads_back(files, callee, chain);
        chain.pop();
        found
    })
}

fn follow<'f>(files: &'f Files<'_>, file: &'f File<'_>, chain: &mut Vec<&'f str>, problems: &mut Problems) {
    for job in file.jobs() {
        let (Some((_, span)), Some(callee)) = (job.callee(), files.callee(&job)) else {
            continue;
        };
        let name = callee.file_name();
        if chain.contains(&name) {
            let message = format!("the calls never end: {} calls {name} again", chain.join(" calls "));
            problems.push(
                file.finding(&workflow::CALL_CYCLE, span, message)
                    .hint("remove one of the calls"),
            );
        } else if chain.len() == MAX_LEVELS {
            let message = format!(
                "{} levels of workflows: {} calls {name}",
                MAX_LEVELS + 1,
                chain.join(" calls ")
            );
            problems.push(
                file.finding(&workflow::NESTING, span, message)
                    .hint(format!("at most {MAX_LEVELS} levels work everywhere")),
            );
        } else {
            chain.push(name);
            follow(files, callee, chain, problems);
            chain.pop();
        }
    }
}
