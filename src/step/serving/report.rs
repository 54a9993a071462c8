//! What was measured, in the form of `vllm bench serve --save-result` (vLLM 0.9 to 0.13, `vllm/benchmarks/serve.py`).

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use indexmap::IndexMap;
use serde::Serialize;

use super::exchange::Measured;
use super::{MAX_FAILED, Request, Summary};
use crate::config::problem::Problem;

/// The percentiles that are saved.
const PERCENTILES: [u8; 4] = [50, 90, 95, 99];
/// How many different reasons of failed requests a message names.
const REASONS: usize = 3;

/// A measurement that has ended.
#[derive(Debug)]
pub(super) struct Run<'a> {
    pub(super) request: &'a Request,
    pub(super) answers: &'a [Measured],
    pub(super) started: SystemTime,
    pub(super) seconds: f64,
}

/// The saved JSON; times in milliseconds, throughputs a second.
#[derive(Debug, Serialize)]
pub(super) struct Saved<'a> {
    date: String,
    backend: &'a str,
    model_id: &'a str,
    tokenizer_id: &'a str,
    num_prompts: u64,
    request_rate: &'static str,
    burstiness: f64,
    max_concurrency: u64,
    duration: f64,
    benchmark_start_time_unix: f64,
    benchmark_end_time_unix: f64,
    completed: u64,
    failed: u64,
    total_input_tokens: u64,
    total_output_tokens: u64,
    request_throughput: f64,
    output_throughput: f64,
    total_token_throughput: f64,
    input_lens: Vec<u64>,
    output_lens: Vec<u64>,
    #[serde(flatten)]
    times: IndexMap<String, f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<&'a str>,
}

impl Run<'_> {
    fn completed(&self) -> impl Iterator<Item = &Measured> {
        self.answers.iter().filter(|answer| answer.error.is_none())
    }

    /// The JSON of the run. Times of requests that failed stand in none of its numbers.
    pub(super) fn saved(&self) -> Saved<'_> {
        let completed: Vec<&Measured> = self.completed().collect();
        let count = completed.len() as u64;
        let input: u64 = completed.iter().map(|answer| answer.input).sum();
        let output: u64 = completed.iter().map(|answer| answer.output).sum();
        let rate = |tokens: u64| tokens as f64 / self.seconds;
        let start = self
            .started
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs_f64();
        let mut times = IndexMap::new();
        statistics(
            &mut times,
            "ttft",
            completed.iter().map(|answer| answer.first).collect(),
        );
        // An answer of one token has no time per further token.
        let further = completed.iter().filter(|answer| answer.output > 1);
        let tpot = further.map(|answer| (answer.latency - answer.first) / (answer.output - 1) as f64);
        statistics(&mut times, "tpot", tpot.collect());
        statistics(
            &mut times,
            "itl",
            completed.iter().flat_map(|answer| answer.gaps.clone()).collect(),
        );
        statistics(
            &mut times,
            "e2el",
            completed.iter().map(|answer| answer.latency).collect(),
        );
        Saved {
            date: jiff::Timestamp::try_from(self.started)
                .unwrap_or_default()
                .strftime("%Y%m%d-%H%M%S")
                .to_string(),
            backend: &self.request.backend,
            model_id: &self.request.model,
            tokenizer_id: &self.request.model,
            num_prompts: self.request.requests,
            request_rate: "inf",
            burstiness: 1.0,
            max_concurrency: self.request.concurrency,
            duration: self.seconds,
            benchmark_start_time_unix: start,
            benchmark_end_time_unix: start + self.seconds,
            completed: count,
            failed: self.answers.len() as u64 - count,
            total_input_tokens: input,
            total_output_tokens: output,
            request_throughput: rate(count),
            output_throughput: rate(output),
            total_token_throughput: rate(input + output),
            input_lens: completed.iter().map(|answer| answer.input).collect(),
            output_lens: completed.iter().map(|answer| answer.output).collect(),
            times,
            errors: self
                .answers
                .iter()
                .filter_map(|answer| answer.error.as_deref())
                .collect(),
        }
    }

    /// Whether the measurement counts.
    pub(super) fn judge(&self) -> Result<Summary, Problem> {
        let completed = self.completed().count() as u64;
        let failed = self.answers.len() as u64 - completed;
        let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
        for error in self.answers.iter().filter_map(|answer| answer.error.as_deref()) {
            *reasons.entry(error).or_default() += 1;
        }
        if failed as f64 > MAX_FAILED * self.answers.len() as f64 {
            let mut reasons: Vec<(&str, u64)> = reasons.into_iter().collect();
            reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            let shown = reasons
                .iter()
                .take(REASONS)
                .map(|(reason, count)| format!("{count} x {reason}"));
            let shown: Vec<String> = shown.collect();
            let message = format!(
                "{failed} of {} failed: {}",
                crate::plural::count(self.answers.len(), "request"),
                shown.join("; ")
            );
            return Err(Problem::file("", message).hint("see the server's log"));
        }
        let output: u64 = self.completed().map(|answer| answer.output).sum();
        Ok(Summary {
            completed,
            failed,
            output_throughput: output as f64 / self.seconds,
        })
    }
}

