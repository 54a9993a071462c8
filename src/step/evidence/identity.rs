//! Whether results say which image, commit and attempt they are of.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use super::json;
use super::line::{Line, Look};
use super::material::{Material, PROVENANCE, how};
use crate::matrix::names::ArtifactKind;
use crate::step::results::meta::{self, MetaEnv};

/// What a plan of changelog entries says of its refs.
const CHANGELOG: &str = "changelog_metadata.json";

/// Every result names the image of its job; an eval by the fingerprint of the recipe, or, where its row has none (an eval
/// of its own on one node), by the id of the job: both are hashes over the image.
pub(super) fn image(material: &Material) -> Line {
    let mut look = Look::new(material, "image", "every result names the image that was planned");
    for job in material.throughput() {
        look.applies();
        let (planned, aggregates) = (&job.row.topology.image, material.aggregates(job));
        if aggregates.is_empty() {
            let place = material.expected(ArtifactKind::collected(&job.row), job);
            look.fail(&place, format!("{} left no result", job.name));
        }
        for (path, _, aggregate) in aggregates {
            match aggregate
                .get("image")
                .and_then(Value::as_str)
                .filter(|image| !image.is_empty())
            {
                None => look.fail(&path, "the result does not name its image"),
                Some(image) if image != planned => {
                    look.fail(
                        &path,
                        format!("the result is of the image {image}, planned was {planned}"),
                    );
                }
                Some(_) => look.saw(&path),
            }
        }
    }
    for job in material.evals() {
        look.applies();
        let path = set(material, job);
        let Ok(meta) = MetaEnv::read(&path) else {
            look.fail(&path, "nothing says which image was evaluated");
            continue;
        };
        let (said, planned) = (meta.cell("recipe_fingerprint").text(), &job.row.recipe_fingerprint);
        match (
            said.filter(|said| !said.is_empty()),
            planned.as_deref().filter(|planned| !planned.is_empty()),
        ) {
            (_, None) if meta.cell("job_id").text() == Some(job.id.as_str()) => look.saw(&path),
            (_, None) => look.fail(&path, "it does not name the job, whose id holds the image"),
            (None, _) => look.fail(&path, "it does not name the recipe, which holds the image"),
            (Some(said), Some(planned)) if said != planned => {
                look.fail(&path, format!("the recipe is {said}, planned was {planned}"));
            }
            _ => look.saw(&path),
        }
    }
    look.line("the plan has no job")
}

fn set(material: &Material, job: &crate::matrix::envelope::Envelope) -> PathBuf {
    let folder = material
        .artifact(ArtifactKind::Eval, job)
        .map(|folder| folder.path.clone());
    folder
        .unwrap_or_else(|| material.expected(ArtifactKind::Eval, job))
        .join(meta::NAME)
}

/// The refs of a plan, as far as they are read here.
#[derive(Deserialize)]
struct Refs {
    head_ref: String,
}

