//! Launch: an envelope becomes a running server and a measured result, on the backend of the runner's cluster.

pub mod backend;
pub mod backends;
pub(crate) mod benchmarks;
pub(crate) mod child;
pub(crate) mod container;
pub(crate) mod failure;
pub(crate) mod hub;
pub(crate) mod leftovers;
pub(crate) mod local;
pub(crate) mod outputs;
pub(crate) mod preflight;
mod progress;
pub(crate) mod runnable;
pub(crate) mod script;
pub(crate) mod served;
pub(crate) mod serving;
pub mod slurm;
pub mod srt;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use self::backend::{Backend, Prepared, Show};
use self::failure::{Failure, Kind};
use self::outputs::Expected;
use crate::config::clusters::Clusters;
use crate::config::policy::EvalContext;
use crate::config::problem::{Problem, Problems};
use crate::findings::refusals::LAUNCH_CODE;
use crate::matrix::envelope::Envelope;
use crate::process::Cancellation;
use crate::secrets::Mask;
use crate::step::clean;
use crate::step::environment::eval_max_model_len;
use crate::step::eval::context;
use crate::step::eval::framework;
use crate::step::eval::job::Job;
use crate::step::eval::task::{self, Task};
use crate::step::job_folder;
use crate::step::places::Places;
use crate::step::stage::shown;

/// The log of a script, a container or a client, in the workspace; server logs are always kept, and it is one.
pub const LAUNCH_LOG: &str = "launch.log";
/// The log of a server that the launch starts itself.
pub const SERVER_LOG: &str = "server.log";
/// What of its time a job keeps for its uploads.
const FOR_UPLOADS: Duration = Duration::from_secs(5 * 60);

/// How long a launch may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The job.
    pub deadline: Duration,
    /// The checks of the node.
    pub preflight: Duration,
    /// Without output and without progress of its files.
    pub idle: Option<Duration>,
}

/// The deadline of a job's launch: what its `timeout-minutes` leave after its uploads, at least half.
#[must_use]
pub fn deadline(envelope: &Envelope) -> Duration {
    let whole = Duration::from_secs(envelope.timeout_minutes.saturating_mul(60));
    whole.saturating_sub(FOR_UPLOADS).max(whole / 2)
}

/// Launches a job: clears what earlier ones left, checks the node, runs the job, and checks what it left. What it left
/// decides; an exit code that contradicts that is a notice, which is what is given back.
///
/// # Errors
/// What failed, and why. Everything that was started is ended.
pub fn launch(
    backend: &dyn Backend,
    job: &Prepared<'_>,
    tasks: Vec<String>,
    limits: Limits,
    cancel: &Cancellation,
    show: &mut Show<'_>,
) -> Result<Option<Problem>, Failure> {
    // A log over the user's size limit is then an error of writing it, as on a full disk, and no death.
    let survived = Arc::default();
    let _ = signal_hook::flag::register(nix::sys::signal::Signal::SIGXFSZ as i32, survived);
    let _lock = lock(job.state).map_err(infrastructure)?;
    leftovers::adopt();
    clear(backend, job, show)?;
    let intent = backend.intend(job);
    let intent = intent.map_err(|problems| Failure::new(Kind::Preflight, problems))?;
    preflight::check(backend, job, limits.preflight, cancel, show)?;
    lay_folder(intent.backend, job, show)?;
    leftovers::mark(job.state).map_err(|error| {
        let name = job.state.display().to_string();
        infrastructure(Problem::file(
            &name,
            format!("the state folder cannot be written: {error}"),
        ))
    })?;
    let started = SystemTime::now();
    let limited = cancel.part(Some(limits.deadline)).with_silence(limits.idle);
    let ran = progress::watched(job.workspace, limits.idle, &limited, || {
        backend.attempt(job, &limited, &mut |line| {
            limited.progress();
            show(line);
        })
    });
    let released = leftovers::release_own(job.state).map_err(infrastructure);
    if cancel.signal().is_none()
        && ran.is_err()
        && let Some(problem) = out_of_time(&limited, limits)
    {
        return Err(Failure::new(Kind::Benchmark, problem));
    }
    let contradicted = match ran {
        Ok(()) => None,
        Err(failure) if is_for_the_files(&failure, job.envelope) => Some(failure),
        Err(mut failure) => {
            let left = released.as_ref().err().map(|r| r.problems.clone());
            failure.problems.extend(left.unwrap_or_default());
            return Err(failure);
        }
    };
    released?;
    let left = outputs::check(&Expected {
        envelope: job.envelope,
        result: job.environment.get("RESULT_FILENAME").unwrap_or_default(),
        workspace: job.workspace,
        eval_folders: Places::of(job.workspace).evals(Some(started)),
        tasks,
        started,
    });
    match (left, contradicted) {
        (Ok(()), None) => Ok(None),
        (Ok(()), Some(failure)) => Ok(Some(contradiction(&failure))),
        (Err(failure), None) => Err(failure),
        (Err(missing), Some(mut failure)) => {
            failure.problems.extend(missing.problems);
            Err(failure)
        }
    }
}

