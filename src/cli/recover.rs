//! `sweepctl recover`: what is missing of a run's collection, check and announcement, done.

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};
use serde::Serialize;

use super::client::ClientArgs;
use super::render::workflow_settings;
use super::{output, own_command, published};
use crate::config::problem::Problems;
use crate::config::workflows::publish::Ingest;
use crate::github::client::Client;
use crate::github::client::answers::Run;
use crate::github::recover::{self, Facts, PLAN, Recovery, Step, gather};
use crate::github::run_address::RunAddress;
use crate::github::text;
use crate::matrix::envelope::Envelope;
use crate::plan_files;

const AFTER_HELP: &str = "\
A run that was cancelled, or whose collectors failed, left the results of its jobs all the same. They are fetched and \
collected here, checked against the run's plan, and, for a push, announced where the settings name a repository that is \
told. What the run did itself is not done again. --dry-run prints the commands.

The token is that of GH_TOKEN, else GITHUB_TOKEN; it needs `actions: read`, and for the announcement `contents: write` in \
the other repository.

Examples:
  sweepctl recover 1234567890 --dry-run
  sweepctl recover --pr 12 --out recovered";

/// `sweepctl recover`
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, group = ArgGroup::new("what").required(true).args(["run", "pr"]))]
pub(crate) struct Recover {
    /// The run: its number, or the address of its page
    #[arg(value_name = "RUN")]
    run: Option<RunAddress>,
    /// The newest sweep of this pull request's newest commit, instead of a run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pr: Option<u64>,
    /// The folder that everything is put into [default: recovered-RUN]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The run's plan, instead of its artifact: its folder, its index, or a list of envelopes
    #[arg(long, value_name = "FILE|DIR")]
    plan: Option<PathBuf>,
    #[command(flatten)]
    client: ClientArgs,
    /// Print what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
}

/// What is printed as JSON.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Printed {
    run_id: u64,
    url: String,
    nothing: Option<String>,
    steps: Vec<Line>,
    out: String,
    done: bool,
}

#[derive(Serialize)]
struct Line {
    #[serde(flatten)]
    step: Step,
    command: String,
}

impl Recover {
    /// Looks, and does what is missing.
    ///
    /// # Errors
    /// Requests that fail, a run of which nothing can be recovered, and steps that fail.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let (client, run) = self.which()?;
        let out = self
            .out
            .clone()
            .unwrap_or_else(|| PathBuf::from(format!("recovered-{}", run.id)));
        let settings = workflow_settings(Path::new("."))?;
        let mut facts = Facts {
            artifacts: gather::artifacts(&client, run.id)?,
            plan: self
                .plan
                .as_deref()
                .map(plan_files::envelopes)
                .transpose()
                .map_err(Problems::from)?,
            announced: gather::announced(&client, &run).map_err(Problems::from)?,
            announces: !settings.ingest.is_empty(),
            run,
        };
        if recover::has_plan(&facts).map_err(Problems::from)? {
            facts.plan = Some(self.fetch_plan(&client, &facts.run, &out)?);
        }
        let recovery = recover::recovery(&facts).map_err(Problems::from)?;
        let (steps, nothing) = match recovery {
            Recovery::Nothing(reason) => (Vec::new(), Some(reason)),
            Recovery::Steps(steps) => (steps, None),
        };
        let work = Work {
            client: &client,
            run: &facts.run,
            out: &out,
            plan: self.plan.as_deref(),
            ingest: &settings.ingest,
        };
        let commands: Vec<(Step, Vec<String>)> = steps
            .into_iter()
            .flat_map(|step| work.commands(&step).into_iter().map(move |words| (step.clone(), words)))
            .collect();
        if !self.dry_run {
            std::fs::create_dir_all(&out)?;
            for (step, words) in &commands {
                work.run_step(step, words)?;
                if *step == Step::Collect && work.publishes_nothing()? {
                    anstream::eprintln!("no recipe of the plan is whole: nothing is published, checked or told");
                    break;
                }
            }
        }
        let line = |(step, words): (Step, Vec<String>)| Line {
            step,
            command: own_command::shown(&words),
        };
        let printed = Printed {
            run_id: facts.run.id,
            url: facts.run.html_url.clone(),
            nothing,
            done: !self.dry_run && !commands.is_empty(),
            steps: commands.into_iter().map(line).collect(),
            out: out.display().to_string(),
        };
        match output::wants_json(self.json) {
            true => output::json(&printed),
            false => output::text(&printed.text()),
        }
    }

    fn which(&self) -> Result<(Client, Run), Problems> {
        match (&self.run, self.pr) {
            (Some(run), _) => {
                let client = self.client.client_of(run)?;
                let found = client.run(run.id)?;
                Ok((client, found))
            }
            (None, number) => {
                let client = self.client.client()?;
                let run = gather::run_of_pull(&client, number.unwrap_or_default())?;
                Ok((client, run))
            }
        }
    }

    /// The plan of the run; without it nobody knows what is missing, so it is fetched for a dry run too, to a folder that
    /// goes away.
    fn fetch_plan(&self, client: &Client, run: &Run, out: &Path) -> anyhow::Result<Vec<Envelope>> {
        let away = tempfile::tempdir()?;
        let folder = if self.dry_run { away.path() } else { out };
        let plan = own_command::fetch_plan(client, run.id, folder)?;
        Ok(plan_files::envelopes(&plan).map_err(Problems::from)?)
    }
}

