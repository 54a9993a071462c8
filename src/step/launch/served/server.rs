//! A running server: its log, live and kept, and its end.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use crate::config::problem::Problem;
use crate::process::{self, Cancellation, Outcome, Watch};
use crate::step::launch::backend::{Prepared, Show};
use crate::step::launch::failure::{Failure, Kind};
use crate::step::launch::{SERVER_LOG, child};

/// What a server's lines are marked with, beside those of its clients.
const MARK: &str = "server | ";
/// Lines of the server's log that an error repeats.
const TAIL: usize = 30;
/// How long after its clients a dying server may be seen dead.
const DEATH_NOTICE: Duration = Duration::from_millis(500);

/// What shows lines, for the server and its clients alike.
pub(super) type Shared<'a> = Mutex<&'a mut Show<'a>>;

/// Shows a line.
pub(super) fn say(show: &Shared<'_>, line: &str) {
    let mut show = show.lock().unwrap_or_else(PoisonError::into_inner);
    show(line);
}

/// The last lines of a log, as they may be shown.
#[derive(Debug, Default)]
pub(super) struct Tail(Mutex<VecDeque<String>>);

impl Tail {
    /// How much of a line is kept, in characters.
    const WIDTH: usize = 400;

    fn lock(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: &str) {
        let mut lines = self.lock();
        if lines.len() == TAIL {
            lines.pop_front();
        }
        lines.push_back(line.chars().take(Self::WIDTH).collect());
    }

    /// They, the oldest first.
    pub(super) fn lines(&self) -> Vec<String> {
        self.lock().iter().cloned().collect()
    }
}

/// A running server.
pub(super) struct Server<'scope> {
    /// What ends it.
    end: Cancellation,
    /// What ends its clients: the launch's own cancellation, or its death.
    pub clients: Cancellation,
    /// The end of its log.
    pub tail: Arc<Tail>,
    thread: ScopedJoinHandle<'scope, io::Result<Outcome>>,
}

impl<'scope, 'env> Server<'scope> {
    /// Starts it. Its lines are shown as they come, and kept in its log.
    pub(super) fn start(
        scope: &'scope Scope<'scope, 'env>,
        arguments: &[String],
        job: &Prepared<'_>,
        cancel: &Cancellation,
        show: &'env Shared<'_>,
    ) -> Self {
        let (end, clients) = (cancel.part(None), cancel.part(None));
        let tail = Arc::<Tail>::default();
        let command = child::of_arguments(arguments, job);
        let watch = Watch {
            // Its lines are shown in an error, of which no line may be a command of the runner either.
            neutralise: true,
            ..child::watch(job, SERVER_LOG)
        };
        let (own_end, own_clients, own_tail) = (end.clone(), clients.clone(), Arc::clone(&tail));
        let thread = scope.spawn(move || {
            let outcome = process::run(command, &watch, &own_end, &mut |line| {
                own_tail.push(line);
                say(show, &format!("{MARK}{line}"));
            });
            own_clients.cancel();
            outcome
        });
        Self {
            end,
            clients,
            tail,
            thread,
        }
    }

    /// Ends it. A server that had ended before, or never started, is a failure. After a failure of its clients it is
    /// given a moment to be seen dead.
    pub(super) fn stop(self, clients_failed: bool) -> Option<Failure> {
        let died = if clients_failed {
            !self.clients.sleep(DEATH_NOTICE)
        } else {
            self.clients.signal().is_some()
        };
        self.end.cancel();
        match self.thread.join() {
            Ok(Ok(outcome)) if died => {
                let problem = Problem::file("", format!("the server {outcome}"));
                Some(Failure::new(Kind::Engine, problem))
            }
            Ok(Ok(_)) => None,
            Ok(Err(error)) if died => Some(Failure::new(Kind::Engine, Problem::file("", error.to_string()))),
            Ok(Err(error)) => Some(Failure::new(Kind::Infrastructure, Problem::file("", error.to_string()))),
            Err(_) => Some(Failure::new(
                Kind::Infrastructure,
                Problem::file("", "the server's watcher panicked"),
            )),
        }
    }
}
