//! `sweepctl job`: what a job's steps ask about their job.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use indexmap::IndexMap;

use super::inputs::{self, FleetArgs};
use super::{envelope_file, output};
use crate::config::problem::printable;
use crate::matrix::envelope::Envelope;
use crate::runner::{self, RunnerFile};
use crate::step::environment::{self, Environment, Place, eval_max_model_len};

/// `sweepctl job`
#[derive(Debug, Subcommand)]
pub(crate) enum Job {
    /// Print the variables that a job's launch script reads
    Env(Env),
}

impl Job {
    /// Runs the subcommand.
    ///
    /// # Errors
    /// As the subcommand.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Env(env) => env.run(),
        }
    }
}

const HELP: &str = "\
Every name stands for every job; it is empty where the row has no such value. Only multi-node jobs have CONC_LIST, \
PREFILL_* and DECODE_*. MODEL_PATH is set where it is known: from this command's own MODEL_PATH, or when the model is \
a path. EVAL_MAX_MODEL_LEN is set for eval-only jobs with fixed sequences on one node. `env` of the workflow settings, the \
runner's cluster and the row's engine comes last.

Workers' additional-settings become variables too. Refused, all at once: names that stand here already, names that \
decide what code runs (PATH, LD_*, BASH_ENV, PYTHONPATH and the like), names of the runner (GITHUB_*, RUNNER_*, \
ACTIONS_*), and one name with two values.

With --github-env, RUNNER_NAME and RUNNER_TYPE are left out: runners refuse to overwrite their own, and the launched \
process gets them from `sweepctl`.

Examples:
  sweepctl job env --envelope envelope.json
      what a job would see
  sweepctl job env --envelope - --github-env <<<\"$ENVELOPE\"
      for all later steps";

/// `sweepctl job env`
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Env {
    /// The job's envelope, one element of a matrix; - reads standard input
    #[arg(long, value_name = "FILE")]
    envelope: PathBuf,
    /// The runner that took the job [default: RUNNER_NAME, else the envelope's runs-on]
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    runner_name: Option<String>,
    /// Write them to the file that GITHUB_ENV names, and print nothing
    #[arg(long, conflicts_with = "json")]
    github_env: bool,
    #[command(flatten)]
    fleet: FleetArgs,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
}

impl Env {
    /// Prints or writes the variables.
    ///
    /// # Errors
    /// A file that is no envelope, settings that may not become variables, and a file that cannot be written.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let envelope = envelope_file::read(&self.envelope)?;
        let place = place(&envelope, self.runner_name.as_deref())?;
        let mut environment = Environment::new(&envelope, &place)?;
        let fleet = self.fleet.load_if_there()?;
        environment::add(
            &mut environment,
            &inputs::jobs_env()?,
            &fleet,
            &envelope,
            &place.runner_name,
        )?;
        if self.github_env {
            return Ok(runner::append(RunnerFile::Env, &environment.for_later_steps())?);
        }
        if output::wants_json(self.json) {
            return output::json(&environment.iter().collect::<IndexMap<_, _>>());
        }
        output::text(&listing(&environment))
    }
}

/// A line a variable, for people; control characters are shown by their escapes, so that a value stays on its line.
#[must_use]
pub(crate) fn listing(environment: &Environment) -> String {
    let width = environment.names().map(str::len).max().unwrap_or(0);
    environment
        .iter()
        .map(|(name, value)| {
            let shown = value.replace('\n', "\\n");
            format!("{name:width$}  {}", printable(&shown)).trim_end().to_owned() + "\n"
        })
        .collect()
}

/// Where this process runs a job: the runner, the checkout, and what is known of the model.
///
/// # Errors
/// A working directory that is gone.
pub(crate) fn place(envelope: &Envelope, runner_name: Option<&str>) -> anyhow::Result<Place> {
    let variable = |name: &str| {
        let value = std::env::var_os(name)?.to_string_lossy().into_owned();
        (!value.is_empty()).then_some(value)
    };
    let row = &envelope.row;
    let model = &row.topology.model;
    let workspace = match variable("GITHUB_WORKSPACE") {
        Some(workspace) => workspace,
        None => std::env::current_dir()?.to_string_lossy().into_owned(),
    };
    Ok(Place {
        runner_name: runner_name
            .map(str::to_owned)
            .or_else(|| variable("RUNNER_NAME"))
            .unwrap_or_else(|| envelope.runs_on.clone()),
        workspace,
        model_path: variable("MODEL_PATH").or_else(|| model.starts_with('/').then(|| model.clone())),
        eval_max_model_len: eval_max_model_len(row),
    })
}
