//! What a run's results come from, as one record: what asked for it, what it planned, with what it ran, what it left.

pub(crate) mod gather;

use std::collections::BTreeSet;

use indexmap::IndexMap;
use jiff::Timestamp;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::client::answers::{Artifact, IssueEvent, ReferencedWorkflow};
use crate::config::asked::{Asked, only_given};
use crate::config::workflows::Workflows;
use crate::matrix::envelope::Envelope;

/// The record.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Provenance {
    /// The run.
    pub run: RunRecord,
    /// The commit that was swept.
    pub commit: String,
    /// The commit that it was compared with; `None` where that is not known.
    pub base: Option<String>,
    /// The pull request, where it is of one.
    pub pull_request: Option<u64>,
    /// The labels that the pull request had when the run was started; `None` where that is not known.
    pub labels: Option<Vec<String>>,
    /// What was planned; `None` where the plan is not known.
    pub plan: Option<PlanRecord>,
    /// Where the binary came from; `None` where the settings of the commit cannot be read.
    pub tool: Option<Tool>,
    /// Actions by the version and the commit that they were pinned to.
    pub actions: IndexMap<String, Pinned>,
    /// The workflows that the run called, by commit.
    pub workflows: Vec<ReferencedWorkflow>,
    /// The run whose results were taken over; `None` where it swept itself.
    pub reused_run: Option<u64>,
    /// What each attempt did.
    pub attempts: Vec<Attempt>,
    /// What it left, the oldest first.
    pub artifacts: Vec<ArtifactRecord>,
    /// What is not known, and why.
    pub notes: Vec<String>,
}

/// A run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct RunRecord {
    /// Its repository.
    pub repository: String,
    /// Its number.
    pub id: u64,
    /// Its page.
    pub url: String,
    /// Its name.
    pub title: String,
    /// Its workflow's file.
    pub workflow: String,
    /// What started it.
    pub event: String,
    /// Its branch.
    pub branch: Option<String>,
    /// When it was started first.
    pub created_at: Option<String>,
    /// How far it is.
    pub status: Option<String>,
    /// How it ended.
    pub conclusion: Option<String>,
}

/// A plan.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct PlanRecord {
    /// `sha256:` over the ids and fingerprints of its jobs: two plans with the same digest measure the same.
    pub digest: String,
    /// Its jobs.
    pub jobs: usize,
    /// What was asked of the sweep.
    #[serde(serialize_with = "only_given")]
    pub asked: Asked,
    /// What was changed in its jobs after they were planned, each way once.
    pub overrides: Vec<serde_json::Value>,
    /// The images of its jobs, in alphabetical order.
    pub images: BTreeSet<String>,
}

/// Where the binary came from.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Tool {
    /// `build` or `release`
    pub from: &'static str,
    /// The release's repository; empty for a build.
    pub repository: String,
    /// The release's tag, or the commit that was built.
    pub version: String,
    /// The digest of the binaries' artifact, where the run kept one.
    pub digest: Option<String>,
}

/// An action.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Pinned {
    /// The version that the commit is, as the settings say.
    pub version: String,
    /// The commit.
    pub sha: String,
}

/// An attempt at a run.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Attempt {
    /// Its number.
    pub attempt: u64,
    /// Jobs that it executed.
    pub jobs: usize,
    /// Those of them that did not succeed.
    pub not_successful: usize,
}

/// An artifact.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ArtifactRecord {
    /// Its name.
    pub name: String,
    /// Its number.
    pub id: u64,
    /// `sha256:` and the digest of its archive.
    pub digest: Option<String>,
    /// The archive's size.
    pub bytes: u64,
    /// Whether its content is gone.
    pub expired: bool,
    /// When it was uploaded.
    pub created_at: Option<String>,
}

impl From<Artifact> for ArtifactRecord {
    fn from(artifact: Artifact) -> Self {
        Self {
            name: artifact.name,
            id: artifact.id,
            digest: artifact.digest,
            bytes: artifact.size_in_bytes,
            expired: artifact.expired,
            created_at: artifact.created_at,
        }
    }
}

impl PlanRecord {
    /// Of a plan.
    #[must_use]
    pub(crate) fn of(envelopes: &[Envelope], asked: &Asked) -> Self {
        let mut overrides: Vec<serde_json::Value> = Vec::new();
        let changed = envelopes.iter().filter(|envelope| !envelope.overrides.is_empty());
        for value in changed.filter_map(|envelope| serde_json::to_value(&envelope.overrides).ok()) {
            if !overrides.contains(&value) {
                overrides.push(value);
            }
        }
        Self {
            digest: digest(envelopes),
            jobs: envelopes.len(),
            asked: asked.clone(),
            overrides,
            images: envelopes
                .iter()
                .map(|envelope| envelope.row.topology.image.clone())
                .collect(),
        }
    }
}

/// The digest of what a plan measures: the ids and fingerprints of its jobs, in whatever order they stand.
#[must_use]
pub(crate) fn digest(envelopes: &[Envelope]) -> String {
    let line = |envelope: &Envelope| {
        let fingerprint = envelope.row.recipe_fingerprint.as_deref().unwrap_or_default();
        format!("{} {fingerprint}\n", envelope.id)
    };
    let lines: BTreeSet<String> = envelopes.iter().map(line).collect();
    let mut hash = Sha256::new();
    for line in lines {
        hash.update(line.as_bytes());
    }
    format!("sha256:{}", crate::matrix::fingerprint::hex(&hash.finalize()))
}

impl Tool {
    /// What the settings of a commit say of the binary.
    #[must_use]
    pub(crate) fn of(settings: &Workflows, commit: &str, artifacts: &[Artifact]) -> Self {
        use crate::config::workflows::BinarySource;
        let kept = artifacts
            .iter()
            .filter(|artifact| artifact.name == "sweepctl")
            .max_by_key(|artifact| artifact.id);
        let (from, version) = match settings.sweepctl.from {
            BinarySource::Build => ("build", commit.to_owned()),
            BinarySource::Release => ("release", settings.sweepctl.version.clone()),
        };
        Self {
            from,
            repository: settings.sweepctl.repository.clone(),
            version,
            digest: kept.and_then(|artifact| artifact.digest.clone()),
        }
    }
}

/// The labels that a pull request had at a time, from what happened to it, the oldest first.
#[must_use]
pub(crate) fn labels_at(events: &[IssueEvent], time: Timestamp) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    let happened = |event: &&IssueEvent| event.created_at.parse::<Timestamp>().is_ok_and(|at| at <= time);
    for event in events.iter().filter(happened) {
        let Some(label) = &event.label else { continue };
        match event.event.as_str() {
            "labeled" if !labels.contains(&label.name) => labels.push(label.name.clone()),
            "unlabeled" => labels.retain(|name| *name != label.name),
            _ => {}
        }
    }
    labels
}

/// The run that a log says stands in.
#[must_use]
pub(crate) fn reused_run(log: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(log);
    text.lines().rev().find_map(|line| {
        let (before, _) = line.split_once(" stands in, as ")?;
        let (_, after) = before.rsplit_once("Run ")?;
        after.split(' ').next()?.parse().ok()
    })
}
