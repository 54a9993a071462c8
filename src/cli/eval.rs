//! `sweepctl eval`: the context of an eval, and the eval itself.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand};

use super::annotate;
use super::envelope_file;
use super::eval_calibrate::Calibrate;
use super::eval_validate::Validate;
use super::inputs::{self, PolicyArgs};
use super::output;
use crate::config::problem::Problem;
use crate::process::Cancellation;
use crate::runner::{self, Level, RunnerFile};
use crate::step::eval::context::{self, Context as Lengths};
use crate::step::eval::job::Job;
use crate::step::eval::meta_env;
use crate::step::eval::progress::Progress;
use crate::step::eval::{self, Report, Request};

/// The steps of an eval.
#[derive(Debug, Subcommand)]
pub(crate) enum Eval {
    Context(Context),
    Run(Box<Run>),
    /// Validate an eval: fail unless it is whole and every score clears its threshold
    ///
    /// It fails on a score under its threshold or that is no number from 0 to 1, a task of which nothing was
    /// checked, missing samples, silent answers, files that cannot be read, and concurrencies that were asked for and
    /// are not there. Every problem is listed. A task's threshold is models.<prefix>.<task> of the thresholds file,
    /// then default.<task>, then --min-score.
    Validate(Validate),
    /// Compute floors from collected runs: mean, spread, samples, and a floor that a good run misses at a stated rate
    ///
    /// Runs of one model and task are taken together; those with a limit on samples are passed over. With k runs the
    /// floor lies t x spread x sqrt(1 + 1/k) below their mean, t being Student's with k - 1 degrees of freedom.
    Calibrate(Calibrate),
}

impl Eval {
    /// Runs the step.
    ///
    /// # Errors
    /// As the step's.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Context(context) => context.run(),
            Self::Run(run) => run.run(),
            Self::Validate(validate) => validate.run(),
            Self::Calibrate(calibrate) => calibrate.run(),
        }
    }
}

/// Print how much context an eval gets, and the server setting for it
///
/// Variables of the environment (MODEL, MODEL_PATH, FRAMEWORK, ISL, OSL, MAX_MODEL_LEN, EVAL_MAX_MODEL_LEN ...) override
/// the envelope's row, and stand in for it without one.
#[derive(Debug, Args)]
pub(crate) struct Context {
    /// The job's envelope, a JSON file [default: the environment alone]
    #[arg(long, value_name = "FILE")]
    envelope: Option<PathBuf>,
    #[command(flatten)]
    policy: PolicyArgs,
    /// Print JSON, also on a terminal
    #[arg(long, conflicts_with = "github_env")]
    json: bool,
    /// Write EVAL_MAX_MODEL_LEN to the later steps' environment, where the job's server takes a context
    #[arg(long)]
    github_env: bool,
}

impl Context {
    fn run(&self) -> anyhow::Result<()> {
        let envelope = self.envelope.as_deref().map(envelope_file::read).transpose()?;
        let policy = self.policy.load()?;
        let context = context::of(&Job::here(envelope.as_ref()), policy.eval_context)?;
        for warning in &context.warnings {
            warn(warning);
        }
        if self.github_env {
            if !context.server_args.is_empty() {
                let value = context.context.to_string();
                runner::append(RunnerFile::Env, &[("EVAL_MAX_MODEL_LEN".to_owned(), value)])?;
            }
            return Ok(());
        }
        if output::wants_json(self.json) {
            return output::json(&context);
        }
        print_lengths(&context);
        Ok(())
    }
}

fn print_lengths(context: &Lengths) {
    let native = context
        .native_max
        .map_or_else(|| "unknown".to_owned(), |n| n.to_string());
    println!("context        {} tokens", context.context);
    println!("output budget  {} tokens", context.output_budget);
    println!("native maximum {native}");
    if context.server_args.is_empty() {
        println!("server         keeps its recipe's context");
    } else {
        println!("server         {}", context.server_args.join(" "));
    }
}

