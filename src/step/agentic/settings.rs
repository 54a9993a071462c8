//! How a replay is run: what was asked for, else what the job's variables say, else the defaults of the client's scenario.

use std::path::PathBuf;

use super::command::ROUTING;
use super::target::{MetricsEndpoint, Target};
use super::traces::{self, Source};
use crate::config::problem::{Problem, Problems};
use crate::step::eval::job::Job;

/// How long a replay takes unless its row says, in seconds.
pub(crate) const DURATION: u64 = 3600;
/// How long a replay of the fast mode takes, in seconds.
pub(crate) const FAST: u64 = 1200;
/// The shortest replay that the client's scenario takes for a measurement, in seconds.
pub(crate) const SHORTEST: u64 = 900;
/// Requests that each lane of a trajectory sends before it is measured.
const WARMUPS: u64 = 10;
/// How long the last of them may take, in seconds.
const DRAIN: u64 = 1800;
/// The share of failed requests at which the client gives up, and above which no replay counts.
const FAILED: &str = "0.10";
/// The longest pause of a recorded conversation that is waited for, in seconds.
const IDLE: u64 = 300;
/// Seconds after which Dynamo's frontend forgets a conversation.
const SESSION: u64 = 3600;

/// What a caller asks for beyond the job's variables.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// The server's URL.
    pub endpoint: Option<String>,
    /// Metrics endpoints.
    pub metrics: Vec<String>,
    /// The served model's name.
    pub model: Option<String>,
    /// The model whose tokenizer counts.
    pub tokenizer: Option<String>,
    /// Conversations at a time.
    pub concurrency: Option<u64>,
    /// Seconds.
    pub duration: Option<u64>,
    /// One warmup request a lane and 1,200 seconds, whatever else is said.
    pub fast: bool,
    /// A loader's name, or a file or folder of traces.
    pub traces: Option<String>,
    /// The longest conversations that are replayed, in tokens.
    pub max_context: Option<u64>,
}

/// What is replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Traces {
    /// A data set at the hub.
    Hub(Source),
    /// A file, or a folder with a file a conversation.
    Local(PathBuf),
}

/// How a replay is run.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The server.
    pub target: Target,
    /// Its metrics, where something names them; else those of the target.
    pub metrics: Vec<MetricsEndpoint>,
    /// The name on the wire.
    pub model: String,
    /// The model whose tokenizer counts.
    pub tokenizer: String,
    /// Conversations at a time.
    pub concurrency: u64,
    /// Seconds of measurement.
    pub duration: u64,
    /// Whether this is the fast mode.
    pub is_fast: bool,
    /// Warmup requests of each lane.
    pub warmups: u64,
    /// Seconds that the last of them may take.
    pub drain: u64,
    /// The share of failed requests at which the client gives up.
    pub live_failed: String,
    /// Seconds that a pause is waited for at most.
    pub idle: u64,
    /// The longest conversations that are replayed, in tokens.
    pub max_context: Option<u64>,
    /// What every request carries besides, as `name:value`.
    pub extra_inputs: Vec<String>,
    /// Whether a conversation stays with its worker behind Dynamo's frontend.
    pub is_routed: bool,
    /// Seconds after which the frontend forgets a conversation.
    pub session: u64,
    /// What is replayed.
    pub traces: Traces,
    /// Why the client's scenario has to let something pass: such a replay is no submission.
    pub diagnostic: Vec<&'static str>,
}

