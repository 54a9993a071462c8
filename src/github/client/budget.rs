//! The hour's requests: a repository's token has 1,000 of them, and the last of them are not for reading.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::http::HeaderMap;

/// The longest wait for requests to be allowed again; a job that sleeps longer costs more than it is worth.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(60);
/// The share of the hour's requests that reads leave for writes: one in ten.
const RESERVE: u64 = 10;

/// What the last answer said of the hour's requests.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Budget {
    limit: Option<u64>,
    remaining: Option<u64>,
    /// Seconds since 1970 at which they are counted anew.
    reset: Option<u64>,
}

impl Budget {
    /// Reads `x-ratelimit-limit`, `-remaining` and `-reset`.
    #[must_use]
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let number = |name: &str| number(headers, name);
        Self {
            limit: number("x-ratelimit-limit"),
            remaining: number("x-ratelimit-remaining"),
            reset: number("x-ratelimit-reset"),
        }
    }

    /// Whether only the reserve is left.
    #[must_use]
    pub(crate) fn is_low(&self) -> bool {
        let reserve = self.limit.unwrap_or_default() / RESERVE;
        self.remaining.is_some_and(|remaining| remaining < reserve) && !self.wait().is_zero()
    }

    /// Whether nothing is left.
    #[must_use]
    pub(crate) fn is_used_up(&self) -> bool {
        self.remaining == Some(0)
    }

    /// How long until they are counted anew; nothing where that is not known, or was before now.
    #[must_use]
    pub(crate) fn wait(&self) -> Duration {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Duration::from_secs(self.reset.unwrap_or_default()).saturating_sub(now)
    }

    /// How long to wait between turns of so many requests, so that those above the reserve last until they are counted anew;
    /// at least `least`.
    #[must_use]
    pub(crate) fn pause(&self, requests: u64, least: Duration) -> Duration {
        let (Some(limit), Some(remaining)) = (self.limit, self.remaining) else {
            return least;
        };
        let usable = remaining.saturating_sub(limit / RESERVE);
        let turns = u32::try_from(usable / requests.max(1)).unwrap_or(u32::MAX);
        match turns {
            0 => self.wait().max(least),
            turns => (self.wait() / turns).max(least),
        }
    }

    /// How many are left.
    #[must_use]
    pub(crate) fn remaining(&self) -> u64 {
        self.remaining.unwrap_or_default()
    }
}

/// The seconds that `retry-after` asks for.
#[must_use]
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    number(headers, "retry-after").map(Duration::from_secs)
}

fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(remaining: u64, minutes: u64) -> Budget {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Budget {
            limit: Some(1000),
            remaining: Some(remaining),
            reset: Some(now.as_secs() + minutes * 60),
        }
    }

    #[test]
    fn turns_are_spread_over_what_is_left_of_the_hour() {
        let least = Duration::from_secs(10);
        let pause = |remaining, minutes, requests| budget(remaining, minutes).pause(requests, least).as_secs();
        // Plenty is left: as often as is liked.
        assert_eq!(pause(1000, 60, 1), 10);
        // 400 above the reserve, 20 a turn: 20 turns in 60 minutes.
        assert!((175..=180).contains(&pause(500, 60, 20)), "{}", pause(500, 60, 20));
        // Less than a turn is left: not before they are counted anew.
        assert!((1795..=1800).contains(&pause(105, 30, 20)));
        assert_eq!(pause(0, 0, 20), 10);
        assert_eq!(Budget::default().pause(50, least), least);
    }
}
