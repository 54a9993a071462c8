//! The result of an agentic job: from what the replay's client and the server left to the aggregate that is published.
//!
//! The client writes a record for each request, a summary, and what it read of the server's metrics; servers leave logs.
//! The summary's counts decide whether the replay counts at all. Everything is computed from the good records, in
//! doubles that are rounded once, at the end.

mod accounting;
pub(crate) mod expected;
pub(crate) mod files;
mod gate;
mod identity;
pub(crate) mod left;
mod picked;
pub(crate) mod places;
mod plots;
mod pool;
pub(crate) mod published;
mod records;
mod requests;
mod rounding;
mod series;
mod server;
mod statistics;

use std::path::Path;

use serde_json::{Value, json};

use self::accounting::Accounting;
use self::expected::Expected;
use self::files::Files;
use self::gate::Summary;
use self::requests::Requests;
use self::series::Server;
use self::server::{Engine, ServerMetrics};
use crate::config::problem::{Problem, Problems};
use crate::matrix::row::{Offload, Row, Scenario};
use crate::step::results::file::shown;

/// A replay that was read.
#[derive(Debug)]
pub(crate) struct Replay {
    /// What is published of it.
    pub aggregate: Aggregate,
    requests: Requests,
}

impl Replay {
    /// Pictures of how latencies and lengths are distributed, as SVG: the end of a file's name, and its text. `title`
    /// says whose they are.
    #[must_use]
    pub(crate) fn plots(&self, title: &str) -> Vec<(&'static str, String)> {
        plots::draw(&self.requests, title)
    }
}

/// The aggregate of a replay, as it is published.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Aggregate(Value);

/// How many names of metrics that belong to no engine are told.
const SHOWN: usize = 12;

impl Aggregate {
    /// The JSON object.
    #[must_use]
    pub(crate) fn json(&self) -> &Value {
        &self.0
    }

    /// What is worth a look: that nothing is known of the server, and why.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = &str> {
        let list = self.0.get("warnings").and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str)
    }
}

/// Reads the replay that lies in a folder, of an agentic row at one concurrency.
///
/// # Errors
/// A row that replays nothing, or not at that concurrency; files that are missing or cannot be read; counts that are
/// none; too many failed requests. Server metrics are never a reason.
pub(crate) fn process(folder: &Path, row: &Row, conc: u64, expected: &Expected) -> Result<Replay, Problems> {
    let Scenario::Agentic(offload) = &row.topology.scenario else {
        let problem = Problem::file("", "the job has fixed lengths, it replays nothing");
        return Err(problem.hint("leave --replay out").into());
    };
    let files = files::find(folder)?;
    let summary = Summary::read(&files.summary)?;
    let (mut accounting, mut requests) = (Accounting::default(), Requests::default());
    records::each(&files.records, |record| {
        if accounting.count(record.is_warm_up(), &record.error) {
            requests.take(&record, expected);
        }
    })?;
    summary.passes()?;
    Ok(Replay {
        aggregate: aggregate(&files, row, offload, conc, &summary, accounting, &requests),
        requests,
    })
}

/// Whether the replay in a folder counts, by its summary alone; `is_own` says of a file whether the job wrote it.
///
/// # Errors
/// Files that are missing, cannot be read or are another job's, counts that are none, and too many failed requests.
pub(crate) fn check(folder: &Path, is_own: impl Fn(&Path) -> bool) -> Result<(), Problems> {
    let files = files::find(folder)?;
    for file in [&files.records, &files.summary] {
        if !is_own(file) {
            let message = format!("{} is older than the job", shown(file));
            return Err(Problem::file(&shown(file), message)
                .hint("the replay wrote nothing: see its log")
                .into());
        }
    }
    Summary::read(&files.summary)?.passes()
}

/// Whether few enough requests of the replay in a folder failed, by its summary. Gives how many of how many.
///
/// # Errors
/// As [`check`], with another share of failed requests than what is published may have.
pub(crate) fn check_at(folder: &Path, most: f64) -> Result<(f64, f64), Problems> {
    Summary::read(&files::find(folder)?.summary)?.passes_at(most)
}

fn aggregate(
    files: &Files,
    row: &Row,
    offload: &Offload,
    conc: u64,
    summary: &Summary,
    accounting: Accounting,
    requests: &Requests,
) -> Aggregate {
    let (mut fields, gpus) = identity::fields(row, offload, conc);
    let (server, warnings) = server_metrics(files, row, &accounting, requests);
    let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    put("num_requests_total", json!(accounting.records_total));
    put("num_requests_successful", json!(accounting.records_profiled));
    put("request_accounting", json!(accounting));
    put(
        "request_metrics",
        json!(requests.metrics(gpus, summary.theoretical_cache_hit_rate())),
    );
    put("kv_cache_pool_tokens", json!(server.kv_cache.gpu_total_tokens));
    put("server_metrics", json!(server));
    if let Some(dataset) = summary.dataset() {
        put("dataset", dataset);
    }
    if !warnings.is_empty() {
        put("warnings", json!(warnings));
    }
    let mut json = Value::Object(fields);
    rounding::round(&mut json);
    Aggregate(json)
}

/// What is known of the server, and what is to be said of it.
fn server_metrics(
    files: &Files,
    row: &Row,
    accounting: &Accounting,
    requests: &Requests,
) -> (ServerMetrics, Vec<String>) {
    let framework = &row.topology.framework;
    let mut warnings = Vec::new();
    let known = Server::read(&files.server_metrics).and_then(|server| match Engine::of(framework, Some(&server)) {
        Some(engine) => Ok((engine, ServerMetrics::of(engine, &server))),
        None => Err(of_no_engine(files, &server)),
    });
    let (engine, mut metrics) = match known {
        Ok((engine, metrics)) => (Some(engine), metrics),
        Err(warning) => {
            warnings.push(warning);
            (Engine::of(framework, None), ServerMetrics::none())
        }
    };
    let (pool, unread) = pool::tokens(&files.logs, engine);
    warnings.extend(unread);
    metrics.complete(accounting.records_profiled, requests.tokens(), pool);
    (metrics, warnings)
}

fn of_no_engine(files: &Files, server: &Server) -> String {
    let names: Vec<String> = server
        .names()
        .take(SHOWN)
        .map(|name| format!("`{}`", short(name)))
        .collect();
    let more = server.count().saturating_sub(SHOWN);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    let place = shown(&files.server_metrics);
    format!(
        "{place}: its metrics belong to no engine that is known: {}{more}",
        names.join(", ")
    )
}

fn short(name: &str) -> String {
    const MAX_NAME: usize = 120;
    name.chars().take(MAX_NAME).collect()
}
