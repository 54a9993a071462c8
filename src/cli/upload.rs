//! `sweepctl upload`: what a job uploads, in a clean folder.

use std::path::PathBuf;

use clap::Args;

use super::envelope_file;
use super::inputs;
use super::output;
use crate::config::problem::{Problem, Problems, printable};
use crate::matrix::names::{self, ArtifactKind};
use crate::plural;
use crate::runner::{self, RunnerFile};
use crate::step::places::{LAUNCHED, Places, launched};
use crate::step::upload::{self, Gathered, Request};

/// Gather one kind of a job's results into a folder to upload
///
/// Only files of that kind's list are gathered, by copy, under the artifact's name. Links, special files and results
/// of another job are refused. On GitHub Actions the outputs `name`, `path` and `if-no-files-found` are what
/// actions/upload-artifact takes.
#[derive(Debug, Args)]
pub(crate) struct Upload {
    /// What to gather
    #[arg(long, value_enum)]
    kind: ArtifactKind,
    /// The job's envelope, a JSON file
    #[arg(long, value_name = "FILE")]
    envelope: PathBuf,
    /// A folder to gather from, in the workspace; several times for several [default: the workspace; for `eval` also
    /// its eval_results and those of Slurm jobs; for `agentic` its agentic_results and results, in multi-node jobs
    /// LOGS/agentic instead; on one node for logs and GPU metrics also its results]
    #[arg(long, value_name = "DIR")]
    from: Vec<PathBuf>,
    /// The folder that the artifact's folder is made in, as a download lays it [default: RUNNER_TEMP/sweepctl-upload]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// The runner that took the job, which names its result where RESULT_FILENAME does not [default: RUNNER_NAME, else
    /// the envelope's runs-on]
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    runner_name: Option<String>,
    /// The workspace
    #[arg(long, value_name = "DIR", env = "GITHUB_WORKSPACE", default_value = ".")]
    workspace: PathBuf,
    /// Where srt-slurm's containers write
    #[arg(long, value_name = "DIR", default_value = "/logs")]
    logs: PathBuf,
    /// Where AMD's Slurm jobs write
    #[arg(long, value_name = "DIR", default_value = "/run_logs")]
    run_logs: PathBuf,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
}

impl Upload {
    /// Gathers, writes the step's outputs, then prints what was refused.
    ///
    /// # Errors
    /// Everything that was refused.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let envelope = envelope_file::read(&self.envelope)?;
        inputs::declare_launch_secrets()?;
        let var = |name| std::env::var(name).unwrap_or_default();
        let result = match var("RESULT_FILENAME") {
            unset if unset.is_empty() => {
                let own = self.runner_name.clone().unwrap_or_else(|| var("RUNNER_NAME"));
                let runner = if own.is_empty() { &envelope.runs_on } else { &own };
                names::result(&envelope.row, runner)
            }
            set => set,
        };
        let request = Request {
            kind: self.kind,
            from: self.from.clone(),
            places: Places {
                workspace: self.workspace.clone(),
                logs: self.logs.clone(),
                run_logs: self.run_logs.clone(),
            },
            launched: launched(&var(LAUNCHED)),
            to: self.target()?,
            result,
            run: (var("GITHUB_RUN_ID"), var("GITHUB_RUN_ATTEMPT")),
        };
        let gathered = upload::gather(&request, &envelope)?;
        for warning in &gathered.warnings {
            let text = format!("{}: {}", warning.file, warning.message);
            if runner::on_actions() {
                runner::annotate(runner::Level::Warning, "upload", &text, None);
            } else {
                eprintln!("warning: {}", printable(&text));
            }
        }
        self.say(&gathered)?;
        Ok(gathered.problems.into_result()?)
    }

    fn target(&self) -> Result<PathBuf, Problems> {
        let temp = || Some(PathBuf::from(std::env::var_os("RUNNER_TEMP")?).join("sweepctl-upload"));
        self.to.clone().or_else(temp).ok_or_else(|| {
            let problem = Problem::file("", "there is no folder for the artifact outside of GitHub Actions");
            problem.hint("name one with --to").into()
        })
    }

    fn say(&self, gathered: &Gathered) -> anyhow::Result<()> {
        let missing = if gathered.required { "error" } else { "ignore" };
        let path = std::path::absolute(&gathered.path)?;
        if RunnerFile::Output.path().is_some() {
            let outputs = [
                ("name", gathered.name.clone()),
                ("path", path.display().to_string()),
                ("if-no-files-found", missing.to_owned()),
            ];
            runner::append(
                RunnerFile::Output,
                &outputs.map(|(name, value)| (name.to_owned(), value)),
            )?;
        }
        if output::wants_json(self.json) {
            return output::json(&serde_json::json!({
                "name": gathered.name,
                "path": path,
                "if-no-files-found": missing,
                "files": gathered.files,
                "bytes": gathered.bytes,
                "problems": gathered.problems.messages(),
            }));
        }
        if gathered.files.is_empty() && !gathered.problems.0.is_empty() {
            return Ok(());
        }
        println!(
            "{}: {}, {} bytes",
            printable(&gathered.name),
            plural::count(gathered.files.len(), "file"),
            gathered.bytes
        );
        for file in &gathered.files {
            let name = file.strip_prefix(&gathered.path).unwrap_or(file).display().to_string();
            println!("  {}", printable(&name));
        }
        Ok(())
    }
}
