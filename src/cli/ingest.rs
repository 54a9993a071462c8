//! `sweepctl ingest`: notifies another repository of new results.

use clap::Args;

use super::client::ClientArgs;
use crate::changelog::link::Slug;
use crate::config::problem::{Problem, Problems};

const AFTER_HELP: &str = "\
The event is a `repository_dispatch` whose `client_payload` holds `repository`, `run_id`, `run_attempt`, and, where an \
earlier run was reused, `reused_run_id`, all of them text. It is sent once: an event that may have arrived is not \
repeated. GH_TOKEN needs `contents: write` in the repository that is notified.";

/// `sweepctl ingest`
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Ingest {
    /// The repository that is notified
    #[arg(long, value_name = "OWNER/NAME")]
    to: Slug,
    /// The event's type
    #[arg(long, value_name = "NAME")]
    event_type: String,
    /// The run whose results were taken over
    #[arg(long, value_name = "RUN", value_parser = clap::value_parser!(u64).range(1..))]
    reused_run: Option<u64>,
    #[command(flatten)]
    client: ClientArgs,
}

impl Ingest {
    /// Sends it.
    ///
    /// # Errors
    /// No run to tell of, and a request that fails.
    pub fn run(&self) -> anyhow::Result<()> {
        let client = self.client.client()?;
        let variable = |name: &str| {
            let value = std::env::var(name).ok().filter(|value| !value.is_empty());
            value.ok_or_else(|| Problem::file("", format!("{name} is not set: this runs in a step of GitHub Actions")))
        };
        let mut payload = serde_json::json!({
            "repository": client.repository().to_string(),
            "run_id": variable("GITHUB_RUN_ID").map_err(Problems::from)?,
            "run_attempt": variable("GITHUB_RUN_ATTEMPT").map_err(Problems::from)?,
        });
        if let Some(run) = self.reused_run {
            payload["reused_run_id"] = run.to_string().into();
        }
        let event = serde_json::json!({ "event_type": self.event_type, "client_payload": payload });
        Ok(client.dispatch_event(&self.to, &event).map_err(Problems::from)?)
    }
}
