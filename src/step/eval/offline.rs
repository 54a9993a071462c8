//! A report that a program left elsewhere, read without a server and without the program.

use super::client::Client;
use super::framework::{self, known};
use super::job::Job;
use super::progress::Progress;
use super::{PointReport, Report, Request, set_aside};
use crate::config::problem::{Problem, Problems, nearest};
use crate::step::results::loose::Cell;
use crate::step::results::meta::MetaEnv;

/// Stages the report and what it says as a result.
///
/// # Errors
/// A framework whose reports nothing here reads, and as [`Client::find`] and [`Client::report`].
pub(super) fn read(
    request: &Request,
    job: &Job,
    points: &[u64],
    progress: &mut Progress,
    report: &mut Report,
    meta: &mut MetaEnv,
) -> Result<(), Problems> {
    let Some(file) = &request.report else { return Ok(()) };
    let asked = request.framework.as_deref().or_else(|| job.text("EVAL_FRAMEWORK"));
    let name = asked.unwrap_or(framework::DEFAULT);
    let Some(client) = Client::find(name, request, job)? else {
        let known = known(&request.roots)?;
        let readable = known
            .iter()
            .map(String::as_str)
            .filter(|name| *name != framework::DEFAULT);
        let problem = Problem::file("", format!("reports of `{name}` are read by nothing here"));
        return Err(problem.hint(nearest(name, readable)).into());
    };
    set_aside(&request.stage_to, progress)?;
    let (framework, suite) = client.of();
    meta.set("eval_framework", Cell::Text(framework.to_owned()));
    meta.set("eval_suite", Cell::Text(suite.to_owned()));
    let model = job.text("MODEL_NAME").or_else(|| job.text("MODEL")).unwrap_or_default();
    let read = client.report(file, model, &request.stage_to);
    if let Some(concurrency) = points.first() {
        report.points.push(PointReport {
            concurrency: *concurrency,
            completed: read.is_ok(),
            seconds: 0.0,
            files: read.as_ref().ok().cloned().into_iter().collect(),
            answers: None,
        });
    }
    read.map(drop).map_err(Problems::from)
}