/// The commit is on record: by GitHub's account of the run, by the plan, or by the records of replays.
pub(super) fn commit(material: &Material) -> Line {
    let mut look = Look::new(
        material,
        "commit",
        "the commit is on record, and everything that names it agrees",
    );
    look.applies();
    let account = material.root.join(PROVENANCE);
    let of_run = material.provenance.as_ref().ok().and_then(|run| run.commit.clone());
    let plan = material.plan_path.join(CHANGELOG);
    let refs = json(&plan)
        .ok()
        .and_then(|value| serde_json::from_value::<Refs>(value).ok());
    let of_plan = refs.map(|refs| refs.head_ref).filter(|head| is_commit(head));
    match (&of_run, &of_plan) {
        (Some(run), Some(head)) if run != head => {
            look.fail(&plan, format!("the plan is of the commit {head}, the run of {run}"));
        }
        (Some(run), _) if !is_commit(run) => look.fail(&account, format!("`headSha` is {run}, which is no commit")),
        (Some(_), _) => look.saw(&account),
        (None, Some(_)) => look.saw(&plan),
        (None, None) => {}
    }
    // A pull request's jobs run at its merge with the base, so records need not name the head; but all name one.
    let mut first: Option<String> = None;
    let replays = material
        .replays()
        .flat_map(|job| job.row.conc.points().iter().map(move |conc| (job, *conc)));
    for (path, record) in replays.filter_map(|(job, conc)| material.record(job, conc)) {
        let said = record
            .pointer("/job/commit")
            .and_then(Value::as_str)
            .filter(|commit| is_commit(commit));
        match (said, &first) {
            (None, _) => {}
            (Some(said), Some(first)) if said != first => {
                look.fail(&path, format!("the replay is of the commit {said}, another of {first}"));
            }
            (Some(said), _) => {
                first = Some(said.to_owned());
                look.saw(&path);
            }
        }
    }
    if of_run.is_none() && of_plan.is_none() && first.is_none() {
        look.fail(&account, format!("nothing names the commit: {}", how(material)));
    }
    look.line("")
}

fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Run and attempt are on record, and every result that names a run names this one.
pub(super) fn attempt(material: &Material) -> Line {
    let mut look = Look::new(
        material,
        "attempt",
        "run and attempt are on record, and no result is of another run or a later attempt",
    );
    look.applies();
    let account = material.root.join(PROVENANCE);
    let named = named(material);
    let of_account = material.provenance.as_ref().ok().cloned().unwrap_or_default();
    let run = of_account.id.or(material.asked_run);
    if let (Some(asked), Some(id)) = (material.asked_run, of_account.id)
        && asked != id
    {
        look.fail(&account, format!("it is of the run {id}, asked for was {asked}"));
    }
    let run = run.or_else(|| named.iter().find_map(|one| one.run));
    for one in &named {
        match (one.run, one.attempt) {
            (Some(of), _) if Some(of) != run => {
                look.fail(
                    &one.path,
                    format!("it is of the run {of}, not of {}", run.unwrap_or_default()),
                );
            }
            (_, Some(attempt)) if of_account.attempt.is_some_and(|last| attempt > last) => {
                look.fail(
                    &one.path,
                    format!("it is of attempt {attempt}, the account of the run is older"),
                );
            }
            (Some(_), Some(_)) => look.saw(&one.path),
            // An account of the run says for all what single results do not.
            _ if of_account.attempt.is_some() => {}
            _ => look.fail(&one.path, "it does not name its run and attempt"),
        }
    }
    match (run, of_account.attempt) {
        (Some(_), Some(_)) => look.saw(&account),
        // Results of throughput name no run; without them the sets say it all.
        _ if material.throughput().next().is_none() && named.iter().any(|one| one.attempt.is_some()) => {}
        _ => look.fail(&account, format!("nothing names run and attempt: {}", how(material))),
    }
    look.line("")
}

/// What one result says of its run.
struct Named {
    path: PathBuf,
    run: Option<u64>,
    attempt: Option<u64>,
}

fn named(material: &Material) -> Vec<Named> {
    let mut named = Vec::new();
    for job in material.evals() {
        let path = set(material, job);
        if let Ok(meta) = MetaEnv::read(&path) {
            let number = |name: &str| {
                let cell = meta.cell(name);
                cell.integer().or_else(|| cell.text()?.trim().parse().ok())
            };
            let (run, attempt) = (number("run_id"), number("run_attempt"));
            named.push(Named { path, run, attempt });
        }
    }
    for job in material.replays() {
        for conc in job.row.conc.points() {
            if let Some((path, record)) = material.record(job, *conc) {
                let number = |name: &str| record.pointer(name)?.as_str()?.parse().ok();
                let (run, attempt) = (number("/job/run_id"), number("/job/run_attempt"));
                named.push(Named { path, run, attempt });
            }
        }
    }
    named
}
