//! `sweepctl throughput`: the throughput of a live server.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::output;
use crate::config::problem::Problems;
use crate::process::Cancellation;
use crate::step::serving::{self, Request, Route};

/// Measure the throughput of a live server, without a row
///
/// Sends requests of random tokens to an OpenAI-compatible server, so many at a time, and saves what `vllm bench serve
/// --save-result` saves. It needs no tokenizer: on the completions route prompts are token ids, so their lengths are
/// exact; on the chat route prompts are words, and the server is asked first how many tokens they take.
#[derive(Debug, Args)]
pub(crate) struct Throughput {
    /// The server's URL, such as http://localhost:8000
    #[arg(long, value_name = "URL")]
    endpoint: String,
    /// The route
    #[arg(long, value_enum, default_value_t)]
    route: Route,
    /// The served model's name
    #[arg(long, value_name = "NAME")]
    model: String,
    /// The most tokens of each prompt
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    isl: u64,
    /// The most tokens of each answer
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    osl: u64,
    /// Lengths lie between this share of the most and the most
    #[arg(long, value_name = "SHARE", default_value = "1.0", value_parser = share)]
    random_range_ratio: f64,
    /// Requests at a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    concurrency: u64,
    /// Requests in all
    #[arg(long, value_name = "N", conflicts_with = "requests_per_concurrency", value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    requests: Option<u64>,
    /// Requests in all, as a multiple of the concurrency
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1 << 10))]
    requests_per_concurrency: u64,
    /// Requests before those that are measured
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=1 << 24))]
    warmups: u64,
    /// What the random numbers start from
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Seconds that one request may take
    #[arg(long, value_name = "N", default_value_t = 6 * 3600, value_parser = clap::value_parser!(u64).range(1..))]
    timeout_seconds: u64,
    /// What the result says of the engine
    #[arg(long, value_name = "NAME", default_value = "openai")]
    backend: String,
    /// Where the result is saved
    #[arg(long, value_name = "FILE")]
    save: PathBuf,
}

impl Throughput {
    /// Measures.
    ///
    /// # Errors
    /// A server that does not answer, too many requests that fail, or an end by a signal.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let cancel = Cancellation::install()?;
        let request = Request {
            endpoint: self.endpoint.clone(),
            route: self.route,
            model: self.model.clone(),
            served: None,
            isl: self.isl,
            osl: self.osl,
            range_ratio: self.random_range_ratio,
            concurrency: self.concurrency,
            requests: self
                .requests
                .unwrap_or(self.concurrency * self.requests_per_concurrency),
            warmups: self.warmups,
            seed: self.seed,
            timeout: Duration::from_secs(self.timeout_seconds),
            backend: self.backend.clone(),
            save: self.save.clone(),
        };
        let done = serving::measure(&request, &cancel, &mut |line| eprintln!("{line}")).map_err(Problems::from)?;
        output::text(&format!(
            "saved {}: {} requests, {:.1} output tokens a second\n",
            self.save.display(),
            done.completed,
            done.output_throughput
        ))
    }
}

/// A share, 0 to 1.
fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a number from 0.0 to 1.0".to_owned())
}
