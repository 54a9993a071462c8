//! What the client of a replay says of its phases.

use jiff::civil::DateTime;
use serde::Serialize;

use super::Where;
use super::line::{self, Progress, Said};

/// A phase of a replay.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Phase {
    /// `warmup` or `profiling`.
    pub name: String,
    /// Seconds since its start, by the times in the log.
    pub elapsed: f64,
    /// Seconds until its planned end, or, of a phase that is bounded by a count, at the pace so far; missing where
    /// nothing says so.
    pub remaining: Option<f64>,
    /// Whether it is over.
    pub is_over: bool,
}

/// The client, as far as its log goes.
#[derive(Debug, Default)]
pub(super) struct Client {
    phase: Option<Phase>,
    log: String,
    started: Option<DateTime>,
    seconds: Option<f64>,
    pub completed: Option<u64>,
    pub errors: Option<u64>,
    /// Heartbeats of this phase, with their places; the first of those that say the same, and the last.
    pub still: Option<(Progress, Progress, Where)>,
    /// The line that says that the phase is over, or the last count.
    pub counted: Option<Where>,
}

impl Client {
    pub(super) fn phase(&self) -> Option<&Phase> {
        self.phase.as_ref()
    }

    /// Any line of the client's log tells the time.
    pub(super) fn pass(&mut self, log: &str, text: &str) {
        if log == self.log {
            self.clock(text);
        }
    }

    pub(super) fn take(&mut self, log: &str, text: &str, said: Said, at: Where) {
        match said {
            Said::Started { phase, seconds } => {
                *self = Self {
                    log: log.to_owned(),
                    started: line::time(text),
                    seconds,
                    phase: Some(Phase {
                        name: phase,
                        elapsed: 0.0,
                        remaining: seconds,
                        is_over: false,
                    }),
                    ..Self::default()
                };
            }
            Said::Progress(progress) => self.progress(progress, at),
            Said::Complete {
                phase,
                completed,
                errors,
                elapsed,
            } => {
                self.phase = Some(Phase {
                    name: phase,
                    elapsed,
                    remaining: Some(0.0),
                    is_over: true,
                });
                (self.completed, self.errors) = (Some(completed), Some(errors));
                self.counted = Some(at);
                self.still = None;
            }
            Said::Totals { done, errors } => {
                (self.completed, self.errors) = (Some(done), Some(errors));
                self.counted = Some(at);
                self.clock(text);
            }
            _ => {}
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "counts of requests are small")]
    fn progress(&mut self, progress: Progress, at: Where) {
        let left = progress.target.map(|target| target.saturating_sub(progress.returned));
        let pace = progress.returned as f64 / progress.elapsed.max(f64::MIN_POSITIVE);
        self.phase = Some(Phase {
            name: progress.phase.clone(),
            elapsed: progress.elapsed,
            remaining: left.filter(|_| progress.returned > 0).map(|left| left as f64 / pace),
            is_over: false,
        });
        (self.completed, self.errors) = (Some(progress.returned), Some(progress.errors));
        let same = |first: &Progress| (first.returned, first.sent) == (progress.returned, progress.sent);
        self.still = match self.still.take() {
            Some((first, _, _)) if same(&first) => Some((first, progress, at)),
            _ => Some((progress.clone(), progress, at)),
        };
    }

    fn clock(&mut self, text: &str) {
        let (Some(started), Some(now), Some(phase)) = (self.started, line::time(text), self.phase.as_mut()) else {
            return;
        };
        if phase.is_over {
            return;
        }
        phase.elapsed = now.duration_since(started).as_secs_f64().max(0.0);
        phase.remaining = self.seconds.map(|seconds| (seconds - phase.elapsed).max(0.0));
    }
}
