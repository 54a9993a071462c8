//! Which jobs of an emitted plan go first: the policy, and what the run was started by.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use super::priority::too_long;
use crate::config::priority::Priorities;
use crate::config::problem::{Problem, Problems};
use crate::config::source::Source;
use crate::config::workflows::{PriorityUse, Workflows};
use crate::github::event::{self, Event};
use crate::github::text;
use crate::matrix::bucket::Buckets;
use crate::matrix::priority::{self, Occasion};

/// The policy.
const POLICY: &str = "configs/ci-priority.yaml";

/// What a run was started by, as far as scores look at it.
#[derive(Debug, Default)]
pub(super) struct Trigger {
    event: String,
    labels: Vec<String>,
    pull_request: Option<u64>,
    run: String,
}

impl Trigger {
    /// What started the run that this process is a step of: nothing, outside of one.
    ///
    /// # Errors
    /// An event that cannot be read.
    pub(super) fn of_run() -> Result<Self, Problems> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let name = variable("GITHUB_EVENT_NAME");
        let run = variable("GITHUB_RUN_ID").unwrap_or_default();
        let Some(path) = variable("GITHUB_EVENT_PATH").map(PathBuf::from) else {
            let event = name.unwrap_or_default();
            return Ok(Self {
                event,
                run,
                ..Self::default()
            });
        };
        let payload = text::read(&path)?;
        Ok(Self {
            run,
            ..Self::of_event(name.as_deref(), &payload)?
        })
    }

    /// An event's part in scores.
    ///
    /// # Errors
    /// An event that cannot be read.
    pub(super) fn of_event(name: Option<&str>, payload: &Source) -> Result<Self, Problems> {
        let named = match name {
            Some(name) => name,
            None => event::look(&payload.text, &payload.name)?,
        };
        let event = named.to_owned();
        Ok(match Event::parse(Some(named), &payload.text, &payload.name)? {
            Event::PullRequest(pull_request) => Self {
                event,
                labels: pull_request.labels,
                pull_request: Some(pull_request.number),
                ..Self::default()
            },
            _ => Self {
                event,
                labels: labels_of_dispatch(payload)?,
                ..Self::default()
            },
        })
    }
}

/// The labels that a dispatch passes on, for a pull request that it sweeps.
fn labels_of_dispatch(payload: &Source) -> Result<Vec<String>, Problem> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Dispatch {
        inputs: Option<Inputs>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Inputs {
        #[serde(rename = "pr-labels-json")]
        labels: Option<String>,
    }
    let refused = |error: serde_json::Error| {
        let message = format!("`pr-labels-json` of the event's inputs is no JSON list of labels: {error}");
        Problem::file(&payload.name, message).hint("write it as [\"full-sweep-enabled\"], or leave it empty")
    };
    let dispatch: Dispatch = serde_json::from_str(&payload.text).map_err(refused)?;
    let labels = dispatch.inputs.and_then(|inputs| inputs.labels).unwrap_or_default();
    match labels.trim() {
        "" => Ok(Vec::new()),
        labels => serde_json::from_str(labels).map_err(refused),
    }
}

/// Scores the jobs of a plan by the policy of a repository, where it has one.
///
/// # Errors
/// Everything wrong with the policy, and one that is missing where labels carry its scores.
pub(super) fn score(
    buckets: &mut Buckets,
    root: &Path,
    settings: &Workflows,
    trigger: &Trigger,
) -> Result<(), Problems> {
    let path = root.join(POLICY);
    if !path.exists() {
        return match settings.priority {
            PriorityUse::Order => Ok(()),
            PriorityUse::Labels => {
                let message =
                    format!("`priority: labels` of the workflow settings needs `{POLICY}`, which does not exist");
                let hint = format!("write `{POLICY}`, or `priority: order`");
                Err(Problem::file(POLICY, message).hint(hint).into())
            }
        };
    }
    let source = Arc::new(Source::read_as(&path, POLICY)?);
    let policy = Priorities::load(&source)?;
    let occasion = Occasion {
        event: &trigger.event,
        labels: &trigger.labels,
        pull_request: trigger.pull_request,
    };
    match priority::queue(buckets, &policy, occasion, &trigger.run) {
        true => Ok(()),
        false => Err(too_long(POLICY).into()),
    }
}
