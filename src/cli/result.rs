//! `sweepctl result`: the result of a throughput job.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Subcommand};
use serde::Serialize;

use super::output;
use super::replay_result::{self, Source, Target};
use crate::config::master::search_space::Nodes;
use crate::config::problem::{Problem, Problems};
use crate::config::types::NodeKind;
use crate::matrix::row::Row;
use crate::step::power::{self, Account, Reported};
use crate::step::results::file;
use crate::step::throughput::client::Client;
use crate::step::throughput::{Aggregate, Benchmark, check};
use crate::step::{places, stage};

/// What is done with it.
#[derive(Debug, Subcommand)]
pub(crate) enum ResultCommand {
    /// Write agg_<RESULT>.json from what a benchmark saved
    ///
    /// The files of vllm, sglang, aiperf and genai-perf are told apart by their fields. Throughput is divided by the
    /// GPUs of the job's row, times become seconds, and times per output token also interactivity (tokens a second for
    /// one user). A field that is zero, infinite or no number is refused by name, and so is what is not the row's:
    /// its model, its concurrency, and lengths that do not fit RANDOM_RANGE_RATIO (0.8 where it is not set).
    ///
    /// Of an agentic job, what the replay's client and the servers left is read, from --replay or where it lies in the
    /// workspace. An aggregate that the job's script already wrote is checked, and taken as it is.
    Process(Process),
}

/// The form of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// As the file's fields say
    Auto,
    /// `vllm bench serve --save-result`, and the scripts that save in its form
    Vllm,
    /// sglang's `bench_serving --output-file`
    Sglang,
    /// aiperf's `profile_export_aiperf.json`
    Aiperf,
    /// genai-perf's `profile_export_genai_perf.json`
    GenaiPerf,
}

impl Format {
    fn client(self) -> Option<Client> {
        match self {
            Self::Auto => None,
            Self::Vllm => Some(Client::Vllm),
            Self::Sglang => Some(Client::Sglang),
            Self::Aiperf => Some(Client::Aiperf),
            Self::GenaiPerf => Some(Client::GenaiPerf),
        }
    }
}

/// `result process`
#[derive(Debug, Args)]
pub(crate) struct Process {
    /// What the benchmark saved [default: <RESULT_FILENAME>.json, in multi-node jobs <RESULT_FILENAME>_*.json]
    #[arg(value_name = "FILE", conflicts_with = "result_filename")]
    files: Vec<PathBuf>,
    /// The stem of the result's file name [default: $RESULT_FILENAME]
    #[arg(long, value_name = "STEM")]
    result_filename: Option<String>,
    /// The folder of an agentic replay: it holds aiperf_artifacts/ and the logs of servers [default: of each concurrency
    /// the aggregate that the script left as its result, else the raw replay in agentic_results/, results/ or
    /// LOGS/agentic/, there in conc_<N>/ where there are several]
    #[arg(long, value_name = "DIR", conflicts_with = "files")]
    replay: Option<PathBuf>,
    /// The folder to draw latencies and lengths of a replay's requests to, as SVG
    #[arg(long, value_name = "DIR", conflicts_with = "files")]
    plots: Option<PathBuf>,
    /// The envelope of the job
    #[arg(long, value_name = "FILE", default_value = "envelope.json")]
    envelope: PathBuf,
    /// What saved the result
    #[arg(long, value_enum, default_value_t = Format::Auto)]
    format: Format,
    /// What nvidia-smi or amd-smi sampled meanwhile, on one node: adds power and energy, and writes
    /// power_validation_<RESULT>.json, which says what speaks against them [default: gpu_metrics.csv beside the result,
    /// or in results/ there, if it is there] [env REQUIRE_POWER: without valid figures the command fails]
    #[arg(long, value_name = "FILE")]
    gpu_metrics: Option<PathBuf>,
    /// The folder to write to
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
}

impl ResultCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// Every problem of every file; the aggregates of the others are written.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Process(process) => process.run(),
        }
    }
}

