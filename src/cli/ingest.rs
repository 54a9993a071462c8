//! `sweepctl ingest`: notifies another repository of new results.

use std::path::PathBuf;

use clap::Args;

use super::client::ClientArgs;
use super::inputs::both;
use super::{output, published};
use crate::changelog::link::Slug;
use crate::config::problem::{Problem, Problems};
use crate::config::workflows::publish::Announced;
use crate::github::announce;
use crate::github::text::one_line;
use crate::ledger::publish::RunLedger;

const AFTER_HELP: &str = "\
The event is a `repository_dispatch` whose `client_payload` holds `repository`, `run_id`, `run_attempt`, where an \
earlier run was reused `reused_run_id`, and with --ledger `publish`, `published` (fingerprints), `withheld` (each with \
`recipe`, `name` and `reason`), `published_count`, `withheld_count` and `whole`. --payload replaces it by a template. A \
payload holds 10 fields and 65,000 bytes: reasons are left out and lists cut where it would be larger, and `whole` is \
then false.

It is sent once: an event that may have arrived is not repeated. GH_TOKEN needs `contents: write` in the repository that \
is notified.";

/// `sweepctl ingest`
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Ingest {
    /// The repository that is notified
    #[arg(long, value_name = "OWNER/NAME")]
    to: Slug,
    /// The event's type
    #[arg(long, value_name = "NAME")]
    event_type: String,
    /// The ledger of the run, which says what is published and what is withheld
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// The template of the payload, as `payload` of `ingest` in configs/workflows.yaml; empty for the usual one
    #[arg(long, value_name = "TEMPLATE", default_value = "")]
    payload: String,
    /// The run whose results were taken over
    #[arg(long, value_name = "RUN", value_parser = clap::value_parser!(u64).range(1..))]
    reused_run: Option<u64>,
    #[command(flatten)]
    client: ClientArgs,
    /// Print the event, and send nothing
    #[arg(long)]
    dry_run: bool,
}

impl Ingest {
    /// Sends it.
    ///
    /// # Errors
    /// No run to tell of, a ledger by which nothing is published, a payload that cannot be sent, and a request that fails.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let (client, _) = both(self.client.client(), in_a_step())?;
        let ledger = self.ledger.as_deref().map(published::read).transpose();
        let ledger = ledger.map_err(Problems::from)?;
        if let Some(problem) = ledger.as_ref().and_then(nothing) {
            return Err(Problems::from(problem).into());
        }
        let told = self.told(client.repository());
        let template = Some(self.payload.as_str()).filter(|template| !template.trim().is_empty());
        let payload = announce::payload(told, ledger.as_ref(), template).map_err(Problems::from)?;
        let event = serde_json::json!({ "event_type": self.event_type, "client_payload": payload });
        if self.dry_run {
            return output::json(&event);
        }
        Ok(client.dispatch_event(&self.to, &event).map_err(Problems::from)?)
    }

    fn told(&self, repository: &Slug) -> Announced {
        Announced {
            repository: repository.to_string(),
            run_id: known("GITHUB_RUN_ID").unwrap_or_default(),
            run_attempt: known("GITHUB_RUN_ATTEMPT").unwrap_or_default(),
            reused_run_id: self.reused_run.map(|run| run.to_string()),
            commit: known("GITHUB_SHA"),
            ..Announced::default()
        }
    }
}

fn known(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Whether the run is known that is told of.
fn in_a_step() -> Result<(), Problems> {
    let names = ["GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT"];
    let unset: Vec<&str> = names.into_iter().filter(|name| known(name).is_none()).collect();
    match unset.as_slice() {
        [] => Ok(()),
        unset => {
            let problem = Problem::file("", format!("{} not set: the run is not known", unset.join(", ")));
            Err(problem
                .hint(format!(
                    "call it in a step of GitHub Actions, or set {}",
                    unset.join(" and ")
                ))
                .into())
        }
    }
}

/// Why there is nothing to announce.
fn nothing(ledger: &RunLedger) -> Option<Problem> {
    let is_nothing = ledger.published().next().is_none();
    let sentence = ledger.sentence();
    is_nothing.then(|| {
        let withheld: Vec<String> = ledger
            .withheld()
            .take(10)
            .map(|recipe| one_line(&format!("{}: {}", recipe.name, recipe.reason)))
            .collect();
        Problem::file("", sentence.trim_end_matches('.').to_owned())
            .hint(format!("withheld are: {}", withheld.join("; ")))
    })
}
