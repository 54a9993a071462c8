//! `sweepctl throughput`: the throughput of a live server, by a client that needs no tokenizer.

use std::path::PathBuf;

use clap::Args;

use super::output;
use crate::config::problem::{Problem, Problems};
use crate::process::Cancellation;
use crate::step::client::{self, Request};

/// Measure the throughput of a live server, without a row
///
/// Installs infermark once and drives it against an OpenAI-compatible server. It needs no tokenizer: a word of the
/// prompt counts as one input token, a chunk of the answer as one output token. That is exact for `sweepctl
/// mock-server`; for an engine let the cluster's throughput-command call aiperf or `vllm bench serve`.
#[derive(Debug, Args)]
pub struct Throughput {
    /// The server's URL, such as http://localhost:8000
    #[arg(long, value_name = "URL")]
    endpoint: String,
    /// The served model's name
    #[arg(long, value_name = "NAME")]
    model: String,
    /// Tokens of each question
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    isl: u64,
    /// Tokens of each answer
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..))]
    osl: u64,
    /// Requests at a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    concurrency: u64,
    /// Requests in all [default: twice the concurrency]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// Where the result is saved, as serving benchmarks save it
    #[arg(long, value_name = "FILE")]
    save: PathBuf,
}

impl Throughput {
    /// Measures.
    ///
    /// # Errors
    /// A client that cannot be installed or fails, or was told to end.
    pub fn run(&self) -> anyhow::Result<()> {
        let cancel = Cancellation::install()?;
        let request = Request {
            endpoint: self.endpoint.clone(),
            model: self.model.clone(),
            isl: self.isl,
            osl: self.osl,
            concurrency: self.concurrency,
            requests: self.requests.unwrap_or(self.concurrency * 2),
            save: self.save.clone(),
        };
        client::measure(&request, &cancel, &mut |line| eprintln!("{line}")).map_err(Problems::from)?;
        if let Some(signal) = cancel.signal() {
            return Err(Problems::from(Problem::file("", format!("the measurement was ended by {signal}"))).into());
        }
        output::text(&format!("saved {}\n", self.save.display()))
    }
}