/// Mean, median, spread and percentiles of seconds, in milliseconds; nothing of no values.
fn statistics(into: &mut IndexMap<String, f64>, name: &str, mut seconds: Vec<f64>) {
    if seconds.is_empty() {
        return;
    }
    seconds.sort_by(f64::total_cmp);
    let count = seconds.len() as f64;
    let mean = seconds.iter().sum::<f64>() / count;
    let variance = seconds.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    let mut put = |of: &str, value: f64| into.insert(format!("{of}_{name}_ms"), value * 1000.0);
    put("mean", mean);
    put("median", percentile(&seconds, 50));
    put("std", variance.sqrt());
    for rank in PERCENTILES {
        put(&format!("p{rank}"), percentile(&seconds, rank));
    }
}

/// A percentile of sorted values, interpolated linearly between its neighbours, as numpy does.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an index below the number of values"
)]
fn percentile(sorted: &[f64], rank: u8) -> f64 {
    let place = f64::from(rank) / 100.0 * (sorted.len() - 1) as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    sorted[below] + (sorted[above] - sorted[below]) * place.fract()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use super::super::Route;
    use super::*;

    fn request() -> Request {
        Request {
            endpoint: String::new(),
            route: Route::Completions,
            model: "org/m".to_owned(),
            served: None,
            isl: 100,
            osl: 3,
            range_ratio: 1.0,
            concurrency: 2,
            requests: 3,
            warmups: 0,
            seed: 0,
            timeout: Duration::from_secs(1),
            backend: "vllm".to_owned(),
            save: PathBuf::new(),
        }
    }

    fn answer(first: f64, gaps: &[f64]) -> Measured {
        Measured {
            input: 100,
            output: gaps.len() as u64 + 1,
            first,
            gaps: gaps.to_vec(),
            latency: first + gaps.iter().sum::<f64>(),
            error: None,
        }
    }

    #[test]
    fn times_are_of_completed_requests_and_in_milliseconds() {
        let lost = Measured {
            error: Some("503".to_owned()),
            first: 9.0,
            ..Measured::default()
        };
        let answers = [answer(0.5, &[0.1, 0.3]), answer(1.5, &[0.2, 0.2]), lost];
        let request = request();
        let run = Run {
            request: &request,
            answers: &answers,
            started: UNIX_EPOCH + Duration::from_secs(1000),
            seconds: 4.0,
        };
        let saved = serde_json::to_value(run.saved()).expect("JSON");
        let close = |name: &str, wanted: f64| {
            let found = saved[name].as_f64().expect(name);
            assert!((found - wanted).abs() < 1e-9, "{name} is {found}, not {wanted}");
        };
        close("mean_ttft_ms", 1000.0);
        close("p99_ttft_ms", 1490.0);
        close("median_tpot_ms", 200.0);
        close("mean_itl_ms", 200.0);
        close("std_itl_ms", 50f64.sqrt() * 10.0);
        close("mean_e2el_ms", 1400.0);
        close("output_throughput", 1.5);
        close("total_token_throughput", 51.5);
        assert_eq!((&saved["completed"], &saved["failed"]), (&2.into(), &1.into()));
        assert_eq!(saved["benchmark_end_time_unix"], 1004.0);
        let problem = run.judge().expect_err("a third failed");
        assert!(
            problem.message.contains("1 of 3 requests failed: 1 x 503"),
            "{}",
            problem.message
        );
    }

    #[test]
    fn answers_of_one_token_have_no_time_per_token() {
        let answers = [answer(0.5, &[])];
        let request = request();
        let run = Run {
            request: &request,
            answers: &answers,
            started: UNIX_EPOCH,
            seconds: 1.0,
        };
        let saved = serde_json::to_value(run.saved()).expect("JSON");
        assert!(saved.get("mean_tpot_ms").is_none() && saved.get("mean_itl_ms").is_none());
        assert_eq!(run.judge().expect("it counts").completed, 1);
    }
}
