//! The times of samples, in every form that monitors write.

use std::sync::LazyLock;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use regex::Regex;

/// Above it a plain number counts milliseconds.
const MOST_SECONDS: f64 = 1e12;

/// A number without an exponent.
#[allow(clippy::expect_used, reason = "a constant pattern")]
static NUMBER: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^-?\d+(?:\.\d+)?$").expect("a pattern"));
/// `2026/11/30 15:00:00.123`, always local, and ISO 8601. A time that was cut off fits neither.
#[allow(clippy::expect_used, reason = "a constant pattern")]
static DATE_TIME: LazyLock<Regex> = LazyLock::new(|| {
    let time = r"(\d{2}):(\d{2}):(\d{2})";
    let pattern = format!(
        r"^(\d{{4}})(?:/(\d{{2}})/(\d{{2}}) {time}(?:\.(\d{{1,6}}))?|-(\d{{2}})-(\d{{2}})[Tt ]{time}(?:\.(\d{{1,9}}))?(?:([Zz])|([+-])(\d{{2}}):?(\d{{2}}))?)$"
    );
    Regex::new(&pattern).expect("a pattern")
});

/// Reads times; those without an offset are of one zone.
#[derive(Debug)]
pub(super) struct Clock(Option<TimeZone>);

impl Clock {
    /// The zone that TZ names, else the system's. Without a zone, local times cannot be read.
    #[must_use]
    pub(super) fn local() -> Self {
        Self(TimeZone::try_system().ok())
    }

    /// Seconds since 1970.
    #[must_use]
    pub(super) fn read(&self, text: &str) -> Option<f64> {
        if NUMBER.is_match(text) {
            let number: f64 = text.parse().ok()?;
            let seconds = if number > MOST_SECONDS { number / 1000.0 } else { number };
            return Some(seconds).filter(|seconds| seconds.is_finite());
        }
        let found = DATE_TIME.captures(text)?;
        let field = |at: usize| found.get(at).map(|part| part.as_str());
        let part = |slash: usize, iso: usize| field(slash).or_else(|| field(iso)).unwrap_or_default();
        let whole = |slash: usize, iso: usize| part(slash, iso).parse::<i8>().ok();
        let nanoseconds = format!("{:0<9}", part(7, 13)).parse().ok()?;
        let local = DateTime::new(
            field(1)?.parse().ok()?,
            whole(2, 8)?,
            whole(3, 9)?,
            whole(4, 10)?,
            whole(5, 11)?,
            whole(6, 12)?,
            nanoseconds,
        )
        .ok()?;
        let moment = match (field(14), field(15)) {
            (Some(_), _) => local.to_zoned_datetime(TimeZone::UTC).ok()?,
            (None, Some(sign)) => {
                let (hours, minutes): (i32, i32) = (field(16)?.parse().ok()?, field(17)?.parse().ok()?);
                let seconds = (hours * 60 + minutes) * 60;
                let seconds = if sign == "-" { -seconds } else { seconds };
                let offset = jiff::tz::Offset::from_seconds(seconds).ok()?;
                local.to_zoned_datetime(offset.to_time_zone()).ok()?
            }
            (None, None) => local.to_zoned_datetime(self.0.clone()?).ok()?,
        };
        #[allow(clippy::cast_precision_loss, reason = "microseconds of our days fit 2^53")]
        Some(moment.timestamp().as_microsecond() as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_one_moment() {
        let clock = Clock(TimeZone::get("Asia/Tokyo").ok());
        for text in [
            "1796050797.021",
            "1796050797021",
            "2026/11/30 23:59:57.021",
            "2026/11/30 23:59:57.021000",
            "2026-11-30T14:59:57.021Z",
            "2026-11-30 14:59:57.021000Z",
            "2026-11-30T06:59:57.021-08:00",
            "2026-11-30T20:29:57.021+0530",
            "2026-11-30 23:59:57.021",
            "2026-11-30T23:59:57.021",
        ] {
            assert_eq!(clock.read(text), Some(1_796_050_797.021), "{text}");
        }
        assert_eq!(clock.read("2026/11/30 23:59:57"), Some(1_796_050_797.0));
        assert_eq!(clock.read("1796050797"), Some(1_796_050_797.0));
        assert_eq!(clock.read("1000000000000"), Some(1e12));
        assert_eq!(clock.read("1000000000001"), Some(1_000_000_000.001));
    }

    #[test]
    fn what_is_cut_off_or_cannot_be_is_no_time() {
        let clock = Clock(Some(TimeZone::UTC));
        for text in [
            "",
            "N/A",
            "nan",
            "1e9",
            "2026/11/30",
            "2026/11/30 15:00",
            "2026/11/30 15:00:3",
            "2026/11/30 15:00:36.",
            "2026/11/30 15:00:36.1234567",
            "2026/13/30 15:00:36",
            "2026/02/30 15:00:36",
            "2026/11/30 24:00:00",
            "2026/11/30 15:00:60",
            "2026-11-30T15:00:36+0",
            "2026-11-30T15:00:36 Z",
            "2026/11/30T15:00:36",
        ] {
            assert_eq!(clock.read(text), None, "{text}");
        }
        assert_eq!(Clock(None).read("2026/11/30 15:00:36"), None);
        assert!(Clock(None).read("2026-11-30T15:00:36Z").is_some());
    }
}
