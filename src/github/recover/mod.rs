//! What is missing of a run's collection, check and announcement, and what does it: facts in, decision out.

pub(crate) mod gather;

use std::collections::HashSet;

use serde::Serialize;

use super::baseline::{RESULTS, WORKFLOW};
use super::client::answers::{Artifact, Run};
use super::dispatch;
use super::reuse::EVALS;
use super::run_jobs;
use crate::config::problem::Problem;
use crate::matrix::envelope::Envelope;
use crate::matrix::names::{self, ArtifactKind};
use crate::plural;

/// The artifact that holds a run's plan.
pub(crate) const PLAN: &str = "plan";
/// The artifact that holds a run's ledger, and the name of the file in it.
const LEDGER: &str = "ledger";

/// What is known of a run.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    /// The run.
    pub run: Run,
    /// Its artifacts, of all attempts.
    pub artifacts: Vec<Artifact>,
    /// What it planned; `None` as long as that is not known.
    pub plan: Option<Vec<Envelope>>,
    /// Whether other repositories were told of its results.
    pub announced: bool,
    /// Whether the settings name any.
    pub announces: bool,
}

/// One thing to do, in the order in which they are done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "step")]
pub(crate) enum Step {
    /// Bring single results of jobs.
    #[serde(rename_all = "kebab-case")]
    FetchResults {
        /// The kinds of artifacts.
        kinds: Vec<&'static str>,
        /// How many are there.
        there: usize,
        /// How many were planned.
        planned: usize,
    },
    /// Bring a collection that the run made, or its ledger.
    #[serde(rename_all = "kebab-case")]
    FetchCollection {
        /// The artifact.
        name: &'static str,
    },
    /// Make the collections and the ledger, of what is published.
    Collect,
    /// Hold the collections against the plan and the single results.
    #[serde(rename_all = "kebab-case")]
    Check {
        /// The run did not end well: what is missing is no problem.
        partial: bool,
    },
    /// Tell the other repositories.
    #[serde(rename_all = "kebab-case")]
    Ingest {
        /// The ledger, below the folder that takes everything; `None` where there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        ledger: Option<&'static str>,
    },
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Recovery {
    /// Nothing is missing, for this reason.
    Nothing(String),
    /// These.
    Steps(Vec<Step>),
}

/// What a run's two collections are called, what of a plan they are made of, and how.
const COLLECTIONS: [(&str, &str, bool); 2] = [(RESULTS, "results", false), (EVALS, "evals", true)];

/// What is missing of a run, as far as it can be done.
///
/// # Errors
/// A run that goes on, one that is no sweep, one without a plan that failed, and results that are gone.
pub(crate) fn recovery(facts: &Facts) -> Result<Recovery, Problem> {
    let run = &facts.run;
    has_swept(run)?;
    if let Some(nothing) = planned_nothing(facts)? {
        return Ok(Recovery::Nothing(nothing));
    }
    let Some(plan) = &facts.plan else {
        let problem = Problem::file("", format!("what run {} planned is not known", run.id));
        return Err(problem.hint("name its plan with --plan"));
    };
    if plan.is_empty() {
        return Ok(Recovery::Nothing("its plan holds no job".to_owned()));
    }
    let ingest = run.event == "push" && facts.announces && !facts.announced;
    // The check holds collections against single results, so those are brought for both.
    let mut single_results = Single::default();
    let (mut collects, mut fetches, mut gone) = (false, Vec::new(), Vec::new());
    for (name, what, evals) in COLLECTIONS {
        let single = Single::of(plan, evals, &facts.artifacts);
        if single.planned == 0 {
            continue;
        }
        if state(&facts.artifacts, name) == There::Yes {
            fetches.push(Step::FetchCollection { name });
        } else if single.there > 0 {
            collects = true;
        } else {
            gone.push((what, single));
            continue;
        }
        if single.there > 0 {
            single_results.add(single);
        }
    }
    if !collects && !ingest {
        return match gone.first() {
            Some((what, single)) if fetches.is_empty() => Err(nothing_left(run, what, single)),
            Some((what, _)) => Ok(Recovery::Nothing(format!(
                "what its jobs left is collected; no job left any {what}"
            ))),
            None => Ok(Recovery::Nothing(match run.event.as_str() {
                "push" if facts.announces => "its results are collected and announced".to_owned(),
                _ => "its results are collected, and are not announced".to_owned(),
            })),
        };
    }
    if !collects && fetches.is_empty() {
        let (what, single) = &gone[0];
        return Err(nothing_left(run, what, single));
    }
    let mut steps = Vec::new();
    if single_results.there > 0 {
        steps.push(Step::FetchResults {
            kinds: single_results.kinds,
            there: single_results.there,
            planned: single_results.planned,
        });
    }
    steps.extend(collects.then_some(Step::Collect));
    // What the run made itself stands.
    let ledger = !collects && state(&facts.artifacts, LEDGER) == There::Yes;
    steps.extend(fetches);
    steps.extend(ledger.then_some(Step::FetchCollection { name: LEDGER }));
    steps.push(Step::Check {
        partial: run.conclusion.as_deref() != Some("success") || !gone.is_empty(),
    });
    if ingest {
        let ledger = match (collects, ledger) {
            (true, _) => Some("ledger.json"),
            (false, true) => Some("ledger/ledger.json"),
            (false, false) => None,
        };
        steps.push(Step::Ingest { ledger });
    }
    Ok(Recovery::Steps(steps))
}

fn has_swept(run: &Run) -> Result<(), Problem> {
    let file = run.path.split('@').next().unwrap_or_default();
    let is_sweep = [WORKFLOW, dispatch::WORKFLOW]
        .iter()
        .any(|known| file == format!(".github/workflows/{known}"));
    if !is_sweep {
        let message = format!(
            "run {} is one of `{}`, which sweeps nothing",
            run.id,
            super::text::one_line(file)
        );
        return Err(Problem::file("", message).hint(format!("name a run of {WORKFLOW} or {}", dispatch::WORKFLOW)));
    }
    if !run_jobs::has_ended(run) {
        let message = format!("run {} goes on", run.id);
        return Err(Problem::file("", message).hint("see how far it is with `sweepctl watch`, and wait for its end"));
    }
    Ok(())
}

/// Why nothing was planned, where nothing was.
fn planned_nothing(facts: &Facts) -> Result<Option<String>, Problem> {
    // A plan that was brought from elsewhere needs no artifact.
    if facts.plan.is_some() {
        return Ok(None);
    }
    let run = &facts.run;
    match (state(&facts.artifacts, PLAN), run.conclusion.as_deref()) {
        (There::Yes, _) => Ok(None),
        (There::Expired, _) => {
            let message = format!(
                "the plan of run {} has expired: what was to be collected is not known",
                run.id
            );
            Err(Problem::file("", message).hint("name a copy of it with --plan, or sweep again"))
        }
        (There::No, Some("success")) => Ok(Some("it swept nothing".to_owned())),
        (There::No, _) => {
            let message = format!("run {} ended before it had a plan", run.id);
            Err(Problem::file("", message).hint("see why with `sweepctl triage`, and sweep again"))
        }
    }
}

/// Whether a run has a plan that can be fetched.
///
/// # Errors
/// As [`recovery`], as far as the plan is not needed to know it.
pub(crate) fn has_plan(facts: &Facts) -> Result<bool, Problem> {
    has_swept(&facts.run)?;
    Ok(planned_nothing(facts)?.is_none() && facts.plan.is_none())
}

fn nothing_left(run: &Run, what: &str, single: &Single) -> Problem {
    let planned = plural::count(single.planned, "job");
    let message = match single.expired {
        0 => format!(
            "none of the {planned} planned for {what} in run {} left a result",
            run.id
        ),
        expired => format!(
            "of the {planned} planned for {what} in run {}, {expired} have left results that have expired",
            run.id
        ),
    };
    Problem::file("", message).hint("see why with `sweepctl triage`, and sweep again")
}

/// Whether an artifact can be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum There {
    Yes,
    Expired,
    No,
}

