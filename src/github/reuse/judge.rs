//! Whether a run can stand in.

use super::{AGENTIC, Candidate, EVALS, Facts, PullFacts};
use crate::github::baseline::{RESULTS, WORKFLOW};
use crate::github::client::answers::{Artifact, Run};
use crate::github::text::code;

/// Whether a run can stand in, by every rule.
pub(super) fn judge(candidate: &Candidate, facts: &Facts, pull: &PullFacts, pinned: bool) -> Result<(), String> {
    let needs_plan = fits(&candidate.run, pull, pinned)?;
    same_plan(candidate, facts, pull, needs_plan)?;
    if !kept(&candidate.artifacts).is_empty() {
        return Ok(());
    }
    match candidate.artifacts.iter().any(|artifact| has_results(&artifact.name)) {
        true => Err("its results have expired".to_owned()),
        false => Err("it left no results: it swept nothing".to_owned()),
    }
}

/// Whether a run can stand in, as far as the run itself says; and whether its plan must then be that of the commit, as it
/// must for a commit that is not swept again, and for a run of a commit that a force push threw away.
pub(super) fn fits(run: &Run, pull: &PullFacts, pinned: bool) -> Result<bool, String> {
    let file = run.path.split('@').next().unwrap_or_default();
    if file != format!(".github/workflows/{WORKFLOW}") {
        return Err(format!("it is a run of {}, not of `{WORKFLOW}`", code(&run.path)));
    }
    if run.event != "pull_request" {
        return Err(format!("it started on {}, not on `pull_request`", code(&run.event)));
    }
    if run.status.as_deref() != Some("completed") {
        return Err("it has not ended yet".to_owned());
    }
    let in_pull = pull.commits.iter().any(|commit| commit == run.head_sha.as_str());
    if !in_pull && !is_of_branch(run, pull) {
        return Err(foreign(run, pull));
    }
    match (run.conclusion.as_deref().unwrap_or("nothing"), pinned) {
        ("success", _) | ("failure" | "cancelled", true) => Ok(pull.open || !in_pull),
        (other @ ("failure" | "cancelled"), false) => Err(format!("it ended as {}, and is not pinned", code(other))),
        (other, _) => Err(format!("it ended as {}", code(other))),
    }
}

/// Whether a run is of the branch that a pull request comes from: branches of other repositories have the same names.
fn is_of_branch(run: &Run, pull: &PullFacts) -> bool {
    let repository = run.head_repository.as_ref().map(|repository| &repository.full_name);
    repository.is_some() && repository == pull.repository.as_ref() && run.head_branch.as_ref() == Some(&pull.branch)
}

fn foreign(run: &Run, pull: &PullFacts) -> String {
    format!(
        "its commit {} is not in pull request {}",
        run.head_sha.short(),
        pull.number
    )
}

fn same_plan(candidate: &Candidate, facts: &Facts, pull: &PullFacts, needed: bool) -> Result<(), String> {
    if !needed || candidate.same_plan == Some(true) {
        return Ok(());
    }
    let commit = facts.commit.get(..9).unwrap_or(&facts.commit);
    let planned = match candidate.same_plan {
        Some(_) => format!("it did not plan what {commit} does"),
        None => format!("whether it planned what {commit} does is not known without --plan"),
    };
    let in_pull = pull
        .commits
        .iter()
        .any(|commit| commit == candidate.run.head_sha.as_str());
    Err(match in_pull {
        true => planned,
        false => format!("{}, and {planned}", foreign(&candidate.run, pull)),
    })
}

fn has_results(name: &str) -> bool {
    name == RESULTS || name == EVALS || name.starts_with(AGENTIC)
}

/// The kinds of results that have not expired, each on its own. The collection holds the single agentic results as well:
/// those are named only where there is none.
pub(super) fn kept(artifacts: &[Artifact]) -> Vec<&'static str> {
    let has = |is: &dyn Fn(&str) -> bool| artifacts.iter().any(|artifact| !artifact.expired && is(&artifact.name));
    let collection = has(&|name| name == RESULTS);
    let kinds: [(&'static str, bool); 3] = [
        (RESULTS, collection),
        (EVALS, has(&|name| name == EVALS)),
        (
            AGENTIC.trim_end_matches('_'),
            !collection && has(&|name| name.starts_with(AGENTIC)),
        ),
    ];
    let kinds = kinds.iter().filter(|(_, there)| *there);
    kinds.map(|(kind, _)| *kind).collect()
}
