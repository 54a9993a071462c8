//! The gate of an eval: whether what it left behind is whole and the job's own, and every score clears its threshold.
//!
//! Nothing here stops at the first problem: a job that ran for an hour is judged once. Each kind of check is a file
//! of its own.

mod accuracy;
pub(crate) mod asked;
mod batch;
mod counts;
mod floor;
mod keys;
mod metadata;
mod report;
mod scores;
mod silence;

use std::path::{Path, PathBuf};

use rayon::prelude::*;

pub use asked::Asked;
pub(crate) use floor::of_published;
pub(crate) use report::repeated;
pub use report::{Bound, Check, Report, Silence};

use super::results::lm_eval::ResultFile;
use super::results::meta::MetaEnv;
use super::results::{file, name};
use crate::config::problem::Problem;
use crate::config::recipe::asked::Asked as Wanted;
use crate::config::thresholds::{Threshold, Thresholds};
use crate::matrix::envelope::Envelope;

/// The score that passes where no threshold names the task.
pub const MIN_SCORE: f64 = 0.85;
/// The largest share of questions without an answer, unless a threshold sets another.
pub const MAX_EMPTY: f64 = 0.05;

/// What is judged, and by which rules.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Which score passes.
    pub thresholds: Thresholds,
    /// The score that passes where no threshold names the task, 0 to 1.
    pub min_score: f64,
    /// The model's short name, over what the files say.
    pub model_prefix: Option<String>,
    /// The model's short name where nothing else names it.
    pub fallback_prefix: Option<String>,
    /// The start of the checked metrics' names, over what tasks declare.
    pub metric_prefix: Option<String>,
    /// The concurrencies that the eval was asked for.
    pub expected_concs: Option<Vec<u64>>,
    /// A limit on samples that was asked for; files say their own.
    pub limited: bool,
    /// The job, which then says prefix, concurrencies, limit, and what `meta_env.json` must say.
    pub envelope: Option<Envelope>,
    /// Which tasks the job asked for.
    pub asked: Asked,
    /// The run and the attempt that judge, where it is known; metadata that names others is of another job.
    pub run: (Option<String>, Option<String>),
    /// `meta_env.json`.
    pub meta_env: PathBuf,
    /// The result files.
    pub results: Vec<PathBuf>,
    /// The pattern that they were found by.
    pub pattern: String,
}

/// Judges an eval.
#[must_use]
pub fn validate(request: &Request) -> Report {
    against(request, None)
}

/// Judges an eval; `recipe` is what the recipe of a job asks of its accuracy benchmark, where that is known.
#[must_use]
pub(crate) fn against(request: &Request, recipe: Option<&Wanted>) -> Report {
    let mut report = Report::default();
    let meta = MetaEnv::read(&request.meta_env);
    let outputs = accuracy::outputs(request);
    batch::check(request, meta.as_ref(), outputs.is_some(), &mut report.problems);
    let meta = meta.unwrap_or_default();
    metadata::check(request, &meta, &mut report.problems);
    asked::settings(request, &mut report.problems);
    report.model_prefix = request.prefix(&meta);
    report.answers = meta.answers.0;
    let judge = Judge {
        request,
        prefix: report.model_prefix.clone(),
        answers: meta.answers.0,
    };
    let results = result_files(request, &mut report.problems);
    let of_benchmark = accuracy::read(outputs.as_deref().unwrap_or_default(), &mut report.problems);
    let tasks = results.iter().chain(&of_benchmark).map(|(_, result)| result);
    keys::check(&judge, &meta, tasks, &mut report.problems);
    if outputs.is_some() {
        accuracy::check(&judge, &of_benchmark, recipe, &mut report);
    }
    for (path, result) in &results {
        let mut file = FileCheck {
            judge: &judge,
            path,
            result,
            report: &mut report,
        };
        file.run();
    }
    silence::check(&judge, &results, &mut report);
    report
}

/// The result files that can be read, side by side: a batch has many.
fn result_files<'r>(request: &'r Request, problems: &mut Vec<Problem>) -> Vec<(&'r PathBuf, ResultFile)> {
    let read = request.results.par_iter().map(|path| (path, ResultFile::read(path)));
    let mut results = Vec::with_capacity(request.results.len());
    for (path, result) in read.collect::<Vec<_>>() {
        match result {
            Ok(result) => results.push((path, result)),
            Err(reason) => problems.push(unreadable(path, file::MAX_BYTES, &reason)),
        }
    }
    results
}

/// A file of at most so many bytes that the eval left and that cannot be read; `reason` is the end of a sentence about it.
fn unreadable(path: &Path, most: u64, reason: &str) -> Problem {
    let name = file::shown(path);
    let stopped = "the eval was stopped or its disk is full: see its log, and run it again";
    Problem::file(&name, format!("{name} {reason}")).hint(file::way_out(path, most).unwrap_or(stopped))
}

impl Request {
    /// What is wrong where no file has a name as the pattern asks for.
    fn no_result_file(&self) -> String {
        let pattern = &self.pattern;
        format!("there is no result file (`{pattern}`), so there is nothing that passed")
    }

    /// The concurrencies that were asked for: those given, else the envelope's.
    fn expected(&self) -> Option<Vec<u64>> {
        let planned = || self.envelope.as_ref().map(|envelope| envelope.row.eval_concs());
        self.expected_concs
            .clone()
            .or_else(planned)
            .filter(|concs| !concs.is_empty())
    }

