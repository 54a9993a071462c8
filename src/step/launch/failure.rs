//! Why a launch failed: a kind that the exit code tells, and the problems that the message tells.

use nix::sys::signal::Signal;

use crate::config::problem::{Problem, Problems};
use crate::process::{Ending, Outcome, Stop};

/// What failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The machine, its disk, its scheduler or its containers.
    Infrastructure,
    /// The node, before anything was started on it.
    Preflight,
    /// The server.
    Engine,
    /// The throughput client, or what it left.
    Benchmark,
    /// The eval, or what it left for the gate.
    Eval,
    /// Nothing: the launch was told to end.
    Cancelled(Signal),
}

/// Every kind's exit code and meaning, in the order of a launch; a cancelled one has 128 and its signal's number. A
/// launch script may exit with one of these codes to say the same.
pub(crate) const EXIT_CODES: [(Kind, u8, &str); 5] = [
    (
        Kind::Infrastructure,
        70,
        "infrastructure: the host, its disk, its scheduler or its container runtime",
    ),
    (
        Kind::Preflight,
        71,
        "preflight: the node or its cluster's settings do not fit the job; nothing was started",
    ),
    (Kind::Engine, 72, "engine: the server did not start, or died"),
    (
        Kind::Benchmark,
        73,
        "benchmark: the client failed, or its result is missing or not whole",
    ),
    (
        Kind::Eval,
        74,
        "gate: the eval failed, or left nothing whole for the gate to judge",
    ),
];

impl Kind {
    /// Its exit code.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Cancelled(signal) => 128 + u8::try_from(signal as i32).unwrap_or_default(),
            other => EXIT_CODES
                .iter()
                .find(|(kind, ..)| *kind == other)
                .map_or(1, |(_, code, _)| *code),
        }
    }

    /// The kind of an exit code.
    #[must_use]
    pub fn of_code(code: i32) -> Option<Self> {
        let found = EXIT_CODES.iter().find(|(_, own, _)| i32::from(*own) == code);
        found.map(|(kind, ..)| *kind)
    }

    /// One word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Infrastructure => "infrastructure",
            Self::Preflight => "preflight",
            Self::Engine => "engine",
            Self::Benchmark => "benchmark",
            Self::Eval => "eval",
            Self::Cancelled(_) => "cancelled",
        }
    }
}

/// A failed launch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} failed", .kind.as_str())]
pub struct Failure {
    /// What failed.
    pub kind: Kind,
    /// Everything that is wrong.
    pub problems: Problems,
    /// The exit code of the job, where that alone says that it failed: what the job left decides then.
    pub code: Option<i32>,
}

impl Failure {
    /// A failure of a kind.
    #[must_use]
    pub fn new(kind: Kind, problems: impl Into<Problems>) -> Self {
        Self {
            kind,
            problems: problems.into(),
            code: None,
        }
    }

    /// The same, with the exit code that says so.
    #[must_use]
    pub fn with_code(self, code: Option<i32>) -> Self {
        Self { code, ..self }
    }

    /// Whether a process did what it should. Of one that did not, its own exit code says the kind where it is one of
    /// [`EXIT_CODES`].
    ///
    /// # Errors
    /// It did not.
    pub fn check(outcome: &Outcome, kind: Kind, what: &str) -> Result<(), Self> {
        if outcome.is_success() {
            return Ok(());
        }
        let kind = match (outcome.stop, outcome.ending) {
            (Some(Stop::Cancelled(signal)), _) => Kind::Cancelled(signal),
            (None, Ending::Code(code)) => Kind::of_code(code).unwrap_or(kind),
            _ => kind,
        };
        let problem = Problem::file("", format!("{what} {outcome}"));
        Err(Self::new(kind, problem.hint("its output above says why")))
    }
}
