//! What was measured of the requests.

use std::collections::BTreeMap;

use serde::Serialize;

use super::expected::Expected;
use super::records::Record;
use super::statistics::{Statistics, Values};

/// Milliseconds and nanoseconds of a second.
const MILLIS: f64 = 1e3;
const NANOS: f64 = 1e9;

/// The numbers of the good records, as lists.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// Seconds.
    ttft: Vec<f64>,
    e2el: Vec<f64>,
    itl: Vec<f64>,
    full_response_itl: Vec<f64>,
    /// Seconds of each output token.
    normalized: Vec<f64>,
    /// Tokens.
    input: Vec<f64>,
    output: Vec<f64>,
    expected: Vec<f64>,
    /// Nanoseconds since 1970.
    start: Option<i128>,
    end: Option<i128>,
    /// Seconds since 1970.
    ends: Vec<f64>,
}

/// `request_metrics`.
#[derive(Debug, Serialize)]
pub(super) struct RequestMetrics {
    qps: Qps,
    latency: Latency,
    tokens: Tokens,
    #[serde(serialize_with = "or_empty")]
    throughput: Option<Throughput>,
    cache: Cache,
}

#[derive(Debug, Default, Serialize)]
struct Qps {
    #[serde(skip_serializing_if = "Option::is_none")]
    window_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<u64>,
    #[serde(flatten)]
    rates: Rates,
}

/// Queries a second.
#[derive(Debug, Default, Serialize)]
#[serde(untagged)]
enum Rates {
    /// Of every window.
    Windows(Values),
    /// Over the whole time, where it holds no window.
    Mean { mean: f64 },
    #[default]
    None,
}

#[derive(Debug, Serialize)]
struct Latency {
    ttft: Statistics,
    e2el: Statistics,
    itl: Statistics,
    tpot: Statistics,
    intvty: Statistics,
    e2e_norm_intvty: Statistics,
    full_response_itl: Statistics,
    full_response_intvty: Statistics,
}

#[derive(Debug, Serialize)]
struct Tokens {
    input: Statistics,
    output_actual: Statistics,
    output_expected: Statistics,
}

#[derive(Debug, Serialize)]
struct Throughput {
    input: Rate,
    output: Rate,
    total: Rate,
    duration_seconds: f64,
    per_gpu: PerGpu,
}

#[derive(Debug, Serialize)]
struct Rate {
    tokens_per_second: f64,
}

#[derive(Debug, Serialize)]
#[allow(clippy::struct_field_names, reason = "named as published")]
struct PerGpu {
    total_tput_tps: f64,
    output_tput_tps: f64,
    input_tput_tps: f64,
}

#[derive(Debug, Serialize)]
struct Cache {
    theoretical_cache_hit_rate: Option<f64>,
}

impl Requests {
    /// Takes the numbers of a good record. One that is missing is missing from its own list alone.
    pub(super) fn take(&mut self, record: &Record, expected: &Expected) {
        let metrics = &record.metrics;
        let latency = metrics.request_latency.0.positive();
        for (list, time) in [
            (&mut self.ttft, metrics.time_to_first_token.0.positive()),
            (&mut self.e2el, latency),
            (&mut self.itl, metrics.inter_token_latency.0.positive()),
            (
                &mut self.full_response_itl,
                metrics.full_response_inter_token_latency.0.positive(),
            ),
        ] {
            list.extend(time.map(|time| time / MILLIS));
        }
        let length = metrics.output_sequence_length.0.positive();
        self.normalized
            .extend(latency.zip(length).map(|(time, tokens)| time / MILLIS / tokens));
        self.input.extend(metrics.input_sequence_length.0.count().map(float));
        self.output.extend(metrics.output_sequence_length.0.count().map(float));
        self.expected.extend(expected.of(&record.metadata).map(float));
        let time = |time: Option<i128>| time.filter(|time| *time != 0);
        let start = time(record.metadata.request_start_ns.count());
        let end = time(record.metadata.request_end_ns.count());
        self.start = [self.start, start].into_iter().flatten().min();
        self.end = [self.end, end].into_iter().flatten().max();
        self.ends.extend(end.map(|end| float(end) / NANOS));
    }

    /// The sums of input and output tokens; `None` where no record has a count.
    pub(super) fn tokens(&self) -> (Option<f64>, Option<f64>) {
        let sum = |list: &[f64]| (!list.is_empty()).then(|| list.iter().sum());
        (sum(&self.input), sum(&self.output))
    }

