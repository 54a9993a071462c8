//! `sweepctl reuse`: whether a push takes over a pull request's sweep, and whether its results can be.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::client::{self, ClientArgs};
use super::inputs::{self, LabelsArgs};
use super::{annotate, output};
use crate::config::problem::{Problem, Problems, printable};
use crate::github::reuse::gather::{self, Ask};
use crate::github::reuse::{self, Decision, Judgement};
use crate::github::text;
use crate::plan_files;
use crate::repo::Repo;
use crate::runner::{self, RunnerFile};
use crate::step::collect::reused::{self, Checked};
use crate::step::markdown;

const AFTER_HELP: &str = "\
A run is reused where somebody who may decide so has commented `/reuse-sweep-run`, or `/reuse-sweep-run RUN` to pin one \
by its number or its address, at the start of any line of a comment on the one merged pull request of the commit. Without such a comment the normal sweep runs. With one that no run \
fulfils the command fails: each run that was checked is named with its reason, and the comment that would pin a valid \
one is printed.";

/// Runs that are listed for people; the newest are the ones that matter.
const SHOWN: usize = 20;

/// `sweepctl reuse`
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, args_conflicts_with_subcommands = true)]
pub(crate) struct ReuseArgs {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    decide: Decide,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Check the artifacts of the run that is reused
    ///
    /// DIR holds `results_bmk` and `eval_results_all` as that run kept them, and in `results` the single results that
    /// both were made of. Everything that is wrong is listed at once: a plan of no full sweep, and rows that do not say
    /// what they are of, that are there twice, that no single result gives, that the run did not plan, or that are missing.
    Check(Check),
}

#[derive(Debug, Args)]
#[command(after_help = client::ABOUT)]
struct Decide {
    /// The commit that was pushed, or with --pr its newest [default: GITHUB_SHA, else the clone's HEAD]
    #[arg(long, value_name = "SHA")]
    commit: Option<String>,
    /// The open pull request whose newest commit it is: a run of the same plan then spares it a sweep
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), requires = "plan")]
    pr: Option<u64>,
    /// The plan of the commit: its folder, its index, or a list of envelopes. A run of a commit that is no longer in the
    /// pull request can stand in only if its plan is known to be the same
    #[arg(long, value_name = "FILE|DIR")]
    plan: Option<PathBuf>,
    #[command(flatten)]
    labels: LabelsArgs,
    #[command(flatten)]
    client: ClientArgs,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
    /// Append the outputs `reuse`, `run_id`, `complete`, `verdict`, `artifacts` and `reason` to the file that GITHUB_OUTPUT names
    #[arg(long)]
    github_output: bool,
}

#[derive(Debug, Args)]
struct Check {
    /// The folder that the artifacts were downloaded to
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The plan of the run that is reused: its folder, its index, or a list of envelopes
    #[arg(long, value_name = "FILE|DIR")]
    plan: PathBuf,
    /// The plan of the commit for which it stands in: what that measures must be there, and nothing else
    #[arg(long, value_name = "FILE|DIR")]
    against: Option<PathBuf>,
    /// The run did not end well and was pinned: what is missing is no problem
    #[arg(long)]
    partial: bool,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
}

impl ReuseArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// Requests that fail, inputs that cannot be read, what is refused, and everything wrong with artifacts.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match &self.what {
            None => self.decide.run(),
            Some(What::Check(check)) => check.run(),
        }
    }
}

impl Decide {
    fn run(&self) -> anyhow::Result<()> {
        let (client, labels) = inputs::both(self.client.client(), self.labels.load())?;
        let plan = self.plan.as_deref().map(plan_files::envelopes).transpose();
        let plan = plan.map_err(Problems::from)?;
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let server = variable("GITHUB_SERVER_URL").unwrap_or_else(|| "https://github.com".to_owned());
        let ask = Ask {
            commit: self.commit()?,
            pull: self.pr,
            plan: plan.as_ref().map(plan_files::digest),
            address: format!("{}/{}", server.trim_end_matches('/'), client.repository()),
            own_run: variable("GITHUB_RUN_ID").and_then(|id| id.parse().ok()),
        };
        let facts = gather::facts(&client, &ask, &labels.reuse)?;
        let decision = reuse::decide(&facts, &labels);
        let notes = decision.notes.iter().map(|note| Problem::file("", note.clone()));
        annotate::notice(&notes.collect::<Vec<_>>());
        if self.github_output {
            runner::append(RunnerFile::Output, &decision.outputs())?;
        }
        runner::summarize(&summary(&decision))?;
        match output::wants_json(self.json) {
            true => output::json(&decision)?,
            false => output::text(&shown(&decision))?,
        }
        match decision.problem() {
            None => Ok(()),
            Some(problem) => Err(Problems::from(problem).into()),
        }
    }

