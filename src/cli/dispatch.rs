//! `sweepctl dispatch`: a sweep that somebody starts from the default branch.

use std::io::{BufRead, IsTerminal, Read};
use std::path::Path;

use clap::{ArgGroup, Args};
use indexmap::IndexMap;
use serde::Serialize;

use super::client::ClientArgs;
use super::dispatch_preview::{self, Preview};
use super::render::workflow_settings;
use super::{dispatch_plan, output};
use crate::config::asked::Asked;
use crate::config::problem::{Problem, Problems};
use crate::github::client::Client;
use crate::github::dispatch::{self, Request};
use crate::github::event::Hash;
use crate::github::text;
use crate::matrix::bucket;

/// The longest answer that is read, in bytes.
const LONGEST_ANSWER: u64 = 100;

const AFTER_HELP: &str = "\
A pull request is swept as it is now: its newest commit must have been approved by somebody with write access, or be \
named with --head by whoever has read it. Labels have no effect. The commit is compared with where it left the branch \
that it would be merged into; the workflow file is that of the default branch. So a fork's pull request is swept.

A reviewer's request for changes blocks it.

A generator command is read, and run on the work tree's configs, before it is sent. A pull request is planned where this \
clone has its commits: `git fetch origin pull/N/head` brings them. Jobs and GPUs are shown, and asked about.

Examples:
  sweepctl dispatch --pr 12 --dry-run
  sweepctl dispatch --pr 12 --head 1f0c2d... --trim-conc
  sweepctl dispatch --pr 12 --yes
      without asking, as scripts do
  sweepctl dispatch --ref my-branch --generate \"test-config --config-keys 'a-*'\"";

/// `sweepctl dispatch`
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, group = ArgGroup::new("what").required(true).args(["pr", "generate"]))]
pub(crate) struct Dispatch {
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
    /// Send it without asking
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
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
    preview: Option<&'r Preview>,
    sent: bool,
    run_id: Option<u64>,
    url: Option<String>,
    command: String,
}

/// What is sent, and what it would start.
struct Prepared {
    inputs: IndexMap<String, String>,
    labels: Vec<String>,
    /// `None` where this clone has not the commits.
    preview: Option<Preview>,
}

impl Dispatch {
    /// Sends it.
    ///
    /// # Errors
    /// Nobody to ask, a pull request that may not be swept, a plan or a generator command that is refused, and requests
    /// that fail.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let json = output::wants_json(self.json);
        let asks = !self.dry_run && !self.yes;
        if asks && (json || !std::io::stdin().is_terminal()) {
            let problem = Problem::file("", "nobody is here to be asked whether to start the sweep");
            let hint = "see what it would be with --dry-run, and send it with --yes";
            return Err(Problems::from(problem.hint(hint)).into());
        }
        let most = workflow_settings(Path::new("."))?.dispatch_inputs;
        let (client, prepared) = self.prepare()?;
        let request = Request {
            r#ref: client.default_branch().map_err(Problems::from)?,
            inputs: dispatch::inputs(prepared.inputs, &self.asked, &prepared.labels, most),
        };
        let preview = prepared.preview.as_ref();
        if !json {
            output::prose(&previewed(preview, self.pr))?;
        }
        let send = !self.dry_run && (!asks || confirmed()?);
        let run = match send {
            true => dispatch::send(&client, &request).map_err(Problems::from)?,
            false => None,
        };
        let sent = Sent {
            workflow: dispatch::WORKFLOW,
            request: &request,
            preview,
            sent: send,
            run_id: run.as_ref().map(|run| run.workflow_run_id),
            url: run.map(|run| run.html_url),
            command: request.gh_command(&client),
        };
        match json {
            true => output::json(&sent),
            false => output::text(&shown(&sent)),
        }
    }

    fn prepare(&self) -> anyhow::Result<(Client, Prepared)> {
        match &self.generate {
            Some(command) => {
                // Here first, so that a typing mistake starts no run.
                let rows = dispatch_plan::parsed(command, &self.asked.flags())?.rows()?;
                let preview = Preview::of(&bucket::of_rows(&rows, &self.asked)?);
                let texts = [
                    ("ref", self.r#ref.clone()),
                    ("generate-cli-command", Some(command.clone())),
                    ("test-name", self.test_name.clone()),
                ];
                let given = texts
                    .into_iter()
                    .filter_map(|(input, value)| Some((input.to_owned(), value?)));
                let prepared = Prepared {
                    inputs: given.collect(),
                    labels: Vec::new(),
                    preview: Some(preview),
                };
                Ok((self.client.client()?, prepared))
            }
            None => {
                let client = self.client.client()?;
                let prepared = self.prepare_pull(&client)?;
                Ok((client, prepared))
            }
        }
    }

    fn prepare_pull(&self, client: &Client) -> anyhow::Result<Prepared> {
        let number = self.pr.expect("clap asks for a pull request or a command");
        let compared = dispatch::comparison(client, number, self.head.as_ref())?;
        let preview = dispatch_preview::of_pull(&compared, &self.asked)?;
        let head = compared.head.as_str().to_owned();
        let own_name = || format!("Pull request {number} at {}", compared.head.short());
        let inputs = [
            ("base-ref", compared.base.as_str().to_owned()),
            // As the ref to test, too: no branch of this repository holds a fork's commit, so it is fetched by its hash.
            ("ref", head.clone()),
            ("head-ref", head),
            ("test-name", self.test_name.clone().unwrap_or_else(own_name)),
        ];
        Ok(Prepared {
            inputs: inputs
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            labels: compared.labels,
            preview,
        })
    }
}

/// What would be started, for people.
fn previewed(preview: Option<&Preview>, pull: Option<u64>) -> String {
    match (preview, pull) {
        (Some(preview), _) => format!("{}\n", preview.table()),
        (None, Some(number)) => format!(
            "What it would start is not known: this clone has not the commits.\n`git fetch origin pull/{number}/head` \
             brings them.\n\n"
        ),
        (None, None) => String::new(),
    }
}

/// Asks on the terminal. Nothing, and the end of the input, mean no.
fn confirmed() -> anyhow::Result<bool> {
    anstream::eprint!("Start it? [y/N] ");
    let mut answer = String::new();
    std::io::stdin().lock().take(LONGEST_ANSWER).read_line(&mut answer)?;
    if !answer.ends_with('\n') {
        anstream::eprintln!();
    }
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// The request as a command over several lines, an input on each.
fn by_hand(sent: &Sent<'_>) -> String {
    let start = sent.command.split(" -f ").next().unwrap_or_default();
    let mut lines = vec![format!("  {}", text::one_line(start))];
    lines.extend(
        sent.request
            .input_words()
            .iter()
            .map(|word| format!("    -f {}", text::one_line(word))),
    );
    lines.join(" \\\n") + "\n"
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
        (None, true) => "Sent; its run has not shown up yet: look on the page of its workflow.".to_owned(),
        (None, false) => "Not sent.".to_owned(),
    };
    let (workflow, branch) = (sent.workflow, text::one_line(&sent.request.r#ref));
    let inputs = output::table(&["input", "value"], &rows);
    format!(
        "{what}\n\n{workflow} of {branch} with\n{inputs}\nThe same by hand:\n{}",
        by_hand(sent)
    )
}
