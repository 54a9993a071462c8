//! An eval: one framework, one server, one or several concurrencies, and what is staged of it.

pub(crate) mod calibrate;
pub(crate) mod client;
pub(crate) mod context;
mod data_set;
pub(crate) mod endpoint;
pub(crate) mod framework;
pub mod job;
pub mod lm_eval;
pub mod meta_env;
pub(crate) mod model_config;
mod offline;
pub(crate) mod progress;
pub(crate) mod results;
pub(crate) mod task;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde::Serialize;

use self::endpoint::{Endpoint, READY_TIMEOUT};
use self::framework::{Framework, Point, Runtime};
use self::job::Job;
use self::progress::Progress;
use super::clean::STALE_FOLDER;
use super::results::answers::Answers;
use super::results::file;
use super::results::loose::{Cell, List, Map};
use super::results::meta;
use super::stage;
use crate::config::problem::{Problem, Problems};
use crate::process::Cancellation;

/// The concurrency where nothing names one.
const CONCURRENCY: u64 = 64;
/// The same in jobs of srt-slurm.
const CONCURRENCY_SRT: u64 = 256;

/// What is asked of an eval; what is left open the job decides.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The server's URL.
    pub endpoint: String,
    /// Concurrencies, distinct, in order.
    pub concurrency: Option<Vec<u64>>,
    /// A task's file or name.
    pub task: Option<String>,
    /// Folders that may hold `configs/evals`.
    pub roots: Vec<PathBuf>,
    /// Where results go.
    pub stage_to: PathBuf,
    /// The number of samples; empty, `full` and `0` are the whole split.
    pub limit: Option<String>,
    /// What evaluates.
    pub framework: Option<String>,
    /// Whether tools go into the `python3` that is there.
    pub system_python: bool,
    /// Sampling: the temperature, 0 unless it is said.
    pub temperature: Option<f64>,
    /// Sampling: the share of likely tokens, 1 unless it is said.
    pub top_p: Option<f64>,
    /// Whether raw output folders are kept.
    pub keep: bool,
    /// The served model's name, before those of the job's variables.
    pub model: Option<String>,
    /// How long one point may take.
    pub point_timeout: Option<Duration>,
    /// Whether the model has to answer on the chat route before the first point; vendors' suites wait by themselves.
    pub wait_for_chat: bool,
    /// A copy of the framework's source, instead of a download.
    pub source: Option<PathBuf>,
    /// A report that a program left: it is read, and nothing runs.
    pub report: Option<PathBuf>,
}

/// One point's end.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PointReport {
    /// Its concurrency.
    pub concurrency: u64,
    /// Whether it succeeded and staged something.
    pub completed: bool,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// What it staged.
    pub files: Vec<PathBuf>,
    /// What its answers were, where its framework counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers: Option<Answers>,
}

/// An eval's end.
#[derive(Debug, Default)]
pub struct Report {
    /// Its points, in order; those that never started are failed ones.
    pub points: Vec<PointReport>,
    /// Everything that went wrong.
    pub problems: Problems,
    /// The signal that ended it early.
    pub cancelled: Option<Signal>,
}

/// Runs an eval. Failures are kept for the end: whatever happens, what is there is staged, and so is `meta_env.json`.
pub fn run(request: &Request, job: &Job, cancel: &Cancellation, progress: &mut Progress) -> Report {
    let mut report = Report::default();
    let (mut meta, bad) = meta_env::of(&job.as_planned());
    report.problems.extend(bad);
    let points = concurrency(request, job).unwrap_or_else(|problem| {
        report.problems.push(problem);
        Vec::new()
    });
    match std::fs::create_dir_all(&request.stage_to) {
        Ok(()) if request.report.is_some() => {
            if let Err(problems) = offline::read(request, job, &points, progress, &mut report, &mut meta) {
                report.problems.extend(problems);
            }
        }
        Ok(()) if !points.is_empty() => {
            if let Err(problems) = evaluate(request, job, &points, cancel, progress, &mut report, &mut meta) {
                report.problems.extend(problems);
            }
        }
        Ok(()) => {}
        Err(error) => report.problems.push(unwritable(&request.stage_to, &error)),
    }
    for concurrency in points.iter().skip(report.points.len()) {
        report.points.push(PointReport {
            concurrency: *concurrency,
            completed: false,
            seconds: 0.0,
            files: Vec::new(),
            answers: None,
        });
    }
    report.cancelled = cancel.signal();
    meta.set("conc", meta::number(points.first().copied().unwrap_or_default()));
    if points.len() > 1 {
        let of = |completed: bool| of_points(report.points.iter().filter(|point| point.completed == completed));
        meta.eval_concs = of_points(&report.points);
        (meta.completed_eval_concs, meta.failed_eval_concs) = (of(true), of(false));
    }
    meta.answers = Map(counted(&report.points));
    if let Err(error) = meta.write(&request.stage_to) {
        report.problems.push(unwritable(&request.stage_to, &error));
    }
    report
}

