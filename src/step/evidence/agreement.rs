//! Whether what is published and the single results that it was made of say the same.

use std::path::Path;

use serde_json::Value;

use super::line::{Line, Look};
use super::material::Material;
use crate::config::problem::{Problem, Problems};
use crate::files;
use crate::matrix::names::ArtifactKind;
use crate::step::collect::evals::Order;
use crate::step::collect::{evals, reused, throughput};
use crate::step::replay::expected::Expected;
use crate::step::replay::{self};

/// What of an aggregate is computed from the raw replay alone; expected lengths need the traces, which are not uploaded.
const OF_REPLAY: [&str; 5] = [
    "/num_requests_total",
    "/num_requests_successful",
    "/request_accounting",
    "/request_metrics/latency",
    "/request_metrics/throughput",
];

/// The collected files agree with the artifacts of the jobs, and the aggregates of replays with the raw replays.
pub(super) fn look(material: &Material) -> Result<Line, Problem> {
    let mut look = Look::new(
        material,
        "agreement",
        "collected and single results say the same, and so do aggregates and raw replays",
    );
    if material.evals().next().is_some() {
        look.applies();
        published_evals(material, &mut look)?;
    }
    if material.throughput().next().is_some() {
        look.applies();
        published_results(material, &mut look)?;
    }
    for job in material.replays() {
        for (path, conc, aggregate) in material.aggregates(job) {
            let Some(raw) = material.replay(job, conc) else {
                let place = material.expected(ArtifactKind::Agentic, job);
                look.fail(&place, format!("the raw replay of {} is missing", job.name));
                continue;
            };
            match replay::process(&raw, &job.row, conc, &Expected::default()) {
                Err(problems) => problems.0.into_iter().for_each(|one| look.fail(&raw, one.message)),
                Ok(made) => match difference(&aggregate, made.aggregate.json()) {
                    None => look.saw(&raw),
                    Some(name) => look.fail(&path, format!("`{name}` is not what the raw replay gives")),
                },
            }
        }
    }
    Ok(look.line("the plan has no job"))
}

/// The first part in which an aggregate differs from what its raw replay gives.
fn difference(published: &Value, made: &Value) -> Option<&'static str> {
    let differs = |pointer: &&&str| !same(published.pointer(pointer), made.pointer(pointer));
    OF_REPLAY
        .iter()
        .find(differs)
        .map(|pointer| pointer.trim_start_matches('/'))
}

/// Whether two values are the same, numbers within a millionth of their size: other writers round otherwise. Keys that
/// only one of two objects has do not count.
fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a, b) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => a
            .iter()
            .all(|(name, value)| b.get(name).is_none_or(|other| same(Some(value), Some(other)))),
        (Some(Value::Number(a)), Some(Value::Number(b))) => match (a.as_f64(), b.as_f64()) {
            // Rounded to five places by both.
            (Some(a), Some(b)) => (a - b).abs() <= 1e-6 * a.abs().max(b.abs()) + 2e-5,
            _ => a == b,
        },
        (a, b) => a == b,
    }
}

fn published_evals(material: &Material, look: &mut Look<'_>) -> Result<(), Problem> {
    let path = path_of(material, reused::EVALS);
    if !is_there(&path) {
        look.fail(&path, "the collected evals are missing");
        return Ok(());
    }
    let published = reused::eval_rows(&path)?;
    let made = evals::collect(
        &material.root,
        Some(material.jobs()),
        Order::default(),
        &material.thresholds,
    )?;
    let mut problems = Problems::default();
    let (published, made) = (
        reused::without_source(published),
        reused::without_source(reused::values(&made.rows)),
    );
    reused::compare(&path, &published, &made, reused::identity, false, &mut problems);
    say(&path, problems, look);
    Ok(())
}

fn published_results(material: &Material, look: &mut Look<'_>) -> Result<(), Problem> {
    let path = path_of(material, reused::RESULTS);
    if !is_there(&path) {
        look.fail(&path, "the collected throughput results are missing");
        return Ok(());
    }
    let (published, broken) = throughput::published(&path)?;
    let made = throughput::collect(&material.root, Some(material.jobs()), &path)?;
    let mut problems = Problems(broken);
    let (published, made) = (reused::values(&published), reused::values(&made.aggregates));
    reused::compare(&path, &published, &made, reused::identity, false, &mut problems);
    say(&path, problems, look);
    Ok(())
}

fn say(path: &Path, problems: Problems, look: &mut Look<'_>) {
    if problems.0.is_empty() {
        look.saw(path);
    }
    problems.0.into_iter().for_each(|one| look.fail(path, one.message));
}

/// Where a collected file lies: in its artifact's folder, wherever that is.
pub(super) fn path_of(material: &Material, (folder, file): (&str, &str)) -> std::path::PathBuf {
    let found = material.folder(folder).map(|found| found.path.clone());
    found.unwrap_or_else(|| material.root.join(folder)).join(file)
}

pub(super) fn is_there(path: &Path) -> bool {
    files::open(path).is_ok()
}
