//! The `client_payload` that another repository is told of results with, within what GitHub takes.

use serde_json::{Value, json};

use crate::config::problem::Problem;
use crate::config::workflows::publish::{self, Announced, Withheld};
use crate::ledger::publish::RunLedger;

/// The bytes that a payload may have: GitHub takes less than 64 KB.
const MAX_BYTES: usize = 65_000;
/// The longest reason of a recipe that is withheld, in characters.
const MAX_REASON: usize = 300;

/// The payload of results. `template` is that of the settings; without one the usual payload is made. Where it would be
/// too large, first the reasons are left out, then lists are cut, and `whole` says so.
///
/// # Errors
/// A template that gives no payload, and one that is too large by itself.
pub(crate) fn payload(
    mut told: Announced,
    ledger: Option<&RunLedger>,
    template: Option<&str>,
) -> Result<Value, Problem> {
    let Some(ledger) = ledger else {
        return within(&told, template)?.ok_or_else(too_large);
    };
    let published: Vec<String> = ledger.published().map(|recipe| recipe.recipe.clone()).collect();
    let withheld: Vec<Withheld> = ledger
        .withheld()
        .map(|recipe| Withheld {
            recipe: recipe.recipe.clone(),
            name: recipe.name.clone(),
            reason: recipe.reason.chars().take(MAX_REASON).collect(),
        })
        .collect();
    told.publish = Some(ledger.publish);
    (told.published_count, told.withheld_count) = (published.len(), withheld.len());
    let mut most = published.len().max(withheld.len());
    let mut with_reasons = true;
    loop {
        told.published = published.iter().take(most).cloned().collect();
        told.withheld = withheld.iter().take(most).cloned().collect();
        if !with_reasons {
            told.withheld.iter_mut().for_each(|withheld| withheld.reason.clear());
        }
        told.whole = most >= published.len() && most >= withheld.len();
        if let Some(payload) = within(&told, template)? {
            return Ok(payload);
        }
        match (with_reasons, most) {
            (true, _) => with_reasons = false,
            (false, 0) => return Err(too_large()),
            (false, _) => most /= 2,
        }
    }
}

/// The payload, unless it is too large.
fn within(told: &Announced, template: Option<&str>) -> Result<Option<Value>, Problem> {
    let payload = match template {
        Some(template) => publish::payload(template, told).map_err(|reason| {
            Problem::file("", format!("the payload cannot be sent: {reason}"))
                .hint("correct `payload` of `ingest` in configs/workflows.yaml")
        })?,
        None => usual(told),
    };
    Ok((payload.to_string().len() <= MAX_BYTES).then_some(payload))
}

fn too_large() -> Problem {
    let message = format!("the payload is larger than the {MAX_BYTES} bytes that can be sent");
    Problem::file("", message).hint("shorten `payload` of `ingest` in configs/workflows.yaml")
}

/// What is sent without a template: of what is published only where that is known.
fn usual(told: &Announced) -> Value {
    let mut payload = json!({
        "repository": told.repository, "run_id": told.run_id, "run_attempt": told.run_attempt,
    });
    if let Some(run) = &told.reused_run_id {
        payload["reused_run_id"] = json!(run);
    }
    if let Some(publish) = told.publish {
        payload["publish"] = json!(publish);
        payload["published"] = json!(told.published);
        payload["withheld"] = json!(told.withheld);
        payload["published_count"] = json!(told.published_count);
        payload["withheld_count"] = json!(told.withheld_count);
        payload["whole"] = json!(told.whole);
    }
    payload
}
