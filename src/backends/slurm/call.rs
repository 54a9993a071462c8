//! Slurm's commands: each with a deadline, and none with the user's own settings for it.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// How often a waiting call looks at its command.
const TICK: Duration = Duration::from_millis(10);
/// The longest answer that is read, in bytes.
const MAX_ANSWER: u64 = 16 << 20;
/// Variables with which a user changes what these commands do and print.
const OPTIONS: [&str; 5] = ["SACCT_", "SBATCH_", "SCANCEL_", "SCONTROL_", "SQUEUE_"];

/// Why a command gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    /// It cannot be started.
    #[error("{0}")]
    Missing(String),
    /// It took too long, or the controller could not be reached: it may answer later.
    #[error("{0}")]
    Silent(String),
    /// It said no.
    #[error("{0}")]
    Refused(String),
}

/// The answer of a command.
///
/// # Errors
/// See [`Failure`].
pub(super) fn ask(program: &str, arguments: &[&str], limit: Duration) -> Result<String, Failure> {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::piped());
    for (name, _) in std::env::vars_os() {
        if OPTIONS
            .iter()
            .any(|start| name.as_encoded_bytes().starts_with(start.as_bytes()))
        {
            command.env_remove(name);
        }
    }
    run(command, limit, &|| false)
}

/// Runs a command to its end, its deadline, or until `stop`; gives what it wrote to a piped standard output.
///
/// # Errors
/// See [`Failure`].
pub(super) fn run(mut command: Command, limit: Duration, stop: &dyn Fn() -> bool) -> Result<String, Failure> {
    let program = command.get_program().to_string_lossy().into_owned();
    command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .env("LC_ALL", "C")
        .process_group(0);
    let mut child = command
        .spawn()
        .map_err(|error| Failure::Missing(format!("`{program}` cannot be started: {error}")))?;
    let output = child.stdout.take().map(collect);
    let errors = child.stderr.take().map(collect);
    let started = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if started.elapsed() < limit && !stop() => std::thread::sleep(TICK),
            _ => {
                let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
                let _ = child.wait();
                let seconds = started.elapsed().as_secs_f32();
                return Err(Failure::Silent(format!(
                    "`{program}` gave no answer for {seconds:.1} s"
                )));
            }
        }
    };
    let text = |reader: Option<JoinHandle<String>>| reader.and_then(|reader| reader.join().ok()).unwrap_or_default();
    judge(&program, status, &text(errors)).map(|()| text(output))
}

fn collect(from: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.take(MAX_ANSWER).read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// What a command's end means.
fn judge(program: &str, status: ExitStatus, errors: &str) -> Result<(), Failure> {
    /// What Slurm says when its controller, or munge, is away for a while.
    const AWAY: [&str; 8] = [
        "unable to contact slurm controller",
        "unable to establish control",
        "connection refused",
        "connection timed out",
        "socket timed out",
        "transport endpoint is not connected",
        "munge",
        "zero bytes were transmitted",
    ];
    if status.success() {
        return Ok(());
    }
    let said = errors.trim();
    let message = match said.is_empty() {
        true => format!("`{program}` failed ({status})"),
        false => format!("`{program}` failed: {said}"),
    };
    let lower = said.to_ascii_lowercase();
    match AWAY.iter().any(|text| lower.contains(text)) {
        true => Err(Failure::Silent(message)),
        false => Err(Failure::Refused(message)),
    }
}
