//! A log that grows while it is read.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use crate::config::problem::Problem;
use crate::process::{harmless, read_lines};
use crate::secrets::Mask;
use crate::step::results::file;

/// How often the end of a log is looked at again.
const TICK: Duration = Duration::from_millis(50);
/// How long a log must not have grown after the job's end: file systems of clusters deliver late.
const SETTLE: Duration = Duration::from_millis(400);
/// Texts of up to 64 KiB that wait to be shown.
const QUEUE: usize = 16;

/// The lines of a job's log, as they come.
#[derive(Debug)]
pub(super) struct Tail {
    texts: Receiver<String>,
    over: Arc<AtomicBool>,
    source: PathBuf,
    copy: PathBuf,
    kept: io::Result<File>,
    neutralise: bool,
}

impl Tail {
    /// Follows a log, which may not exist yet, and keeps a copy without secrets.
    ///
    /// # Errors
    /// The copy cannot be created.
    pub(super) fn start(source: &Path, copy: &Path, mask: &Mask) -> Result<Self, Problem> {
        let over = Arc::new(AtomicBool::new(false));
        let mut growing = Growing {
            path: source.to_owned(),
            file: None,
            over: Arc::clone(&over),
            grown: Instant::now(),
        };
        let (sender, texts) = sync_channel(QUEUE);
        let mask = mask.clone();
        std::thread::spawn(move || {
            let mut problem = None;
            read_lines(Noticing(&mut growing, &mut problem), &mask, |text| {
                sender.send(text).is_ok()
            });
            if let Some(error) = problem {
                let _ = sender.send(format!(
                    "the log `{}` cannot be read: {error}\n",
                    growing.path.display()
                ));
            }
        });
        let kept = File::create(copy).map_err(|error| unwritable(copy, &error))?;
        Ok(Self {
            texts,
            over,
            source: source.to_owned(),
            copy: copy.to_owned(),
            kept: Ok(kept),
            neutralise: crate::runner::on_actions(),
        })
    }

    /// Shows what comes within some time; whether more may come.
    pub(super) fn show(&mut self, time: Duration, show: &mut dyn FnMut(&str)) -> bool {
        let end = Instant::now() + time;
        loop {
            match self.texts.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(text) => {
                    if let Ok(kept) = &mut self.kept
                        && let Err(error) = kept.write_all(text.as_bytes())
                    {
                        self.kept = Err(error);
                    }
                    for line in text.lines() {
                        match self.neutralise {
                            true => show(&harmless(line)),
                            false => show(line),
                        }
                    }
                }
                Err(RecvTimeoutError::Timeout) => return true,
                Err(RecvTimeoutError::Disconnected) => return false,
            }
            if Instant::now() >= end {
                return true;
            }
        }
    }

    /// The job has ended: shows the rest of its log, for some time at most. Where the log is the launch's own, the
    /// copy takes its place once it is whole.
    ///
    /// # Errors
    /// The copy could not be written; then the log itself stays.
    pub(super) fn finish(mut self, own: bool, limit: Duration, show: &mut dyn FnMut(&str)) -> Result<(), Problem> {
        self.over.store(true, Ordering::SeqCst);
        let end = Instant::now() + limit;
        let mut more = true;
        while more && Instant::now() < end {
            more = self.show(TICK, show);
        }
        self.kept.map_err(|error| unwritable(&self.copy, &error))?;
        if own && !more {
            let _ = std::fs::remove_file(&self.source);
        }
        Ok(())
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Problem {
    let name = path.display().to_string();
    Problem::file(&name, format!("the log `{name}` cannot be written: {error}")).hint("see whether the disk is full")
}

/// Reads like a pipe: waits at the end of the file until the job is over and nothing more comes.
#[derive(Debug)]
struct Growing {
    path: PathBuf,
    file: Option<File>,
    over: Arc<AtomicBool>,
    grown: Instant,
}

impl Read for Growing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.file.is_none() {
                match file::open(&self.path) {
                    Ok(file) => self.file = Some(file),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
            if let Some(file) = &mut self.file {
                let count = file.read(buffer)?;
                if count > 0 {
                    self.grown = Instant::now();
                    return Ok(count);
                }
            }
            if !self.over.load(Ordering::SeqCst) {
                self.grown = Instant::now();
            } else if self.grown.elapsed() >= SETTLE {
                return Ok(0);
            }
            std::thread::sleep(TICK);
        }
    }
}

/// Keeps the error that ended the reading.
struct Noticing<'a>(&'a mut Growing, &'a mut Option<io::Error>);

impl Read for Noticing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).or_else(|error| {
            if error.kind() == io::ErrorKind::Interrupted {
                return Err(error);
            }
            *self.1 = Some(error);
            Ok(0)
        })
    }
}
