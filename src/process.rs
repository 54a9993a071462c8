//! The one process supervisor: a child in a process group of its own, its output line by line, and an end for sure.
//!
//! What a child prints is not trusted: on GitHub Actions no line of it can be a workflow command, and secrets are
//! masked. A child ends by itself, at its deadline, or because this process was told to end; in every case its whole
//! group is gone afterwards.

mod lines;

use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::secrets::{self, Mask};

pub use lines::{harmless, read as read_lines};

/// How long a group may take to end once it was asked to. A cancelled step is killed 10 s after its first signal, and
/// what is left of that is needed for what comes after the child.
pub const GRACE: Duration = Duration::from_secs(3);
/// How often a waiting supervisor looks at its child, its deadline and its signals.
const TICK: Duration = Duration::from_millis(40);
/// How long output is still read after the child's end; nothing of its group is left to write.
const DRAIN: Duration = Duration::from_secs(1);
/// Texts of up to 64 KiB that wait between the child and its readers; a slow reader then slows the child.
const QUEUE: usize = 16;

/// The signals that end this process: a closed terminal sends SIGHUP.
const ENDING: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// Whether this process, or a part of its work, was told to end: by one of [`ENDING`], by a deadline, or by its owner.
#[derive(Debug, Clone, Default)]
pub struct Cancellation {
    flag: Arc<AtomicUsize>,
    deadline: Option<Instant>,
    silence: Option<Arc<Silence>>,
    parent: Option<Arc<Cancellation>>,
}

/// How long a part of the work may show no progress.
#[derive(Debug)]
struct Silence {
    limit: Duration,
    last: Mutex<Instant>,
    /// What the end of a silent child still prints is no progress.
    is_over: AtomicBool,
}

impl Silence {
    fn last(&self) -> MutexGuard<'_, Instant> {
        // An instant is whole whatever became of who wrote it.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cancellation {
    /// Takes over SIGINT, SIGTERM, SIGHUP and SIGQUIT for the rest of the process. What `nohup` set aside stays so.
    ///
    /// # Errors
    /// The system refuses a signal handler.
    pub fn install() -> io::Result<Self> {
        let flag = Arc::new(AtomicUsize::new(0));
        for signal in ENDING {
            if matches!(signal, Signal::SIGHUP | Signal::SIGQUIT) && is_ignored(signal) {
                continue;
            }
            let number = signal as i32;
            let value = usize::try_from(number).unwrap_or_default();
            signal_hook::flag::register_usize(number, Arc::clone(&flag), value)?;
        }
        Ok(Self {
            flag,
            ..Self::default()
        })
    }

    /// One that nothing cancels, for callers that leave the signals alone.
    #[must_use]
    pub fn never() -> Self {
        Self::default()
    }

    /// One for a part of the work: cancelled with this one, at a deadline, or alone.
    #[must_use]
    pub fn part(&self, deadline: Option<Duration>) -> Self {
        Self {
            flag: Arc::default(),
            deadline: deadline.map(|deadline| Instant::now() + deadline),
            silence: None,
            parent: Some(Arc::new(self.clone())),
        }
    }

    /// The same, cancelled also where nothing calls [`Self::progress`] for a time.
    #[must_use]
    pub fn with_silence(self, limit: Option<Duration>) -> Self {
        let silence = limit.map(|limit| Silence {
            limit,
            last: Mutex::new(Instant::now()),
            is_over: AtomicBool::new(false),
        });
        Self {
            silence: silence.map(Arc::new),
            ..self
        }
    }

    /// Notes that the work, and what it is a part of, goes on.
    pub fn progress(&self) {
        if let Some(silence) = &self.silence {
            *silence.last() = Instant::now();
        }
        if let Some(parent) = &self.parent {
            parent.progress();
        }
    }

    /// Whether nothing has gone on for too long; once so, for ever.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.silence.as_ref().is_some_and(|silence| {
            if silence.last().elapsed() >= silence.limit {
                silence.is_over.store(true, Ordering::SeqCst);
            }
            silence.is_over.load(Ordering::SeqCst)
        })
    }

    /// Cancels it.
    pub fn cancel(&self) {
        let number = usize::try_from(Signal::SIGTERM as i32).unwrap_or_default();
        self.flag.store(number, Ordering::SeqCst);
    }

    /// The last signal that came; SIGTERM stands for a deadline, for silence and for [`Self::cancel`].
    #[must_use]
    pub fn signal(&self) -> Option<Signal> {
        if let Some(signal) = self.parent.as_ref().and_then(|parent| parent.signal()) {
            return Some(signal);
        }
        if self.is_late() || self.is_silent() {
            return Some(Signal::SIGTERM);
        }
        let number = i32::try_from(self.flag.load(Ordering::SeqCst)).ok()?;
        Signal::try_from(number).ok()
    }

    /// Whether its own deadline has passed.
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Sleeps, unless it is cancelled; whether it was not.
    #[must_use]
    pub fn sleep(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while self.signal().is_none() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(TICK));
        }
        false
    }
}

/// Whether this process was started to ignore a signal.
fn is_ignored(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or_default();
    mask & (1 << (signal as i32 - 1)) != 0
}

/// What a child is sent when this process gets a signal: to many a server SIGHUP says `read your settings again`, and
/// SIGQUIT asks for a dump of its memory.
fn passed_on(signal: Signal) -> Signal {
    match signal {
        Signal::SIGINT => Signal::SIGINT,
        _ => Signal::SIGTERM,
    }
}

