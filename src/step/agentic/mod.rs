//! `sweepctl agentic run`: recorded conversations against a live server, from the client's installation to the aggregate.
//!
//! What decides what is measured is settled and written down before the client starts; whether the replay counts is
//! decided by what the client left, not by its exit code alone. Launch scripts come the same way in steps of their own,
//! through the shell library.

pub(crate) mod aggregate;
pub mod client;
pub(crate) mod command;
pub(crate) mod corpus;
pub(crate) mod judge;
pub(crate) mod probe;
pub(crate) mod record;
pub(crate) mod settings;
pub(crate) mod target;
pub(crate) mod traces;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use self::client::Installed;
use self::corpus::Corpus;
use self::record::{Ended, Identity, Record};
use self::settings::Settings;
use crate::config::problem::{Problem, Problems};
use crate::matrix::row::Row;
use crate::process::{self, Cancellation, Outcome, Stop, Watch};
use crate::step::eval::job::Job;
use crate::step::replay::files::ARTIFACTS;
use crate::step::tools::Installer;

/// The file that the command is kept in, as a shell reads it.
pub const COMMAND: &str = "benchmark_command.txt";
/// The file that the client's output is kept in.
pub const LOG: &str = "benchmark.log";
/// How long the client may take to end: less than whoever ends this program gives it.
const GRACE: Duration = Duration::from_millis(2500);

/// A replay that is asked for.
#[derive(Debug)]
pub struct Request<'a> {
    /// How it is run.
    pub settings: Settings,
    /// What is known of the job.
    pub job: &'a Job,
    /// Its row, without which there is no aggregate.
    pub row: Option<&'a Row>,
    /// The folder of the replay.
    pub folder: PathBuf,
    /// The file of the aggregate.
    pub out: Option<PathBuf>,
    /// Whether the replay counts without the servers' metrics.
    pub metrics_optional: bool,
    /// How long the server and its metrics are waited for.
    pub ready: Duration,
}

/// A replay that counts.
#[derive(Debug)]
pub struct Done {
    /// How it was run, and what the client says of it.
    pub record: Record,
    /// Its aggregate, where there is a row.
    pub aggregate: Option<aggregate::Written>,
}

/// What a replay runs in.
pub struct Runtime<'a> {
    /// What ends it early.
    pub cancel: &'a Cancellation,
    /// Where its output goes, line by line.
    pub show: &'a mut dyn FnMut(&str),
}

/// Replays. Whatever happens once the client runs, its folder keeps the command, the log and what was left.
///
/// # Errors
/// What keeps the replay from being started, and every reason why it does not count.
pub fn run(request: &Request<'_>, runtime: &mut Runtime<'_>) -> Result<Done, Problems> {
    (runtime.show)("replay: waiting for the server and its metrics");
    probe::server(request, runtime)?;
    probe::metrics(request, runtime)?;
    (runtime.show)("replay: preparing the client");
    let mut installer = Installer {
        cancel: runtime.cancel,
        show: &mut *runtime.show,
    };
    let client = Installed::ensure(&mut installer)?;
    (installer.show)("replay: preparing the traces");
    let corpus = Corpus::bring(&request.settings.traces, &client, &mut installer)?;
    let folder = fresh(&request.folder, runtime.show)?;
    let program = client.program("agentx").display().to_string();
    let words = command::words(
        &program,
        command::Client::Pinned,
        &request.settings,
        &folder.join(ARTIFACTS),
    )?;
    let mut record = Record::new(
        &request.settings,
        corpus,
        words,
        request.metrics_optional,
        identity(request.job),
    );
    record.environment = variables(&request.settings, request.job);
    if record
        .environment
        .iter()
        .any(|(name, value)| name == command::VARIABLES[0].0 && value != "0")
    {
        record.replay_mode = "live-answers";
    }
    let written = |error: io::Error| Problem::file("", format!("`{}` cannot be written: {error}", folder.display()));
    record.write(&folder).map_err(written)?;
    let outcome = replay(&record.command, &record.environment, &folder, runtime)?;
    let judged = judge(request, &folder, &outcome, &mut record);
    record.write(&folder).map_err(written)?;
    judged.map(|aggregate| Done { record, aggregate })
}

