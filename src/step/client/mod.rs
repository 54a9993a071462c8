//! A throughput client for servers on this machine: infermark, a small load generator for OpenAI-compatible servers, and the
//! adapter from its report to the JSON that serving benchmarks save.
//!
//! It needs no tokenizer and no network. A word of the prompt counts as one input token, a chunk of the answer as one
//! output token: exact for the mock server, an estimate for others, whose clusters name a client of their own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::results::file;
use super::tools::{self, Installer, Venv};
use crate::config::problem::Problem;
use crate::process::{self, Cancellation, Watch};

/// The pinned version.
pub const VERSION: &str = "0.3.0";
/// What is installed.
pub const REQUIREMENTS: [&str; 2] = ["infermark==0.3.0", "httpx==0.28.1"];
/// Our part of it.
const SCRIPT: &str = include_str!("infermark.py");
/// Seconds that one request may take.
const REQUEST_TIMEOUT: u64 = 1800;

/// What is measured.
#[derive(Debug, Clone)]
pub struct Request {
    /// The server's URL, such as `http://localhost:8000`.
    pub endpoint: String,
    /// The served model's name.
    pub model: String,
    /// Tokens of each question.
    pub isl: u64,
    /// Tokens of each answer.
    pub osl: u64,
    /// Requests at a time.
    pub concurrency: u64,
    /// Requests in all.
    pub requests: u64,
    /// Where the result is saved.
    pub save: PathBuf,
}

/// What the script is told.
#[derive(Serialize)]
struct Asked<'a> {
    endpoint: String,
    model: &'a str,
    isl: u64,
    osl: u64,
    concurrency: u64,
    requests: u64,
    timeout: u64,
    report: &'a Path,
}

/// infermark's report of one concurrency; times in seconds.
#[derive(Debug, Deserialize)]
struct Report {
    n_requests: u64,
    n_success: u64,
    n_error: u64,
    total_duration: f64,
    requests_per_second: f64,
    tokens_per_second: f64,
    latency: Stats,
    ttft: Option<Stats>,
    itl: Option<Stats>,
    tpot: Option<Stats>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Stats {
    p50: f64,
    p99: f64,
    mean: f64,
    std: f64,
}

/// The result as serving benchmarks save it; times in milliseconds.
#[derive(Debug, Serialize)]
struct Saved<'a> {
    backend: &'static str,
    model_id: &'a str,
    num_prompts: u64,
    max_concurrency: u64,
    duration: f64,
    completed: u64,
    failed: u64,
    total_input_tokens: u64,
    total_output_tokens: u64,
    request_throughput: f64,
    output_throughput: f64,
    total_token_throughput: f64,
    #[serde(flatten)]
    times: indexmap::IndexMap<String, f64>,
}

impl<'a> Saved<'a> {
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "token counts stay far below 2^53, and are positive"
    )]
    fn new(request: &'a Request, report: &Report) -> Self {
        let input = report.n_success * request.isl;
        let input_rate = input as f64 / report.total_duration;
        let mut times = indexmap::IndexMap::new();
        let named = [
            ("ttft", report.ttft),
            ("tpot", report.tpot),
            ("itl", report.itl),
            ("e2el", Some(report.latency)),
        ];
        for (name, stats) in named {
            let Some(stats) = stats else { continue };
            for (of, seconds) in [
                ("mean", stats.mean),
                ("median", stats.p50),
                ("p99", stats.p99),
                ("std", stats.std),
            ] {
                times.insert(format!("{of}_{name}_ms"), seconds * 1000.0);
            }
        }
        Self {
            backend: "infermark",
            model_id: &request.model,
            num_prompts: report.n_requests,
            max_concurrency: request.concurrency,
            duration: report.total_duration,
            completed: report.n_success,
            failed: report.n_error,
            total_input_tokens: input,
            total_output_tokens: (report.tokens_per_second * report.total_duration).round() as u64,
            request_throughput: report.requests_per_second,
            output_throughput: report.tokens_per_second,
            total_token_throughput: input_rate + report.tokens_per_second,
            times,
        }
    }
}