    /// What is drawn of latencies, in seconds: name and values.
    pub(super) fn latencies(&self) -> [(&'static str, &[f64]); 4] {
        [
            ("Time to first token", &self.ttft),
            ("Latency of a request", &self.e2el),
            ("Time between tokens", &self.itl),
            ("Time between tokens, full response", &self.full_response_itl),
        ]
    }

    /// What is drawn of lengths, in tokens: name and values.
    pub(super) fn lengths(&self) -> [(&'static str, &[f64]); 3] {
        [
            ("Input", &self.input),
            ("Output", &self.output),
            ("Output, expected", &self.expected),
        ]
    }

    /// What is published of them, for so many GPUs.
    pub(super) fn metrics(&self, gpus: u64, theoretical_cache_hit_rate: Option<f64>) -> RequestMetrics {
        let itl = Statistics::of(&self.itl);
        RequestMetrics {
            qps: self.qps(),
            latency: Latency {
                ttft: Statistics::of(&self.ttft),
                e2el: Statistics::of(&self.e2el),
                itl,
                tpot: itl,
                intvty: Statistics::inverse(&self.itl),
                e2e_norm_intvty: Statistics::inverse(&self.normalized),
                full_response_itl: Statistics::of(&self.full_response_itl),
                full_response_intvty: Statistics::inverse(&self.full_response_itl),
            },
            tokens: Tokens {
                input: Statistics::of(&self.input),
                output_actual: Statistics::of(&self.output),
                output_expected: Statistics::of(&self.expected),
            },
            throughput: self.throughput(gpus),
            cache: Cache {
                theoretical_cache_hit_rate,
            },
        }
    }

    fn throughput(&self, gpus: u64) -> Option<Throughput> {
        let nanos = self.end?.checked_sub(self.start?).filter(|nanos| *nanos > 0)?;
        let duration = float(nanos) / NANOS;
        let (input, output) = self.tokens();
        let (input, output) = (input.unwrap_or(0.0) / duration, output.unwrap_or(0.0) / duration);
        let total = input + output;
        let rate = |tokens_per_second| Rate { tokens_per_second };
        let gpus = float(gpus.into());
        Some(Throughput {
            input: rate(input),
            output: rate(output),
            total: rate(total),
            duration_seconds: duration,
            per_gpu: PerGpu {
                total_tput_tps: total / gpus,
                output_tput_tps: output / gpus,
                input_tput_tps: input / gpus,
            },
        })
    }

    /// How many requests ended in each whole second from the first end on. Windows in which none ended are counted, not
    /// kept: one time that is far off would make millions of them.
    fn qps(&self) -> Qps {
        let mut ends = self.ends.clone();
        ends.sort_by(f64::total_cmp);
        let (Some(first), Some(last)) = (ends.first(), ends.last()) else {
            return Qps::default();
        };
        let time = last - first;
        if ends.len() < 2 || time <= 0.0 {
            return Qps::default();
        }
        if time < 1.0 {
            let mean = float(ends.len() as i128) / time;
            return Qps {
                rates: Rates::Mean { mean },
                ..Qps::default()
            };
        }
        let samples = time.floor();
        let mut windows: BTreeMap<u64, f64> = BTreeMap::new();
        for window in ends
            .iter()
            .map(|end| (end - first).floor())
            .filter(|window| *window < samples)
        {
            *windows.entry(whole(window)).or_default() += 1.0;
        }
        let counts: Vec<f64> = windows.into_values().collect();
        let samples = whole(samples);
        let zeros = samples.saturating_sub(counts.len() as u64);
        Qps {
            window_seconds: Some(1),
            samples: Some(samples),
            rates: Statistics::with_zeros(&counts, zeros)
                .values
                .map_or(Rates::None, Rates::Windows),
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "statistics are doubles")]
fn float(whole: i128) -> f64 {
    whole as f64
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "seconds of a replay, not negative"
)]
fn whole(seconds: f64) -> u64 {
    seconds as u64
}

/// Nothing is written as `{}`.
fn or_empty<S: serde::Serializer>(value: &Option<Throughput>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => value.serialize(serializer),
        None => serializer.collect_map(std::iter::empty::<((), ())>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn qps(ends: &[f64]) -> serde_json::Value {
        let requests = Requests {
            ends: ends.to_vec(),
            ..Requests::default()
        };
        serde_json::to_value(requests.qps()).expect("JSON")
    }

    #[test]
    fn queries_a_second_are_counted_in_whole_windows() {
        assert_eq!(qps(&[]), serde_json::json!({}));
        assert_eq!(qps(&[5.0]), serde_json::json!({}));
        assert_eq!(qps(&[5.0, 5.0]), serde_json::json!({}));
        assert_eq!(qps(&[5.0, 5.5, 5.25]), serde_json::json!({"mean": 6.0}));
        // Two windows, [5, 6) and [6, 7); what ends at 7.0 and 7.5 is in none.
        let found = qps(&[7.5, 5.0, 5.9, 6.0, 7.0]);
        assert_eq!((&found["samples"], &found["window_seconds"]), (&2.into(), &1.into()));
        assert_eq!((found["mean"].as_f64(), found["std"].as_f64()), (Some(1.5), Some(0.5)));
    }

    #[test]
    fn a_time_that_is_far_off_costs_no_memory() {
        let found = qps(&[1.0, 1.5, 1.7e9]);
        assert_eq!(
            (found["p95"].as_f64(), found["samples"].as_u64()),
            (Some(0.0), Some(1_699_999_999))
        );
    }
}
