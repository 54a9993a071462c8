//! The throughput client: requests of random tokens against a live OpenAI-compatible server, and what was measured.
//!
//! It runs wherever this binary does: no Python, no tokenizer, no network but the server. On the completions route a
//! prompt is a list of token ids, which vLLM, SGLang and TensorRT-LLM take as they are, so its length is exact. On the chat
//! route a prompt is text, and its length is found by asking the server (see [`workload`]). Answers are as long as asked:
//! `ignore_eos` and `min_tokens` are set, and the server's own `usage` counts.
//!
//! The saved JSON is that of `vllm bench serve --save-result`.

mod exchange;
mod report;
mod workload;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use self::exchange::{Measured, Server};
use self::report::Run;
use self::workload::Prompt;
use super::results::file;
use crate::config::problem::Problem;
use crate::process::Cancellation;

/// How often a cancellation is looked for.
const TICK: Duration = Duration::from_millis(100);
/// How often progress is shown.
const PROGRESS: Duration = Duration::from_secs(5);
/// The largest share of requests that may fail before the measurement counts as failed.
pub(crate) const MAX_FAILED: f64 = 0.05;

/// Which route is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Route {
    /// `/v1/completions`, with token ids as the prompt.
    #[default]
    Completions,
    /// `/v1/chat/completions`, with text, under the model's chat template.
    Chat,
}

impl Route {
    /// Its path.
    #[must_use]
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Completions => "/v1/completions",
            Self::Chat => "/v1/chat/completions",
        }
    }
}

/// What is measured.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The server's URL, such as `http://localhost:8000`.
    pub endpoint: String,
    /// The route.
    pub route: Route,
    /// The model's name, as the result says it.
    pub model: String,
    /// The name that the server knows it by, where that is another.
    pub served: Option<String>,
    /// The most tokens of a prompt.
    pub isl: u64,
    /// The most tokens of an answer.
    pub osl: u64,
    /// Lengths lie evenly between this share of the most and the most; 0 to 1.
    pub range_ratio: f64,
    /// Requests at a time.
    pub concurrency: u64,
    /// Requests in all.
    pub requests: u64,
    /// Requests before those that are measured.
    pub warmups: u64,
    /// What the random numbers start from.
    pub seed: u64,
    /// How long one request may take.
    pub timeout: Duration,
    /// What the result says of the engine.
    pub backend: String,
    /// Where the result is saved.
    pub save: PathBuf,
}

/// How a measurement ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Summary {
    /// Requests that completed.
    pub completed: u64,
    /// Requests that did not.
    pub failed: u64,
    /// Output tokens a second.
    pub output_throughput: f64,
}

/// Measures, and saves the result, also one in which requests failed.
///
/// # Errors
/// A server that cannot be asked, no request that completed, more than [`MAX_FAILED`] of them that failed, an end by a
/// signal, and a folder that cannot be written.
pub(crate) fn measure(
    request: &Request,
    cancel: &Cancellation,
    show: &mut dyn FnMut(&str),
) -> Result<Summary, Problem> {
    let failed = |error: std::io::Error| Problem::file("", format!("throughput cannot be measured: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    runtime.block_on(async {
        let server = Arc::new(Server::new(request)?);
        let template = match request.route {
            Route::Completions => None,
            Route::Chat => Some(workload::template(&server).await?),
        };
        let mut lengths = workload::Lengths::new(request);
        let mut prompts =
            |count: u64| -> Vec<Prompt> { (0..count).map(|_| lengths.prompt(template.as_ref())).collect() };
        if request.warmups > 0 {
            let count = crate::plural::count(request.warmups, "warm-up request");
            show(&format!("throughput: {count}"));
            drive(&server, prompts(request.warmups), request, cancel, show).await?;
        }
        show(&format!(
            "throughput: {}, {} at a time",
            crate::plural::count(request.requests, "request"),
            request.concurrency
        ));
        let measured = prompts(request.requests);
        let (started, clock) = (SystemTime::now(), Instant::now());
        let answers = drive(&server, measured, request, cancel, show).await?;
        let run = Run {
            request,
            answers: &answers,
            started,
            seconds: clock.elapsed().as_secs_f64(),
        };
        let saved = serde_json::to_vec_pretty(&run.saved()).map_err(|error| failed(error.into()))?;
        file::write_atomic(&request.save, &saved).map_err(failed)?;
        run.judge()
    })
}

/// Sends prompts, so many at a time, and gives what became of each, in their order.
async fn drive(
    server: &Arc<Server>,
    prompts: Vec<Prompt>,
    request: &Request,
    cancel: &Cancellation,
    show: &mut dyn FnMut(&str),
) -> Result<Vec<Measured>, Problem> {
    let slots = Arc::new(Semaphore::new(
        usize::try_from(request.concurrency).unwrap_or(usize::MAX >> 4),
    ));
    let total = prompts.len();
    let mut answers: Vec<Option<Measured>> = prompts.iter().map(|_| None).collect();
    let mut tasks = JoinSet::new();
    for (index, prompt) in prompts.into_iter().enumerate() {
        let (server, slots) = (Arc::clone(server), Arc::clone(&slots));
        tasks.spawn(async move {
            // The semaphore is never closed.
            let _slot = slots.acquire_owned().await;
            (index, server.ask(&prompt).await)
        });
    }
    let mut done = 0;
    let mut told = Instant::now();
    loop {
        match tokio::time::timeout(TICK, tasks.join_next()).await {
            Ok(None) => break,
            Ok(Some(Ok((index, measured)))) => {
                answers[index] = Some(measured);
                done += 1;
            }
            Ok(Some(Err(error))) => return Err(Problem::file("", format!("a request was lost: {error}"))),
            Err(_) => {}
        }
        if let Some(signal) = cancel.signal() {
            return Err(Problem::file("", format!("the measurement was ended by {signal}")));
        }
        if told.elapsed() >= PROGRESS {
            told = Instant::now();
            show(&format!("throughput: {done} of {total} requests are done"));
        }
    }
    Ok(answers.into_iter().flatten().collect())
}