    fn prefix(&self, meta: &MetaEnv) -> Option<String> {
        let planned = || {
            self.envelope
                .as_ref()
                .map(|envelope| envelope.row.topology.model_prefix.clone())
        };
        let written = || meta.model_prefix().map(str::to_owned);
        let given = self.model_prefix.clone().or_else(planned);
        given.or_else(written).or_else(|| self.fallback_prefix.clone())
    }

    /// The limit that the job was dispatched with; of a job without an envelope the one that its file says.
    fn limit(&self, result: &ResultFile) -> Limit {
        let Some(envelope) = &self.envelope else {
            return match result.limit() {
                Some(limit) => Limit::Samples(limit),
                None if self.limited => Limit::Unknown,
                None => Limit::None,
            };
        };
        // An envelope holds a whole number or `full`.
        let limit = envelope.overrides.asked.eval_limit.as_deref().unwrap_or("");
        match limit.parse::<f64>() {
            Ok(samples) if samples > 0.0 => Limit::Samples(samples),
            _ => Limit::None,
        }
    }
}

/// A limit on the samples of each task.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Limit {
    /// The whole split was asked for.
    None,
    /// So many samples; below 1 that share of the split.
    Samples(f64),
    /// There is one, and it is not known which.
    Unknown,
}

/// Whether a limit on samples limits anything: empty, `full` and `0` are the whole split.
#[must_use]
pub fn is_limit(limit: &str) -> bool {
    !matches!(limit.trim(), "" | "full" | "0")
}

/// Reads concurrencies as a workflow hands them over: positive numbers with spaces between.
///
/// # Errors
/// Nothing, anything that is no positive number, and a number that stands twice.
pub fn parse_concs(text: &str) -> Result<Vec<u64>, Problem> {
    let refused = |what: String| {
        Problem::file("", format!("--expected-concs `{text}`: {what}"))
            .hint("give positive numbers with spaces between, such as '16 32 64'")
    };
    let mut concs = Vec::new();
    for word in text.split_whitespace() {
        match word.parse::<u64>() {
            Ok(conc) if concs.contains(&conc) => return Err(refused(format!("`{word}` stands twice"))),
            Ok(conc) if conc > 0 => concs.push(conc),
            _ => return Err(refused(format!("`{word}` is no concurrency"))),
        }
    }
    if concs.is_empty() {
        return Err(refused("there is no concurrency".to_owned()));
    }
    Ok(concs)
}

/// The request with what thresholds go by and what is said beside scores.
struct Judge<'r> {
    request: &'r Request,
    prefix: Option<String>,
    answers: Option<super::results::answers::Answers>,
}

impl Judge<'_> {
    fn threshold(&self, task: &str) -> Option<&Threshold> {
        self.request.thresholds.find(self.prefix.as_deref(), task)
    }

    /// Where a task's threshold stands.
    fn source(&self, task: &str) -> String {
        let thresholds = &self.request.thresholds;
        let own = self.prefix.as_ref().filter(|prefix| {
            thresholds
                .models
                .get(prefix.as_str())
                .is_some_and(|tasks| tasks.contains_key(task))
        });
        match own {
            Some(prefix) => format!("models.{prefix}"),
            None if thresholds.default.contains_key(task) => "default".to_owned(),
            None => "--min-score".to_owned(),
        }
    }
}

/// One result file that is judged.
struct FileCheck<'c, 'r> {
    judge: &'c Judge<'r>,
    path: &'c Path,
    result: &'c ResultFile,
    report: &'c mut Report,
}

/// Why the gate refuses a result file of a job, its scores and its samples aside: tasks that nobody asked for, and those
/// that are missing, also of groups, or were not evaluated whole. `name` is the file's, for people.
#[must_use]
pub(crate) fn lacking(request: &Request, name: &str, result: &ResultFile) -> Vec<String> {
    let mut report = Report::default();
    let judge = Judge {
        request,
        prefix: request.prefix(&MetaEnv::default()),
        answers: None,
    };
    let mut file = FileCheck {
        judge: &judge,
        path: Path::new(name),
        result,
        report: &mut report,
    };
    file.asked();
    file.groups();
    for (task, _) in result.tasks() {
        file.samples(task);
    }
    let problems = report.problems.into_iter();
    problems.map(|problem| problem.message).collect()
}

impl FileCheck<'_, '_> {
    fn problem(&mut self, message: String, hint: impl Into<String>) {
        let name = file::shown(self.path);
        let text = format!("{}: {message}", title(self.path));
        self.report.problems.push(Problem::file(&name, text).hint(hint));
    }

    fn run(&mut self) {
        if let Some(failure) = self.result.failure() {
            return self.problem(
                format!("the eval itself failed: {failure} (`integration_error`)"),
                "see the eval's log; its scores say nothing",
            );
        }
        if self.result.tasks().next().is_none() {
            return self.problem(
                "`results` holds no task".to_owned(),
                "the eval ended without a score: see its log",
            );
        }
        self.report.diagnostic |= self.judge.request.limit(self.result) != Limit::None;
        self.asked();
        self.groups();
        for (task, metrics) in self.result.tasks() {
            self.samples(task);
            self.scores(task, metrics);
        }
    }
}

/// How messages name a result: its file, and its concurrency where the name has one.
fn title(path: &Path) -> String {
    let shown = file::shown(path);
    match name::concurrency(&shown) {
        Some(conc) => format!("{shown} [conc {conc}]"),
        None => shown,
    }
}
