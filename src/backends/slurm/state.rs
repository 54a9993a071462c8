//! What Slurm says of a job.

use std::path::PathBuf;
use std::time::Duration;

use super::call::{self, Failure};
use crate::config::problem::Problem;
use crate::process::{Ending, Outcome, Stop};

/// How long one question may take.
const LIMIT: Duration = Duration::from_secs(20);

/// A job's state. Names are those of "JOB STATE CODES" in squeue(1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Report {
    /// The state.
    pub state: String,
    /// Why it is in that state.
    pub reason: String,
    /// The exit code of its batch script.
    pub code: i32,
    /// The signal that ended it, or 0.
    pub signal: i32,
    /// The nodes that it has or had.
    pub nodes: String,
    /// Where its output goes.
    pub log: Option<PathBuf>,
}

/// The answer to a question about a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// Its state.
    Report(Report),
    /// Slurm has never heard of it, or has forgotten it.
    Unknown,
    /// None; the job may well go on.
    Silent(String),
}

/// Asks for a job's state: the controller, and the accounting once that has forgotten the job.
pub(super) fn ask(id: &str) -> Answer {
    match call::ask("scontrol", &["show", "job", id], LIMIT) {
        Ok(text) => parse(&text).map_or(Answer::Unknown, Answer::Report),
        Err(Failure::Refused(message)) if message.contains("Invalid job id") => {
            let arguments = ["-j", id, "-X", "-n", "-P", "-o", "State,ExitCode,NodeList"];
            match call::ask("sacct", &arguments, LIMIT) {
                Ok(text) => parse_accounting(&text).map_or(Answer::Unknown, Answer::Report),
                Err(_) => Answer::Unknown,
            }
        }
        Err(failure) => Answer::Silent(failure.to_string()),
    }
}

/// Reads `scontrol show job`. Each field is looked for where Slurm writes it, at the start of its line or on the line
/// of a fixed neighbour, so that no name or comment of a job passes for its state.
fn parse(text: &str) -> Option<Report> {
    let line = |start: &str| {
        text.lines()
            .map(str::trim_start)
            .find_map(|line| line.strip_prefix(start))
    };
    let word = |rest: &str| rest.split_whitespace().next().unwrap_or_default().to_owned();
    let field = |rest: &str, name: &str| {
        let value = rest.split_whitespace().find_map(|part| part.strip_prefix(name));
        value.unwrap_or_default().to_owned()
    };
    let state = line("JobState=")?;
    let (code, signal) = exit(&field(line("Requeue=").unwrap_or_default(), "ExitCode="));
    Some(Report {
        state: word(state),
        reason: field(state, "Reason="),
        code,
        signal,
        nodes: word(line("NodeList=").unwrap_or_default()),
        log: line("StdOut=").filter(|path| !path.is_empty()).map(PathBuf::from),
    })
}

/// Reads a line of `sacct -P -o State,ExitCode,NodeList`.
fn parse_accounting(text: &str) -> Option<Report> {
    let mut fields = text.lines().next()?.split('|');
    let state = fields.next()?.split_whitespace().next()?.to_owned();
    let (code, signal) = exit(fields.next()?);
    Some(Report {
        state,
        reason: String::new(),
        code,
        signal,
        nodes: fields.next().unwrap_or_default().to_owned(),
        log: None,
    })
}

/// `<code>:<signal>`
fn exit(text: &str) -> (i32, i32) {
    let (code, signal) = text.split_once(':').unwrap_or((text, "0"));
    (code.parse().unwrap_or_default(), signal.parse().unwrap_or_default())
}

/// Whether a job in such a state will never run again, and nothing of it runs.
#[must_use]
pub(crate) fn is_over(state: &str) -> bool {
    const OVER: [&str; 12] = [
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "LAUNCH_FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "RECONFIG_FAIL",
        "REVOKED",
        "TIMEOUT",
    ];
    OVER.contains(&state)
}