/// Of several of one name the newest counts.
fn state(artifacts: &[Artifact], name: &str) -> There {
    let newest = artifacts
        .iter()
        .filter(|artifact| artifact.name == name)
        .max_by_key(|artifact| artifact.id);
    match newest {
        None => There::No,
        Some(artifact) if artifact.expired => There::Expired,
        Some(_) => There::Yes,
    }
}

/// The single results of a plan's throughput jobs, of its eval jobs, or of both.
#[derive(Debug, Clone, Default)]
struct Single {
    kinds: Vec<&'static str>,
    planned: usize,
    there: usize,
    expired: usize,
}

impl Single {
    fn add(&mut self, other: Self) {
        self.kinds.extend(other.kinds);
        self.planned += other.planned;
        self.there += other.there;
        self.expired += other.expired;
    }

    fn of(plan: &[Envelope], evals: bool, artifacts: &[Artifact]) -> Self {
        let is_kept = |kept: bool| artifacts.iter().filter(move |artifact| artifact.expired != kept);
        let there: HashSet<&str> = is_kept(true).map(|artifact| artifact.name.as_str()).collect();
        let expired: HashSet<&str> = is_kept(false).map(|artifact| artifact.name.as_str()).collect();
        let mut single = Self {
            kinds: Vec::new(),
            planned: 0,
            there: 0,
            expired: 0,
        };
        for envelope in plan {
            let kind = ArtifactKind::collected(&envelope.row);
            if (kind == ArtifactKind::Eval) != evals {
                continue;
            }
            if !single.kinds.contains(&kind.name()) {
                single.kinds.push(kind.name());
            }
            let name = names::artifact(kind, envelope);
            single.planned += 1;
            match there.contains(name.as_str()) {
                true => single.there += 1,
                false => single.expired += usize::from(expired.contains(name.as_str())),
            }
        }
        single
    }
}

