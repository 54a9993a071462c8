//! Bodies that arrive over time.

use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use clap::Args;
use futures_util::stream;
use tokio::time::{Instant, sleep, sleep_until};

use super::FLUSH;
use super::traffic::Ticket;

/// How fast answers come.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Faults")]
pub(crate) struct Pace {
    /// Wait before the first word of an answer, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub latency_ms: u64,
    /// Words a second of one answer [default: all at once]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub tokens_per_second: Option<f64>,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text
        .parse()
        .ok()
        .filter(|rate: &f64| rate.is_finite() && *rate >= 0.001);
    rate.ok_or_else(|| "a rate is a number of at least 0.001".to_owned())
}

impl Pace {
    /// When the n-th word is due, from the request's arrival.
    #[must_use]
    pub(crate) fn due(&self, words: usize) -> Duration {
        let spoken = self.tokens_per_second.map_or(0.0, |rate| words as f64 / rate);
        Duration::from_millis(self.latency_ms) + Duration::from_secs_f64(spoken)
    }
}

/// Part of a body.
#[derive(Debug)]
pub(crate) struct Piece {
    /// When it is sent.
    pub at: Instant,
    /// What is sent.
    pub bytes: Bytes,
}

/// How a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// As it should: the request is completed.
    Whole,
    /// With a connection that closes too early.
    Cut,
}

/// A body of pieces, each sent when it is due. The ticket is held until the end, or until the client goes away.
pub(crate) fn body(pieces: impl Iterator<Item = Piece> + Send + 'static, end: End, ticket: Ticket) -> Body {
    let state = (pieces.peekable(), end, ticket);
    Body::from_stream(stream::unfold(state, async |(mut pieces, mut end, ticket)| {
        let Some(piece) = pieces.next() else {
            if end == End::Whole {
                return None;
            }
            end = End::Whole;
            // What was sent reaches the client before the connection breaks.
            sleep(FLUSH).await;
            let broken = io::Error::from(io::ErrorKind::ConnectionAborted);
            return Some((Err(broken), (pieces, end, ticket)));
        };
        sleep_until(piece.at).await;
        // Counted here, for a body of known length is not asked for more than its bytes.
        if pieces.peek().is_none() && end == End::Whole {
            ticket.completed();
        }
        Some((Ok(piece.bytes), (pieces, end, ticket)))
    }))
}
