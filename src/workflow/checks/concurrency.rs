//! A group that every run shares, and that cancels what runs in it, lets any event cancel any other.

use crate::config::problem::Problems;
use crate::config::tree::Node;
use crate::findings::workflow;
use crate::workflow::check::Files;
use crate::workflow::tree::get;

/// Finds groups of workflows that cancel and name nothing of the run: those of this tool's files, and of others those that
/// several kinds of events share.
pub(crate) fn check(files: &Files<'_>, problems: &mut Problems) {
    for file in files.workflows() {
        let Some(concurrency) = file.get("concurrency") else {
            continue;
        };
        let cancels = get(concurrency, "cancel-in-progress").is_some_and(|node| node.text() != "false");
        let is_shared = |group: &&Node<'_>| match files.is_own(file) {
            true => !group.text().contains("github."),
            false => !group.text().contains("${{") && file.triggers().count() > 1,
        };
        let Some(group) = get(concurrency, "group").filter(is_shared).filter(|_| cancels) else {
            continue;
        };
        let problem = file.finding(
            &workflow::SHARED_CANCELLATION,
            group.span,
            "every run of this workflow cancels the one before it, whatever started it",
        );
        problems.push(problem.hint("put the pull request or the branch into the group: `${{ github.ref }}`"));
    }
}