/// Run an eval against a live server, and stage what it leaves
///
/// Waits for the endpoint, runs the task at each concurrency, and stages results, samples and meta_env.json whatever
/// happens; the exit code comes last. A failed eval of a job that measures throughput first (RUN_EVAL=true,
/// EVAL_ONLY=false) is reported and exits 0. Older results in the stage folder are set aside in its folder `stale`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).args(["endpoint", "report"]))]
pub(crate) struct Run {
    /// The server's URL, such as http://localhost:8000
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// The served model's name [default: MODEL_NAME, MODEL, MODEL_PATH, the only one that the server lists]
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    model: Option<String>,
    /// Requests at a time; several numbers with spaces between run one after another [default: EVAL_CONC,
    /// EVAL_CONCURRENT_REQUESTS, on one node CONC, the highest of BENCH_MAX_CONCURRENCY, 64]
    #[arg(long, value_name = "N...", value_parser = parse_points)]
    concurrency: Option<Points>,
    /// A task's file or its folder, or its name under configs/evals [default: EVAL_TASKS_DIR, EVAL_TASKS, the row's
    /// suite, gsm8k]
    #[arg(long, value_name = "FILE|NAME")]
    task: Option<String>,
    /// The folder that results go to
    #[arg(long, value_name = "DIR")]
    stage_to: PathBuf,
    /// The number of samples; `full` or 0 is the whole split [default: EVAL_LIMIT]
    #[arg(long, value_name = "N")]
    limit: Option<String>,
    /// The job's envelope, a JSON file [default: that of SWEEPCTL_ENVELOPE, if it is there]
    #[arg(long, value_name = "FILE")]
    envelope: Option<PathBuf>,
    /// What evaluates [default: the row's framework, else lm-eval]
    #[arg(long, value_name = "NAME")]
    framework: Option<String>,
    /// Install into the python3 that is there, not into an environment of its own
    #[arg(long)]
    system_python: bool,
    /// Keep the raw output folders
    #[arg(long)]
    keep: bool,
    /// Seconds that one concurrency may take [default: the suite's, else no limit but the job's]
    #[arg(long, visible_alias = "timeout-seconds", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    point_timeout: Option<u64>,
    /// A copy of the framework's source, a folder or a .tar.gz [default: SWEEPCTL_EVAL_SOURCES/<framework>, else its URL]
    #[arg(long, value_name = "PATH")]
    source: Option<PathBuf>,
    /// Read a report that the framework's program left, such as one of SWE-bench's harness, instead of running it
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Wait until the model answers on the chat route too; vendors' suites do so by themselves
    #[arg(long)]
    wait_for_chat: bool,
    /// The temperature that answers are drawn with [default: 0]
    #[arg(long, value_name = "T", hide = true)]
    temperature: Option<f64>,
    /// The share of likely tokens that answers are drawn from [default: 1]
    #[arg(long, value_name = "P", hide = true)]
    top_p: Option<f64>,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
}

/// Concurrencies as one argument.
#[derive(Debug, Clone)]
struct Points(Vec<u64>);

fn parse_points(text: &str) -> Result<Points, String> {
    eval::parse_concurrency(text).map(Points)
}

impl Run {
    fn run(&self) -> anyhow::Result<()> {
        let cancel = Cancellation::install()?;
        inputs::declare_launch_secrets()?;
        // Without its envelope the job is still described by its environment, and the eval fails all the same.
        let file = self.envelope.clone().or_else(envelope_file::of_job);
        let (envelope, unread) = match file.as_deref().map(envelope_file::read).transpose() {
            Ok(envelope) => (envelope, None),
            Err(problems) => (None, Some(problems)),
        };
        let job = Job::here(envelope.as_ref());
        let mut report = match unread {
            None => {
                let mut progress = Progress::new();
                let report = eval::run(&self.request(&job), &job, &cancel, &mut progress);
                progress.finish();
                report
            }
            Some(problems) => {
                let (meta, _) = meta_env::of(&job);
                std::fs::create_dir_all(&self.stage_to)?;
                meta.write(&self.stage_to)?;
                Report {
                    problems,
                    ..Report::default()
                }
            }
        };
        if let Some(signal) = report.cancelled {
            let problem = Problem::file("", format!("the eval was ended by {signal}; what was there is staged"));
            report.problems.push(problem);
        }
        self.say(&report)?;
        conclude(report, job.is_combined())
    }

    fn request(&self, job: &Job) -> Request {
        let roots = ["SWEEPCTL_CHECKOUT", "GITHUB_WORKSPACE", "INFMAX_WORKSPACE"];
        let roots = roots.iter().filter_map(|name| job.text(name)).map(PathBuf::from);
        Request {
            endpoint: self.endpoint.clone().unwrap_or_default(),
            concurrency: self.concurrency.clone().map(|points| points.0),
            task: self.task.clone(),
            roots: std::iter::once(PathBuf::from(".")).chain(roots).collect(),
            stage_to: self.stage_to.clone(),
            limit: self.limit.clone(),
            framework: self.framework.clone(),
            model: self.model.clone(),
            temperature: self.temperature,
            top_p: self.top_p,
            system_python: self.system_python,
            keep: self.keep,
            point_timeout: self.point_timeout.map(Duration::from_secs),
            wait_for_chat: self.wait_for_chat,
            source: self.source.clone(),
            report: self.report.clone(),
        }
    }

    fn say(&self, report: &Report) -> anyhow::Result<()> {
        if output::wants_json(self.json) {
            return output::json(&serde_json::json!({
                "stage-to": self.stage_to,
                "points": report.points,
                "completed": report.problems.0.is_empty() && report.cancelled.is_none(),
                "problems": report.problems.messages(),
            }));
        }
        for point in &report.points {
            let end = if point.completed { "completed" } else { "failed" };
            println!("concurrency {:>5}  {end}  {:.0} s", point.concurrency, point.seconds);
        }
        println!("staged in {}", self.stage_to.display());
        Ok(())
    }
}

/// The exit code's reason. An eval after throughput decides nothing, unless the job was told to end.
fn conclude(report: Report, is_combined: bool) -> anyhow::Result<()> {
    let Err(problems) = report.problems.into_result() else {
        return Ok(());
    };
    let decides = !is_combined || report.cancelled.is_some();
    if runner::on_actions() {
        let level = if decides { Level::Error } else { Level::Warning };
        for problem in problems.0.iter().take(runner::MAX_ANNOTATIONS) {
            runner::annotate(level, "eval", &problem.message, None);
        }
    }
    if decides {
        return Err(problems.into());
    }
    anstream::eprintln!("{problems}\n\nthe eval failed; the job goes on with its throughput");
    Ok(())
}

fn warn(problem: &Problem) {
    annotate::warn(std::slice::from_ref(problem));
}
