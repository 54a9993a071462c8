//! `sweepctl decide`: whether an event starts a sweep, of what and how.

use std::path::{Path, PathBuf};

use clap::Args;

use super::inputs::LabelsArgs;
use super::output;
use crate::config::problem::{Problem, Problems};
use crate::config::source::Source;
use crate::github::decide::{self, Decision};
use crate::github::event::Event;
use crate::github::facts::{self, Missing};
use crate::github::text;
use crate::repo::Repo;
use crate::runner::{self, RunnerFile};

const AFTER_HELP: &str = "\
The event is the payload that GitHub writes to the file of GITHUB_EVENT_PATH. Locally, save one of a webhook's recent \
deliveries, change its labels, and see what they would do before anyone sets them:

  sweepctl decide --event labeled.json

Of the head commit only the message is read, through git, for the skip marker. On GitHub Actions a commit that is not \
in the clone is an error: check out with `fetch-depth: 0`. Locally it is a warning, and no marker is assumed.";

/// `sweepctl decide`
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Decide {
    #[command(flatten)]
    event: EventArgs,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
    /// Append every field as an output, its name with `_`, to the file that GITHUB_OUTPUT names
    #[arg(long)]
    github_output: bool,
}

/// An event, and the labels that give it a meaning.
#[derive(Debug, Args)]
pub struct EventArgs {
    /// The event's payload; `-` reads standard input [default: the file that GITHUB_EVENT_PATH names]
    #[arg(long, value_name = "FILE")]
    event: Option<PathBuf>,
    /// The event's name, such as `push` [default: GITHUB_EVENT_NAME, else what the payload looks like]
    #[arg(long, value_name = "NAME")]
    event_name: Option<String>,
    /// The ref that was pushed, in full, instead of the payload's (GITHUB_REF holds it)
    #[arg(long, value_name = "REF")]
    r#ref: Option<String>,
    #[command(flatten)]
    labels: LabelsArgs,
}

impl Decide {
    /// Decides, and prints or writes the decision.
    ///
    /// # Errors
    /// An event or a labels file that cannot be read, commits that are missing on GitHub Actions, and what is refused:
    /// two primary labels, a dispatch that does not say what to sweep.
    pub fn run(&self) -> anyhow::Result<()> {
        let decision = self.event.decision()?.map_err(Problems::from)?;
        if self.github_output {
            runner::append(RunnerFile::Output, &decision.outputs())?;
        }
        runner::summarize(&format!("{}\n", decision.sentence()))?;
        match output::wants_json(self.json) {
            true => output::json(&decision),
            false => output::text(&shown(&decision)),
        }
    }
}

impl EventArgs {
    /// The decision on the event, or why it is refused.
    ///
    /// # Errors
    /// An event or a labels file that cannot be read, and commits that are missing on GitHub Actions.
    pub fn decision(&self) -> Result<Result<Decision, Problem>, Problems> {
        let (event, labels) = super::inputs::both(self.event(), self.labels.load())?;
        let missing = if runner::on_actions() {
            Missing::Refuse
        } else {
            Missing::Note
        };
        let facts = facts::gather(&event, || Repo::open(Path::new(".")), missing)?;
        for assumption in &facts.assumed {
            anstream::eprintln!("note: {}", text::one_line(assumption));
        }
        Ok(decide::decide(&event, &facts, &labels))
    }

    /// The payload's text, and the event's name where it is given.
    ///
    /// # Errors
    /// No event, or one that cannot be read.
    pub fn payload(&self) -> Result<(Source, Option<String>), Problem> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let path = self
            .event
            .clone()
            .or_else(|| variable("GITHUB_EVENT_PATH").map(PathBuf::from));
        let Some(path) = path else {
            let problem = Problem::file("", "there is no event: GITHUB_EVENT_PATH is not set");
            return Err(problem.hint("name the file of a payload with --event"));
        };
        let name = self.event_name.clone().or_else(|| variable("GITHUB_EVENT_NAME"));
        Ok((text::read(&path)?, name))
    }

    fn event(&self) -> Result<Event, Problems> {
        let (payload, name) = self.payload()?;
        let mut event = Event::parse(name.as_deref(), &payload.text, &payload.name)?;
        if let (Event::Push(push), Some(asked)) = (&mut event, &self.r#ref) {
            push.r#ref.clone_from(asked);
        }
        Ok(event)
    }
}

/// The decision on a terminal: the sentence, then what is not `false` or empty.
fn shown(decision: &Decision) -> String {
    let rows: Vec<Vec<String>> = decision
        .outputs()
        .into_iter()
        .filter(|(name, value)| !matches!(name.as_str(), "reason") && !matches!(value.as_str(), "" | "false"))
        .map(|(name, value)| vec![name, value])
        .collect();
    let sentence = text::one_line(&decision.sentence());
    format!("{sentence}\n\n{}", output::table(&["output", "value"], &rows))
}
