//! `sweepctl fetch`: artifacts of a run by exact name, into the folder that `collect` reads.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use super::client::ClientArgs;
use super::inputs::both;
use super::output;
use crate::artifacts::archive::Limits;
use crate::artifacts::fetch::{self, How};
use crate::artifacts::folder::Folder;
use crate::artifacts::report::Report;
use crate::artifacts::rest::Rest;
use crate::artifacts::runner_service::Runner;
use crate::artifacts::wanted::{self, Wanted};
use crate::artifacts::{self, Listed, Service};
use crate::config::problem::{Problem, Problems};
use crate::files;
use crate::matrix::names::ArtifactKind;
use crate::plan_files;
use crate::runner::{self, RunnerFile};
use crate::step::upload;

const AFTER_HELP: &str = "\
In a step of the action `.github/actions/fetch-artifacts` the runner's own service is asked; with --run-id, or without \
that access, GitHub's REST API, with the token of GH_TOKEN, else GITHUB_TOKEN. Missing artifacts of jobs are listed and fail nothing; what is there and does not \
arrive fails the command, and all else is fetched nevertheless.

Examples:
  sweepctl fetch plan --out .
      the plan of this run, into ./plan
  sweepctl fetch --plan plan --out results
      what collectors read of every planned job
  sweepctl fetch --plan plan --kind server_logs --out logs --run-id 1234567890
      the server logs of another run";

/// Fetch artifacts of a run by name
///
/// Each artifact becomes a folder of its name in OUT, whole or not at all, checked against its digest. What OUT holds
/// already from an earlier fetch is not fetched again.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Fetch {
    /// Artifacts of the run, by their whole names
    #[arg(value_name = "NAME", required_unless_present_any = ["plan", "optional"])]
    names: Vec<String>,
    /// An artifact of the run that need not be there
    #[arg(long, value_name = "NAME")]
    optional: Vec<String>,
    /// The plan whose jobs' artifacts are fetched: its folder, its index, or a list of envelopes
    #[arg(long, value_name = "FILE|DIR")]
    plan: Option<PathBuf>,
    /// The kinds of artifacts of the plan's jobs [default: those that collectors read: bmk, bmk_agentic, eval]
    #[arg(
        long,
        value_name = "KIND",
        value_delimiter = ',',
        requires = "plan",
        hide_possible_values = true
    )]
    kind: Vec<ArtifactKind>,
    /// The folder to fetch into
    #[arg(long, value_name = "OUT")]
    out: PathBuf,
    /// The run, asked for over REST [default: this run]
    #[arg(long, value_name = "RUN", value_parser = clap::value_parser!(u64).range(1..))]
    run_id: Option<u64>,
    #[command(flatten)]
    client: ClientArgs,
    /// How many artifacts are fetched at a time
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=64))]
    parallel: u64,
    /// How often a download is tried at most
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=20))]
    attempts: u32,
    /// The most that one artifact may hold, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 10_240, value_parser = clap::value_parser!(u64).range(1..=1_048_576))]
    max_mib: u64,
    /// The file to write what became of every artifact to, as JSON [default: OUT/fetch.json]
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Append the outputs `fetched` (what is in OUT now) and `missing`, counts, to the file that GITHUB_OUTPUT names
    #[arg(long)]
    github_output: bool,
    /// Print what the report holds as JSON, also on a terminal and in a step's log
    #[arg(long)]
    json: bool,
}

