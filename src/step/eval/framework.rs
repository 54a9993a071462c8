//! What evaluates: adapters behind one trait.

use std::path::{Path, PathBuf};

use super::client::Client;
use super::endpoint::Endpoint;
use super::lm_eval::LmEval;
use super::task::Task;
use super::{Request, job::Job};
use crate::config::frameworks::{EvalFrameworks, Suite};
use crate::config::policy::Evaluator;
use crate::config::problem::{Problem, Problems, nearest};
use crate::config::recipe::asked;
use crate::config::recipe::parameters::FRAMEWORK as BENCHMARK;
use crate::findings::config as findings;
use crate::process::Cancellation;

/// The framework of rows that name none.
pub(crate) const DEFAULT: &str = "lm-eval";

/// The names of the frameworks: the one that is built in, srt-slurm's own benchmarks, and those of the frameworks file of some roots, or of the
/// built-in file.
///
/// # Errors
/// A frameworks file with problems.
pub(crate) fn known(roots: &[PathBuf]) -> Result<Vec<String>, Problems> {
    let (file, _) = EvalFrameworks::of(roots)?;
    let built_in = [DEFAULT, BENCHMARK].map(str::to_owned).into_iter();
    Ok(built_in.chain(file.frameworks.into_keys()).collect())
}

/// The file in a point's folder in which a framework that counts what answers are leaves the counts.
pub(crate) const ANSWERS: &str = "sweepctl_answers.json";

/// The suite of an evaluator of the frameworks file; `None` for lm-eval, whose suites are task files, and for the
/// accuracy benchmarks that srt-slurm runs.
///
/// # Errors
/// An evaluator or a suite that nothing here runs, with the nearest that something does, and a file with problems.
pub(crate) fn suite(evaluator: &Evaluator, roots: &[PathBuf]) -> Result<Option<Suite>, Problems> {
    let Evaluator { framework, suite } = evaluator;
    if framework == DEFAULT {
        return match suite.is_empty() {
            true => Ok(None),
            false => Task::find(suite, roots).map(|_| None).map_err(|mut problems| {
                for problem in &mut problems.0 {
                    *problem = problem.clone().id(&findings::UNKNOWN_SUITE);
                }
                problems
            }),
        };
    }
    if framework == BENCHMARK {
        return Ok(asked::suite(suite).map(|_| None)?);
    }
    let (file, _) = EvalFrameworks::of(roots)?;
    let Some(found) = file.frameworks.get(framework) else {
        let names = [DEFAULT, BENCHMARK]
            .into_iter()
            .chain(file.frameworks.keys().map(String::as_str));
        let problem = findings::UNKNOWN_EVALUATOR.file("", format!("nothing runs the evaluator `{framework}`"));
        return Err(problem.hint(nearest(framework, names)).into());
    };
    found.suites.get(suite).cloned().map(Some).ok_or_else(|| {
        let names = found.suites.keys().map(String::as_str);
        let problem = findings::UNKNOWN_SUITE.file("", format!("the evaluator `{framework}` has no suite `{suite}`"));
        problem.hint(nearest(suite, names)).into()
    })
}

/// One eval at one concurrency.
#[derive(Debug)]
pub(crate) struct Point<'a> {
    /// Requests at a time.
    pub concurrency: u64,
    /// The server.
    pub endpoint: &'a Endpoint,
    /// The served model's name.
    pub model: &'a str,
    /// The fresh folder that results go to.
    pub out: &'a Path,
}

/// What a framework runs in.
pub(crate) struct Runtime<'a> {
    /// What ends it early.
    pub cancel: &'a Cancellation,
    /// Where its output goes, line by line.
    pub show: &'a mut dyn FnMut(&str),
}

/// An eval framework.
pub(crate) trait Framework {
    /// Installs what it needs, once a run.
    ///
    /// # Errors
    /// What is missing, and how to get it.
    fn prepare(&mut self, runtime: &mut Runtime<'_>) -> Result<(), Problem>;

    /// Runs one point and checks that its results are there and whole.
    ///
    /// # Errors
    /// Why the point failed; what it left in its folder is staged all the same.
    fn run_point(&self, point: &Point<'_>, runtime: &mut Runtime<'_>) -> Result<(), Problem>;

    /// The names of the files that it stages, as globs.
    fn stages(&self) -> &'static [&'static str];

    /// Its name and its suite, where it is a suite of its own: then it runs at one concurrency, and the model has to
    /// answer on the chat route first.
    fn identity(&self) -> Option<(&str, &str)> {
        None
    }

    /// Leaves in a folder what says why no point ran, for the gate to tell.
    ///
    /// # Errors
    /// A folder that cannot be written.
    fn record(&self, _folder: &Path, _failure: &Problem) -> std::io::Result<()> {
        Ok(())
    }
}

/// The framework of a request or, where it names none, of the job.
///
/// # Errors
/// A framework that is not built, and what the framework refuses of the request.
pub(crate) fn of(request: &Request, job: &Job) -> Result<Box<dyn Framework>, Problems> {
    let asked = request.framework.as_deref().or_else(|| job.text("EVAL_FRAMEWORK"));
    let asked = asked.unwrap_or(DEFAULT);
    if asked == DEFAULT {
        return Ok(Box::new(LmEval::new(request, job)?));
    }
    if asked == BENCHMARK {
        let message = "srt-slurm runs the accuracy benchmark of a recipe itself, while its servers are up";
        return Err(Problem::file("", message)
            .hint("launch the job on a cluster with the backend `srt`; elsewhere evaluate with lm-eval")
            .into());
    }
    if let Some(client) = Client::find(asked, request, job)? {
        return Ok(Box::new(client));
    }
    let known = known(&request.roots)?;
    Err(Problem::file("", format!("no eval framework is named `{asked}`"))
        .hint(nearest(asked, known.iter().map(String::as_str)))
        .into())
}
