//! `sweepctl launch`: a job on its runner, from its envelope to a checked result.

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::{ArgGroup, Args};
use indexmap::IndexMap;
use serde::Serialize;

use super::inputs::{self, FleetArgs, PolicyArgs};
use super::{annotate, envelope_file, job, output};
use crate::config::problem::{Problem, Problems};
use crate::matrix::envelope::Envelope;
use crate::process::Cancellation;
use crate::runner::{self, RunnerFile};
use crate::step::environment::{self, Environment};
use crate::step::launch::backend::{self, Backend, Intent, Prepared};
use crate::step::launch::failure::EXIT_CODES;
use crate::step::launch::{self, Limits, leftovers, preflight};
use crate::step::places::LAUNCHED;

/// Launch a job on its runner, and check what it leaves
///
/// The runner's cluster in configs/clusters.yaml names the backend. What earlier jobs of this runner left is cleared
/// first, then the node is checked, then the job runs; its output is shown line by line and kept in the workspace, and
/// everything that it started is ended with it. RESULT_FILENAME is written to the job's environment before anything
/// starts.
#[derive(Debug, Args)]
#[command(after_help = help(), group = ArgGroup::new("what").required(true).multiple(true).args(["envelope", "release"]))]
pub(crate) struct Launch {
    /// The job's envelope, one element of a matrix; - reads standard input
    #[arg(long, value_name = "FILE")]
    envelope: Option<PathBuf>,
    /// The runner that took the job [default: RUNNER_NAME, else the envelope's runs-on]
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    runner_name: Option<String>,
    /// The checkout, where results are left
    #[arg(long, value_name = "DIR", env = "GITHUB_WORKSPACE", default_value = ".")]
    workspace: PathBuf,
    /// Release what this runner's earlier launch left, also one that was killed, and nothing else
    #[arg(long, conflicts_with_all = ["dry_run", "deadline_minutes", "idle_minutes"])]
    release: bool,
    /// Print the environment, the commands and the files, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Minutes that the job may take [default: its timeout-minutes less 5, at least half]
    #[arg(long, value_name = "N", value_parser = minutes)]
    deadline_minutes: Option<Duration>,
    /// Minutes after which a job is ended that prints nothing and whose files stay as they are [default: the cluster's
    /// idle-minutes, else no limit]
    #[arg(long, value_name = "N", value_parser = minutes)]
    idle_minutes: Option<Duration>,
    /// Seconds that the checks of the node may take
    #[arg(long, value_name = "N", default_value_t = preflight::DEADLINE.as_secs(), value_parser = clap::value_parser!(u64).range(1..))]
    preflight_seconds: u64,
    #[command(flatten)]
    fleet: FleetArgs,
    /// Serve the job on this node, whose scheduler was given it: what a batch job calls
    #[arg(long, hide = true, requires = "state")]
    on_node: bool,
    /// The state folder, instead of the runner's
    #[arg(long, hide = true, value_name = "DIR")]
    state: Option<PathBuf>,
    /// The eval's task, instead of the cluster's
    #[arg(long, hide = true, value_name = "TASK")]
    eval_task: Option<String>,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    policy: PolicyArgs,
}

fn help() -> String {
    let codes: Vec<String> = EXIT_CODES
        .iter()
        .map(|(_, code, meaning)| format!("  {code}  {}", meaning.replace("; ", ";\n      ")))
        .collect();
    format!(
        "\
Exit codes:
  0   done: the job left what it should
  1   refused: the envelope, the fleet's files or the policy
  2   wrong usage
{}
  130 ended by SIGINT; 143 by SIGTERM, 129 by SIGHUP, 131 by SIGQUIT

Examples:
  sweepctl launch --envelope envelope.json --dry-run     what would run
  exec sweepctl launch --envelope envelope.json          in a step
  sweepctl launch --release --envelope envelope.json     in a cleanup step",
        codes.join("\n")
    )
}

/// Minutes above 0, with a fraction if need be.
fn minutes(text: &str) -> Result<Duration, String> {
    /// A week.
    const MOST: f64 = 7.0 * 24.0 * 60.0;
    match text.parse::<f64>() {
        Ok(minutes) if minutes > 0.0 && minutes <= MOST => Ok(Duration::from_secs_f64(minutes * 60.0)),
        _ => Err(format!("a number above 0 and at most {MOST}")),
    }
}

/// What `--dry-run` prints.
#[derive(Serialize)]
struct Planned<'a> {
    runner: &'a str,
    #[serde(flatten)]
    intent: Intent,
    environment: IndexMap<&'a str, &'a str>,
}