/// Why a limited job was ended, where a limit was the reason.
fn out_of_time(limited: &Cancellation, limits: Limits) -> Option<Problem> {
    let minutes = |time: Duration| time.as_secs_f64() / 60.0;
    if limited.is_silent() {
        let idle = minutes(limits.idle.unwrap_or_default());
        let message =
            format!("the job was ended: for {idle:.1} minutes it printed nothing and none of its files changed");
        let hint = "see in the logs where it hangs, or give it more with the cluster's `idle-minutes`";
        return Some(Problem::file("", message).hint(hint));
    }
    if limited.is_late() {
        let deadline = minutes(limits.deadline);
        let problem = Problem::file(
            "",
            format!("the job was ended at its deadline of {deadline:.1} minutes"),
        );
        return Some(problem.hint("give it more with --deadline-minutes, or see in the logs where it hangs"));
    }
    None
}

/// Whether a failure is an exit code and nothing else, so that what the job left decides. That an eval failed is what
/// an eval-only job's code alone can say: its files may be those of the points before.
fn is_for_the_files(failure: &Failure, envelope: &Envelope) -> bool {
    let eval_failed = envelope.row.eval.eval_only && failure.kind == Kind::Eval;
    failure.code.is_some() && !eval_failed
}

fn contradiction(failure: &Failure) -> Problem {
    let code = failure.code.unwrap_or_default();
    let message = format!("the job exited with code {code}, and left everything that it should: its files count");
    LAUNCH_CODE
        .file("", message)
        .hint("see the end of its output: what failed came after the results")
}

/// Serves a job on the node that a scheduler gave it: no more than the middle of [`launch`], whose rest is done where the
/// job was submitted.
///
/// # Errors
/// What failed, and why. Everything that was started is ended.
pub fn serve(
    backend: &dyn Backend,
    job: &Prepared<'_>,
    cancel: &Cancellation,
    show: &mut Show<'_>,
) -> Result<(), Failure> {
    leftovers::adopt();
    let unmarked = |error: std::io::Error| infrastructure(Problem::file("", error.to_string()));
    leftovers::mark(job.state).map_err(unmarked)?;
    let ran = backend.attempt(job, cancel, show);
    let released = leftovers::release_own(job.state).map_err(infrastructure);
    ran.and(released.map(drop))
}

fn infrastructure(problem: Problem) -> Failure {
    Failure::new(Kind::Infrastructure, problem)
}

/// Ends and removes what earlier launches of this runner left.
fn clear(backend: &dyn Backend, job: &Prepared<'_>, show: &mut dyn FnMut(&str)) -> Result<(), Failure> {
    for released in release(backend, job.runner, job.state).map_err(|p| Failure::new(Kind::Infrastructure, p))? {
        show(&format!("launch: released {released} of an earlier job"));
    }
    let cleaned = clean::clean(job.workspace);
    for path in &cleaned.removed {
        show(&format!("launch: removed {} of an earlier job", shown(path)));
    }
    let problems = cleaned.problems.into_result();
    problems.map_err(|problems| Failure::new(Kind::Infrastructure, problems))
}