impl Settings {
    /// The settings of a job.
    ///
    /// # Errors
    /// Everything that is missing, and every value that is none.
    pub fn of(asked: &Asked, job: &Job) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let mut read = Reader {
            job,
            problems: &mut problems,
        };
        let tokenizer = asked.tokenizer.clone().or_else(|| job.text("MODEL").map(str::to_owned));
        let named = asked.model.clone();
        let named = named.or_else(|| job.text("SERVED_MODEL_NAME").map(str::to_owned));
        let tokenizer = tokenizer.or_else(|| named.clone()).unwrap_or_default();
        let model = named.unwrap_or_else(|| tokenizer.clone());
        read.require("MODEL", "--model", !model.is_empty());
        let is_fast = asked.fast || job.text("AIPERF_EXPERIMENTAL_FAST") == Some("1");
        let concurrency = asked.concurrency.or_else(|| read.number("CONC", 1));
        read.require("CONC", "--concurrency", concurrency.is_some());
        read.one_concurrency(concurrency);
        let duration = asked
            .duration
            .unwrap_or_else(|| read.number("DURATION", 1).unwrap_or(DURATION));
        let warmups = read.number("AIPERF_WARMUP_REQUESTS_PER_LANE", 0).unwrap_or(WARMUPS);
        let (duration, warmups) = if is_fast { (FAST, 1) } else { (duration, warmups) };
        let target = Target::of(asked.endpoint.as_deref(), job).map_err(|problem| read.problems.push(problem));
        let metrics = MetricsEndpoint::of(&asked.metrics, job).map_err(|found| read.problems.extend(found));
        let traces = traces_of(asked, job).map_err(|found| read.problems.extend(found));
        let [drain, idle, session] = [
            read.number("AGENTIC_WARMUP_GRACE_PERIOD", 1).unwrap_or(DRAIN),
            read.number("AIPERF_TRACE_IDLE_GAP_CAP_SECONDS", 0).unwrap_or(IDLE),
            read.number("AIPERF_DYNAMO_SESSION_TIMEOUT_SECONDS", 1)
                .unwrap_or(SESSION),
        ];
        let max_context = asked
            .max_context
            .or_else(|| read.number("AIPERF_MAX_CONTEXT_LENGTH", 1));
        let live_failed = read.share("AIPERF_LIVE_FAILED_REQUEST_THRESHOLD", FAILED);
        let (Ok(target), Ok(metrics), Ok(traces), true) = (target, metrics, traces, problems.0.is_empty()) else {
            return Err(problems);
        };
        let settings = Self {
            target,
            metrics,
            traces,
            model,
            tokenizer,
            concurrency: concurrency.unwrap_or_default(),
            duration,
            is_fast,
            warmups,
            drain,
            live_failed,
            idle,
            max_context,
            extra_inputs: words(job, "AIPERF_EXTRA_INPUTS"),
            is_routed: is_routed(job),
            session,
            diagnostic: Vec::new(),
        };
        Ok(settings.with_diagnostic(job))
    }

    /// Notes what makes the replay no submission.
    fn with_diagnostic(mut self, job: &Job) -> Self {
        if self.duration < SHORTEST {
            self.diagnostic.push("shorter than 900 s");
        }
        if matches!(self.traces, Traces::Local(_)) {
            self.diagnostic.push("traces that no data set at the hub holds");
        }
        if job.flag("AIPERF_UNSAFE_OVERRIDE").ok().flatten() == Some(true) {
            self.diagnostic.push("AIPERF_UNSAFE_OVERRIDE");
        }
        self
    }

    /// What differs from the scenario's defaults, by the name of the variable that says it.
    #[must_use]
    pub fn overrides(&self) -> Vec<&'static str> {
        let all = [
            ("DURATION", self.duration != DURATION && !self.is_fast),
            (
                "AIPERF_WARMUP_REQUESTS_PER_LANE",
                self.warmups != WARMUPS && !self.is_fast,
            ),
            ("AGENTIC_WARMUP_GRACE_PERIOD", self.drain != DRAIN),
            ("AIPERF_LIVE_FAILED_REQUEST_THRESHOLD", self.live_failed != FAILED),
            ("AIPERF_TRACE_IDLE_GAP_CAP_SECONDS", self.idle != IDLE),
            ("AIPERF_MAX_CONTEXT_LENGTH", self.max_context.is_some()),
            ("AIPERF_EXTRA_INPUTS", !self.extra_inputs.is_empty()),
        ];
        all.into_iter().filter(|(_, is)| *is).map(|(name, _)| name).collect()
    }
}

/// A conversation stays with its worker behind Dynamo's frontend, unless that is switched off.
fn is_routed(job: &Job) -> bool {
    let is_dynamo = job
        .text("FRAMEWORK")
        .is_some_and(|framework| framework.starts_with("dynamo-"));
    let (name, value) = ROUTING;
    is_dynamo && job.text("AIPERF_USE_DYNAMO_CONV_AWARE_ROUTING") != Some("0") && job.text(name) != Some(value)
}

fn traces_of(asked: &Asked, job: &Job) -> Result<Traces, Problems> {
    if let Some(named) = asked.traces.as_deref() {
        let path = PathBuf::from(named);
        if path.exists() {
            return Ok(Traces::Local(path));
        }
        if named.contains('/') || named.ends_with(".json") || named.ends_with(".jsonl") {
            let problem = Problem::file("", format!("the traces `{named}` are not found"));
            return Err(problem
                .hint("give --traces a file, a folder, or the name of a loader")
                .into());
        }
    }
    let named = asked.traces.as_deref().map(|name| ("--traces", name));
    let named = named.or_else(|| Some(("WEKA_LOADER_OVERRIDE", job.text("WEKA_LOADER_OVERRIDE")?)));
    let source = traces::resolve(named, job.text("MODEL_PREFIX").unwrap_or_default())?;
    Ok(Traces::Hub(source))
}

fn words(job: &Job, name: &str) -> Vec<String> {
    let text = job.text(name).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

/// Reads variables, and keeps what is wrong with them.
struct Reader<'a> {
    job: &'a Job,
    problems: &'a mut Problems,
}

impl Reader<'_> {
    fn require(&mut self, name: &str, flag: &str, is_there: bool) {
        if !is_there && self.job.text(name).is_none() {
            let problem = Problem::file("", format!("{flag} is not given, and {name} is not set"));
            self.problems
                .push(problem.hint(format!("give {flag}, set {name}, or name the job's --envelope")));
        }
    }

    fn number(&mut self, name: &str, least: u64) -> Option<u64> {
        self.job.number(name, least).unwrap_or_else(|problem| {
            self.problems.push(problem);
            None
        })
    }

    /// A share of requests, as it is written.
    fn share(&mut self, name: &str, default: &str) -> String {
        let text = self.job.text(name).unwrap_or(default);
        if !text.parse::<f64>().is_ok_and(|share| (0.0..=1.0).contains(&share)) {
            let problem = Problem::file("", format!("{name} is `{text}`, no share of requests"));
            self.problems.push(problem.hint("give a number from 0 to 1"));
        }
        text.to_owned()
    }

    /// Every concurrency is measured against a deployment of its own.
    fn one_concurrency(&mut self, concurrency: Option<u64>) {
        let (Some(list), Some(conc)) = (self.job.text("CONC_LIST"), concurrency) else {
            return;
        };
        if list.split_whitespace().collect::<Vec<_>>() != [conc.to_string().as_str()] {
            let message = format!("CONC_LIST is `{list}`, and a replay measures one concurrency, here {conc}");
            let hint = "plan a job for each concurrency: every one is measured against a fresh deployment";
            self.problems.push(Problem::file("", message).hint(hint));
        }
    }
}
