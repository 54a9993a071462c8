//! `sweepctl agentic run`: a replay against a live server.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::run::Progress;
use super::{annotate, envelope_file, inputs, output};
use crate::config::problem::Problem;
use crate::config::types::NodeKind;
use crate::matrix::envelope::Envelope;
use crate::matrix::row::Row;
use crate::process::Cancellation;
use crate::step::agentic::command::{self, Client};
use crate::step::agentic::record::{Record, required};
use crate::step::agentic::settings::{Asked, Settings};
use crate::step::agentic::{self, Done, Request, Runtime};
use crate::step::eval::job::Job;
use crate::step::places::AGENTIC_FOLDER;
use crate::step::replay::files::ARTIFACTS;

/// Replay recorded conversations against a live server, and judge and aggregate what that left
///
/// Installs the pinned client, downloads the traces and takes their digest, keeps the exact command, and replays at one
/// concurrency. The replay counts if the client finished, at most a tenth of the requests failed, and the metrics of every
/// server were read; then its aggregate is written. The server must be a fresh deployment: every concurrency has its own.
/// Variables of the job (MODEL, CONC, DURATION, AIPERF_* ...) say what no option says; see the page.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The server's URL [default: SRT_FRONTEND_HOST and SRT_FRONTEND_PORT, else AIPERF_SERVER_URL, else PORT of localhost]
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// A server's metrics; several times for several [default: AIPERF_SERVER_METRICS_URLS, else the workers that
    /// srt-slurm names, else those of the endpoint]
    #[arg(long, value_name = "URL", value_delimiter = ',')]
    metrics: Vec<String>,
    /// Let a replay count without the metrics of its servers
    #[arg(long)]
    metrics_optional: bool,
    /// The served model's name [default: SERVED_MODEL_NAME, else MODEL]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// The model whose tokenizer counts [default: MODEL]
    #[arg(long, value_name = "NAME|DIR")]
    tokenizer: Option<String>,
    /// Conversations at a time [default: CONC]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    concurrency: Option<u64>,
    /// Seconds of measurement; below 900 for diagnosis only [default: DURATION, else 3600]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    duration: Option<u64>,
    /// One warmup request a lane and 1,200 seconds, for diagnosis [default: AIPERF_EXPERIMENTAL_FAST]
    #[arg(long, conflicts_with = "duration")]
    fast: bool,
    /// A loader of the client, or a file or folder of traces for diagnosis [default: WEKA_LOADER_OVERRIDE, else that of
    /// the model's family]
    #[arg(long, value_name = "NAME|PATH")]
    traces: Option<String>,
    /// Leave out conversations of more tokens [default: AIPERF_MAX_CONTEXT_LENGTH, else the model's own context]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    max_context_length: Option<u64>,
    /// The job's envelope, a JSON file; without one there is no aggregate [default: that of SWEEPCTL_ENVELOPE, if it is
    /// there]
    #[arg(long, value_name = "FILE")]
    envelope: Option<PathBuf>,
    /// The folder of the replay: the command, the log, what the client writes [default: RESULT_DIR, else agentic_results]
    #[arg(long, value_name = "DIR")]
    result_dir: Option<PathBuf>,
    /// The aggregate's file [default: RESULT_FILENAME.json in AGENTIC_OUTPUT_DIR, else in the current folder; multi-node
    /// with _conc<N> before the extension]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Seconds within which the server and its metrics must answer
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(..=86_400))]
    ready_timeout: u64,
    /// Print what would be run, and run nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
}