/// Lays the job's folder into the checkout. Where it cannot be written, only jobs whose scripts read it end here.
fn lay_folder(backend: &str, job: &Prepared<'_>, show: &mut dyn FnMut(&str)) -> Result<(), Failure> {
    let laid = job_folder::lay(job.workspace, job.envelope, job.environment, &Mask::of_environment());
    let Err(problem) = laid else { return Ok(()) };
    if backend != "local" && job_folder::is_needed(job.workspace) {
        return Err(infrastructure(problem));
    }
    show(&format!("launch: warning: {}", problem.message));
    Ok(())
}

/// Releases what a runner's earlier launch left, also one that was killed. Says what it released.
///
/// # Errors
/// Everything that is still there.
pub fn release(backend: &dyn Backend, runner: &str, state: &Path) -> Result<Vec<String>, Problems> {
    let mut released = Vec::new();
    let mut problems = Problems::default();
    // Processes last: what a scheduler or a container command started is theirs to end.
    for result in [backend.release(runner, state), leftovers::release(state)] {
        match result {
            Ok(names) => released.extend(names),
            Err(problem) => problems.push(problem),
        }
    }
    problems.into_result().map(|()| released)
}

/// Keeps a second launch of the same runner away: each would take the other's processes for leftovers.
fn lock(state: &Path) -> Result<File, Problem> {
    let path = state.join("lock");
    let name = path.display().to_string();
    let failed = |error: std::io::Error| Problem::file(&name, format!("the state folder cannot be locked: {error}"));
    let file = File::create(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::Error(error)) => Err(failed(error)),
        Err(TryLockError::WouldBlock) => Err(Problem::file(&name, "another launch of this runner still runs")
            .hint("wait for it, or give this one another --runner-name")),
    }
}

/// The context of an eval-only job with fixed sequences on one node, in tokens; `None` for all other jobs. Warnings go
/// to `warn`.
///
/// # Errors
/// Variables that are no numbers.
pub fn eval_context(
    envelope: &Envelope,
    policy: EvalContext,
    warn: &mut dyn FnMut(&Problem),
) -> Result<Option<u64>, Problems> {
    if eval_max_model_len(&envelope.row).is_none() {
        return Ok(None);
    }
    let context = context::of(&Job::here(Some(envelope)), policy)?;
    context.warnings.iter().for_each(warn);
    Ok(Some(context.context))
}

/// The eval task that a job was given beside its row: EVAL_TASKS, else, where the row names no suite, its cluster's.
#[must_use]
pub fn given_task(envelope: &Envelope, clusters: &Clusters, runner: &str) -> Option<String> {
    let job = Job::here(None);
    let variable = task::given(|name| job.text(name)).map(str::to_owned);
    let suite = envelope
        .row
        .eval
        .evaluator
        .as_ref()
        .is_some_and(|e| !e.suite.is_empty());
    variable.or_else(|| cluster_task(clusters, runner).filter(|_| !suite))
}

/// The eval task of a runner's cluster, for rows that name no suite.
#[must_use]
pub fn cluster_task(clusters: &Clusters, runner: &str) -> Option<String> {
    clusters.of(runner)?.1.backend.eval_task().map(str::to_owned)
}

/// The names under which a job's results hold its tasks. Of frameworks that are not built nothing is known.
#[must_use]
pub fn task_names(envelope: &Envelope, given: Option<&str>) -> Vec<String> {
    let roots = [PathBuf::from(".")];
    let evaluator = envelope.row.eval.evaluator.as_ref();
    let suite = evaluator.map(|e| e.suite.as_str()).filter(|suite| !suite.is_empty());
    if let Some(other) = evaluator.filter(|e| e.framework != framework::DEFAULT) {
        let known = framework::known(&roots).is_ok_and(|known| known.contains(&other.framework));
        return suite.filter(|_| known).map(str::to_owned).into_iter().collect();
    }
    let asked = given.or(suite).unwrap_or(task::DEFAULT);
    let found = Task::find(asked, &roots);
    vec![found.map_or_else(|_| asked.to_owned(), |task| task.name)]
}
