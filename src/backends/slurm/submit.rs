//! From a batch script to a job with an id that is written down.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::call::{self, Failure};
use super::jobs::{self, Record};
use crate::config::problem::{Problem, Problems};
use crate::process::Cancellation;
use crate::step::environment::Environment;
use crate::step::eval::client::given::GIVEN;
use crate::step::tools::PYTHON;

/// What the batch script is, whatever the job: its text holds no value, and its arguments are the command that runs in
/// its place, so that a signal is seen as one.
///
/// Beside it waits what ends the whole process group at [`LAST_SIGNAL`]: `scancel --signal=KILL` does not kill, it
/// cancels, and Slurm then waits 30 s (KillWait) for processes that ignore SIGTERM.
pub(super) const BATCH: &str = "\
#!/bin/bash
(
    trap '' TERM INT
    trap 'kill -KILL 0' USR2
    while kill -0 $$; do
        sleep 1 &
        wait $!
    done
) </dev/null >/dev/null 2>&1 &
exec \"$@\"
";
/// The signal at which the batch script kills what is left of its job.
pub(super) const LAST_SIGNAL: &str = "--signal=USR2";

/// How long one sbatch may take.
const LIMIT: Duration = Duration::from_secs(60);
/// How long a controller that does not answer is asked again.
const PATIENCE: Duration = Duration::from_secs(300);
/// The first pause before asking again; each is twice as long as the one before, up to [`LONGEST`].
const SHORTEST: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(30);
/// How long a cancelled launch still waits for sbatch: an id that arrives can be cancelled.
const PARTING: Duration = Duration::from_millis(1500);

/// What a job sees of the runner's own environment. Everything else, the runner's tokens above all, stays here:
/// Slurm keeps a copy of what it is given.
const INHERITED: [&str; 25] = [
    "CURL_CA_BUNDLE",
    "GITHUB_RUN_ATTEMPT",
    "GITHUB_RUN_ID",
    "HF_ENDPOINT",
    "HF_HOME",
    "HF_HUB_CACHE",
    "HF_HUB_OFFLINE",
    "HF_TOKEN",
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "HUGGING_FACE_HUB_TOKEN",
    "LANG",
    "LC_ALL",
    "LOGNAME",
    "NO_PROXY",
    "PATH",
    "REQUESTS_CA_BUNDLE",
    "SHELL",
    "SLURM_CONF",
    "SSL_CERT_FILE",
    "TZ",
    "USER",
    "http_proxy",
    "https_proxy",
];

/// Starts of names by which sbatch takes options from its environment, and under which Slurm tells a job about itself.
const RESERVED: [&str; 2] = ["SBATCH_", "SLURM_"];

/// Refuses variables of a job that Slurm would take for its own.
///
/// # Errors
/// Every such name.
pub(crate) fn check(environment: &Environment) -> Result<(), Problems> {
    let mut problems = Problems::default();
    for name in environment
        .names()
        .filter(|name| RESERVED.iter().any(|start| name.starts_with(start)))
    {
        let message = format!("the variable `{name}` cannot be passed to a Slurm job: sbatch takes it for an option");
        problems
            .push(Problem::file("", message).hint("give options in the cluster's `extra` of configs/clusters.yaml"));
    }
    problems.into_result()
}

/// What came of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Submitted {
    /// A job.
    Job(String),
    /// Nothing: the launch was cancelled first.
    Cancelled,
}

/// Submits a job. Its id is in the record as soon as Slurm has it.
///
/// # Errors
/// sbatch refuses, or Slurm gives no answer for long.
pub(super) fn submit(
    arguments: &[String],
    environment: &Environment,
    workspace: &Path,
    record: &Record,
    cancel: &Cancellation,
    show: &mut dyn FnMut(&str),
) -> Result<Submitted, Problem> {
    let started = Instant::now();
    let mut pause = SHORTEST;
    loop {
        let failure = once(arguments, environment, workspace, record, cancel)?.err();
        // An answer that was lost on its way says nothing: the queue knows.
        if let Some(id) = arrived(record)? {
            return Ok(Submitted::Job(id));
        }
        if cancel.signal().is_some() {
            return Ok(Submitted::Cancelled);
        }
        match failure {
            Some(Failure::Silent(message)) if started.elapsed() < PATIENCE => {
                show(&format!(
                    "{message}; the job is submitted again in {} s",
                    pause.as_secs()
                ));
                if !cancel.sleep(pause) {
                    return Ok(Submitted::Cancelled);
                }
                pause = (pause * 2).min(LONGEST);
            }
            failure => return Err(refused(failure)),
        }
    }
}

fn once(
    arguments: &[String],
    environment: &Environment,
    workspace: &Path,
    record: &Record,
    cancel: &Cancellation,
) -> Result<Result<(), Failure>, Problem> {
    let mut command = Command::new("sbatch");
    command
        .args(arguments)
        .current_dir(workspace)
        .env_clear()
        .envs(
            INHERITED
                .iter()
                .chain(&GIVEN)
                .chain(&[PYTHON])
                .filter_map(|name| Some((name, std::env::var_os(name)?))),
        )
        .envs(environment.iter())
        .stdout(record.writer()?);
    let cancelled = std::cell::OnceCell::new();
    let stop = || cancel.signal().is_some() && cancelled.get_or_init(Instant::now).elapsed() >= PARTING;
    Ok(call::run(command, LIMIT, &stop).map(drop))
}

/// The job of a record: by its id, or by the token that it carries.
fn arrived(record: &Record) -> Result<Option<String>, Problem> {
    if let Some(id) = record.ids().pop() {
        return Ok(Some(id));
    }
    let found = jobs::queue()
        .unwrap_or_default()
        .into_iter()
        .find(|job| record.owns(&[], job));
    if let Some(job) = &found {
        record.add(&job.id)?;
    }
    Ok(found.map(|job| job.id))
}

fn refused(failure: Option<Failure>) -> Problem {
    let (message, hint) = match failure {
        None => (
            "sbatch printed no job id".to_owned(),
            "run `sbatch --parsable` by hand and see what it prints",
        ),
        Some(failure @ Failure::Missing(_)) => (failure.to_string(), "install Slurm's commands on the runner"),
        Some(failure @ Failure::Silent(_)) => (
            failure.to_string(),
            "see whether `scontrol ping` reaches the controller",
        ),
        Some(failure @ Failure::Refused(_)) => (
            failure.to_string(),
            "correct the cluster in configs/clusters.yaml: its partition, account, time and extra options",
        ),
    };
    Problem::file("", message).hint(hint)
}
