//! What evaluates: adapters behind one trait.

use std::path::Path;

use super::endpoint::Endpoint;
use super::lm_eval::LmEval;
use super::{Request, job::Job};
use crate::config::problem::{Problem, Problems, nearest};
use crate::process::Cancellation;

/// The framework of rows that name none.
pub const DEFAULT: &str = "lm-eval";
/// The frameworks that are built: the one place that knows them all.
const REGISTRY: [(&str, Make); 1] = [(DEFAULT, |request, job| Ok(Box::new(LmEval::new(request, job)?)))];

/// Makes the framework of a request and its job.
type Make = fn(&Request, &Job) -> Result<Box<dyn Framework>, Problems>;

/// The names of the frameworks that are built.
pub fn known() -> impl Iterator<Item = &'static str> {
    REGISTRY.iter().map(|(name, _)| *name)
}

/// The file in a point's folder in which a framework that counts what answers are leaves the counts.
pub const ANSWERS: &str = "sweepctl_answers.json";

/// One eval at one concurrency.
#[derive(Debug)]
pub struct Point<'a> {
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
pub struct Runtime<'a> {
    /// What ends it early.
    pub cancel: &'a Cancellation,
    /// Where its output goes, line by line.
    pub show: &'a mut dyn FnMut(&str),
}

/// An eval framework.
pub trait Framework {
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
}

/// The framework of a request or, where it names none, of the job.
///
/// # Errors
/// A framework that is not built, and what the framework refuses of the request.
pub fn of(request: &Request, job: &Job) -> Result<Box<dyn Framework>, Problems> {
    let asked = request.framework.as_deref().or_else(|| job.text("EVAL_FRAMEWORK"));
    let asked = asked.unwrap_or(DEFAULT);
    match REGISTRY.iter().find(|(name, _)| *name == asked) {
        Some((_, make)) => make(request, job),
        None => Err(Problem::file("", format!("the eval framework `{asked}` is not built"))
            .hint(nearest(asked, known()))
            .into()),
    }
}
