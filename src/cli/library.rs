//! `sweepctl library`: what the functions of the shell library call. Its arguments are theirs, and people do not type it.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::envelope_file;
use crate::config::problem::{Problem, Problems};
use crate::process::Cancellation;
use crate::step::eval::job::Job;
use crate::step::eval::model_config::{FALLBACK, MOUNT, native};
use crate::step::eval::{self, Request};
use crate::step::library::bench::Bench;
use crate::step::library::eval_files::{self, Points};
use crate::step::library::monitor::{self, At, Vendor};
use crate::step::library::ready::Wait;
use crate::step::library::{gpus, tree};

use super::replay_of_script::{self, PowerArgs, ReplayArgs};

/// The functions.
#[derive(Debug, Subcommand)]
pub(crate) enum Library {
    /// Wait for a server, and show its log
    WaitReady(WaitReady),
    /// Sample the GPUs until told to end
    GpuMonitor(Gpus),
    /// Keep what AMD's tool says of energy
    GpuSnapshot {
        /// The metrics' file
        #[arg(long)]
        output: PathBuf,
        /// When it is taken
        #[arg(long)]
        at: At,
    },
    /// End a monitor
    GpuFinish {
        #[command(flatten)]
        gpus: Gpus,
        /// The monitor's process
        #[arg(long)]
        pid: i32,
    },
    /// Measure throughput
    ServeBench(Box<Bench>),
    /// End a process with its descendants
    #[command(allow_negative_numbers = true)]
    StopTree {
        /// The process
        #[arg(allow_hyphen_values = true)]
        pid: String,
        /// What it is called
        label: String,
        /// Seconds that it may take to end by itself
        grace: String,
    },
    /// Wait until AMD's GPUs have free memory
    WaitAmdClean {
        /// Seconds between two looks
        #[arg(long, default_value_t = 10.0)]
        pause: f64,
        /// Seconds in all
        #[arg(long, default_value_t = 900.0)]
        timeout: f64,
    },
    /// Print a model's native context
    NativeContext {
        /// The model
        model: String,
    },
    /// Print an eval's context
    EvalContext {
        /// The model
        model: String,
        /// What the benchmark is served with; 0 is the model's own
        context: String,
    },
    /// Print the concurrencies of the job's eval
    EvalPoints,
    /// Print the concurrencies of a batch that succeeded, or failed
    Batch {
        /// Which
        #[arg(value_parser = ["completed", "failed"])]
        which: String,
        /// The batch's description
        #[arg(long)]
        meta: PathBuf,
    },
    /// Describe an eval
    Metadata(Metadata),
    /// Hand on an eval's files
    Stage {
        /// Where they lie
        #[arg(long)]
        from: PathBuf,
        /// Where they go
        #[arg(long)]
        to: PathBuf,
        /// Remove where they lay
        #[arg(long)]
        remove: bool,
    },
    /// Print the loader and data set of the job's replay
    TraceSource,
    /// Install the pinned replay client, and print the folder of its environment
    ReplayClient,
    /// Print what the pinned replay client is installed as
    ReplayRequirement,
    /// Print a replay's command
    ReplayCommand {
        /// Where it writes
        folder: PathBuf,
    },
    /// Run a replay's command
    Replay(ReplayArgs),
    /// Write a replay's aggregate
    ReplayResult {
        /// Where the client wrote
        folder: PathBuf,
        /// The aggregate
        #[arg(long)]
        out: PathBuf,
    },
    /// Fail unless a replay counts
    CheckReplay {
        /// What the client wrote
        artifacts: PathBuf,
        /// The largest share of failed requests
        #[arg(long)]
        failed_request_threshold: f64,
    },
    /// Fail if power was required and is not there
    CheckPower(PowerArgs),
}

/// `library wait-ready`
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct WaitReady {
    /// The URL
    #[arg(long, required_unless_present = "port")]
    endpoint: Option<String>,
    /// The server's port on this host
    #[arg(long)]
    port: Option<u16>,
    /// Its log
    #[arg(long, alias = "server-log", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    log: String,
    /// Its process
    #[arg(long, alias = "server-pid", value_parser = clap::value_parser!(i32).range(1..))]
    pid: i32,
    /// Seconds between two probes
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    sleep_interval: u64,
    /// Seconds in all; 0 is for ever
    #[arg(long, default_value_t = 0)]
    timeout: u64,
}

/// Whose GPUs are watched, and where to.
#[derive(Debug, Args)]
pub(crate) struct Gpus {
    /// Whose they are
    #[arg(long)]
    vendor: Vendor,
    /// The metrics' file
    #[arg(long)]
    output: PathBuf,
    /// Seconds between two samples
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
}

/// `library metadata`
#[derive(Debug, Args)]
pub(crate) struct Metadata {
    /// The file
    #[arg(long)]
    out: PathBuf,
    /// The eval's concurrency, or several
    #[arg(long)]
    conc: Option<String>,
    /// The batch's concurrencies
    #[arg(long, default_value = "")]
    points: String,
    /// Those that succeeded
    #[arg(long, default_value = "")]
    completed: String,
    /// Those that failed
    #[arg(long, default_value = "")]
    failed: String,
    /// The batch's keys as JSON
    #[arg(long, default_value = "")]
    batch_keys: String,
}

