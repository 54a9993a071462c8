//! What is kept about a replay beside its results: `replay.json`.

use std::io;
use std::path::Path;

use serde::Serialize;

use super::corpus::Corpus;
use super::settings::Settings;
use super::target::{MetricsEndpoint, Target};
use crate::files;

/// Its name, in the folder of the replay.
pub(crate) const NAME: &str = "replay.json";

/// How a replay was run, written before it starts and again when it ended.
#[derive(Debug, Clone, Serialize)]
pub struct Record {
    /// The client and its version.
    pub client: String,
    /// The words of its command.
    pub command: Vec<String>,
    /// The variables that were set for it.
    pub environment: Vec<(String, String)>,
    /// The server.
    pub target: Target,
    /// The endpoints whose metrics count.
    pub metrics: Vec<Metrics>,
    /// What was replayed.
    pub corpus: Corpus,
    /// How answers become part of later requests: as they were recorded, or as the server gave them.
    pub replay_mode: &'static str,
    /// Conversations at a time.
    pub concurrency: u64,
    /// Seconds of measurement.
    pub duration: u64,
    /// Whether this was the fast mode.
    pub fast: bool,
    /// What differs from the defaults, by the name of its variable.
    pub overrides: Vec<&'static str>,
    /// Why the replay is for diagnosis only; a measurement has none.
    pub diagnostic: Vec<&'static str>,
    /// The job, as far as it is known.
    pub job: Identity,
    /// When it started, in UTC.
    pub started: String,
    /// How it ended; missing while it runs, and where something killed this program too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
}

/// An endpoint of metrics.
#[derive(Debug, Clone, Serialize)]
pub struct Metrics {
    /// The endpoint.
    #[serde(flatten)]
    pub endpoint: MetricsEndpoint,
    /// Whether the replay counts only if it was read.
    pub required: bool,
    /// Whether the client read it during the replay; missing before its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<bool>,
}

/// Which job a replay belongs to. What is not known is empty.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Identity {
    /// The job's id.
    pub job_id: String,
    /// The run of GitHub.
    pub run_id: String,
    /// Its attempt.
    pub run_attempt: String,
    /// The commit.
    pub commit: String,
    /// The recipe's fingerprint.
    pub recipe_fingerprint: String,
    /// The image.
    pub image: String,
}

/// The end of a replay.
#[derive(Debug, Clone, Serialize)]
pub struct Ended {
    /// When, in UTC.
    pub at: String,
    /// How the client ended.
    pub client: String,
    /// Whether the replay counts.
    pub counts: bool,
    /// What the client says of it as a submission; missing where it says nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submission_valid: Option<bool>,
    /// Why it is none.
    pub submission_invalid_reasons: Vec<String>,
    /// Why the replay does not count.
    pub problems: Vec<String>,
}

impl Record {
    /// The record of a replay that is about to start.
    #[must_use]
    pub fn new(settings: &Settings, corpus: Corpus, command: Vec<String>, is_optional: bool, job: Identity) -> Self {
        let metrics = required(settings).into_iter().map(|endpoint| Metrics {
            endpoint,
            required: !is_optional,
            read: None,
        });
        Self {
            client: super::client::REQUIREMENT.to_owned(),
            command,
            environment: Vec::new(),
            target: settings.target.clone(),
            metrics: metrics.collect(),
            corpus,
            replay_mode: "recorded-answers",
            concurrency: settings.concurrency,
            duration: settings.duration,
            fast: settings.is_fast,
            overrides: settings.overrides(),
            diagnostic: settings.diagnostic.clone(),
            job,
            started: now(),
            ended: None,
        }
    }

    /// Writes it into the replay's folder.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        files::write_atomic(&folder.join(NAME), &text)
    }
}

/// The endpoints whose metrics count: those that something names, else the target's own.
#[must_use]
pub(crate) fn required(settings: &Settings) -> Vec<MetricsEndpoint> {
    match settings.metrics.is_empty() {
        true => vec![MetricsEndpoint::of_target(&settings.target)],
        false => settings.metrics.clone(),
    }
}

/// This moment, in UTC.
#[must_use]
pub(crate) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