/// The answers of all points; `None` where nobody counted them.
fn counted(points: &[PointReport]) -> Option<Answers> {
    points.iter().filter_map(|point| point.answers).reduce(Answers::plus)
}

/// The concurrencies of points.
fn of_points<'p>(points: impl IntoIterator<Item = &'p PointReport>) -> Option<List<Cell>> {
    let points = points.into_iter().map(|point| meta::number(point.concurrency));
    Some(List(Some(points.collect())))
}

fn unwritable(folder: &Path, error: &std::io::Error) -> Problem {
    Problem::file(&stage::shown(folder), format!("results cannot be staged: {error}"))
        .hint("free space there, or name another folder with --stage-to")
}

/// Prepares the framework, waits for the server, and runs every point.
fn evaluate(
    request: &Request,
    job: &Job,
    points: &[u64],
    cancel: &Cancellation,
    progress: &mut Progress,
    report: &mut Report,
    meta: &mut meta::MetaEnv,
) -> Result<(), Problems> {
    let key = job.text("OPENAI_API_KEY").filter(|key| *key != "EMPTY");
    let endpoint = Endpoint::parse(&request.endpoint, key).map_err(Problems::from);
    let ready_timeout = job
        .number("EVAL_ENDPOINT_READY_TIMEOUT_SECONDS", 1)
        .map_err(Problems::from);
    let framework = framework::of(request, job);
    let (endpoint, ready_timeout, mut framework) = all(endpoint, ready_timeout, framework)?;
    let ready_timeout = ready_timeout.map_or(READY_TIMEOUT, Duration::from_secs);

    set_aside(&request.stage_to, progress)?;
    if let Some((name, suite)) = framework.identity() {
        meta.set("eval_framework", Cell::Text(name.to_owned()));
        meta.set("eval_suite", Cell::Text(suite.to_owned()));
        if points.len() > 1 {
            let problem = Problem::file(
                "",
                format!("`{suite}` runs at one concurrency, not at {}", points.len()),
            );
            return Err(problem.hint("name one with --concurrency or EVAL_CONC").into());
        }
    }
    let model = match ready(
        request,
        job,
        &endpoint,
        ready_timeout,
        &mut *framework,
        cancel,
        progress,
    ) {
        Ok(model) => model,
        Err(problem) => {
            let recorded = framework.record(&request.stage_to, &problem);
            let mut problems = Problems::from(problem);
            problems.extend(
                recorded
                    .map_err(|error| unwritable(&request.stage_to, &error).into())
                    .err()
                    .unwrap_or_default(),
            );
            return Err(problems);
        }
    };
    let raw = tempfile::Builder::new().prefix("sweepctl-eval-").tempdir();
    let mut raw = raw.map_err(|error| Problem::file("", format!("there is no temporary folder: {error}")))?;
    raw.disable_cleanup(request.keep);
    for (index, concurrency) in points.iter().enumerate() {
        if cancel.signal().is_some() {
            break;
        }
        progress.point(index, points.len(), *concurrency);
        let point = Point {
            concurrency: *concurrency,
            endpoint: &endpoint,
            model: &model,
            out: &raw.path().join(format!("conc{concurrency}")),
        };
        let suffix = if points.len() > 1 {
            format!("_conc{concurrency}")
        } else {
            String::new()
        };
        let (done, problems) = one(&*framework, &point, &request.stage_to, &suffix, cancel, progress);
        progress.done(index, points.len(), &done);
        report.points.push(done);
        report.problems.extend(problems);
    }
    let unstaged = stage::find(raw.path(), framework.stages(), true).files;
    if !unstaged.is_empty() {
        // The only copy of what took hours.
        raw.disable_cleanup(true);
        let place = raw.path().display().to_string();
        let message = format!(
            "{} could not be staged, and stay in {place}",
            crate::plural::count(unstaged.len(), "result file")
        );
        report
            .problems
            .push(Problem::file(&place, message).hint("copy them before the node is cleaned, and free space"));
    }
    if request.keep {
        progress.line(&format!("raw output is kept in {}", raw.path().display()));
    }
    Ok(())
}

