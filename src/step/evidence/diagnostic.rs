//! Whether what measures nothing says so: fast replays, short ones, and evals of a part of the split.

use std::path::PathBuf;

use serde_json::Value;

use super::agreement::{is_there, path_of};
use super::line::{Line, Look};
use super::material::Material;
use crate::config::problem::Problem;
use crate::matrix::envelope::Envelope;
use crate::matrix::names::ArtifactKind;
use crate::step::collect::evals::{self, Order};
use crate::step::collect::reused;
use crate::step::replay::files::{ARTIFACTS, SUMMARY};

/// Why a replay is for diagnosis only, as far as the plan and the client say so.
fn why(material: &Material, job: &Envelope, conc: u64) -> Option<(PathBuf, String)> {
    let asked = &job.overrides.asked;
    if asked.agentx_fast {
        return Some((material.plan_path.clone(), "it was planned in the fast mode".to_owned()));
    }
    if let Some(seconds) = asked.duration {
        return Some((
            material.plan_path.clone(),
            format!("its duration was set to {seconds} s"),
        ));
    }
    let artifacts = material.replay(job, conc)?.join(ARTIFACTS);
    let inside = material.folders().iter().filter(|one| one.path.starts_with(&artifacts));
    let summary = inside
        .filter(|one| one.has(SUMMARY))
        .map(|one| one.path.join(SUMMARY))
        .next()?;
    let value = super::json(&summary).ok()?;
    let metadata = value.get("metadata")?;
    (metadata.get("submission_valid")?.as_bool() == Some(false)).then(|| {
        let reasons = metadata.get("submission_invalid_reasons").and_then(Value::as_array);
        let reasons: Vec<&str> = reasons.into_iter().flatten().filter_map(Value::as_str).collect();
        (
            summary,
            format!("the client says that it is no valid submission: {}", reasons.join(", ")),
        )
    })
}

/// Whether a value says that something is diagnostic: true, or reasons.
fn says_so(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Bool(flag)) => *flag,
        Some(Value::Array(reasons)) => !reasons.is_empty(),
        Some(Value::String(reason)) => !reason.trim().is_empty(),
        _ => false,
    }
}

/// Eval rows of this run that are of a part of the split.
fn limited(material: &Material) -> Result<Vec<Value>, Problem> {
    if material.evals().next().is_none() {
        return Ok(Vec::new());
    }
    let made = evals::collect(
        &material.root,
        Some(material.jobs()),
        Order::default(),
        &material.thresholds,
    )?;
    let rows = made.rows.into_iter().filter(|row| row.diagnostic).collect::<Vec<_>>();
    Ok(reused::without_source(reused::values(&rows)))
}

/// Whether anything in the run measures nothing.
pub(super) fn is_any(material: &Material) -> Result<bool, Problem> {
    let of_replays = material.replays().any(|job| {
        let mut points = job.row.conc.points().iter();
        points.any(|conc| why(material, job, *conc).is_some())
    });
    Ok(of_replays || !limited(material)?.is_empty())
}

/// Everything that measures nothing is labelled `diagnostic` where it is published or recorded.
pub(super) fn look(material: &Material) -> Result<Line, Problem> {
    let mut look = Look::new(
        material,
        "diagnostic",
        "fast and shortened replays and limited evals are labelled diagnostic",
    );
    let limited = limited(material)?;
    let path = path_of(material, reused::EVALS);
    let published = match is_there(&path) {
        true => reused::without_source(reused::eval_rows(&path)?),
        false => Vec::new(),
    };
    for row in &limited {
        match published.contains(row) {
            true => look.saw(&path),
            false => look.fail(
                &path,
                format!("a limited eval is not labelled: {}", reused::identity(row)),
            ),
        }
    }
    for job in material.replays() {
        for conc in job.row.conc.points() {
            let Some((shown, why)) = why(material, job, *conc) else {
                continue;
            };
            let record = material.record(job, *conc);
            let recorded = record.filter(|(_, record)| says_so(record.get("diagnostic")));
            let aggregates = material.aggregates(job);
            let mut labelled = aggregates
                .iter()
                .filter(|(_, of, aggregate)| of == conc && says_so(aggregate.get("diagnostic")));
            match (recorded, labelled.next()) {
                (Some((path, _)), _) => look.saw(&path),
                (None, Some((path, _, _))) => look.saw(path),
                (None, None) => {
                    let place = aggregates.first().map(|(path, _, _)| path.clone());
                    let place = place.unwrap_or_else(|| material.expected(ArtifactKind::BmkAgentic, job));
                    look.fail(&place, format!("{} is not labelled: {why}", job.name));
                    look.saw(&shown);
                }
            }
        }
    }
    Ok(look.line("nothing is fast, shortened or limited"))
}
