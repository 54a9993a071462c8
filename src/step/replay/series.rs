//! The server's metrics: series of statistics under names, as an export of Prometheus endpoints.

use std::path::Path;

use indexmap::IndexMap;
use serde::Deserialize;

use crate::step::results::loose::{Cell, List, Map};
use crate::step::results::{file, json};

/// The metrics of a server, by name.
#[derive(Debug, Default)]
pub(super) struct Server {
    metrics: IndexMap<String, Map<Metric>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Export {
    metrics: Map<IndexMap<String, Map<Metric>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metric {
    series: List<Map<Series>>,
}

/// One series.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Series {
    stats: Map<IndexMap<String, Cell>>,
    labels: Map<IndexMap<String, Cell>>,
    endpoint_url: Cell,
}

/// What a metric counts, and so which of its statistics is its value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Counter,
    Gauge,
    /// A gauge whose average says more than its peak.
    Rate,
    /// A gauge that is a size.
    Capacity,
}

impl Kind {
    fn statistics(self) -> &'static [&'static str] {
        match self {
            Self::Counter => &["total", "sum", "max", "avg"],
            Self::Gauge => &["max", "avg", "total"],
            Self::Rate => &["avg", "max", "total"],
            Self::Capacity => &["max", "avg", "total", "sum"],
        }
    }
}

impl Series {
    /// Its value: the first of its kind's statistics that is a number.
    pub(super) fn value(&self, kind: Kind) -> Option<f64> {
        let stats = self.stats.0.as_ref()?;
        kind.statistics().iter().find_map(|name| stats.get(*name)?.number())
    }

    /// A label, as text.
    pub(super) fn label(&self, name: &str) -> Option<String> {
        match self.labels.0.as_ref()?.get(name)? {
            Cell::Text(text) => Some(text.clone()),
            Cell::Number(number) => Some(number.to_string()),
            Cell::Bool(flag) => Some(flag.to_string()),
            Cell::Null | Cell::Nested => None,
        }
    }

    /// Where it was read.
    pub(super) fn endpoint(&self) -> Option<&str> {
        self.endpoint_url.text()
    }
}

impl Server {
    /// Reads a server's metrics; `None` where there are none, with what is to be said of it.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let name = file::shown(path);
        if path.symlink_metadata().is_err() {
            return Err(format!("{name} is missing: nothing is known of the server"));
        }
        let bytes = file::read(path).map_err(|error| format!("{name} cannot be read: {error}"))?;
        let export: Export = json::parse_object(&bytes).map_err(|reason| format!("{name} {reason}"))?;
        match export.metrics.0 {
            Some(metrics) if !metrics.is_empty() => Ok(Self { metrics }),
            _ => Err(format!("{name} holds no metrics")),
        }
    }

    /// How many metrics there are.
    pub(super) fn count(&self) -> usize {
        self.metrics.len()
    }

    /// The names of all metrics.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.metrics.keys().map(String::as_str)
    }

    /// The series of a metric.
    pub(super) fn series(&self, name: &str) -> impl Iterator<Item = &Series> {
        let metric = self.metrics.get(name).and_then(|metric| metric.0.as_ref());
        metric
            .into_iter()
            .flat_map(|metric| metric.series.items())
            .filter_map(|series| series.0.as_ref())
    }

    /// The values of a metric's series.
    pub(super) fn values(&self, name: &str, kind: Kind) -> impl Iterator<Item = f64> {
        self.series(name).filter_map(move |series| series.value(kind))
    }

    /// The sum of counters under any of some names.
    pub(super) fn sum(&self, names: &[&str]) -> Option<f64> {
        sum(names.iter().flat_map(|name| self.values(name, Kind::Counter)))
    }

    /// The largest of gauges under any of some names.
    pub(super) fn max(&self, names: &[&str]) -> Option<f64> {
        names
            .iter()
            .flat_map(|name| self.values(name, Kind::Gauge))
            .reduce(f64::max)
    }

    /// The mean of rates under a name.
    pub(super) fn mean_rate(&self, name: &str) -> Option<f64> {
        let values: Vec<f64> = self.values(name, Kind::Rate).collect();
        #[allow(clippy::cast_precision_loss, reason = "a list that fits into memory")]
        let count = values.len() as f64;
        sum(values.into_iter()).map(|sum| sum / count)
    }

    /// Counters added up by a label; series without it are left out.
    pub(super) fn by_label(&self, name: &str, label: &str) -> IndexMap<String, f64> {
        let mut sums = IndexMap::new();
        for series in self.series(name) {
            if let (Some(label), Some(value)) = (series.label(label), series.value(Kind::Counter)) {
                *sums.entry(label).or_insert(0.0) += value;
            }
        }
        sums
    }
}

/// The sum of values; `None` of none.
pub(super) fn sum(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.reduce(|a, b| a + b)
}

/// A share, which some servers write in percent.
pub(super) fn fraction(value: f64) -> f64 {
    const LARGEST_SHARE: f64 = 1.5;
    if value > LARGEST_SHARE { value / 100.0 } else { value }
}

/// A quotient; `None` where a part is missing or the divisor is not above 0.
pub(super) fn ratio(part: Option<f64>, of: Option<f64>) -> Option<f64> {
    let (part, of) = (part?, of?);
    (of > 0.0).then(|| part / of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(stats: &str) -> Series {
        serde_json::from_str(&format!("{{\"stats\": {stats}}}")).expect("JSON")
    }

    #[test]
    fn the_value_is_the_first_statistic_of_its_kind_that_is_a_number() {
        let all = series(r#"{"sum": 2, "avg": 4, "max": 3, "total": 1}"#);
        let kinds = [Kind::Counter, Kind::Gauge, Kind::Rate, Kind::Capacity];
        assert_eq!(
            kinds.map(|kind| all.value(kind)),
            [Some(1.0), Some(3.0), Some(4.0), Some(3.0)]
        );
        let sparse = series(r#"{"total": null, "sum": "NaN", "max": true, "avg": 0}"#);
        assert_eq!(kinds.map(|kind| sparse.value(kind)), [Some(0.0); 4]);
        assert_eq!(series(r#"{"sum": 5}"#).value(Kind::Gauge), None);
        assert_eq!(series("7").value(Kind::Counter), None);
    }

    #[test]
    fn shares_in_percent_become_fractions_and_nothing_is_divided_by_zero() {
        assert_eq!([1.0, 1.5, 75.0].map(fraction), [1.0, 1.5, 0.75]);
        assert_eq!(ratio(Some(1.0), Some(0.0)), None);
        assert_eq!(ratio(Some(0.0), Some(4.0)), Some(0.0));
        assert_eq!(ratio(None, Some(4.0)), None);
    }
}