impl Report {
    /// How a job that is over ended.
    ///
    /// # Errors
    /// A job that did not end by itself nor at its time limit: its node failed, or someone cancelled it.
    pub(super) fn outcome(&self, id: &str, elapsed: Duration) -> Result<Outcome, Problem> {
        let exit = match self.signal {
            0 => Ending::Code(self.code),
            signal => Ending::Signal(signal),
        };
        let (ending, stop) = match self.state.as_str() {
            "COMPLETED" => (exit, None),
            // A job that never ran has failed with code 0.
            "FAILED" if exit != Ending::Code(0) => (exit, None),
            // The kernel's way to end what takes too much memory.
            "OUT_OF_MEMORY" => (Ending::Signal(nix::libc::SIGKILL), None),
            "TIMEOUT" | "DEADLINE" => (Ending::Signal(nix::libc::SIGTERM), Some(Stop::Deadline)),
            _ => return Err(self.lost(id)),
        };
        Ok(Outcome { ending, stop, elapsed })
    }

    fn lost(&self, id: &str) -> Problem {
        let place = match self.nodes.as_str() {
            "" | "(null)" => String::new(),
            nodes => format!(" on {nodes}"),
        };
        let (message, hint) = match self.state.as_str() {
            "CANCELLED" => (
                format!("Slurm job {id} was cancelled{place}, and not by this launch"),
                "`sacct -j <id> -o State%40` says by whom, where accounting is on".to_owned(),
            ),
            "PREEMPTED" => (
                format!("Slurm job {id} was preempted{place}"),
                "run it again, or on a partition without preemption".to_owned(),
            ),
            state => (
                format!("Slurm job {id} was lost{place}: {state} ({})", self.reason),
                format!("look at the node{place} before the job is run again"),
            ),
        };
        Problem::file("", message).hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOWN: &str = "JobId=7 JobName=r_0 JobState=RUNNING\n   UserId=me(1)\n   JobState=NODE_FAIL Reason=NodeDown \
        Dependency=(null)\n   Requeue=0 Restarts=0 ExitCode=3:9\n   NodeList=n[1-2]\n   Comment=JobState=COMPLETED\n   \
        StdOut=/a b/o.log\n   Power=\n";

    fn report(state: &str, code: i32, signal: i32) -> Report {
        Report {
            state: state.to_owned(),
            code,
            signal,
            ..parse(SHOWN).expect("a report")
        }
    }

    #[test]
    fn a_name_does_not_pass_for_a_state() {
        let found = parse(SHOWN).expect("a report");
        assert_eq!((found.state.as_str(), found.reason.as_str()), ("NODE_FAIL", "NodeDown"));
        assert_eq!((found.code, found.signal, found.nodes.as_str()), (3, 9, "n[1-2]"));
        assert_eq!(found.log, Some(PathBuf::from("/a b/o.log")));
        assert_eq!(parse("slurm_load_jobs error"), None);
    }

    #[test]
    fn accounting_knows_who_cancelled() {
        let found = parse_accounting("CANCELLED by 1000|0:15|n1\n").expect("a report");
        assert_eq!(
            (found.state.as_str(), found.signal, found.nodes.as_str()),
            ("CANCELLED", 15, "n1")
        );
        assert_eq!(parse_accounting(""), None);
    }

    #[test]
    fn endings_are_told_apart() {
        let outcome = |state, code, signal| report(state, code, signal).outcome("7", Duration::ZERO);
        let ending = |state, code, signal| outcome(state, code, signal).map(|o| (o.ending, o.stop));
        assert_eq!(ending("COMPLETED", 0, 0), Ok((Ending::Code(0), None)));
        assert_eq!(ending("FAILED", 3, 0), Ok((Ending::Code(3), None)));
        assert_eq!(ending("FAILED", 0, 9), Ok((Ending::Signal(9), None)));
        assert_eq!(ending("TIMEOUT", 0, 0).map(|e| e.1), Ok(Some(Stop::Deadline)));
        assert_eq!(ending("OUT_OF_MEMORY", 0, 125), Ok((Ending::Signal(9), None)));
        let message = |state| ending(state, 0, 0).expect_err("a lost job").message;
        assert_eq!(
            message("NODE_FAIL"),
            "Slurm job 7 was lost on n[1-2]: NODE_FAIL (NodeDown)"
        );
        assert!(message("CANCELLED").contains("not by this launch"));
        assert!(message("FAILED").contains("was lost"));
        for state in [
            "RUNNING",
            "COMPLETING",
            "PENDING",
            "SUSPENDED",
            "REQUEUED",
            "CONFIGURING",
        ] {
            assert!(!is_over(state), "{state}");
        }
    }
}
