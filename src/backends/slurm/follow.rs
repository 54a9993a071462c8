//! A job from its submission to its end: its state and its log, live.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use super::release;
use super::state::{self, Answer, Report, is_over};
use super::tail::Tail;
use crate::config::problem::Problem;
use crate::process::{Cancellation, Ending, Outcome, Stop};
use crate::secrets::Mask;

/// How long lines are waited for before signals and states are looked at.
const TICK: Duration = Duration::from_millis(40);
/// The first pause between two questions; each is half as long again, up to [`LONGEST`].
const SHORTEST: Duration = Duration::from_millis(300);
/// The longest pause: a controller serves many runners.
const LONGEST: Duration = Duration::from_secs(5);
/// How long the rest of an ended job's log is shown: what a process that escaped Slurm still writes has no end.
const REST: Duration = Duration::from_secs(300);
/// The same for a cancelled job, whose step is killed soon.
const LAST_WORDS: Duration = Duration::from_millis(600);
/// The longest pause while Slurm does not answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A job that is followed.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    /// Its id.
    pub id: &'a str,
    /// Where it writes to; where the launch did not decide that, Slurm says it while the job is followed.
    pub log: OnceCell<PathBuf>,
    /// Whether that is the launch's own file, which is of no use beside the copy.
    pub own_log: bool,
    /// Where the copy without secrets is kept.
    pub copy: &'a Path,
    /// What no line may show.
    pub mask: &'a Mask,
    /// When it was submitted.
    pub started: Instant,
}

/// Follows a job to its end, or ends it when the launch is cancelled.
///
/// # Errors
/// A job that was lost, or that could not be ended; a log that could not be kept.
pub(crate) fn follow(job: &Job<'_>, cancel: &Cancellation, show: &mut dyn FnMut(&str)) -> Result<Outcome, Problem> {
    let reports = poll(job.id);
    let mut teller = Teller::new(job.id);
    let mut tail: Option<Tail> = None;
    loop {
        if let Some(signal) = cancel.signal() {
            return cancelled(job, Stop::Cancelled(signal), tail, show);
        }
        match reports.try_recv() {
            Ok(Answer::Report(report)) => {
                if report.state == "PENDING" {
                    // A job that waits for its nodes is not silent.
                    cancel.progress();
                }
                teller.tell(&report, show);
                if let Some(log) = &report.log {
                    job.log.get_or_init(|| log.clone());
                }
                if tail.is_none()
                    && let Some(log) = job.log.get()
                {
                    tail = Some(Tail::start(log, job.copy, job.mask)?);
                }
                if is_over(&report.state) {
                    if let Some(tail) = tail {
                        tail.finish(job.own_log, REST, show)?;
                    }
                    return report.outcome(job.id, job.started.elapsed());
                }
            }
            Ok(Answer::Silent(message)) => teller.silence(&message, show),
            Ok(Answer::Unknown) => return Err(forgotten(job.id)),
            Err(_) => {}
        }
        let open = tail.as_mut().is_some_and(|tail| tail.show(TICK, show));
        if !open {
            std::thread::sleep(TICK);
        }
    }
}

fn cancelled(
    job: &Job<'_>,
    stop: Stop,
    mut tail: Option<Tail>,
    show: &mut dyn FnMut(&str),
) -> Result<Outcome, Problem> {
    show(&format!("Slurm job {} is cancelled", job.id));
    release::end(&[job.id.to_owned()], release::CANCEL, &mut || {
        if let Some(tail) = &mut tail {
            tail.show(Duration::ZERO, show);
        }
    })?;
    if let Some(tail) = tail {
        tail.finish(job.own_log, LAST_WORDS, show)?;
    }
    Ok(Outcome {
        ending: Ending::Signal(nix::libc::SIGTERM),
        stop: Some(stop),
        elapsed: job.started.elapsed(),
    })
}

/// Asks for the job's state again and again, until it is over or nobody listens. Questions may take long, and lines
/// must not wait for them.
fn poll(id: &str) -> Receiver<Answer> {
    let (sender, receiver) = channel();
    let id = id.to_owned();
    std::thread::spawn(move || ask_on(&id, &sender));
    receiver
}

fn ask_on(id: &str, sender: &Sender<Answer>) {
    let mut pause = SHORTEST;
    loop {
        let answer = state::ask(id);
        let longest = match &answer {
            Answer::Silent(_) => PATIENCE,
            _ => LONGEST,
        };
        let last = match &answer {
            Answer::Report(report) => is_over(&report.state),
            Answer::Unknown => true,
            Answer::Silent(_) => false,
        };
        if sender.send(answer).is_err() || last {
            return;
        }
        std::thread::sleep(pause);
        pause = (pause * 3 / 2).min(longest);
    }
}

/// Says what is new about a job, once.
struct Teller<'a> {
    id: &'a str,
    last: String,
    silent: bool,
}

impl<'a> Teller<'a> {
    fn new(id: &'a str) -> Self {
        Self {
            id,
            last: String::new(),
            silent: false,
        }
    }

    fn tell(&mut self, report: &Report, show: &mut dyn FnMut(&str)) {
        if std::mem::take(&mut self.silent) {
            show("Slurm answers again");
        }
        let news = match report.state.as_str() {
            "PENDING" if report.reason == "None" => "waits for its turn".to_owned(),
            "PENDING" => format!("waits: {}", report.reason),
            "RUNNING" => format!("runs on {}", report.nodes),
            state if is_over(state) => return,
            state => format!("is {state}"),
        };
        if news != self.last {
            show(&format!("Slurm job {} {news}", self.id));
            self.last = news;
        }
    }

    fn silence(&mut self, message: &str, show: &mut dyn FnMut(&str)) {
        if !std::mem::replace(&mut self.silent, true) {
            show(&format!("Slurm does not answer, job {} goes on: {message}", self.id));
        }
    }
}

fn forgotten(id: &str) -> Problem {
    Problem::file(
        "",
        format!("Slurm knows nothing of job {id} any more, and how it ended is not known"),
    )
    .hint("turn accounting on, or raise MinJobAge in slurm.conf: a job is asked for every few seconds")
}
