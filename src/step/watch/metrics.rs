//! A server's metrics at one moment, as its Prometheus endpoint gives them.
//!
//! Names are those of vLLM (`vllm/v1/metrics/loggers.py`), SGLang (`sglang:` gauges of its metrics collector) and
//! Dynamo's frontend.

use std::time::Duration;

use super::line::Load;
use crate::http::Request;

/// The largest answer that is read.
const MOST: u64 = 16 << 20;
/// How long an endpoint may take.
const TIMEOUT: Duration = Duration::from_secs(10);

const RUNNING: [&str; 3] = [
    "vllm:num_requests_running",
    "sglang:num_running_reqs",
    "dynamo_frontend_inflight_requests",
];
const WAITING: [&str; 3] = [
    "vllm:num_requests_waiting",
    "sglang:num_queue_reqs",
    "dynamo_frontend_queued_requests",
];
const KV: [&str; 3] = [
    "vllm:kv_cache_usage_perc",
    "vllm:gpu_cache_usage_perc",
    "sglang:token_usage",
];
const OUTPUT: [&str; 1] = ["sglang:gen_throughput"];
/// Counters that grow while a server works.
const WORK: [&str; 5] = [
    "vllm:generation_tokens_total",
    "vllm:prompt_tokens_total",
    "sglang:generation_tokens_total",
    "sglang:prompt_tokens_total",
    "dynamo_frontend_output_tokens_total",
];

/// One look at an endpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Sample {
    pub load: Load,
    /// The sum of counters of work done; `None` where it has none.
    pub work: Option<f64>,
}

/// Asks an endpoint.
pub(super) fn sample(url: &str) -> Result<Sample, String> {
    let answer = Request::get(url, TIMEOUT)
        .limit(MOST)
        .send()
        .map_err(|error| error.to_string())?;
    if !answer.status.is_success() {
        return Err(format!("it answers {}", answer.status));
    }
    Ok(read(&String::from_utf8_lossy(&answer.body)))
}

/// Reads the text format: gauges of several series are added up, but of shares the largest counts.
fn read(text: &str) -> Sample {
    let series: Vec<(&str, f64)> = text.lines().filter_map(series).collect();
    let of = |names: &[&str]| {
        let values = series
            .iter()
            .filter(|(name, _)| names.contains(name))
            .map(|(_, value)| *value);
        values.collect::<Vec<f64>>()
    };
    let sum = |names: &[&str]| {
        let values = of(names);
        (!values.is_empty()).then(|| values.iter().sum::<f64>())
    };
    Sample {
        load: Load {
            running: sum(&RUNNING),
            waiting: sum(&WAITING),
            kv: of(&KV).into_iter().reduce(f64::max),
            output: sum(&OUTPUT),
        },
        work: sum(&WORK),
    }
}

/// The name and the value of a line `name{labels} value [time]`.
fn series(line: &str) -> Option<(&str, f64)> {
    if line.starts_with('#') {
        return None;
    }
    let name_end = line.find(['{', ' '])?;
    let (name, rest) = line.split_at(name_end);
    // Labels are texts and may hold anything, but the value stands behind the last brace.
    let values = rest.rsplit_once('}').map_or(rest, |(_, values)| values);
    let value: f64 = values.split_whitespace().next()?.parse().ok()?;
    value.is_finite().then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_added_up_and_shares_are_not() {
        let text = "# HELP vllm:num_requests_running x\nvllm:num_requests_running{engine=\"0\",model=\"a} 7\"} 3.0\n\
                    vllm:num_requests_running{engine=\"1\"} 4.0\nvllm:kv_cache_usage_perc{engine=\"0\"} 0.5\n\
                    vllm:kv_cache_usage_perc{engine=\"1\"} 0.75\nvllm:generation_tokens_total 1e3 1796050152000\n\
                    vllm:num_requests_waiting NaN\n";
        let sample = read(text);
        assert_eq!(sample.load.running, Some(7.0));
        assert_eq!(sample.load.kv, Some(0.75));
        assert_eq!(sample.load.waiting, None);
        assert_eq!(sample.work, Some(1000.0));
    }
}