impl Process {
    fn run(&self) -> anyhow::Result<()> {
        let row = super::envelope_file::read(&self.envelope)?.row;
        one_output_each(&self.files)?;
        let (replays, stem) = self.replays(&row)?;
        if !replays.is_empty() {
            if self.gpu_metrics.is_some() {
                let problem = Problem::file("", "--gpu-metrics is of throughput results, and these are replays");
                return Err(Problems::from(problem.hint("leave it out: a replay's aggregate has no power")).into());
            }
            let target = Target {
                row: &row,
                out: &self.out,
                plots: self.plots.as_deref(),
                json: self.json,
            };
            return target.publish(replays, &stem);
        }
        let results = self.results(&row).map_err(Problems::from)?;
        let ratio = std::env::var("RANDOM_RANGE_RATIO").ok();
        let ratio = check::range_ratio(ratio.as_deref()).map_err(Problems::from)?;
        let mut problems = Problems::default();
        let mut written = Vec::new();
        for path in results {
            let read = Benchmark::read(&path, self.format.client()).map_err(Problems::from);
            match read.and_then(|found| Ok((found.aggregate(&row, ratio)?, found.reported()))) {
                Err(more) => problems.extend(more),
                Ok((mut aggregate, reported)) => {
                    let account = self.power(&row, &reported).map_err(Problems::from)?;
                    aggregate.power = account.as_ref().map(Account::published);
                    self.write("agg_", &path, &aggregate)?;
                    written.push(aggregate);
                    if let Some(account) = account {
                        self.write("power_validation_", &path, &account)?;
                        problems.extend(unmet(&account, &path));
                    }
                }
            }
        }
        // A list has no room for problems: with --json they are what is printed. A table without a row says nothing.
        let is_whole = problems.0.is_empty();
        if is_whole || (!self.json && (!written.is_empty() || output::wants_json(false))) {
            self.print(&written)?;
        }
        problems.into_result()?;
        Ok(())
    }

    /// The replays of an agentic job, and the stem of their results: the one that is named, the aggregates among files
    /// that are named, else what lies in the workspace.
    fn replays(&self, row: &Row) -> Result<(Vec<Source>, String), Problems> {
        if let Some(folder) = &self.replay {
            return Ok((vec![replay_result::named(folder, row)?], self.stem()?));
        }
        if !self.files.is_empty() {
            return Ok((replay_result::among(&self.files, row)?, String::new()));
        }
        let stem = self.stem()?;
        let mut found = replay_result::of_job(row, Path::new(&stem))?;
        // Launchers of several nodes choose the ends of names.
        if found.is_empty() && row.node_kind() == NodeKind::Multi {
            found = replay_result::among(&self.results(row)?, row)?;
        }
        Ok((found, stem))
    }

    /// The account of power, where samples are named, or lie where a job's are written.
    fn power(&self, row: &Row, reported: &Reported) -> Result<Option<Account>, Problem> {
        match (&row.topology.nodes, &self.gpu_metrics) {
            (Nodes::Single(parallelism), named) => {
                let samples = named.clone().or_else(|| self.samples());
                Ok(samples.map(|samples| power::measure(reported, parallelism.gpus(), &samples)))
            }
            (Nodes::Multi(_), None) => Ok(None),
            (Nodes::Multi(_), Some(_)) => Err(Problem::file(
                "",
                "--gpu-metrics is of one node, and the job has several",
            )
            .hint("process its results without it")),
        }
    }

    /// The samples in the workspace of the job whose results these are. Where power is required, one that is missing is
    /// what the account says.
    fn samples(&self) -> Option<PathBuf> {
        if !self.files.is_empty() {
            return None;
        }
        let stem = self.stem().ok()?;
        let workspace = Path::new(&stem).parent().unwrap_or(Path::new(""));
        let usual = workspace.join(stage::GPU_SAMPLES);
        let usual_places = [
            usual.clone(),
            workspace.join(places::SCRIPTS_FOLDER).join(stage::GPU_SAMPLES),
        ];
        let found = usual_places.into_iter().find(|path| path.symlink_metadata().is_ok());
        found.or_else(|| required().then_some(usual))
    }