impl Library {
    /// Runs the function.
    ///
    /// # Errors
    /// As the function's.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            Self::GpuSnapshot { output, at } => monitor::snapshot(&output, at, &mut complain),
            Self::StopTree { pid, label, grace } => {
                let grace = Duration::from_secs(grace.parse().unwrap_or(30));
                tree::stop(pid.parse().unwrap_or_default(), &label, grace, &mut show);
            }
            Self::NativeContext { model } => println!("{}", native_context(&model).unwrap_or_default()),
            Self::EvalContext { model, context } => println!("{}", eval_context(&model, &context)),
            Self::EvalPoints => println!("{}", eval_points()?),
            Self::Batch { which, meta } => {
                let points = eval_files::points(&meta, which == "completed").map_err(Problems::from)?;
                println!("{points}");
            }
            Self::Metadata(metadata) => metadata.run()?,
            Self::Stage { from, to, remove } => {
                for file in eval_files::hand_on(&from, &to, remove)? {
                    show(&format!("staged {}", file.display()));
                }
            }
            Self::TraceSource => replay_of_script::trace_source()?,
            Self::ReplayRequirement => println!("{}", crate::step::agentic::client::REQUIREMENT),
            Self::ReplayCommand { folder } => replay_of_script::command(&folder, &job()?)?,
            Self::ReplayResult { folder, out } => replay_of_script::aggregate(&folder, &out)?,
            Self::CheckReplay {
                artifacts,
                failed_request_threshold,
            } => replay_of_script::check(&artifacts, failed_request_threshold, &job()?)?,
            Self::CheckPower(power) => power.run()?,
            waiting => return waiting.wait(),
        }
        Ok(())
    }

    /// Runs a function that takes its time.
    fn wait(self) -> anyhow::Result<()> {
        let cancel = Cancellation::install()?;
        match self {
            Self::WaitReady(wait) => wait.run(&cancel).map_err(Problems::from)?,
            Self::GpuMonitor(gpus) => monitor::run(gpus.vendor, &gpus.output, gpus.interval, &cancel)?,
            Self::GpuFinish { gpus, pid } => {
                monitor::finish(gpus.vendor, &gpus.output, gpus.interval, pid, &cancel, &mut show);
            }
            Self::ServeBench(bench) => bench.run(&cancel, &mut show).map_err(Problems::from)?,
            Self::ReplayClient => replay_of_script::client(&cancel)?,
            Self::Replay(replay) => replay.run(&cancel)?,
            Self::WaitAmdClean { pause, timeout } => {
                let [pause, timeout] = [pause, timeout].map(|seconds| Duration::from_secs_f64(seconds.clamp(0.0, 1e6)));
                gpus::wait_until_clean(pause, timeout, &cancel, &mut show).map_err(Problems::from)?;
            }
            _ => {}
        }
        Ok(())
    }
}

impl WaitReady {
    fn run(&self, cancel: &Cancellation) -> Result<(), Problem> {
        let of_port = || format!("http://127.0.0.1:{}/health", self.port.unwrap_or_default());
        let wait = Wait {
            endpoint: self.endpoint.clone().unwrap_or_else(of_port),
            log: PathBuf::from(&self.log),
            pid: self.pid,
            pause: Duration::from_secs(self.sleep_interval),
            timeout: (self.timeout > 0).then(|| Duration::from_secs(self.timeout)),
        };
        wait.run(cancel, &mut std::io::stdout())
    }
}

impl Metadata {
    fn run(&self) -> anyhow::Result<()> {
        let given = Points {
            all: self.points.clone(),
            completed: self.completed.clone(),
            failed: self.failed.clone(),
        };
        let pasted = eval_files::keys(&self.batch_keys).map_err(Problems::from)?;
        let points = if pasted.all.is_empty() { given } else { pasted };
        eval_files::describe(&self.out, &job()?, self.conc.as_deref(), &points).map_err(Problems::from)?;
        Ok(())
    }
}

/// The job that the script is part of.
fn job() -> Result<Job, Problems> {
    let envelope = envelope_file::of_job()
        .as_deref()
        .map(envelope_file::read)
        .transpose()?;
    Ok(Job::here(envelope.as_ref()))
}

fn eval_points() -> Result<String, Problems> {
    let points = eval::concurrency(&Request::default(), &job()?)?;
    Ok(points.iter().map(u64::to_string).collect::<Vec<_>>().join(" "))
}

/// The native maximum of a model; MODEL_PATH comes before the name, which may be an alias.
fn native_context(model: &str) -> Option<u64> {
    let mut variables: Vec<(String, String)> = ["MODEL_PATH", "HF_HUB_CACHE", "HF_HOME", "HOME"]
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)))
        .collect();
    variables.push(("MODEL".to_owned(), model.to_owned()));
    native(&Job::new(None, variables), std::path::Path::new(MOUNT))
        .ok()
        .map(|native| native.tokens)
}

/// What is asked for, capped at the native maximum; where neither is known, MAX_MODEL_LEN or the fallback.
fn eval_context(model: &str, asked: &str) -> u64 {
    let number = |text: &str| text.trim().parse().ok().filter(|tokens: &u64| *tokens > 0);
    let native = native_context(model);
    match (number(asked), native) {
        (Some(asked), native) => asked.min(native.unwrap_or(u64::MAX)),
        (None, Some(native)) => native,
        (None, None) => {
            let own = std::env::var("MAX_MODEL_LEN").ok().and_then(|text| number(&text));
            let context = own.unwrap_or(FALLBACK);
            eprintln!("warning: the context of `{model}` is unknown: {context} is taken");
            context
        }
    }
}

fn show(line: &str) {
    // A pipe that nobody reads any more ends no benchmark.
    let _ = writeln!(std::io::stdout(), "{line}");
}

fn complain(line: &str) {
    eprintln!("{line}");
}