impl Run {
    /// Replays.
    ///
    /// # Errors
    /// What keeps the replay from being started, and every reason why it does not count.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let file = self.envelope.clone().or_else(envelope_file::of_job);
        let envelope = file.as_deref().map(envelope_file::read).transpose()?;
        let job = Job::here(envelope.as_ref());
        let settings = Settings::of(&self.asked(), &job)?;
        let folder = self.folder(&job);
        if self.dry_run {
            return self.show(&settings, &folder);
        }
        inputs::declare_launch_secrets()?;
        let cancel = Cancellation::install()?;
        let row = envelope.as_ref().map(|envelope| &envelope.row);
        let request = Request {
            out: row.and_then(|row| self.aggregate(&job, row, settings.concurrency)),
            settings,
            job: &job,
            row,
            folder,
            metrics_optional: self.metrics_optional,
            ready: Duration::from_secs(self.ready_timeout),
        };
        announce(&request, envelope.as_ref());
        let progress = Progress::new();
        let done = agentic::run(
            &request,
            &mut Runtime {
                cancel: &cancel,
                show: &mut |line| progress.line(line),
            },
        );
        progress.finish();
        self.report(&request, &done?)
    }

    fn asked(&self) -> Asked {
        Asked {
            endpoint: self.endpoint.clone(),
            metrics: self.metrics.clone(),
            model: self.model.clone(),
            tokenizer: self.tokenizer.clone(),
            concurrency: self.concurrency,
            duration: self.duration,
            fast: self.fast,
            traces: self.traces.clone(),
            max_context: self.max_context_length,
        }
    }

    fn folder(&self, job: &Job) -> PathBuf {
        let own = self.result_dir.clone();
        own.or_else(|| job.text("RESULT_DIR").map(PathBuf::from))
            .unwrap_or_else(|| PathBuf::from(AGENTIC_FOLDER))
    }

    /// The aggregate's file, where something names it.
    fn aggregate(&self, job: &Job, row: &Row, conc: u64) -> Option<PathBuf> {
        self.out.clone().or_else(|| {
            let stem = job.text("RESULT_FILENAME")?;
            let end = match row.node_kind() {
                NodeKind::Single => String::new(),
                NodeKind::Multi => format!("_conc{conc}"),
            };
            let folder = PathBuf::from(job.text("AGENTIC_OUTPUT_DIR").unwrap_or_default());
            Some(folder.join(format!("{stem}{end}.json")))
        })
    }

    fn show(&self, settings: &Settings, folder: &std::path::Path) -> anyhow::Result<()> {
        let words = command::words("agentx", Client::Pinned, settings, &folder.join(ARTIFACTS))?;
        let text = shlex::try_join(words.iter().map(String::as_str))?;
        if output::wants_json(self.json) {
            return output::json(&json!({
                "command": words,
                "target": settings.target,
                "metrics": required(settings),
                "fast": settings.is_fast,
                "overrides": settings.overrides(),
                "diagnostic": settings.diagnostic,
            }));
        }
        output::text(&format!("{text}\n"))
    }

    fn report(&self, request: &Request<'_>, done: &Done) -> anyhow::Result<()> {
        let written = done.aggregate.as_ref();
        let warnings = written.map(|written| written.warnings.clone()).unwrap_or_default();
        let mut warnings: Vec<Problem> = warnings.into_iter().map(|text| Problem::file("", text)).collect();
        warnings.extend(not_a_submission(&done.record));
        annotate::warn(&warnings);
        if output::wants_json(self.json) {
            return output::json(&json!({
                "replay": done.record,
                "aggregate": written.map(|written| &written.json),
            }));
        }
        let place = match (written, &request.out) {
            (Some(_), Some(out)) => format!("its aggregate is {}", out.display()),
            _ => "it has no aggregate, since there is no envelope, or no name for it".to_owned(),
        };
        output::text(&format!("the replay counts; {place}\n"))
    }
}

/// Says before the hour begins what the replay is good for.
fn announce(request: &Request<'_>, envelope: Option<&Envelope>) {
    let settings = &request.settings;
    let target = &settings.target;
    eprintln!(
        "replay: {} ({}) at concurrency {}",
        target.url, target.from, settings.concurrency
    );
    for endpoint in required(settings) {
        eprintln!("replay: metrics of {} ({})", endpoint.url, endpoint.from);
    }
    if settings.is_fast || !settings.diagnostic.is_empty() {
        let why = settings.diagnostic.join(", ");
        let why = if why.is_empty() {
            "the fast mode".to_owned()
        } else {
            why
        };
        eprintln!("replay: for diagnosis only: {why}");
    }
    if envelope.is_none() {
        eprintln!("replay: there is no envelope, so there will be no aggregate");
    }
}

/// A replay that was to be a measurement, and of which the client says that it is none.
fn not_a_submission(record: &Record) -> Option<Problem> {
    let ended = record.ended.as_ref()?;
    let is_surprise = ended.submission_valid == Some(false) && record.diagnostic.is_empty();
    let reasons = ended.submission_invalid_reasons.join(", ");
    is_surprise.then(|| Problem::file("", format!("the client takes the replay for no submission: {reasons}")))
}
