//! The records of requests, read one line after another: files of them are as large as a run is long.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde_json::Value;

use super::picked::{Datum, Metric, picked};
use crate::config::problem::Problem;
use crate::step::results::file::{self, shown};
use crate::step::results::json;

/// The longest line that is read, in bytes (64 MiB): a record holds numbers about a request, not its text.
pub(super) const MAX_LINE: u64 = 64 << 20;

picked! {
    /// What is read of a record.
    Record {
        metadata: Metadata = "metadata",
        metrics: Metrics = "metrics",
        /// Why it failed; null where it did not.
        error: Value = "error",
    }
}

picked! {
    /// What is read of a record's metadata.
    Metadata {
        benchmark_phase: Datum = "benchmark_phase",
        conversation_id: Datum = "conversation_id",
        turn_index: Datum = "turn_index",
        /// Nanoseconds since 1970.
        request_start_ns: Datum = "request_start_ns",
        /// Nanoseconds since 1970.
        request_end_ns: Datum = "request_end_ns",
    }
}

picked! {
    /// What is read of a record's metrics: times in milliseconds, lengths in tokens.
    Metrics {
        time_to_first_token: Metric = "time_to_first_token",
        request_latency: Metric = "request_latency",
        inter_token_latency: Metric = "inter_token_latency",
        full_response_inter_token_latency: Metric = "full_response_inter_token_latency",
        input_sequence_length: Metric = "input_sequence_length",
        output_sequence_length: Metric = "output_sequence_length",
    }
}

impl Record {
    /// Whether the request only warmed the server up.
    pub(super) fn is_warm_up(&self) -> bool {
        match &self.metadata.benchmark_phase {
            Datum::Missing => false,
            Datum::Text(phase) => phase != "profiling",
            _ => true,
        }
    }
}

/// Gives every record of a file to `take`.
///
/// # Errors
/// A file that cannot be read, and the first line that is no JSON object, a last one that is cut off included.
pub(super) fn each(path: &Path, mut take: impl FnMut(Record)) -> Result<(), Problem> {
    let name = shown(path);
    let failed = |message: String| Problem::file(&name, message).hint("the client did not finish: see its log");
    let mut number = 0_u64;
    let read = lines(path, |line| {
        number += 1;
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let record = json::parse_object(line).map_err(|reason| {
            // The parser sees one line and calls it the first.
            let reason = reason
                .replace(" in line 1", "")
                .replace(" at line 1 column ", " at column ");
            failed(format!("{name}, line {number}, {reason}"))
        })?;
        take(record);
        Ok(())
    });
    read.map_err(|error| failed(format!("{name} cannot be read: {error}")))?
}

/// Gives every line of a file to `take` until it fails. A line longer than [`MAX_LINE`] ends the reading.
///
/// # Errors
/// A file that cannot be read; inside, what `take` reports.
pub(super) fn lines<E>(path: &Path, take: impl FnMut(&[u8]) -> Result<(), E>) -> std::io::Result<Result<(), E>> {
    lines_of(BufReader::with_capacity(1 << 20, file::open(path)?), take)
}

/// As [`lines`], of an open file.
pub(super) fn lines_of<E>(
    mut reader: impl BufRead,
    mut take: impl FnMut(&[u8]) -> Result<(), E>,
) -> std::io::Result<Result<(), E>> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = reader.by_ref().take(MAX_LINE + 1).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(Ok(()));
        }
        if read as u64 > MAX_LINE {
            let message = format!("a line is longer than {} MiB", MAX_LINE >> 20);
            return Err(std::io::Error::other(message));
        }
        if let Err(error) = take(&line) {
            return Ok(Err(error));
        }
    }
}
