//! The steps of a script's replay: the same code as `sweepctl agentic run`, one step at a time, since scripts may change the
//! command and bring a client or an aggregation of their own.

use std::path::{Path, PathBuf};

use clap::Args;

use super::envelope_file;
use crate::config::problem::{Problem, Problems};
use crate::process::{Cancellation, Ending};
use crate::step::agentic::client::Installed;
use crate::step::agentic::command::{self, Client};
use crate::step::agentic::settings::{Asked, Settings, Traces};
use crate::step::agentic::{self, Runtime, aggregate, judge};
use crate::step::eval::job::Job;
use crate::step::replay;
use crate::step::replay::files::ARTIFACTS;
use crate::step::tools::Installer;

/// The field of an aggregate that says the GPUs' power.
const POWER: &str = "avg_power_w";

/// Prints the loader and the data set of the job's replay.
///
/// # Errors
/// A loader that the client does not know.
pub(super) fn trace_source() -> Result<(), Problems> {
    let variable = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    let named = variable("WEKA_LOADER_OVERRIDE");
    let named = named.as_deref().map(|name| ("WEKA_LOADER_OVERRIDE", name));
    let source = agentic::traces::resolve(named, &variable("MODEL_PREFIX").unwrap_or_default())?;
    println!("{} {}", source.loader, source.dataset);
    Ok(())
}

/// Installs the pinned client, and prints the folder of its environment.
///
/// # Errors
/// A failed installation.
pub(super) fn client(cancel: &Cancellation) -> Result<(), Problems> {
    let client = Installed::ensure(&mut Installer {
        cancel,
        show: &mut |line| eprintln!("{line}"),
    })?;
    println!("{}", client.folder().display());
    Ok(())
}

/// Prints the command that replays into a folder. The traces are those of TRACE_SOURCE_FLAG, where a script set it, and
/// MAX_MODEL_LEN limits conversations, since replays have none unless their script sets it.
///
/// # Errors
/// Everything that is missing, and every value that is none.
pub(super) fn command(folder: &Path, job: &Job) -> Result<(), Problems> {
    let own = job.text("AIPERF_DIR").map(PathBuf::from).unwrap_or_default();
    let brings = ["pyproject.toml", "setup.py"]
        .iter()
        .any(|name| own.join(name).is_file());
    let client = if brings { Client::OfCheckout } else { Client::Pinned };
    let limit = std::env::var("MAX_MODEL_LEN")
        .ok()
        .filter(|_| job.text("AIPERF_MAX_CONTEXT_LENGTH").is_none());
    let asked = Asked {
        max_context: limit
            .and_then(|text| text.trim().parse().ok())
            .filter(|tokens| *tokens > 0),
        ..Asked::default()
    };
    let settings = Settings::of(&asked, job)?;
    let mut words = command::words(
        job.text("AIPERF_CLI").unwrap_or("aiperf"),
        client,
        &settings,
        &folder.join(ARTIFACTS),
    )?;
    if let (Some(flag), Traces::Hub(source)) = (job.text("TRACE_SOURCE_FLAG"), &settings.traces) {
        let is_own = |pair: &[String]| pair == ["--public-dataset".to_owned(), source.loader.clone()];
        if let Some(at) = words.windows(2).position(is_own) {
            words.splice(at..at + 2, flag.split_whitespace().map(str::to_owned));
        }
    }
    println!("{}", words.join(" "));
    Ok(())
}

/// `library replay`
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Where its command and its log are kept
    folder: PathBuf,
    /// Its words
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

impl ReplayArgs {
    /// Runs it, and ends with its exit code.
    ///
    /// # Errors
    /// A command that cannot be started.
    pub(super) fn run(&self, cancel: &Cancellation) -> Result<(), Problems> {
        let mut runtime = Runtime {
            cancel,
            show: &mut |line| println!("{line}"),
        };
        let outcome = agentic::replay(&self.words, &[], &self.folder, &mut runtime)?;
        match outcome.ending {
            Ending::Code(0) if outcome.stop.is_none() => Ok(()),
            Ending::Code(code) if code != 0 => std::process::exit(code),
            Ending::Code(_) => std::process::exit(1),
            Ending::Signal(number) => std::process::exit(128 + number),
        }
    }
}

/// Writes the aggregate of a replay: that of `result process --replay`, under the name that the script gave.
///
/// # Errors
/// No envelope, and everything that keeps the replay from counting.
pub(super) fn aggregate(folder: &Path, out: &Path) -> Result<(), Problems> {
    let envelope = envelope_file::of_job().ok_or_else(|| {
        let problem = Problem::file("", "a replay is held against its job's row, and there is no envelope");
        problem.hint("launch the script with `sweepctl launch`, or set SWEEPCTL_ENVELOPE to its file")
    })?;
    let row = envelope_file::read(&envelope)?.row;
    let [conc] = row.conc.points() else {
        let problem = Problem::file("", "a replay measures one concurrency, and the job has several");
        return Err(problem.hint("plan a job for each concurrency").into());
    };
    let written = aggregate::of(folder, &row, *conc)?.write(out, folder)?;
    for warning in written.warnings {
        eprintln!("warning: {warning}");
    }
    Ok(())
}

/// Fails unless the replay that left some artifacts counts: too many failed requests, one that was cut short, and metrics
/// of servers that were named and not read.
///
/// # Errors
/// Every reason why it does not.
pub(super) fn check(artifacts: &Path, most: f64, job: &Job) -> Result<(), Problems> {
    let folder = artifacts.parent().unwrap_or(Path::new(""));
    let mut problems = Problems::default();
    match replay::check_at(folder, most) {
        Ok((failed, all)) => println!("replay: {failed} of {all} requests failed"),
        Err(found) => problems.extend(found),
    }
    if let Err(problem) = judge::summary(folder)
        && problems.0.is_empty()
    {
        problems.push(problem);
    }
    let named = agentic::target::MetricsEndpoint::of(&[], job)?;
    if let Err(found) = judge::unread(folder, &named) {
        problems.extend(found);
    }
    problems.into_result()
}

/// `library check-power`
#[derive(Debug, Args)]
pub(crate) struct PowerArgs {
    /// Where the replay's metrics lie
    #[arg(long)]
    result_dir: PathBuf,
    /// The aggregate
    #[arg(long)]
    agg_result: PathBuf,
    /// The job's GPUs
    #[arg(long)]
    expected_num_gpus: u64,
    /// Fail without power
    #[arg(long)]
    require_power: bool,
}

impl PowerArgs {
    /// Fails where power was required and the aggregate has none.
    ///
    /// # Errors
    /// So it is.
    pub(super) fn run(&self) -> Result<(), Problems> {
        let text = std::fs::read_to_string(&self.agg_result).unwrap_or_default();
        let aggregate: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        if !self.require_power || aggregate[POWER].is_number() {
            return Ok(());
        }
        let (folder, gpus) = (self.result_dir.display(), self.expected_num_gpus);
        let message = format!("power is required, and {} has no {POWER}", self.agg_result.display());
        let hint = format!("see {folder}/gpu_metrics.csv: it needs samples of all {gpus} GPUs over the whole replay");
        Err(Problem::file("", message).hint(hint).into())
    }
}