    fn results(&self, row: &Row) -> Result<Vec<PathBuf>, Problem> {
        if !self.files.is_empty() {
            return Ok(self.files.clone());
        }
        let stem = self.stem()?;
        let path = Path::new(&stem);
        let (folder, name) = (
            path.parent().unwrap_or(Path::new("")),
            path.file_name().unwrap_or_default(),
        );
        let name = name.to_string_lossy();
        let found = match row.node_kind() {
            NodeKind::Single => vec![folder.join(format!("{name}.json"))],
            NodeKind::Multi => starting_with(folder, &format!("{name}_"))?,
        };
        if found.is_empty() {
            let message = format!("there is no `{stem}_*.json`");
            return Err(Problem::file("", message).hint("the benchmark saved nothing: see its log"));
        }
        Ok(found)
    }

    /// The stem of the result's file name.
    fn stem(&self) -> Result<String, Problem> {
        let stem = self
            .result_filename
            .clone()
            .or_else(|| std::env::var("RESULT_FILENAME").ok());
        stem.filter(|stem| !stem.is_empty()).ok_or_else(|| {
            Problem::file("", "no result is named").hint("name files, or set --result-filename or RESULT_FILENAME")
        })
    }

    /// Writes what was made of a result under the result's name behind a prefix.
    fn write(&self, prefix: &str, result: &Path, made: &impl Serialize) -> anyhow::Result<()> {
        let name = result.file_name().unwrap_or_default().to_string_lossy();
        let target = self.out.join(format!("{prefix}{name}"));
        let mut text = serde_json::to_vec_pretty(made)?;
        text.push(b'\n');
        file::write_atomic(&target, &text).with_context(|| format!("`{}` cannot be written", target.display()))
    }

    fn print(&self, aggregates: &[Aggregate]) -> anyhow::Result<()> {
        if output::wants_json(self.json) {
            return output::json(&aggregates);
        }
        let row = |a: &Aggregate| {
            let numbers = [a.tput_per_gpu, a.output_tput_per_gpu, a.input_tput_per_gpu];
            let text = |name: &str| {
                a.row
                    .get(name)
                    .and_then(|value| value.as_str())
                    .unwrap_or("-")
                    .to_owned()
            };
            let mut cells = vec![text("infmax_model_prefix"), text("hw"), a.conc.to_string()];
            cells.extend(numbers.map(|number| format!("{number:.3}")));
            cells
        };
        let header = [
            "Model",
            "Hardware",
            "Conc",
            "Tokens/s/GPU",
            "Output tokens/s/GPU",
            "Input tokens/s/GPU",
        ];
        let rows: Vec<Vec<String>> = aggregates.iter().map(row).collect();
        output::text(&output::table(&header, &rows))
    }
}

/// Results are written under the names of the files that they are made of: two files of one name, in two folders, would
/// write one result.
fn one_output_each(files: &[PathBuf]) -> Result<(), Problems> {
    let mut problems = Problems::default();
    for (index, path) in files.iter().enumerate() {
        let first = files[..index]
            .iter()
            .find(|first| first.file_name() == path.file_name());
        if let Some(first) = first {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let (first, shown) = (file::shown(first), file::shown(path));
            let message = format!("{first} and {shown} would both be written as `agg_{name}`");
            let hint = "process them one after another, each with its own --out, or rename one";
            problems.push(Problem::file(&shown, message).hint(hint));
        }
    }
    problems.into_result()
}

fn required() -> bool {
    power::is_required(std::env::var("REQUIRE_POWER").ok().as_deref())
}

/// The problem of figures that are required and not valid.
fn unmet(account: &Account, result: &Path) -> Problems {
    if account.power_valid || !required() {
        return Problems::default();
    }
    let name = file::shown(result);
    let reasons = account.reasons.join(", ");
    let message = format!("{name}: REQUIRE_POWER is set, and its power is not valid: {reasons}");
    Problem::file(&name, message)
        .hint("see power_validation_<RESULT_FILENAME>.json and the samples that --gpu-metrics names")
        .into()
}

/// The JSON files of a folder whose names start so, sorted.
fn starting_with(folder: &Path, start: &str) -> Result<Vec<PathBuf>, Problem> {
    let place = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let listed = file::walk(place, 0)
        .map_err(|error| Problem::file("", format!("`{}` cannot be listed: {error}", place.display())))?;
    let names = listed.iter().flat_map(|listed| listed.named(start, ".json"));
    Ok(names.map(|name| folder.join(name)).collect())
}
