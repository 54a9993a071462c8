//! The gate of an eval: whether what it left behind is whole, and every score clears its threshold.
//!
//! Nothing here stops at the first problem: a job that ran for an hour is judged once.

mod batch;
mod report;
mod scores;
mod silence;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub use report::{Check, Report, Silence};

use super::results::lm_eval::ResultFile;
use super::results::meta::{MetaEnv, Owner};
use super::results::{file, name};
use crate::config::problem::Problem;
use crate::config::thresholds::{Threshold, Thresholds};
use crate::matrix::envelope::Envelope;

/// The score that passes where no threshold names the task.
pub const MIN_SCORE: f64 = 0.85;
/// The largest share of empty answers, unless a threshold sets another.
pub const MAX_EMPTY: f64 = 0.05;

/// What is judged, and by which rules.
#[derive(Debug, Clone)]
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
    /// The run and its attempt; empty locally.
    pub run: (String, String),
    /// `meta_env.json`.
    pub meta_env: PathBuf,
    /// The result files.
    pub results: Vec<PathBuf>,
}

/// Judges an eval.
#[must_use]
pub fn validate(request: &Request) -> Report {
    let mut report = Report::default();
    let meta = MetaEnv::read(&request.meta_env);
    batch::check(request, meta.as_ref(), &mut report.problems);
    let meta = meta.unwrap_or_default();
    if let Some(envelope) = &request.envelope {
        let name = file::shown(&request.meta_env);
        let run = (request.run.0.as_str(), request.run.1.as_str());
        if let Owner::Other(why) = meta.owner(envelope, run, None) {
            report.problems.extend(why.into_iter().map(|contradiction| {
                Problem::file(&name, format!("{name}: {contradiction}"))
                    .hint("the results may be another job's: look at what was staged")
            }));
        }
    }
    report.model_prefix = request.prefix(&meta);
    let judge = Judge {
        request,
        prefix: report.model_prefix.clone(),
    };
    let mut tasks = BTreeSet::new();
    for path in &request.results {
        match ResultFile::read(path) {
            Err(reason) => {
                let name = file::shown(path);
                report.problems.push(
                    Problem::file(&name, format!("{name} {reason}"))
                        .hint("the eval was stopped or its disk is full: see its log, and run it again"),
                );
            }
            Ok(result) => {
                scores::check(&judge, path, &result, &mut report);
                tasks.extend(result.tasks().map(|(task, _)| task.to_owned()));
            }
        }
    }
    silence::check(&judge, &tasks, &mut report);
    report
}

impl Request {
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

    /// Whether fewer samples than the whole split were asked for.
    fn is_limited(&self, result: &ResultFile) -> bool {
        match &self.envelope {
            Some(envelope) => is_limit(envelope.overrides.eval_limit.as_deref().unwrap_or("")),
            None => self.limited || result.limit().is_some(),
        }
    }
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
            Ok(conc) if conc > 0 && concs.contains(&conc) => return Err(refused(format!("`{word}` stands twice"))),
            Ok(conc) if conc > 0 => concs.push(conc),
            _ => return Err(refused(format!("`{word}` is no concurrency"))),
        }
    }
    if concs.is_empty() {
        return Err(refused("there is no concurrency".to_owned()));
    }
    Ok(concs)
}

/// The request with the model's name, which thresholds go by.
struct Judge<'r> {
    request: &'r Request,
    prefix: Option<String>,
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

/// How messages name a result: its file, and its concurrency where the name has one.
fn title(path: &Path) -> String {
    let shown = file::shown(path);
    match name::concurrency(&shown) {
        Some(conc) => format!("{shown} [conc {conc}]"),
        None => shown,
    }
}