impl Fetch {
    /// Fetches, and says what became of each artifact.
    ///
    /// # Errors
    /// Inputs that cannot be read, a list that cannot be had, what is there and does not arrive, and a NAME that is
    /// missing.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let wanted = self.wanted()?;
        let names: Vec<&str> = wanted.iter().map(|wanted| wanted.name.as_str()).collect();
        let folder = Folder::open(&self.out).map_err(Problems::from)?;
        let (service, listed) = self.listed(&names, &folder)?;
        let listed = artifacts::newest(listed);
        let found: Vec<Listed> = names.iter().filter_map(|name| listed.get(*name).cloned()).collect();
        let bar = progress(found.len());
        let outcomes = fetch::all(&*service, &found, &folder, self.how(), &|| bar.inc(1)).map_err(Problems::from)?;
        bar.finish_and_clear();
        let report = Report::new(service.via(), &wanted, outcomes);
        self.say(&report)?;
        let listed: Vec<&str> = listed.keys().map(String::as_str).collect();
        Ok(report.problems(&wanted, &listed).into_result()?)
    }

    fn wanted(&self) -> Result<Vec<Wanted>, Problems> {
        let kinds = match self.kind.is_empty() {
            true => &wanted::COLLECTED[..],
            false => &self.kind,
        };
        let plan = self.plan.as_deref().map(plan_files::envelopes).transpose();
        let of_plan = plan.map(|plan| wanted::of_plan(&plan.unwrap_or_default(), kinds));
        let (named, optional) = both(wanted::named(&self.names, true), wanted::named(&self.optional, false))?;
        let mut all = named;
        all.extend(optional);
        all.extend(of_plan.map_err(Problems::from)?);
        Ok(wanted::once(all))
    }

    fn how(&self) -> How {
        How {
            parallel: usize::try_from(self.parallel).unwrap_or(1),
            attempts: self.attempts,
            limits: Limits {
                entries: upload::MAX_FILES,
                bytes: self.max_mib << 20,
            },
        }
    }

    /// Who is asked, and what the run has.
    fn listed(&self, names: &[&str], folder: &Folder) -> Result<(Box<dyn Service>, Vec<Listed>), Problems> {
        if self.run_id.is_none() && self.client.names_repository() {
            let problem = Problem::file("", "--repo names a repository, and no run of it");
            return Err(problem.hint("name the run too, with --run-id").into());
        }
        if self.run_id.is_none()
            && let Some(runner) = Runner::from_environment()?
        {
            let listed = runner.list(names)?;
            return Ok((Box::new(runner), listed));
        }
        let run = self.run_id.or_else(this_run).ok_or_else(|| {
            Problem::file("", "it is not known which run the artifacts are of").hint(
                "name it with --run-id; in a workflow run this in the action `.github/actions/fetch-artifacts`, which has \
                 the runner's access",
            )
        })?;
        let client = self.client.client()?;
        let listed = Rest::list(&client, run, names, folder.work())?;
        Ok((Box::new(Rest::new(&client)), listed))
    }

    fn say(&self, report: &Report) -> anyhow::Result<()> {
        let path = self.report.clone().unwrap_or_else(|| self.out.join("fetch.json"));
        let mut text = serde_json::to_vec_pretty(report)?;
        text.push(b'\n');
        files::write_atomic(&path, &text).with_context(|| format!("`{}` cannot be written", path.display()))?;
        if self.github_output {
            let outputs = [("fetched", report.here()), ("missing", report.missing)];
            let outputs = outputs.map(|(name, number)| (name.to_owned(), number.to_string()));
            runner::append(RunnerFile::Output, &outputs)?;
        }
        runner::summarize(&report.markdown())?;
        // The log of a step is read by people, and the report is a file.
        if self.json || (output::wants_json(false) && !runner::on_actions()) {
            return output::json(report);
        }
        let mut text = format!("{}\n", report.sentence());
        if report.here() < report.wanted {
            text.push_str(&format!("\n{}", output::table(&Report::HEAD, &report.rows())));
        }
        output::text(&text)
    }
}

/// The run that this is a step of.
fn this_run() -> Option<u64> {
    std::env::var("GITHUB_RUN_ID").ok()?.parse().ok()
}

/// A bar on a terminal; elsewhere nothing.
fn progress(artifacts: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} artifacts {elapsed} {eta}");
    let bar = ProgressBar::new(artifacts as u64);
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
