//! Whether a server and its metrics are there, before an hour of it is spent.

use std::time::{Duration, Instant};

use super::record::required;
use super::{Request, Runtime};
use crate::config::problem::{Problem, Problems};
use crate::http;
use crate::step::eval::endpoint::Endpoint;

/// How long one answer may take.
const ANSWER: Duration = Duration::from_secs(10);
/// The pause between two looks.
const PAUSE: Duration = Duration::from_secs(1);
/// The most bytes of metrics that are read.
const MAX_BODY: u64 = 64 << 20;

/// Waits for the server.
///
/// # Errors
/// It does not answer in time.
pub(crate) fn server(request: &Request<'_>, runtime: &mut Runtime<'_>) -> Result<(), Problem> {
    let endpoint = Endpoint::parse(&request.settings.target.url, request.job.text("OPENAI_API_KEY"))?;
    endpoint.wait(request.ready, runtime.cancel).map_err(|problem| {
        let flag = "look at the server's log; a slow start gets more time by --ready-timeout";
        match problem.hint {
            Some(_) => problem.hint(flag),
            None => problem,
        }
    })
}

/// Waits for the metrics of every server. Where they are optional, what is missing is said and no more.
///
/// # Errors
/// Every endpoint without metrics, unless they are optional.
pub(crate) fn metrics(request: &Request<'_>, runtime: &mut Runtime<'_>) -> Result<(), Problems> {
    let deadline = Instant::now() + request.ready;
    let mut problems = Problems::default();
    for endpoint in required(&request.settings) {
        let why = loop {
            match look(&endpoint.url) {
                Ok(()) => break None,
                Err(why) if request.metrics_optional || Instant::now() >= deadline => break Some(why),
                Err(why) if !runtime.cancel.sleep(PAUSE) => break Some(why),
                Err(_) => {}
            }
        };
        let Some(why) = why else { continue };
        let message = format!(
            "there are no server metrics at {} ({}): {why}",
            endpoint.url, endpoint.from
        );
        if request.metrics_optional {
            (runtime.show)(&format!("warning: {message}"));
            continue;
        }
        let hint = "name every server's endpoint with --metrics or AIPERF_SERVER_METRICS_URLS, or pass \
                    --metrics-optional where the server has none";
        problems.push(Problem::file("", message).hint(hint));
    }
    problems.into_result()
}

/// Whether an endpoint answers with metrics in the text form of Prometheus.
fn look(url: &str) -> Result<(), String> {
    let answer = http::Request::get(url, ANSWER)
        .limit(MAX_BODY)
        .send()
        .map_err(|error| error.to_string())?;
    if !answer.status.is_success() {
        return Err(format!("it answers {}", answer.status.as_u16()));
    }
    match is_metrics(&answer.body) {
        true => Ok(()),
        false => Err("it answers with no metrics".to_owned()),
    }
}

/// Whether a text holds a sample, `name{labels} value` or `name value`.
fn is_metrics(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body);
    text.lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('#'))
        .any(|line| {
            let start = line
                .chars()
                .next()
                .is_some_and(|c| c.is_ascii_alphabetic() || c == '_' || c == ':');
            let value = line
                .rsplit_once('}')
                .map_or_else(|| line.split_once(' ').map(|(_, rest)| rest), |(_, rest)| Some(rest));
            let value = value.and_then(|rest| rest.split_whitespace().next());
            start && value.is_some_and(|value| value.parse::<f64>().is_ok() || matches!(value, "+Inf" | "-Inf" | "NaN"))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_told_from_other_answers() {
        for good in [
            "# HELP a b\nvllm:num_requests_running{engine=\"0\"} 1.0\n",
            "up 1",
            "a_b{x=\"{y}\"} +Inf 1700000000",
        ] {
            assert!(is_metrics(good.as_bytes()), "{good}");
        }
        for bad in [
            "",
            "# only a comment 1",
            "{\"up\": 1}",
            "[{\"iter\": 1}]",
            "<html>not 1",
            "Not Found",
        ] {
            assert!(!is_metrics(bad.as_bytes()), "{bad}");
        }
    }
}
