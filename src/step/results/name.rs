//! What the name of a result file says: when it was written, and for which concurrency.

use std::path::Path;
use std::sync::LazyLock;
use std::time::UNIX_EPOCH;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use regex::Regex;

static CONC: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"_conc([0-9]+)(?:_[0-9]+)?\.jsonl?$").expect("a constant pattern"));
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}(?:\.[0-9]{1,9})?").expect("a constant pattern")
});

/// The concurrency that a staged file belongs to: `_conc<N>` before its extension, or `_conc<N>_2` after a clash.
#[must_use]
pub(crate) fn concurrency(name: &str) -> Option<u64> {
    CONC.captures(name)?[1].parse().ok().filter(|conc| *conc > 0)
}

/// When a file was written, in nanoseconds since 1970 UTC: the last timestamp in its name, with or without a
/// fraction, else its modification time.
#[must_use]
pub(crate) fn written(path: &Path) -> i128 {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    timestamp(&name).unwrap_or_else(|| {
        let modified = std::fs::symlink_metadata(path).and_then(|m| m.modified()).ok();
        let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        since.map_or(0, |since| i128::try_from(since.as_nanos()).unwrap_or(i128::MAX))
    })
}

fn timestamp(name: &str) -> Option<i128> {
    let found = TIME.find_iter(name).last()?.as_str();
    let (time, fraction) = found.split_once('.').unwrap_or((found, ""));
    let time = DateTime::strptime("%Y-%m-%dT%H-%M-%S", time).ok()?;
    let seconds = TimeZone::UTC.to_timestamp(time).ok()?.as_second();
    let nanos: i128 = format!("{fraction:0<9}").parse().ok()?;
    Some(i128::from(seconds) * 1_000_000_000 + nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suffix_is_read_before_the_extension_only() {
        assert_eq!(concurrency("results_2026-11-29T17-50-17.881701_conc16.json"), Some(16));
        assert_eq!(concurrency("samples_a_conc16_2.jsonl"), Some(16));
        for name in [
            "results_conc16.json.bak",
            "results_conc.json",
            "results_conc0.json",
            "results_conc16x.json",
        ] {
            assert_eq!(concurrency(name), None, "{name}");
        }
        assert_eq!(concurrency("results_conc99999999999999999999999.json"), None);
    }

    #[test]
    fn time_orders_with_and_without_a_fraction() {
        let at = |name: &str| timestamp(name).expect(name);
        assert!(at("r_2026-11-01T00-00-00.json") < at("r_2026-11-01T00-00-00.5.json"));
        assert!(at("r_2026-11-01T00-00-00.5.json") < at("r_2026-11-01T00-00-00.500001.json"));
        assert!(at("r_2026-11-01T00-00-00.999999.json") < at("r_2026-11-01T00-00-01.json"));
        assert_eq!(timestamp("r_2026-13-01T00-00-00.json"), None);
        assert_eq!(timestamp("results.json"), None);
    }
}