/// Measures, and saves the result.
///
/// # Errors
/// A client that cannot be installed or fails, and a folder that cannot be written.
pub fn measure(request: &Request, cancel: &Cancellation, show: &mut dyn FnMut(&str)) -> Result<(), Problem> {
    let name = format!("infermark-{VERSION}");
    let venv = Venv::new(&tools::folder()?, &name, &REQUIREMENTS)?;
    venv.ensure(&mut Installer {
        cancel,
        show: &mut *show,
    })?;
    let failed = |error: std::io::Error| Problem::file("", format!("throughput cannot be measured: {error}"));
    let folder = tempfile::tempdir().map_err(failed)?;
    let [script, asked_file, report_file] =
        ["drive.py", "asked.json", "report.json"].map(|name| folder.path().join(name));
    let asked = Asked {
        endpoint: format!("{}/v1", request.endpoint.trim_end_matches('/')),
        model: &request.model,
        isl: request.isl,
        osl: request.osl,
        concurrency: request.concurrency,
        requests: request.requests,
        timeout: REQUEST_TIMEOUT,
        report: &report_file,
    };
    std::fs::write(&script, SCRIPT).map_err(failed)?;
    std::fs::write(
        &asked_file,
        serde_json::to_vec(&asked).map_err(|error| failed(error.into()))?,
    )
    .map_err(failed)?;
    let mut command = Command::new(venv.python());
    command
        .arg(&script)
        .arg(&asked_file)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        command.env_remove(name);
    }
    let watch = Watch {
        grace: Duration::from_secs(1),
        ..Watch::default()
    };
    let outcome = process::run(command, &watch, cancel, show).map_err(failed)?;
    if !outcome.is_success() {
        let problem = Problem::file("", format!("infermark {outcome}"));
        return Err(problem.hint("its output above says why; the server's log says what it answered"));
    }
    let report = file::read(&report_file).map_err(failed)?;
    let report: Report = serde_json::from_slice(&report).map_err(|error| failed(error.into()))?;
    let saved = serde_json::to_vec_pretty(&Saved::new(request, &report)).map_err(|error| failed(error.into()))?;
    file::write_atomic(&request.save, &saved).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_milliseconds_and_tokens_are_counted() {
        let stats =
            r#"{"p50": 0.5, "p75": 0, "p90": 0, "p95": 0, "p99": 0.75, "mean": 0.6, "min": 0, "max": 1, "std": 0}"#;
        let text = format!(
            r#"{{"concurrency": 4, "n_requests": 10, "n_success": 8, "n_error": 2, "total_duration": 2.0,
            "requests_per_second": 4.0, "tokens_per_second": 50.0, "latency": {stats}, "ttft": {stats}, "itl": null, "tpot": null,
            "errors": {{"timeout": 2}}}}"#
        );
        let report: Report = serde_json::from_str(&text).expect("a report");
        let request = Request {
            endpoint: String::new(),
            model: "org/m".to_owned(),
            isl: 100,
            osl: 12,
            concurrency: 4,
            requests: 10,
            save: PathBuf::new(),
        };
        let saved = serde_json::to_value(Saved::new(&request, &report)).expect("JSON");
        assert_eq!(saved["completed"], 8);
        assert_eq!(saved["num_prompts"], 10);
        assert_eq!(saved["total_input_tokens"], 800);
        assert_eq!(saved["total_output_tokens"], 100);
        assert_eq!(saved["total_token_throughput"], 450.0);
        assert_eq!(saved["median_ttft_ms"], 500.0);
        assert_eq!(saved["p99_e2el_ms"], 750.0);
        assert!(
            saved.get("mean_tpot_ms").is_none(),
            "answers of one chunk have no time between chunks"
        );
    }
}