/// How a child is watched.
#[derive(Debug, Clone)]
pub struct Watch {
    /// When it is ended, counted from its start.
    pub deadline: Option<Duration>,
    /// Where its output is kept, masked; the file is started anew.
    pub log: Option<PathBuf>,
    /// What no line may show; the secrets of the environment unless given.
    pub mask: Mask,
    /// How long its group may take to end.
    pub grace: Duration,
    /// Whether lines are kept from being workflow commands.
    pub neutralise: bool,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            deadline: None,
            log: None,
            mask: Mask::of_environment(),
            grace: GRACE,
            neutralise: crate::runner::on_actions(),
        }
    }
}

/// Why a child was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Its deadline passed.
    Deadline,
    /// This process was told to end.
    Cancelled(Signal),
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// With an exit code.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

/// The end of a supervised child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// Why it was ended, where it did not end by itself.
    pub stop: Option<Stop>,
    /// How long it ran.
    pub elapsed: Duration,
}

impl Outcome {
    /// Its exit code, where it ended by itself and with one.
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        match (self.stop, self.ending) {
            (None, Ending::Code(code)) => Some(code),
            _ => None,
        }
    }

    /// Whether it ended by itself, with code 0.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.stop.is_none() && self.ending == Ending::Code(0)
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seconds = self.elapsed.as_secs();
        match (self.stop, self.ending) {
            (Some(Stop::Deadline), _) => write!(f, "was ended at its deadline, after {seconds} s"),
            (Some(Stop::Cancelled(signal)), _) => write!(f, "was ended by {signal}, after {seconds} s"),
            (None, Ending::Code(code)) => write!(f, "exited with code {code}"),
            (None, Ending::Signal(number)) => match Signal::try_from(number) {
                Ok(signal) => write!(f, "was killed by {signal}"),
                Err(_) => write!(f, "was killed by signal {number}"),
            },
        }
    }
}

/// Runs a command to its end, with every line of its standard output and error handed to `show`, in order.
///
/// The child gets no standard input, and nothing of what [`secrets::withhold`] keeps from it. Carriage returns end lines too, so that progress bars are seen.
///
/// # Errors
/// The command cannot be started, or its log cannot be written.
pub fn run(
    mut command: Command,
    watch: &Watch,
    cancel: &Cancellation,
    show: &mut dyn FnMut(&str),
) -> io::Result<Outcome> {
    let mut log = watch.log.as_deref().map(create_log).transpose()?;
    let (reader, writer) = io::pipe()?;
    secrets::withhold(&mut command);
    command
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .process_group(0);
    let program = command.get_program().to_string_lossy().into_owned();
    let started = Instant::now();
    let mut child = command
        .spawn()
        .map_err(|error| io::Error::new(error.kind(), format!("`{program}` cannot be started: {error}")))?;
    // The command holds this process' ends of the pipe: without them the reader sees the end of the output.
    drop(command);
    let (sender, receiver) = sync_channel(QUEUE);
    let mask = watch.mask.clone();
    std::thread::spawn(move || lines::read(reader, &mask, |text| sender.send(text).is_ok()));

    let mut failed = None;
    let mut take = |text: String| {
        if let Some(log) = &mut log
            && failed.is_none()
        {
            failed = io::Write::write_all(log, text.as_bytes()).err();
        }
        for line in text.lines() {
            match watch.neutralise {
                true => show(&harmless(line)),
                false => show(line),
            }
        }
    };
    let (status, stop) = supervise(&mut child, watch, cancel, started, &receiver, &mut take)?;
    drain(&receiver, &mut take);
    if let Some(error) = failed {
        let name = watch.log.as_deref().unwrap_or(Path::new("")).display().to_string();
        return Err(io::Error::new(
            error.kind(),
            format!("the log `{name}` cannot be written: {error}"),
        ));
    }
    let ending = match status.code() {
        Some(code) => Ending::Code(code),
        None => Ending::Signal(status.signal().unwrap_or_default()),
    };
    Ok(Outcome {
        ending,
        stop,
        elapsed: started.elapsed(),
    })
}

fn create_log(path: &Path) -> io::Result<File> {
    File::create(path).map_err(|error| {
        let message = format!("the log `{}` cannot be created: {error}", path.display());
        io::Error::new(error.kind(), message)
    })
}

/// Waits for the child, passes signals on, keeps its deadline; afterwards its group is gone.
fn supervise(
    child: &mut Child,
    watch: &Watch,
    cancel: &Cancellation,
    started: Instant,
    lines: &Receiver<String>,
    take: &mut dyn FnMut(String),
) -> io::Result<(ExitStatus, Option<Stop>)> {
    let group = Pid::from_raw(i32::try_from(child.id()).unwrap_or_default());
    let mut stop: Option<(Stop, Instant)> = None;
    let status = loop {
        match lines.recv_timeout(TICK) {
            Ok(text) => take(text),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(TICK),
        }
        if let Some(status) = child.try_wait()? {
            break status;
        }
        match stop {
            None => {
                if let Some(signal) = cancel.signal() {
                    let _ = killpg(group, passed_on(signal));
                    stop = Some((Stop::Cancelled(signal), Instant::now()));
                } else if watch.deadline.is_some_and(|deadline| started.elapsed() >= deadline) {
                    let _ = killpg(group, Signal::SIGTERM);
                    stop = Some((Stop::Deadline, Instant::now()));
                }
            }
            Some((_, since)) if since.elapsed() >= watch.grace => {
                let _ = killpg(group, Signal::SIGKILL);
            }
            Some(_) => {}
        }
    };
    // What the child left behind in its group would keep the pipe, and a GPU, open. None left is no error.
    let _ = killpg(group, Signal::SIGKILL);
    Ok((status, stop.map(|(why, _)| why)))
}

/// Hands on what the pipe still holds.
fn drain(lines: &Receiver<String>, take: &mut dyn FnMut(String)) {
    let end = Instant::now() + DRAIN;
    while let Ok(text) = lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
        take(text);
    }
}
