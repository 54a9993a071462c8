//! Who is being served, and how many were.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::FLUSH;

/// Counts of the requests to generate. Those refused for what they ask are not among them.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    requests: AtomicU64,
    completions: AtomicU64,
    failures: AtomicU64,
    in_flight: AtomicU64,
    peak: AtomicU64,
    /// After how many completions the process dies.
    die_after: Option<u64>,
}

/// The exit code that a shell gives a process which aborts (128 + SIGABRT).
const ABORTED: i32 = 134;

impl Traffic {
    /// Counts from zero; with `die_after` the process ends shortly after that many completions.
    #[must_use]
    pub(super) fn new(die_after: Option<u64>) -> Self {
        Self {
            die_after,
            ..Self::default()
        }
    }

    /// A request arrives, and is in flight until its ticket is dropped.
    #[must_use]
    pub(super) fn arrive(self: &Arc<Self>) -> Ticket {
        let number = self.requests.fetch_add(1, Relaxed) + 1;
        let in_flight = self.in_flight.fetch_add(1, Relaxed) + 1;
        self.peak.fetch_max(in_flight, Relaxed);
        Ticket {
            traffic: Arc::clone(self),
            number,
            in_flight,
        }
    }

    /// The counts in the text format of Prometheus.
    #[must_use]
    pub(super) fn metrics(&self) -> String {
        let metrics = [
            ("requests_total", "counter", "Requests to generate", &self.requests),
            (
                "completions_total",
                "counter",
                "Requests answered in full",
                &self.completions,
            ),
            (
                "failures_total",
                "counter",
                "Requests failed, left hanging or cut off",
                &self.failures,
            ),
            ("in_flight", "gauge", "Requests in flight", &self.in_flight),
            (
                "in_flight_peak",
                "gauge",
                "The most requests in flight at once",
                &self.peak,
            ),
        ];
        let mut text = String::new();
        for (name, kind, help, value) in metrics {
            let name = format!("sweepctl_mock_{name}");
            let value = value.load(Relaxed);
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        }
        text
    }
}

/// One request in flight.
#[derive(Debug)]
pub(crate) struct Ticket {
    traffic: Arc<Traffic>,
    /// Counted from 1.
    pub number: u64,
    /// How many were in flight when it arrived, itself among them.
    pub in_flight: u64,
}

impl Ticket {
    /// It was answered in full.
    pub(crate) fn completed(&self) {
        let completions = self.traffic.completions.fetch_add(1, Relaxed) + 1;
        if self.traffic.die_after == Some(completions) {
            tokio::spawn(async move {
                tokio::time::sleep(FLUSH).await;
                anstream::eprintln!("dying after {completions} completions, as --die-after asks");
                std::process::exit(ABORTED);
            });
        }
    }

    /// A fault befell it.
    pub(crate) fn failed(&self) {
        self.traffic.failures.fetch_add(1, Relaxed);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.traffic.in_flight.fetch_sub(1, Relaxed);
    }
}
