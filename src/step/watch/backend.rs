//! The backends of a server, each with its own trend.

use std::path::Path;

use serde::Serialize;

use super::line::Load;
use super::metrics;

/// The most samples that are kept of a backend: its latest.
const MOST: usize = 512;

/// What a backend does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Role {
    /// Prefill alone.
    Prefill,
    /// Decode alone.
    Decode,
    /// The frontend or router before them.
    Frontend,
    /// Both at once.
    Aggregate,
    /// The client, which reads the metrics of its server.
    Client,
}

impl Role {
    /// Its name.
    #[must_use]
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Prefill => "prefill",
            Self::Decode => "decode",
            Self::Frontend => "frontend",
            Self::Aggregate => "aggregate",
            Self::Client => "client",
        }
    }

    /// By a name, as srt-slurm's logs and endpoints have it: `<node>_prefill_w0.out`.
    #[must_use]
    pub(crate) fn of_name(name: &str) -> Self {
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        if has(&["prefill"]) {
            Self::Prefill
        } else if has(&["decode"]) {
            Self::Decode
        } else if has(&["frontend", "router"]) {
            Self::Frontend
        } else if has(&["benchmark", "aiperf"]) {
            Self::Client
        } else {
            Self::Aggregate
        }
    }
}

/// A backend and what was seen of it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Backend {
    /// What it does.
    pub role: Role,
    /// Its log or endpoint.
    pub source: String,
    /// How many samples there are.
    pub samples: usize,
    /// The first that is kept.
    pub first: Option<Load>,
    /// The last.
    pub last: Option<Load>,
    #[serde(skip)]
    pub(super) loads: Vec<Load>,
}

impl Backend {
    pub(super) fn new(role: Role, source: &str) -> Self {
        Self {
            role,
            source: source.to_owned(),
            samples: 0,
            first: None,
            last: None,
            loads: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, load: Load) {
        if self.loads.len() == MOST {
            self.loads.remove(0);
        }
        self.loads.push(load);
        self.samples += 1;
        self.first = self.loads.first().copied();
        self.last = Some(load);
    }
}

/// The backend of a log.
pub(super) fn of_log<'b>(backends: &'b mut Vec<Backend>, log: &str) -> &'b mut Backend {
    let index = backends
        .iter()
        .position(|backend| backend.source == log)
        .unwrap_or_else(|| {
            let name = Path::new(log).file_name().unwrap_or_default().to_string_lossy();
            backends.push(Backend::new(Role::of_name(&name), log));
            backends.len() - 1
        });
    &mut backends[index]
}

/// A metrics endpoint that is asked again and again.
#[derive(Debug)]
pub(super) struct Endpoint {
    backend: Backend,
    work: Option<f64>,
    /// Why it did not answer last; `None` after an answer.
    pub failure: Option<String>,
    /// Whether it ever answered.
    pub answered: bool,
}

impl Endpoint {
    pub(super) fn new(role: Option<Role>, url: &str) -> Self {
        let role = role.unwrap_or_else(|| Role::of_name(url));
        Self {
            backend: Backend::new(role, url),
            work: None,
            failure: None,
            answered: false,
        }
    }

    /// Asks it; whether its counters grew.
    pub(super) fn sample(&mut self) -> bool {
        match metrics::sample(&self.backend.source) {
            Err(reason) => {
                self.failure = Some(reason);
                false
            }
            Ok(sample) => {
                let grew = matches!((self.work, sample.work), (Some(old), Some(new)) if new > old);
                (self.failure, self.answered) = (None, true);
                self.work = sample.work;
                self.backend.push(sample.load);
                grew
            }
        }
    }

    pub(super) fn backend(&self) -> Backend {
        self.backend.clone()
    }

    pub(super) fn url(&self) -> &str {
        &self.backend.source
    }
}