/// The command that a step is, as arguments of `sweepctl`; `folder` takes everything, `plan` is what the run planned.
#[must_use]
pub(crate) fn command(step: &Step, run: u64, repository: &str, folder: &str, plan: &str) -> Vec<String> {
    let at = |name: &str| format!("{folder}/{name}");
    let words: Vec<String> = match step {
        Step::FetchResults { kinds, .. } => {
            let kinds = kinds.iter().flat_map(|kind| ["--kind".to_owned(), (*kind).to_owned()]);
            let words = ["fetch", "--plan", plan].map(str::to_owned).into_iter().chain(kinds);
            words
                .chain(["--out".to_owned(), at("results")])
                .chain(of_run(run, repository))
                .collect()
        }
        Step::FetchCollection { name } => {
            let words = ["fetch", name, "--out", folder].map(str::to_owned).into_iter();
            words.chain(of_run(run, repository)).collect()
        }
        Step::Collect => {
            let results = at("results");
            ["collect", "sweep", &results, "--plan", plan, "--out", folder]
                .map(str::to_owned)
                .to_vec()
        }
        Step::Check { partial } => {
            let mut words = ["reuse", "check", folder, "--plan", plan].map(str::to_owned).to_vec();
            words.extend(partial.then(|| "--partial".to_owned()));
            words
        }
        Step::Ingest { ledger } => {
            let mut words = vec!["ingest".to_owned()];
            words.extend(ledger.iter().flat_map(|name| ["--ledger".to_owned(), at(name)]));
            words
        }
    };
    words
}

/// Where `fetch` looks.
pub(crate) fn of_run(run: u64, repository: &str) -> [String; 4] {
    [
        "--run-id".to_owned(),
        run.to_string(),
        "--repo".to_owned(),
        repository.to_owned(),
    ]
}
