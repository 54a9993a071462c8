//! Which artifacts are wanted: those of a plan's jobs, and those that are named.

use std::collections::HashSet;

use super::folder;
use crate::config::problem::{Problem, Problems, printable};
use crate::matrix::envelope::Envelope;
use crate::matrix::names::{self, ArtifactKind};

/// The kinds that collectors read.
pub(crate) const COLLECTED: [ArtifactKind; 3] = [ArtifactKind::Bmk, ArtifactKind::BmkAgentic, ArtifactKind::Eval];

/// An artifact that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Its whole name.
    pub name: String,
    /// The job that it is of, and its kind; `None` where it was named.
    pub of: Option<(String, ArtifactKind)>,
    /// Whether the command fails where the run has none.
    pub required: bool,
}

/// The artifacts of a plan's jobs, of each kind that a job has, in the plan's order.
pub(crate) fn of_plan(plan: &[Envelope], kinds: &[ArtifactKind]) -> Vec<Wanted> {
    let of_job = |envelope: &Envelope| {
        let has = ArtifactKind::of(&envelope.row);
        let of_kind = |kind: &ArtifactKind| Wanted {
            name: names::artifact(*kind, envelope),
            of: Some((envelope.id.clone(), *kind)),
            required: false,
        };
        let kinds = kinds.iter().filter(|kind| has.contains(kind));
        kinds.map(of_kind).collect::<Vec<_>>()
    };
    plan.iter().flat_map(of_job).collect()
}

/// Artifacts that are named, all of which must be there or none.
///
/// # Errors
/// Each name that no artifact, or no folder, can have.
pub(crate) fn named(names: &[String], required: bool) -> Result<Vec<Wanted>, Problems> {
    let mut wanted = Vec::new();
    let mut problems = Problems::default();
    for name in names {
        if !names::is_legal_artifact(name) || !folder::is_legal(name) {
            let message = format!("`{}` is no name of an artifact", printable(name));
            let hint = "name it as the run lists it, without `/` and not starting with a dot";
            problems.push(Problem::file("", message).hint(hint));
            continue;
        }
        wanted.push(Wanted {
            name: name.clone(),
            of: None,
            required,
        });
    }
    problems.into_result()?;
    Ok(wanted)
}

/// Each name once; the first counts.
pub(crate) fn once(wanted: Vec<Wanted>) -> Vec<Wanted> {
    let mut seen = HashSet::new();
    let is_new = |wanted: &Wanted| seen.insert(wanted.name.clone());
    let mut wanted = wanted;
    wanted.retain(is_new);
    wanted
}
