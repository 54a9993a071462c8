//! Whether what arrived is what was planned.

use std::collections::HashSet;

use super::line::{Line, Look};
use super::material::Material;
use crate::matrix::names::ArtifactKind;

/// The plan is there; every job of it left what it measures, and no job that is not in it did.
pub(super) fn matrix(material: &Material) -> Line {
    let mut look = Look::new(
        material,
        "matrix",
        "the plan is there; every job of it left its results, and no other job did",
    );
    look.applies();
    if let Err(problem) = &material.plan {
        look.fail(
            &material.plan_path,
            format!("the plan cannot be read: {}", problem.message),
        );
        return look.line("");
    }
    if material.jobs().is_empty() {
        look.fail(&material.plan_path, "the plan has no job");
    }
    look.saw(&material.plan_path);
    for job in material.jobs() {
        let mut kinds = vec![ArtifactKind::collected(&job.row)];
        if !job.row.eval_concs().is_empty() && !kinds.contains(&ArtifactKind::Eval) {
            kinds.push(ArtifactKind::Eval);
        }
        for kind in kinds {
            match material.artifact(kind, job) {
                Some(folder) if !material.files(folder).is_empty() => look.saw(&folder.path),
                Some(folder) => look.fail(&folder.path, format!("the artifact of {} is empty", job.name)),
                None => look.fail(
                    &material.expected(kind, job),
                    format!("{} was planned, and its results are missing", job.name),
                ),
            }
        }
    }
    let known: HashSet<&str> = material.jobs().iter().map(|job| job.id.as_str()).collect();
    for folder in material.folders() {
        let name = folder.path.file_name().unwrap_or_default().to_string_lossy();
        if job_of_artifact(&name).is_some_and(|id| !known.contains(id)) {
            look.fail(&folder.path, format!("`{name}` is of no job of the plan"));
        }
    }
    look.line("")
}

/// The job that an artifact's name says: its kind, and an id of 12 hex digits at its end.
fn job_of_artifact(name: &str) -> Option<&str> {
    const ID: usize = 12;
    let (start, id) = name.rsplit_once('_')?;
    let is_id = id.len() == ID && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let is_kind = ArtifactKind::ALL.iter().any(|kind| {
        [false, true].iter().any(|eval_only| {
            let rest = start.strip_prefix(kind.prefix(*eval_only));
            rest.is_some_and(|rest| rest.starts_with('_'))
        })
    });
    (is_id && is_kind).then_some(id)
}