/// Prepares the framework and waits for the server; returns the name of the model that it serves.
fn ready(
    request: &Request,
    job: &Job,
    endpoint: &Endpoint,
    timeout: Duration,
    framework: &mut dyn Framework,
    cancel: &Cancellation,
    progress: &Progress,
) -> Result<String, Problem> {
    progress.phase("preparing the eval framework");
    framework.prepare(&mut Runtime {
        cancel,
        show: &mut |line| progress.line(line),
    })?;
    progress.phase("waiting for the endpoint");
    endpoint.wait(timeout, cancel)?;
    let names = ["MODEL_NAME", "MODEL", "MODEL_PATH"].map(|name| job.text(name));
    let names: Vec<&str> = request
        .model
        .as_deref()
        .into_iter()
        .chain(names.into_iter().flatten())
        .collect();
    let model = endpoint.served(&names, &mut |line| progress.line(line))?;
    if request.wait_for_chat || framework.identity().is_some() {
        endpoint.wait_for_chat(&model, timeout, cancel)?;
    }
    Ok(model)
}

/// Runs one point in its fresh folder, and stages what it left there, also after a failure.
fn one(
    framework: &dyn Framework,
    point: &Point<'_>,
    stage_to: &Path,
    suffix: &str,
    cancel: &Cancellation,
    progress: &mut Progress,
) -> (PointReport, Problems) {
    let started = Instant::now();
    let mut problems = Problems::default();
    let outcome = std::fs::create_dir(point.out)
        .map_err(|error| unwritable(point.out, &error))
        .and_then(|()| {
            let show = &mut |line: &str| progress.line(line);
            framework.run_point(point, &mut Runtime { cancel, show })
        });
    if let Err(problem) = outcome {
        problems.push(problem);
    }
    let found = stage::find(point.out, framework.stages(), true);
    problems.extend(Problems(found.refused));
    let mut files = Vec::new();
    for path in found.files {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match stage::move_into(&path, stage_to, &stage::suffixed(&name, suffix)) {
            Ok(target) => files.push(target),
            Err(error) => problems.push(unwritable(&stage_to.join(&*name), &error)),
        }
    }
    let done = PointReport {
        concurrency: point.concurrency,
        completed: problems.0.is_empty() && !files.is_empty(),
        seconds: started.elapsed().as_secs_f64(),
        files,
        // A count that is not there, or was cut off, takes nothing from the results.
        answers: file::read(&point.out.join(framework::ANSWERS))
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok()),
    };
    (done, problems)
}

/// Sets results of an earlier eval aside: they would pass for this one's.
fn set_aside(stage_to: &Path, progress: &mut Progress) -> Result<(), Problem> {
    let found = stage::find(stage_to, &stage::EVAL, false);
    let links = found.refused.iter().map(|problem| PathBuf::from(&problem.file));
    let old: Vec<PathBuf> = found.files.into_iter().chain(links).collect();
    if old.is_empty() {
        return Ok(());
    }
    let stale = stage_to.join(STALE_FOLDER);
    let failed = |error: std::io::Error| unwritable(&stale, &error);
    std::fs::create_dir_all(&stale).map_err(failed)?;
    for file in old {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if file.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
            let moved = stage::move_into(&file, &stale, &name).map_err(failed)?;
            progress.line(&format!(
                "set aside {} as {}",
                stage::shown(&file),
                stage::shown(&moved)
            ));
        } else {
            std::fs::remove_file(&file).map_err(failed)?;
            progress.line(&format!("removed {}, which is no plain file", stage::shown(&file)));
        }
    }
    Ok(())
}

