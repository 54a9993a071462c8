//! Whether the run and its collectors ended well.

use std::collections::HashMap;
use std::path::PathBuf;

use serde::Deserialize;

use super::json;
use super::line::{Line, Look};
use super::material::{Material, PROVENANCE, how};
use crate::ledger::{Job, State};
use crate::matrix::envelope::Envelope;

/// The artifact that the collector keeps its ledger in.
const LEDGER: &str = "ledger";

/// A ledger's file.
#[derive(Deserialize)]
struct Ledger {
    jobs: Vec<Job>,
}

/// The workflow concluded with success, and the collector found everything of every job.
pub(super) fn look(material: &Material) -> Line {
    let mut look = Look::new(
        material,
        "collection",
        "the workflow ended with success, and the collector found everything of every job",
    );
    look.applies();
    let account = material.root.join(PROVENANCE);
    match &material.provenance {
        Err(reason) => look.fail(
            &account,
            format!("GitHub's account of the run {reason}: {}", how(material)),
        ),
        Ok(run) => match (run.status.as_deref(), run.conclusion.as_deref()) {
            (Some("completed"), Some("success")) => look.saw(&account),
            (Some("completed"), Some(conclusion)) => look.fail(&account, format!("the run ended with {conclusion}")),
            (Some(status), _) => look.fail(&account, format!("the run is not over: {status}")),
            (None, _) => look.fail(&account, "it does not say how the run ended"),
        },
    }
    let planned: Vec<&Envelope> = material.throughput().chain(material.evals()).collect();
    if !planned.is_empty() {
        ledger(material, &planned, &mut look);
    }
    look.line("")
}

fn ledger(material: &Material, planned: &[&Envelope], look: &mut Look<'_>) {
    let missing = material.root.join(LEDGER);
    let Some(folder) = material.folder(LEDGER) else {
        look.fail(&missing, "the ledger of the collector is missing");
        return;
    };
    let files: Vec<PathBuf> = folder
        .named("ledger", ".json")
        .map(|name| folder.path.join(name))
        .collect();
    let mut found: HashMap<String, Job> = HashMap::new();
    for path in &files {
        let read = json(path).and_then(|value| {
            serde_json::from_value::<Ledger>(value).map_err(|error| format!("is no ledger of jobs: {error}"))
        });
        match read {
            Err(reason) => look.fail(path, format!("the ledger {reason}")),
            Ok(ledger) => {
                look.saw(path);
                let jobs = ledger.jobs.into_iter().filter(|job| job.state != State::Superseded);
                found.extend(jobs.map(|job| (job.id.clone(), job)));
            }
        }
    }
    let place = files.first().cloned().unwrap_or(missing);
    for job in planned {
        match found.get(&job.id) {
            None => look.fail(&place, format!("the ledger does not hold {}", job.name)),
            Some(of) if of.state != State::Done => {
                look.fail(&place, format!("{} is {}: {}", job.name, of.state.as_str(), of.reason));
            }
            Some(_) => {}
        }
    }
}
