//! What a person sees of a running eval: a bar on a terminal, plain lines in a log.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::PointReport;

use crate::plural;

/// How often a bar's clock moves on.
const TICK: Duration = Duration::from_millis(250);

/// The progress of one eval. Everything goes to standard error; standard output is for results.
#[derive(Debug)]
pub struct Progress {
    started: Instant,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// A bar where standard error is a terminal, lines otherwise.
    #[must_use]
    pub fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(0);
            let style = ProgressStyle::with_template("{spinner} {pos}/{len} points, {elapsed} {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.enable_steady_tick(TICK);
            bar
        });
        Self {
            started: Instant::now(),
            bar,
        }
    }

    /// Shows a line of output.
    pub fn line(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| show(line)),
            None => show(line),
        }
    }

    /// Says what comes before the first point.
    pub fn phase(&self, what: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(what.to_owned()),
            None => self.line(&format!("eval: {what} ({} s)", self.started.elapsed().as_secs())),
        }
    }

    /// Says that a point starts; `index` counts from 0.
    pub fn point(&self, index: usize, count: usize, concurrency: u64) {
        match &self.bar {
            Some(bar) => {
                bar.set_length(count as u64);
                bar.set_message(format!("concurrency {concurrency}"));
            }
            None => {
                let seconds = self.started.elapsed().as_secs();
                self.line(&format!(
                    "eval: point {} of {count}, concurrency {concurrency} ({seconds} s)",
                    index + 1
                ));
            }
        }
    }

    /// Says how a point ended.
    pub fn done(&self, index: usize, count: usize, point: &PointReport) {
        let end = if point.completed { "completed" } else { "failed" };
        let (concurrency, files) = (point.concurrency, point.files.len());
        self.line(&format!(
            "eval: {} of {} done, concurrency {concurrency} {end} in {:.0} s, {} staged",
            index + 1,
            plural::count(count, "point"),
            point.seconds,
            plural::count(files, "file")
        ));
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Shows a line; a terminal that was closed ends no eval.
fn show(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}