    fn commit(&self) -> Result<String, Problems> {
        let pushed = || std::env::var("GITHUB_SHA").ok().filter(|sha| !sha.is_empty());
        if let Some(commit) = self.commit.clone().or_else(pushed) {
            return Ok(commit);
        }
        let repo = Repo::open(Path::new("."))?;
        Ok(repo.revision("HEAD")?.hash())
    }
}

const HEAD: [&str; 4] = ["run", "commit", "stands in", "why not"];

fn rows(decision: &Decision) -> Vec<Vec<String>> {
    let row = |judgement: &Judgement| {
        let stands_in = match (judgement.good, judgement.pinnable) {
            (true, _) => "yes",
            (false, true) => "if pinned",
            (false, false) => "no",
        };
        vec![
            judgement.run_id.to_string(),
            judgement.commit.get(..9).unwrap_or_default().to_owned(),
            stands_in.to_owned(),
            judgement.reason.clone(),
        ]
    };
    decision.candidates.iter().take(SHOWN).map(row).collect()
}

fn shown(decision: &Decision) -> String {
    let sentence = text::one_line(&decision.reason);
    match decision.candidates.is_empty() {
        true => format!("{sentence}\n"),
        false => format!("{sentence}\n\n{}", output::table(&HEAD, &rows(decision))),
    }
}

fn summary(decision: &Decision) -> String {
    let mut text = format!("### Reuse\n\n{}\n", decision.reason);
    for note in &decision.notes {
        text.push_str(&format!("\n{note}\n"));
    }
    if !decision.candidates.is_empty() {
        text.push_str(&format!("\n{}", markdown::table(&HEAD, &rows(decision))));
    }
    if let Some(command) = &decision.command {
        text.push_str(&format!(
            "\nA comment that pins a good one:\n\n{}\n",
            runner::fenced(command)
        ));
    }
    text
}

impl Check {
    fn run(&self) -> anyhow::Result<()> {
        let index = plan_files::index(&self.plan).map_err(Problems::from)?;
        let plan = plan_files::envelopes(&self.plan).map_err(Problems::from)?;
        let against = self.against.as_deref().map(plan_files::envelopes).transpose();
        let against = against.map_err(Problems::from)?;
        let checked = reused::check(&self.dir, &plan, against.as_deref(), self.partial);
        let mut checked = checked.map_err(Problems::from)?;
        // Labels are those of the merge; what the run itself was asked for stands in its plan.
        let narrowing = index.asked.narrowing();
        if !narrowing.is_empty() {
            let message = format!("the run planned with {}: it is no full sweep", narrowing.join(" and "));
            let problem = Problem::file(&self.plan.display().to_string(), message);
            checked.problems.push(problem.hint("pin a run of a full sweep"));
        }
        runner::summarize(&checked_summary(&checked))?;
        match output::wants_json(self.json) {
            true => output::json(&checked)?,
            false => output::text(&format!("{}\n", sentence(&checked)))?,
        }
        checked.problems.into_result()?;
        Ok(())
    }
}

fn sentence(checked: &Checked) -> String {
    let (results, evals) = (checked.results, checked.evals);
    let missing = match checked.missing.len() {
        0 => "nothing is missing".to_owned(),
        count => format!("{count} planned results are missing"),
    };
    format!("{results} throughput results and {evals} eval results, {missing}.")
}

fn checked_summary(checked: &Checked) -> String {
    let mut text = format!("### Results of an earlier run\n\n{}\n", sentence(checked));
    if !checked.missing.is_empty() {
        let names: Vec<String> = checked.missing.iter().map(|name| printable(name)).collect();
        text.push_str(&format!("\nMissing:\n\n{}", markdown::list(&names)));
    }
    text
}