/// What steps need to know.
struct Work<'w> {
    client: &'w Client,
    run: &'w Run,
    out: &'w Path,
    plan: Option<&'w Path>,
    ingest: &'w [Ingest],
}

impl Work<'_> {
    /// The commands of a step, as arguments of `sweepctl`: of the last, one a repository that is told.
    fn commands(&self, step: &Step) -> Vec<Vec<String>> {
        let repository = self.client.repository().to_string();
        let out = self.out.display().to_string();
        let plan = self
            .plan
            .map_or_else(|| format!("{out}/{PLAN}"), |plan| plan.display().to_string());
        let words = recover::command(step, self.run.id, &repository, &out, &plan);
        if !matches!(step, Step::Ingest { .. }) {
            return vec![words];
        }
        let told = |target: &Ingest| {
            let mut words = words.clone();
            let to = [
                "--to",
                &target.repository,
                "--event-type",
                &target.event_type,
                "--repo",
                &repository,
            ];
            words.extend(to.map(str::to_owned));
            let payload = target.payload.iter();
            words.extend(payload.map(|payload| format!("--payload={payload}")));
            words
        };
        self.ingest.iter().map(told).collect()
    }

    /// Whether the collection that was made publishes nothing.
    fn publishes_nothing(&self) -> Result<bool, Problems> {
        let ledger = published::read(&self.out.join("ledger.json"))?;
        Ok(ledger.published().next().is_none())
    }

    fn run_step(&self, step: &Step, words: &[String]) -> anyhow::Result<()> {
        anstream::eprintln!("{}", text::one_line(&own_command::shown(words)));
        let run = [
            ("GITHUB_RUN_ID", self.run.id.to_string()),
            ("GITHUB_RUN_ATTEMPT", self.run.run_attempt.to_string()),
        ];
        match step {
            Step::Ingest { .. } => own_command::run(words, &run),
            _ => own_command::run(words, &[]),
        }
    }
}

impl Printed {
    fn text(&self) -> String {
        let mut text = match &self.nothing {
            Some(reason) => format!("Nothing is missing of run {}: {reason}.\n", self.run_id),
            None if self.done => format!("Run {} is recovered, in {}.\n", self.run_id, self.out),
            None => format!("What is missing of run {} would be done with\n", self.run_id),
        };
        if self.done || self.nothing.is_some() {
            return text;
        }
        for line in &self.steps {
            text.push_str(&format!("  {}\n", text::one_line(&line.command)));
        }
        text
    }
}
