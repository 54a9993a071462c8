//! `sweepctl dispatch`: a sweep that somebody starts from the default branch.

use clap::{ArgGroup, Args};
use indexmap::IndexMap;
use serde::Serialize;

use super::client::ClientArgs;
use super::{dispatch_plan, output};
use crate::config::asked::Asked;
use crate::config::problem::Problems;
use crate::github::client::Client;
use crate::github::client::answers::Run;
use crate::github::dispatch::{self, Request};
use crate::github::event::Hash;
use crate::github::text;
use crate::plural;

const AFTER_HELP: &str = "\
A pull request is swept as it is now: its newest commit must have been approved by somebody with write access, or be \
named with --head by whoever has read it. Labels have no effect. The commit is compared with where it left the branch \
that it would be merged into; the workflow file is that of the default branch. So a fork's pull request is swept.

A generator command is read, and run on the work tree's configs, before it is sent.

Examples:
  sweepctl dispatch --pr 12 --dry-run
  sweepctl dispatch --pr 12 --head 1f0c2d... --trim-conc
  sweepctl dispatch --ref my-branch --generate \"test-config --config-keys 'a-*'\"";

/// `sweepctl dispatch`
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, group = ArgGroup::new("what").required(true).args(["pr", "generate"]))]
pub struct Dispatch {
    /// The pull request to sweep
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pr: Option<u64>,
    /// Its newest commit, in full, instead of an approval of it
    #[arg(long, value_name = "SHA", requires = "pr", conflicts_with = "generate", value_parser = hash)]
    head: Option<Hash>,
    /// Arguments of `sweepctl generate`, on one line
    #[arg(long, value_name = "COMMAND")]
    generate: Option<String>,
    /// The branch, tag or commit whose configs they are run on [default: the default branch]
    #[arg(long, value_name = "REF", requires = "generate", conflicts_with = "pr")]
    r#ref: Option<String>,
    /// The run's name [default: the pull request and its commit]
    #[arg(long, value_name = "TEXT")]
    test_name: Option<String>,
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    client: ClientArgs,
    /// Print the request, and send nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
}

fn hash(text: &str) -> Result<Hash, String> {
    Hash::new(text).ok_or_else(|| "a commit's full hash".to_owned())
}

/// What was sent, or would be.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Sent<'r> {
    workflow: &'static str,
    request: &'r Request,
    sent: bool,
    run_id: Option<u64>,
    url: Option<String>,
    command: String,
}

impl Dispatch {
    /// Sends it.
    ///
    /// # Errors
    /// A pull request that may not be swept, a generator command that is refused, and requests that fail.
    pub fn run(&self) -> anyhow::Result<()> {
        self.check_generate()?;
        let client = self.client.client()?;
        let request = self.request(&client)?;
        let run = match self.dry_run {
            true => None,
            false => dispatch::send(&client, &request).map_err(Problems::from)?,
        };
        let sent = Sent {
            workflow: dispatch::WORKFLOW,
            request: &request,
            sent: !self.dry_run,
            run_id: run.as_ref().map(|run| run.id),
            url: run.map(|Run { html_url, .. }| html_url),
            command: request.gh_command(&client),
        };
        match output::wants_json(self.json) {
            true => output::json(&sent),
            false => output::text(&shown(&sent)),
        }
    }

    /// Runs the generator command here, so that a typing mistake starts no run.
    fn check_generate(&self) -> anyhow::Result<()> {
        let Some(command) = &self.generate else { return Ok(()) };
        let jobs = dispatch_plan::parsed(command, &self.asked.flags())?.rows()?.len();
        anstream::eprintln!(
            "note: the command gives {} on the configs here",
            plural::count(jobs, "job")
        );
        Ok(())
    }

    fn request(&self, client: &Client) -> Result<Request, Problems> {
        let mut inputs: IndexMap<String, String> = IndexMap::new();
        let mut name = self.test_name.clone();
        if let Some(number) = self.pr {
            let compared = dispatch::comparison(client, number, self.head.as_ref())?;
            let head = compared.head.as_str().to_owned();
            name.get_or_insert_with(|| format!("Pull request {number} at {}", compared.head.short()));
            inputs.insert("base-ref".to_owned(), compared.base.as_str().to_owned());
            // As the ref to test, too: no branch of this repository holds a fork's commit, so it is fetched by its hash.
            inputs.insert("ref".to_owned(), head.clone());
            inputs.insert("head-ref".to_owned(), head);
        }
        let texts = [
            ("ref", self.r#ref.clone()),
            ("generate-cli-command", self.generate.clone()),
            ("test-name", name),
        ];
        let given = texts
            .into_iter()
            .filter_map(|(input, value)| Some((input.to_owned(), value?)));
        inputs.extend(given.chain(self.asked.inputs()));
        Ok(Request {
            r#ref: client.default_branch()?,
            inputs,
        })
    }
}

fn shown(sent: &Sent<'_>) -> String {
    let rows: Vec<Vec<String>> = sent
        .request
        .inputs
        .iter()
        .map(|(name, value)| vec![name.clone(), value.clone()])
        .collect();
    let what = match (&sent.url, sent.sent) {
        (Some(url), _) => format!("Started: {}", text::one_line(url)),
        (None, true) => "Sent; its run has not shown up yet.".to_owned(),
        (None, false) => "Not sent.".to_owned(),
    };
    let (workflow, branch) = (sent.workflow, text::one_line(&sent.request.r#ref));
    let inputs = output::table(&["input", "value"], &rows);
    format!(
        "{what}\n\n{workflow} of {branch} with\n{inputs}\nThe same by hand:\n  {}\n",
        text::one_line(&sent.command)
    )
}
