//! The export that aiperf took over from genai-perf: metrics as `{unit, avg, p50, ...}`, and the settings of the run
//! under `input_config`.

use serde::Deserialize;

use super::measured::{Found, Time};
use crate::step::results::loose::{Cell, First, List, Map};

/// The statistics that are published, and what they are called there.
const STATISTICS: [(&str, &str); 6] = [
    ("avg", "mean"),
    ("p50", "median"),
    ("p90", "p90"),
    ("p95", "p95"),
    ("p99", "p99"),
    ("std", "std"),
];

/// What is read of an export.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "named as in the file")]
pub(super) struct Export {
    pub input_config: Map<Settings>,
    pub was_cancelled: Cell,
    pub is_complete: Cell,
    pub request_count: Map<Metric>,
    pub error_request_count: Map<Metric>,
    pub request_throughput: Map<Metric>,
    pub benchmark_duration: Map<Metric>,
    pub output_token_throughput: Map<Metric>,
    pub total_token_throughput: Map<Metric>,
    pub input_sequence_length: Map<Metric>,
    pub output_sequence_length: Map<Metric>,
    pub total_isl: Map<Metric>,
    pub total_osl: Map<Metric>,
    pub time_to_first_token: Map<Metric>,
    pub inter_token_latency: Map<Metric>,
    pub inter_chunk_latency: Map<Metric>,
    pub request_latency: Map<Metric>,
}

/// One metric.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "named as in the file")]
pub struct Metric {
    pub unit: Cell,
    pub avg: Cell,
    pub p50: Cell,
    pub p90: Cell,
    pub p95: Cell,
    pub p99: Cell,
    pub std: Cell,
}

/// The settings of the run, of both clients.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "named as in the file")]
pub(super) struct Settings {
    // genai-perf
    pub model: First,
    pub model_names: First,
    pub concurrency: Cell,
    pub request_count: Cell,
    pub perf_analyzer: Map<PerfAnalyzer>,
    // aiperf
    pub endpoint: Map<Endpoint>,
    pub loadgen: Map<Loadgen>,
    pub models: Map<Models>,
    pub phases: List<Map<Phase>>,
}

/// genai-perf's nested settings.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "named as in the file")]
pub(super) struct PerfAnalyzer {
    pub stimulus: Map<Stimulus>,
    pub measurement: Map<Measurement>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "named as in the file")]
pub(super) struct Stimulus {
    pub concurrency: Cell,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "named as in the file")]
pub(super) struct Measurement {
    pub mode: Cell,
    pub num: Cell,
}

/// aiperf's settings up to 0.12 or so.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "named as in the file")]
pub(super) struct Endpoint {
    pub model_names: First,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "named as in the file")]
pub(super) struct Loadgen {
    pub concurrency: Cell,
    pub request_count: Cell,
}

/// aiperf's newer settings.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "named as in the file")]
pub(super) struct Models {
    pub items: List<Map<Model>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "named as in the file")]
pub(super) struct Model {
    pub name: Cell,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "named as in the file")]
pub(super) struct Phase {
    pub name: Cell,
    pub kind: Cell,
    pub requests: Cell,
    pub concurrency: Cell,
}

impl Export {
    /// Whether the settings are genai-perf's, which name the model at their top.
    #[must_use]
    pub(super) fn is_genai_perf(&self) -> bool {
        let settings = self.input_config.0.as_ref();
        settings.is_some_and(|s| s.model.0 != Cell::Null || s.model_names.0 != Cell::Null)
    }

    /// Whether the settings are aiperf's.
    #[must_use]
    pub(super) fn is_aiperf(&self) -> bool {
        self.input_config.0.as_ref().is_some_and(|s| {
            let old = s.loadgen.0.is_some() || s.endpoint.0.as_ref().is_some_and(|e| e.model_names.0 != Cell::Null);
            old || s.models.0.is_some() || s.phases.0.is_some()
        })
    }
}

impl Map<Metric> {
    /// The mean.
    #[must_use]
    pub fn avg(&self, name: &str) -> Found {
        let value = self.0.as_ref().map(|metric| metric.avg.clone());
        Found::new(format!("{name}.avg"), value.unwrap_or_default())
    }

    /// Every statistic of a latency, published as `mean_<published>` and so on; none where it was not measured.
    #[must_use]
    pub fn times(&self, name: &str, published: &str) -> Vec<Time> {
        let Some(metric) = &self.0 else {
            return Vec::new();
        };
        let Some(per_second) = metric.per_second() else {
            let found = Found::new(format!("{name}.unit"), metric.unit.clone());
            return vec![Time {
                found,
                published: format!("mean_{published}"),
                per_second: f64::NAN,
            }];
        };
        let values = [
            &metric.avg,
            &metric.p50,
            &metric.p90,
            &metric.p95,
            &metric.p99,
            &metric.std,
        ];
        let times = STATISTICS.iter().zip(values).filter_map(|((own, statistic), value)| {
            // A metric without its mean is said to lack it; of the others a client gives what it has.
            let given = *value != Cell::Null || *own == "avg";
            given.then(|| Time {
                found: Found::new(format!("{name}.{own}"), value.clone()),
                published: format!("{statistic}_{published}"),
                per_second,
            })
        });
        times.collect()
    }
}

impl Metric {
    /// How many of its units a second has.
    fn per_second(&self) -> Option<f64> {
        match &self.unit {
            Cell::Null => Some(1e3),
            Cell::Text(unit) => match unit.as_str() {
                "ms" => Some(1e3),
                "s" | "sec" | "seconds" => Some(1.0),
                "us" => Some(1e6),
                "ns" => Some(1e9),
                _ => None,
            },
            _ => None,
        }
    }
}