impl Launch {
    /// Launches, releases, or prints what would be done.
    ///
    /// # Errors
    /// Inputs that are refused, and a launch that failed, whose kind is the exit code.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let envelope = self.envelope.as_deref().map(envelope_file::read).transpose()?;
        let Some(envelope) = envelope.as_ref().filter(|_| !self.release) else {
            return self.release(envelope.as_ref());
        };
        inputs::declare_launch_secrets()?;
        let fleet = self.fleet.load()?;
        let workspace = std::path::absolute(&self.workspace)?;
        let mut place = job::place(envelope, self.runner_name.as_deref())?;
        place.workspace = workspace.display().to_string();
        let policy = self.policy.load()?;
        place.eval_max_model_len = launch::eval_context(envelope, policy.eval_context, &mut warn)?;
        let mut environment = Environment::new(envelope, &place)?;
        environment::add(
            &mut environment,
            &inputs::jobs_env()?,
            &fleet,
            envelope,
            &place.runner_name,
        )?;
        let given = || launch::given_task(envelope, &fleet.clusters, &place.runner_name);
        let task = self.eval_task.clone().or_else(given);
        let tasks = launch::task_names(envelope, task.as_deref());
        let (label, runner) = (&envelope.row.topology.runner, &place.runner_name);
        let backend = match self.on_node {
            true => backend::on_node(&fleet, envelope, runner, task),
            false => backend::of(&fleet, Some(envelope), label, runner, task),
        };
        let backend = backend.map_err(Problems::from)?;
        let idle = fleet.clusters.of(runner).and_then(|(_, cluster)| cluster.idle_minutes);
        let idle = idle.map(|minutes| Duration::from_secs(minutes * 60));
        let state = match &self.state {
            Some(state) => state.clone(),
            None => leftovers::state_folder(runner).map_err(Problems::from)?,
        };
        let prepared = Prepared {
            envelope,
            environment: &environment,
            runner: &place.runner_name,
            workspace: &workspace,
            state: &state,
        };
        if self.dry_run {
            return self.print(&*backend, &prepared);
        }
        let limits = Limits {
            deadline: self.deadline_minutes.unwrap_or_else(|| launch::deadline(envelope)),
            preflight: Duration::from_secs(self.preflight_seconds),
            idle: self.idle_minutes.or(idle),
        };
        leftovers::make_state_folder(&state).map_err(Problems::from)?;
        let cancel = Cancellation::install()?;
        if self.on_node {
            return Ok(launch::serve(&*backend, &prepared, &cancel, &mut show)?);
        }
        announce(&environment)?;
        let notice = launch::launch(&*backend, &prepared, tasks, limits, &cancel, &mut show)?;
        annotate::notice(notice.as_slice());
        let result = environment.get("RESULT_FILENAME").unwrap_or_default();
        if output::wants_json(self.json) {
            return output::json(&serde_json::json!({ "result-filename": result, "workspace": workspace }));
        }
        output::text(&format!("done: {} in {}\n", envelope.name, workspace.display()))
    }

    fn release(&self, envelope: Option<&Envelope>) -> anyhow::Result<()> {
        let own = std::env::var("RUNNER_NAME").ok().filter(|name| !name.is_empty());
        let named = self.runner_name.clone().or(own);
        let runner = named.or_else(|| envelope.map(|envelope| envelope.runs_on.clone()));
        let runner = runner.ok_or_else(|| {
            let problem = Problem::file("", "it is not known whose leftovers are meant");
            Problems::from(problem.hint("name --runner-name or --envelope, or set RUNNER_NAME"))
        })?;
        let state = leftovers::state_folder(&runner).map_err(Problems::from)?;
        let backend = self
            .fleet
            .load()
            .and_then(|fleet| backend::of(&fleet, None, &runner, &runner, None).map_err(Problems::from));
        let released = match backend {
            Ok(backend) => launch::release(&*backend, &runner, &state)?,
            // The checkout may be what failed: processes are found without it.
            Err(problems) => {
                let released = leftovers::release(&state).map_err(Problems::from)?;
                released.iter().for_each(|what| eprintln!("released {what}"));
                return Err(problems.into());
            }
        };
        if output::wants_json(self.json) {
            return output::json(&serde_json::json!({ "runner": runner, "released": released }));
        }
        let mut text: String = released.iter().map(|what| format!("released {what}\n")).collect();
        if text.is_empty() {
            text = format!("{runner} left nothing behind\n");
        }
        output::text(&text)
    }

    fn print(&self, backend: &dyn Backend, job: &Prepared<'_>) -> anyhow::Result<()> {
        let planned = Planned {
            runner: job.runner,
            intent: backend.intend(job)?,
            environment: job.environment.iter().collect(),
        };
        if output::wants_json(self.json) {
            return output::json(&planned);
        }
        let mut text = format!("{} on {}\n\n", planned.intent.backend, planned.runner);
        for command in &planned.intent.commands {
            text.push_str(&format!("runs {}\n", serde_json::to_string(command)?));
        }
        for (path, content) in &planned.intent.files {
            text.push_str(&format!("\nwrites {}\n{}\n", path.display(), indented(content)));
        }
        text.push_str(&format!("\nwith\n{}", indented(&job::listing(job.environment))));
        output::text(&text)
    }
}

/// Shows a line in one write: jobs print millions.
fn show(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

/// Writes RESULT_FILENAME and the time of the launch to the job's environment: uploads then have both, whatever becomes
/// of this step.
fn announce(environment: &Environment) -> std::io::Result<()> {
    if RunnerFile::Env.path().is_none() {
        return Ok(());
    }
    let name = "RESULT_FILENAME";
    let value = environment.get(name).unwrap_or_default();
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let variables = [(name, value.to_owned()), (LAUNCHED, now.as_secs().to_string())];
    runner::append(
        RunnerFile::Env,
        &variables.map(|(name, value)| (name.to_owned(), value)),
    )
}

fn warn(problem: &Problem) {
    annotate::warn(std::slice::from_ref(problem));
}