/// `--concurrency`, else EVAL_CONC, else EVAL_CONCURRENT_REQUESTS, else on one node CONC, else the highest of
/// BENCH_MAX_CONCURRENCY, else 64, or 256 where srt-slurm runs the job.
///
/// # Errors
/// A variable that holds something else than positive numbers, or one twice.
pub fn concurrency(request: &Request, job: &Job) -> Result<Vec<u64>, Problem> {
    if let Some(points) = &request.concurrency {
        return Ok(points.clone());
    }
    let failed = |name: &str, why: String| {
        Problem::file("", format!("{name}: {why}"))
            .hint("give positive numbers with spaces between, such as '16 32 64'")
    };
    // A launch sets the workspace for every job; srt-slurm's own are the multi-node ones, which may inherit a CONC
    // that is not theirs.
    let srt = job.text("INFMAX_WORKSPACE").is_some() && job.text("IS_MULTINODE") != Some("false");
    let one_node = !srt && !job.flag("IS_MULTINODE").ok().flatten().unwrap_or(false);
    for (name, counts) in [
        ("EVAL_CONC", true),
        ("EVAL_CONCURRENT_REQUESTS", true),
        ("CONC", one_node),
    ] {
        if let Some(text) = job.text(name).filter(|_| counts) {
            return parse_concurrency(text).map_err(|why| failed(name, why));
        }
    }
    if let Some(text) = job.text("BENCH_MAX_CONCURRENCY") {
        let points: Result<Vec<u64>, _> = text.split('x').map(|word| word.trim().parse()).collect();
        let highest = points
            .ok()
            .and_then(|points| points.into_iter().max())
            .filter(|highest| *highest > 0);
        let highest =
            highest.ok_or_else(|| failed("BENCH_MAX_CONCURRENCY", format!("`{text}` is no list such as 4x8")))?;
        return Ok(vec![highest]);
    }
    Ok(vec![if srt { CONCURRENCY_SRT } else { CONCURRENCY }])
}

/// Positive numbers with spaces between, each once.
///
/// # Errors
/// What is wrong with the text.
pub fn parse_concurrency(text: &str) -> Result<Vec<u64>, String> {
    let mut points = Vec::new();
    for word in text.split_whitespace() {
        let point: u64 = word
            .parse()
            .ok()
            .filter(|point| *point > 0)
            .ok_or(format!("`{word}` is no concurrency"))?;
        if points.contains(&point) {
            return Err(format!("{point} stands there twice"));
        }
        points.push(point);
    }
    if points.is_empty() {
        return Err("there is no concurrency".to_owned());
    }
    Ok(points)
}

/// All three values, or all problems.
fn all<A, B, C>(a: Result<A, Problems>, b: Result<B, Problems>, c: Result<C, Problems>) -> Result<(A, B, C), Problems> {
    match (a, b, c) {
        (Ok(a), Ok(b), Ok(c)) => Ok((a, b, c)),
        (a, b, c) => {
            let mut problems = Problems::default();
            for found in [a.err(), b.err(), c.err()].into_iter().flatten() {
                problems.extend(found);
            }
            Err(problems)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(vars: &[(&str, &str)]) -> Result<Vec<u64>, Problem> {
        let job = Job::new(None, vars.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())));
        concurrency(&Request::default(), &job)
    }

    #[test]
    fn concurrency_comes_from_the_first_that_names_one() {
        let bench = ("BENCH_MAX_CONCURRENCY", "4x256x16");
        assert_eq!(of(&[("EVAL_CONC", "16 32"), bench]), Ok(vec![16, 32]));
        assert_eq!(
            of(&[("EVAL_CONC", ""), ("EVAL_CONCURRENT_REQUESTS", "8"), bench]),
            Ok(vec![8])
        );
        assert_eq!(of(&[bench]), Ok(vec![256]));
        assert_eq!(of(&[]), Ok(vec![64]));
        let srt = ("INFMAX_WORKSPACE", "/infmax-workspace");
        assert_eq!(of(&[srt]), Ok(vec![256]));
        assert_eq!(of(&[("CONC", "32"), bench]), Ok(vec![32]));
        assert_eq!(of(&[("CONC", "32"), ("EVAL_CONCURRENT_REQUESTS", "8")]), Ok(vec![8]));
        assert_eq!(of(&[srt, ("CONC", "32")]), Ok(vec![256]), "a host's value");
        assert_eq!(of(&[srt, ("CONC", "32"), ("IS_MULTINODE", "false")]), Ok(vec![32]));
        assert_eq!(of(&[("CONC", "32"), ("IS_MULTINODE", "true")]), Ok(vec![64]));
        for bad in ["16 16", "0", "x", "-4"] {
            assert!(of(&[("EVAL_CONC", bad)]).is_err(), "{bad}");
        }
        assert!(of(&[("BENCH_MAX_CONCURRENCY", "4xmany")]).is_err());
    }
}
