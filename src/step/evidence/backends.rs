//! Whether every backend of a replay is represented in what was measured.
//!
//! Clients go on without an endpoint that they cannot reach, so that a healthy decode side may stand for a prefill side
//! that nobody looked at.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::json;
use super::line::{Line, Look};
use super::material::Material;
use super::provenance::COMMAND;
use crate::matrix::envelope::Envelope;
use crate::matrix::names::ArtifactKind;
use crate::step::replay::files::{ARTIFACTS, SERVER_METRICS};

/// The logs of srt-slurm's workers, `<node>_<role>_w<index>.out` (srt-slurm 1.0.68, src/srtctl/core/topology.py).
static WORKER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"_(prefill|decode)_w([0-9]+)\.(?:out|err|log)$").expect("a constant pattern"));

/// Every configured metrics endpoint was read and gave series; every worker has an endpoint or a log.
pub(super) fn look(material: &Material) -> Line {
    let mut look = Look::new(
        material,
        "backends",
        "every metrics endpoint of every replay was read, and every worker is represented",
    );
    for job in material.replays() {
        look.applies();
        let logs = logs(material, job, &mut look);
        for conc in job.row.conc.points() {
            let Some(folder) = material.replay(job, *conc) else {
                let place = material.expected(ArtifactKind::Agentic, job);
                look.fail(&place, format!("the raw replay of {} is missing", job.name));
                continue;
            };
            let read = endpoints(material, &folder, &mut look);
            required(material, job, *conc, &mut look);
            workers(job, &folder, &logs, read, &mut look);
        }
    }
    look.line("the plan has no replay")
}

/// The names of a job's server logs.
fn logs(material: &Material, job: &Envelope, look: &mut Look<'_>) -> Vec<PathBuf> {
    let files = material
        .artifact(ArtifactKind::ServerLogs, job)
        .map(|folder| material.files(folder));
    let mut files = files.unwrap_or_default();
    files.retain(|path| {
        path.symlink_metadata()
            .is_ok_and(|found| found.is_file() && found.len() > 0)
    });
    match files.is_empty() {
        true => look.fail(
            &material.expected(ArtifactKind::ServerLogs, job),
            format!("the server logs of {} are missing or empty", job.name),
        ),
        false => files.iter().for_each(|path| look.saw(path)),
    }
    files
}

/// Holds the endpoints that were configured against those that were read; how many were.
fn endpoints(material: &Material, folder: &Path, look: &mut Look<'_>) -> usize {
    let artifacts = folder.join(ARTIFACTS);
    let mut inside = material.folders().iter().filter(|one| one.path.starts_with(&artifacts));
    let found = inside
        .find(|one| one.has(SERVER_METRICS))
        .map(|one| one.path.join(SERVER_METRICS));
    let path = found.unwrap_or_else(|| artifacts.join(SERVER_METRICS));
    let export = match json(&path) {
        Ok(export) => export,
        Err(reason) => {
            look.fail(&path, format!("the server's metrics: the file {reason}"));
            return 0;
        }
    };
    let listed = |name: &str| texts(export.pointer(&format!("/summary/{name}")));
    let (configured, successful) = (listed("endpoints_configured"), listed("endpoints_successful"));
    if configured.is_empty() {
        look.fail(&path, "no metrics endpoint was configured");
    }
    for endpoint in configured.difference(&successful) {
        look.fail(&path, format!("{endpoint} was configured and never read"));
    }
    let with_series = with_series(&export);
    for endpoint in configured.intersection(&successful) {
        match with_series.contains(endpoint) {
            true => look.saw(&path),
            false => look.fail(&path, format!("{endpoint} was read and gave no series")),
        }
    }
    for endpoint in asked(&folder.join(COMMAND)).difference(&configured) {
        look.fail(
            &path,
            format!("{endpoint} stands in the command, and was not configured"),
        );
    }
    successful.len()
}

/// The endpoints that series of an export name.
fn with_series(export: &Value) -> BTreeSet<String> {
    let metrics = export.get("metrics").and_then(Value::as_object);
    let series = metrics
        .into_iter()
        .flatten()
        .filter_map(|(_, metric)| metric.get("series")?.as_array());
    let named = series.flatten().filter_map(|one| one.get("endpoint_url")?.as_str());
    named.map(str::to_owned).collect()
}

fn texts(list: Option<&Value>) -> BTreeSet<String> {
    let items = list.and_then(Value::as_array);
    items
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

/// The endpoints that a client's command names behind `--server-metrics`.
fn asked(command: &Path) -> BTreeSet<String> {
    let Ok(bytes) = crate::files::read(command) else {
        return BTreeSet::new();
    };
    let words = shlex::split(&String::from_utf8_lossy(&bytes)).unwrap_or_default();
    let after = words.iter().skip_while(|word| *word != "--server-metrics").skip(1);
    let urls = after.take_while(|word| !word.starts_with("--"));
    urls.filter(|word| word.contains("://")).cloned().collect()
}

/// The endpoints that the record of a replay requires and that were not read.
fn required(material: &Material, job: &Envelope, conc: u64, look: &mut Look<'_>) {
    let Some((path, record)) = material.record(job, conc) else {
        return;
    };
    let metrics = record.get("metrics").and_then(Value::as_array);
    for metric in metrics.into_iter().flatten() {
        let flag = |name: &str| metric.get(name).and_then(Value::as_bool);
        if flag("required") == Some(true) && flag("read") != Some(true) {
            let url = metric.get("url").and_then(Value::as_str).unwrap_or("an endpoint");
            look.fail(&path, format!("{url} is required and was never read"));
        }
    }
}

/// Of a multi-node job every worker must be there: by its log, or all of them by as many endpoints.
fn workers(job: &Envelope, folder: &Path, logs: &[PathBuf], endpoints: usize, look: &mut Look<'_>) {
    let Some(roles) = job.row.topology.roles() else {
        return;
    };
    let wanted = [
        ("prefill", roles.prefill.num_worker),
        ("decode", roles.decode.num_worker),
    ];
    let all: u64 = wanted.iter().map(|(_, workers)| workers).sum();
    if u64::try_from(endpoints).is_ok_and(|endpoints| endpoints >= all) {
        return;
    }
    let names = logs.iter().filter_map(|path| path.file_name()?.to_str());
    let seen: BTreeSet<(String, String)> = names
        .filter_map(|name| WORKER.captures(name))
        .map(|found| (found[1].to_owned(), found[2].to_owned()))
        .collect();
    for (role, workers) in wanted {
        let there = seen.iter().filter(|(of, _)| of == role).count();
        if u64::try_from(there).unwrap_or(u64::MAX) < workers {
            let message = format!(
                "{workers} {role} workers were planned: {there} have logs, and {endpoints} endpoints for {all} workers \
                 were read"
            );
            look.fail(folder, message);
        }
    }
}
