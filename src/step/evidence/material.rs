//! The artifacts of one run, by the jobs of its plan.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use super::{Request, json, unsearched};
use crate::config::problem::Problem;
use crate::config::thresholds::Thresholds;
use crate::files::{self, Folder};
use crate::matrix::envelope::Envelope;
use crate::matrix::names::{self, ArtifactKind};
use crate::matrix::row::Scenario;
use crate::plan_files;

/// What GitHub says of the run: `gh run view RUN --json ...` written to a file.
pub(crate) const PROVENANCE: &str = "run-provenance.json";
/// The plan's folder beside the artifacts.
const PLAN: &str = "plan";
/// What a replay's own record is called.
pub(super) const RECORD: &str = "replay.json";

/// Which run the artifacts are of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Run {
    /// Its id.
    pub id: Option<u64>,
    /// Its attempt.
    pub attempt: Option<u64>,
    /// The commit that it ran at.
    pub commit: Option<String>,
    /// Whether it is over: GitHub's word, such as `completed`.
    pub status: Option<String>,
    /// How it ended: GitHub's word, such as `success`.
    pub conclusion: Option<String>,
}

/// Everything that was downloaded.
#[derive(Debug)]
pub(crate) struct Material {
    pub(super) root: PathBuf,
    /// Where the plan is, or should be.
    pub(super) plan_path: PathBuf,
    /// Its jobs, or why it cannot be read.
    pub(super) plan: Result<Vec<Envelope>, Problem>,
    pub(super) thresholds: Thresholds,
    /// The run that was asked for.
    pub(super) asked_run: Option<u64>,
    /// What GitHub says of the run; `Err` says why not, as the end of a sentence.
    pub(super) provenance: Result<Run, String>,
    folders: Vec<Folder>,
    by_name: HashMap<String, usize>,
}

impl Material {
    /// Reads what a folder holds. No link is followed.
    ///
    /// # Errors
    /// A folder that cannot be searched.
    pub(crate) fn read(request: &Request) -> Result<Self, Problem> {
        let root = request.dir.clone();
        let folders = files::walk(&root, files::MAX_DEPTH).map_err(|error| unsearched(&root, &error))?;
        let mut by_name = HashMap::new();
        for (index, folder) in folders.iter().enumerate() {
            let name = folder
                .path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            by_name.entry(name).or_insert(index);
        }
        let plan_path = request.plan.clone().unwrap_or_else(|| root.join(PLAN));
        Ok(Self {
            plan: plan_files::envelopes(&plan_path),
            provenance: json(&root.join(PROVENANCE)).and_then(|value| provenance(&value)),
            thresholds: request.thresholds.clone(),
            asked_run: request.run,
            root,
            plan_path,
            folders,
            by_name,
        })
    }

    /// The jobs of the plan; none where there is no plan.
    pub(super) fn jobs(&self) -> &[Envelope] {
        self.plan.as_deref().unwrap_or_default()
    }

    /// The jobs that measure throughput.
    pub(super) fn throughput(&self) -> impl Iterator<Item = &Envelope> {
        self.jobs().iter().filter(|job| !job.row.eval.eval_only)
    }

    /// Of these, those that replay.
    pub(super) fn replays(&self) -> impl Iterator<Item = &Envelope> {
        self.throughput()
            .filter(|job| matches!(job.row.topology.scenario, Scenario::Agentic(_)))
    }

    /// The jobs that evaluate.
    pub(super) fn evals(&self) -> impl Iterator<Item = &Envelope> {
        self.jobs().iter().filter(|job| !job.row.eval_concs().is_empty())
    }

    /// Every folder that was found.
    pub(super) fn folders(&self) -> &[Folder] {
        &self.folders
    }

    /// The folder of a name, wherever it lies: bundles hold artifacts too.
    pub(super) fn folder(&self, name: &str) -> Option<&Folder> {
        self.by_name.get(name).map(|index| &self.folders[*index])
    }

    /// The folder of an artifact of a job.
    pub(super) fn artifact(&self, kind: ArtifactKind, job: &Envelope) -> Option<&Folder> {
        self.folder(&names::artifact(kind, job))
    }

    /// Where the folder of an artifact is missing.
    pub(super) fn expected(&self, kind: ArtifactKind, job: &Envelope) -> PathBuf {
        self.root.join(names::artifact(kind, job))
    }

    /// Every file of an artifact, in its folders too.
    pub(super) fn files(&self, folder: &Folder) -> Vec<PathBuf> {
        let inside = self.folders.iter().filter(|one| one.path.starts_with(&folder.path));
        inside
            .flat_map(|one| one.names.iter().map(|name| one.path.join(name)))
            .collect()
    }

    /// The aggregates of a throughput job, each with its concurrency.
    pub(super) fn aggregates(&self, job: &Envelope) -> Vec<(PathBuf, u64, Value)> {
        let Some(folder) = self.artifact(ArtifactKind::collected(&job.row), job) else {
            return Vec::new();
        };
        let named = folder.named("agg_", ".json").map(|name| folder.path.join(name));
        let read = named.filter_map(|path| {
            let value = json(&path).ok()?;
            let conc = value.get("conc")?.as_u64()?;
            Some((path, conc, value))
        });
        read.collect()
    }

    /// The folder of a replay's raw files at a concurrency, where it was downloaded.
    pub(super) fn replay(&self, job: &Envelope, conc: u64) -> Option<PathBuf> {
        let folder = &self.artifact(ArtifactKind::Agentic, job)?.path;
        let own = folder.join(format!("conc_{conc}"));
        let has_own = self.folders.iter().any(|one| one.path == own);
        Some(if has_own { own } else { folder.clone() })
    }

    /// The record that `sweepctl agentic run` keeps of a replay.
    pub(super) fn record(&self, job: &Envelope, conc: u64) -> Option<(PathBuf, Value)> {
        let path = self.replay(job, conc)?.join(RECORD);
        json(&path).ok().map(|value| (path, value))
    }

    /// The run, as far as something names it.
    pub(super) fn run(&self) -> Run {
        let mut run = self.provenance.clone().unwrap_or_default();
        run.id = run.id.or(self.asked_run);
        run
    }
}

/// What GitHub says of a run, in the form of `gh run view --json`.
fn provenance(value: &Value) -> Result<Run, String> {
    if !value.is_object() {
        return Err("is no JSON object".to_owned());
    }
    let text = |name: &str| value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let of_address = || {
        let (_, rest) = text("url")?.split_once("/actions/runs/")?;
        rest.split('/').next()?.parse().ok()
    };
    Ok(Run {
        id: value.get("databaseId").and_then(Value::as_u64).or_else(of_address),
        attempt: value.get("attempt").and_then(Value::as_u64),
        commit: text("headSha").map(str::to_owned),
        status: text("status").map(str::to_owned),
        conclusion: text("conclusion").map(str::to_owned),
    })
}

/// The way to what GitHub says of a run, as the end of a message.
pub(super) fn how(material: &Material) -> String {
    let run = material
        .run()
        .id
        .map_or_else(|| "RUN".to_owned(), |run| run.to_string());
    format!(
        "write it with `gh run view {run} --json url,databaseId,attempt,headSha,event,status,conclusion,jobs > \
         {PROVENANCE}`"
    )
}

/// The folder that holds a file, for messages about what is missing in it.
pub(super) fn inside(folder: &Path, name: &str) -> PathBuf {
    folder.join(name)
}
