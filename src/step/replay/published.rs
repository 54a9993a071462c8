//! An aggregate as others read it: its nested metrics under the names that flat throughput results have.

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::Value;

use crate::step::results::loose::Cell;

/// `request_metrics` of an aggregate; anything else holds no metric.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct RequestMetrics(Value);

/// The statistics of a latency, and how flat results start their names.
const STATISTICS: [(&str, &str); 6] = [
    ("mean", "mean"),
    ("p50", "median"),
    ("p75", "p75"),
    ("p90", "p90"),
    ("p95", "p95"),
    ("std", "std"),
];
/// Throughputs of a GPU, in tokens a second.
const PER_GPU: [(&str, &str); 3] = [
    ("total_tput_tps", "tput_per_gpu"),
    ("output_tput_tps", "output_tput_per_gpu"),
    ("input_tput_tps", "input_tput_per_gpu"),
];

impl RequestMetrics {
    /// Every metric that is a number: `tput_per_gpu` and its like, `median_ttft`, `p90_intvty` ...
    #[must_use]
    pub(crate) fn flat(&self) -> IndexMap<String, f64> {
        let numbers = self.found().into_iter();
        numbers
            .filter_map(|(_, name, value)| Some((name, value.as_f64()?)))
            .collect()
    }

    /// Every metric that is there, number or not: where it stands, what it is called in flat results, and its value.
    pub(crate) fn figures(&self) -> impl Iterator<Item = (String, String, Cell)> {
        let found = self.found().into_iter();
        found.map(|(path, name, value)| (path, name, Cell::deserialize(value).unwrap_or_default()))
    }

    fn found(&self) -> Vec<(String, String, &Value)> {
        let mut found = Vec::new();
        for (from, to) in PER_GPU {
            if let Some(value) = self.0["throughput"]["per_gpu"].get(from) {
                let path = format!("request_metrics.throughput.per_gpu.{from}");
                found.push((path, to.to_owned(), value));
            }
        }
        for (latency, statistics) in self.0["latency"].as_object().into_iter().flatten() {
            for (from, to) in STATISTICS {
                if let Some(value) = statistics.get(from) {
                    let path = format!("request_metrics.latency.{latency}.{from}");
                    found.push((path, format!("{to}_{latency}"), value));
                }
            }
        }
        found
    }
}