/// Runs a replay's command, which is kept before it starts, as is its output.
///
/// # Errors
/// A program that cannot be started, and a folder that cannot be written.
pub fn replay(
    words: &[String],
    environment: &[(String, String)],
    folder: &Path,
    runtime: &mut Runtime<'_>,
) -> Result<Outcome, Problem> {
    let failed = |error: io::Error| {
        Problem::file("", format!("the replay cannot be started: {error}")).hint("make its folder writable")
    };
    let text = shlex::try_join(words.iter().map(String::as_str)).map_err(|error| failed(io::Error::other(error)))?;
    crate::files::write_atomic(&folder.join(COMMAND), format!("{text}\n").as_bytes()).map_err(failed)?;
    let [program, arguments @ ..] = words else {
        return Err(failed(io::Error::other("there is no command")));
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .env_remove("PYTHONPATH")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PYTHONUNBUFFERED", "1");
    let watch = Watch {
        log: Some(folder.join(LOG)),
        grace: GRACE,
        ..Watch::default()
    };
    process::run(command, &watch, runtime.cancel, runtime.show).map_err(failed)
}

/// The variables of the client: what the job's own environment says, else the defaults.
fn variables(settings: &Settings, job: &Job) -> Vec<(String, String)> {
    let routing = settings.is_routed.then_some(command::ROUTING);
    let all = command::VARIABLES.into_iter().chain(routing);
    all.map(|(name, value)| (name.to_owned(), job.text(name).unwrap_or(value).to_owned()))
        .collect()
}

fn identity(job: &Job) -> Identity {
    let text = |name: &str| job.text(name).unwrap_or_default().to_owned();
    Identity {
        job_id: job.id.clone(),
        run_id: text("GITHUB_RUN_ID"),
        run_attempt: text("GITHUB_RUN_ATTEMPT"),
        commit: text("GITHUB_SHA"),
        recipe_fingerprint: text("RECIPE_FINGERPRINT"),
        image: text("IMAGE"),
    }
}

/// The folder of a replay, absolute, without the results of another one: those are set aside, so that none of them can
/// pass for this one's.
fn fresh(folder: &Path, show: &mut dyn FnMut(&str)) -> Result<PathBuf, Problem> {
    let failed = |error: io::Error| {
        let problem = Problem::file("", format!("`{}` cannot hold a replay: {error}", folder.display()));
        problem.hint("give --result-dir a folder that can be written")
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let folder = folder.canonicalize().map_err(failed)?;
    let artifacts = folder.join(ARTIFACTS);
    if artifacts.symlink_metadata().is_ok() {
        let aside = (1..).map(|n| folder.join(format!("stale-{n}")));
        let aside = aside.into_iter().find(|path| path.symlink_metadata().is_err());
        let aside = aside.unwrap_or_else(|| folder.join("stale"));
        std::fs::create_dir(&aside).map_err(failed)?;
        for name in [ARTIFACTS, COMMAND, LOG, record::NAME] {
            if folder.join(name).symlink_metadata().is_ok() {
                std::fs::rename(folder.join(name), aside.join(name)).map_err(failed)?;
            }
        }
        show(&format!("an earlier replay is set aside in {}", aside.display()));
    }
    Ok(folder)
}

/// Decides whether a replay counts, notes it, and writes its aggregate if it does.
fn judge(
    request: &Request<'_>,
    folder: &Path,
    outcome: &Outcome,
    record: &mut Record,
) -> Result<Option<aggregate::Written>, Problems> {
    let mut problems = Problems::default();
    if !outcome.is_success() {
        problems.push(ended(outcome, folder));
    }
    let submission = judge::summary(folder).unwrap_or_else(|problem| {
        problems.push(problem);
        judge::Submission::default()
    });
    let has_summary = problems.0.is_empty() || submission != judge::Submission::default();
    if has_summary && let Err(found) = judge::metrics(folder, record) {
        problems.extend(found);
    }
    let made = match request.row {
        Some(row) => aggregate::of(folder, row, request.settings.concurrency).map(Some),
        None => crate::step::replay::check(folder, |_| true).map(|()| None),
    };
    let made = made.unwrap_or_else(|found| {
        // What is missing was said above already.
        for problem in found.0 {
            if problems.0.iter().all(|known| known.message != problem.message) {
                problems.push(problem);
            }
        }
        None
    });
    let made = match (&made, &request.out) {
        (Some(made), Some(out)) if problems.0.is_empty() => made.write(out, folder).map(Some),
        _ => Ok(None),
    };
    let made = made.unwrap_or_else(|problem| {
        problems.push(problem);
        None
    });
    record.ended = Some(Ended {
        at: record::now(),
        client: outcome.to_string(),
        counts: problems.0.is_empty(),
        submission_valid: submission.is_valid,
        submission_invalid_reasons: submission.reasons,
        problems: problems.0.iter().map(|problem| problem.message.clone()).collect(),
    });
    problems.into_result()?;
    Ok(made)
}

fn ended(outcome: &Outcome, folder: &Path) -> Problem {
    let hint = match outcome.stop {
        Some(Stop::Cancelled(_)) => "run the job again: a replay that was cut short is no measurement".to_owned(),
        _ => format!(
            "{} says why; a failed warmup request ends it too",
            folder.join(LOG).display()
        ),
    };
    Problem::file("", format!("the replay client {outcome}")).hint(hint)
}
