//! A replay while it runs: which phase it is in, how its backends are doing, whose end was seen, and whether its evidence
//! can still become good.
//!
//! Everything is read from logs and metrics endpoints, at least twice, so that trends can be told from states. Nothing is
//! cancelled here, and nothing is asked of Slurm or GitHub.

mod backend;
mod client;
mod follow;
mod judge;
mod line;
mod metrics;

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde::Serialize;

use self::backend::Endpoint;
pub(crate) use self::backend::{Backend, Role};
use self::client::Client;
pub(crate) use self::client::Phase;
use self::follow::Log;
pub(crate) use self::judge::{Verdict, Weight};
use self::line::Said;
pub(crate) use self::line::{End, Load};
use crate::config::problem::{Problem, Problems};
use crate::files::shown;

/// What is watched, and how.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The logs: of the client, of workers, of the frontend, of Slurm.
    pub logs: Vec<PathBuf>,
    /// Metrics endpoints, each with its role where that was given.
    pub metrics: Vec<(Option<Role>, String)>,
    /// How often everything is looked at; at least two.
    pub samples: u32,
    /// The time between two looks.
    pub interval: Duration,
    /// After how long without any progress a run counts as stuck.
    pub stuck_after: Duration,
}

/// An end that was seen.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Ended {
    /// Whose it is.
    pub by: End,
    /// Where it stands.
    pub at: Where,
}

/// A line of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Where {
    /// The log, or the endpoint.
    pub file: String,
    /// The line's number; missing where the start of a long log was passed over.
    pub line: Option<u64>,
    /// The line, shortened.
    pub text: String,
}

/// What was seen.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Report {
    /// When, in UTC.
    pub at: String,
    /// The phase of the client; missing before its first.
    pub phase: Option<Phase>,
    /// Requests that completed in this phase.
    pub completed: Option<u64>,
    /// Requests that failed in it.
    pub errors: Option<u64>,
    /// Each backend apart, with its trend.
    pub backends: Vec<Backend>,
    /// Whether the workers that were expected have registered, as the scheduler's log said last.
    pub workers: Option<String>,
    /// The end that was seen, where there was one.
    pub ended: Option<Ended>,
    /// What disqualifies the run, and what is merely slow.
    pub verdicts: Vec<Verdict>,
    /// The logs that were read, and how long ago each was written to, in seconds.
    pub logs: Vec<(String, Option<u64>)>,
}

impl Report {
    /// Whether the evidence already disqualifies the run.
    #[must_use]
    pub(crate) fn is_disqualified(&self) -> bool {
        self.verdicts
            .iter()
            .any(|verdict| verdict.weight == Weight::Disqualifies)
    }
}

/// Everything that was seen so far.
#[derive(Debug, Default)]
struct Seen {
    client: Client,
    backends: Vec<Backend>,
    /// How many workers are missing, and the line.
    workers: Option<(u64, Where)>,
    ends: Vec<Ended>,
    faults: Vec<(&'static str, Where)>,
    /// Since when nothing moved, within the looks of this command.
    moved: Option<SystemTime>,
}

/// Looks as often as asked, and says what was seen.
///
/// # Errors
/// Logs none of which can be read. An endpoint that does not answer is part of what was seen.
pub(crate) fn look(request: &Request) -> Result<Report, Problems> {
    let mut logs: Vec<Log> = request.logs.iter().map(|path| Log::new(path)).collect();
    let mut endpoints: Vec<Endpoint> = request
        .metrics
        .iter()
        .map(|(role, url)| Endpoint::new(*role, url))
        .collect();
    let mut seen = Seen {
        moved: Some(SystemTime::now()),
        ..Seen::default()
    };
    let mut unread = Problems::default();
    for round in 0..request.samples.max(2) {
        if round > 0 {
            std::thread::sleep(request.interval);
        }
        unread = Problems::default();
        let mut moved = false;
        for log in &mut logs {
            match log.read() {
                Ok(lines) => {
                    moved |= !lines.is_empty();
                    let name = shown(&log.path);
                    lines.into_iter().for_each(|line| seen.take(&name, line));
                }
                Err(error) => {
                    let name = shown(&log.path);
                    unread.push(
                        Problem::file(&name, format!("{name} cannot be read: {error}"))
                            .hint("name a plain file that this user may read"),
                    );
                }
            }
        }
        for endpoint in &mut endpoints {
            moved |= endpoint.sample();
        }
        if moved && round > 0 {
            seen.moved = Some(SystemTime::now());
        }
    }
    if !unread.0.is_empty() && unread.0.len() == logs.len() {
        return Err(unread);
    }
    Ok(seen.report(request, &logs, &endpoints))
}

impl Seen {
    fn take(&mut self, name: &str, line: follow::Line) {
        let Some(said) = line::read(&line.text) else {
            self.client.pass(name, &line.text);
            return;
        };
        let at = || Where {
            file: name.to_owned(),
            line: line.number,
            text: line.text.chars().take(300).collect(),
        };
        match said {
            Said::Fault(what) => {
                if !self
                    .faults
                    .iter()
                    .any(|(known, place)| *known == what && place.file == name)
                {
                    self.faults.push((what, at()));
                }
            }
            Said::End(by) => {
                if !self.ends.iter().any(|end| end.by == by) {
                    self.ends.push(Ended { by, at: at() });
                }
            }
            Said::Workers { missing, .. } => self.workers = Some((missing, at())),
            Said::Load(load) => backend::of_log(&mut self.backends, name).push(load),
            said => {
                if matches!(&said, Said::Complete { phase, .. } if phase == "profiling") {
                    let end = Ended {
                        by: End::Benchmark,
                        at: at(),
                    };
                    self.ends.push(end);
                }
                self.client.take(name, &line.text, said, at());
            }
        }
    }

    fn report(self, request: &Request, logs: &[Log], endpoints: &[Endpoint]) -> Report {
        let age = |log: &Log| {
            let since = SystemTime::now().duration_since(log.written?).unwrap_or_default();
            Some(since.as_secs())
        };
        let logs: Vec<(String, Option<u64>)> = logs.iter().map(|log| (shown(&log.path), age(log))).collect();
        let mut backends = self.backends;
        backends.extend(endpoints.iter().map(Endpoint::backend));
        let quiet = self
            .moved
            .and_then(|moved| SystemTime::now().duration_since(moved).ok());
        let evidence = judge::Evidence {
            client: &self.client,
            backends: &backends,
            endpoints,
            workers: self.workers.as_ref(),
            faults: &self.faults,
            ended: self.ends.first(),
            logs: &logs,
            quiet: quiet.unwrap_or_default(),
            stuck_after: request.stuck_after,
        };
        let verdicts = judge::judge(&evidence);
        Report {
            at: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            phase: self.client.phase().cloned(),
            completed: self.client.completed,
            errors: self.client.errors,
            workers: self.workers.map(|(_, at)| at.text),
            ended: self.ends.into_iter().next(),
            backends,
            verdicts,
            logs,
        }
    }
}
