//! Waiting for a server, with its log shown meanwhile.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::Process;
use crate::config::problem::Problem;
use crate::http;
use crate::process::Cancellation;

/// How often the log is read.
const TICK: Duration = Duration::from_millis(200);
/// How long one probe may take.
const PROBE: Duration = Duration::from_secs(5);

/// What is waited for.
#[derive(Debug)]
pub(crate) struct Wait {
    /// The URL that has to answer with success.
    pub endpoint: String,
    /// The process' log; waiting starts when it is there.
    pub log: PathBuf,
    /// The process.
    pub pid: i32,
    /// The pause between probes.
    pub pause: Duration,
    /// How long it may take; for ever where it is not said.
    pub timeout: Option<Duration>,
}

impl Wait {
    /// Waits, and copies the log to `out` from its first line on.
    ///
    /// # Errors
    /// The process died, the time ran out, or the wait was cancelled.
    pub(crate) fn run(&self, cancel: &Cancellation, out: &mut dyn Write) -> Result<(), Problem> {
        let process = Process::find(self.pid);
        let started = Instant::now();
        let mut log = Tail::new(self.log.clone());
        let mut probe_at = started;
        loop {
            let lives = process.is_some_and(|process| process.lives());
            log.copy(out);
            if log.is_there() && Instant::now() >= probe_at {
                if self.answers() {
                    log.copy(out);
                    return Ok(());
                }
                probe_at = Instant::now() + self.pause;
            }
            if !lives {
                log.copy(out);
                let what = if log.is_there() { "" } else { ", and left no log" };
                return Err(self.failed(&format!("the process {} died before it{what}", self.pid)));
            }
            if self.timeout.is_some_and(|timeout| started.elapsed() >= timeout) {
                return Err(self.failed(&format!("{} s passed before it", started.elapsed().as_secs())));
            }
            if !cancel.sleep(TICK) {
                return Err(self.failed("the wait was ended before it"));
            }
        }
    }

    fn failed(&self, why: &str) -> Problem {
        let message = format!("{} is not ready: {why} answered", self.endpoint);
        Problem::file("", message).hint(format!("its log is {}", self.log.display()))
    }

    fn answers(&self) -> bool {
        let answer = http::Request::get(&self.endpoint, PROBE).send_to(&mut std::io::sink());
        answer.is_ok_and(|answer| answer.status.as_u16() < 400)
    }
}

/// A growing file, from its first byte on.
struct Tail {
    path: PathBuf,
    file: Option<File>,
}

impl Tail {
    fn new(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    fn is_there(&self) -> bool {
        self.file.is_some()
    }

    /// Copies what is new. A file that was started anew is read from its start.
    fn copy(&mut self, out: &mut dyn Write) {
        if self.file.is_none() && self.path.is_file() {
            self.file = File::open(&self.path).ok();
        }
        let Some(file) = &mut self.file else { return };
        let at = file.stream_position().unwrap_or_default();
        if file.metadata().is_ok_and(|metadata| metadata.len() < at) {
            let _ = file.seek(SeekFrom::Start(0));
        }
        // A log that cannot be read, or shown, is no reason to stop waiting.
        let mut buffer = [0; 64 << 10];
        while let Ok(count @ 1..) = file.read(&mut buffer) {
            let _ = out.write_all(&buffer[..count]);
        }
        let _ = out.flush();
    }
}
