//! `sweepctl decide`: whether an event starts a sweep, of what and how.

use std::path::{Path, PathBuf};

use clap::Args;

use super::client::ClientArgs;
use super::inputs::LabelsArgs;
use super::output;
use crate::config::labels::Labels;
use crate::config::problem::{Problem, Problems};
use crate::config::source::Source;
use crate::github::checks;
use crate::github::decide::{self, Decision, Facts, Question};
use crate::github::event::{self, Event};
use crate::github::facts::{self, Missing};
use crate::github::text;
use crate::repo::Repo;
use crate::runner::{self, RunnerFile};

const AFTER_HELP: &str = "\
The event is the payload that GitHub writes to the file of GITHUB_EVENT_PATH. Locally, save one of a webhook's recent \
deliveries, change its labels, and see what they would do before anyone sets them:

  sweepctl decide --event labeled.json

Of the commits only the head's message and the changelog are read, through git. On GitHub Actions a commit that is not \
in the clone is an error: check out with `fetch-depth: 0`. Locally it is a warning, and no marker and an added entry are \
assumed.

GitHub is asked for few events: of a merge group for the newest `Verdict` of the pull request's head (two requests), and, \
where the labels file says `require-sweep: true`, whether a full sweep of the head has passed. The token is that of \
GH_TOKEN, else GITHUB_TOKEN; locally nothing is asked without one.";

/// `sweepctl decide`
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Decide {
    #[command(flatten)]
    event: EventArgs,
    #[command(flatten)]
    client: ClientArgs,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
    /// Append every field as an output, its name with `_`, to the file that GITHUB_OUTPUT names
    #[arg(long)]
    github_output: bool,
}

/// An event, and the labels that give it a meaning.
#[derive(Debug, Args)]
pub(crate) struct EventArgs {
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
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let given = self.event.read()?;
        let decision = given.decision(Some(&self.client))?.map_err(Problems::from)?;
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

/// An event that was read, and the labels that give it a meaning.
#[derive(Debug)]
pub(crate) struct Given {
    /// The payload's text.
    pub payload: Source,
    /// The event's name.
    pub name: String,
    event: Event,
    labels: Labels,
}

impl EventArgs {
    /// Reads the event, once: it may come through standard input.
    ///
    /// # Errors
    /// No event, and an event or a labels file that cannot be read.
    pub(crate) fn read(&self) -> Result<Given, Problems> {
        let ((payload, name, event), labels) = super::inputs::both(self.event(), self.labels.load())?;
        Ok(Given {
            payload,
            name,
            event,
            labels,
        })
    }

    fn event(&self) -> Result<(Source, String, Event), Problems> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let path = self
            .event
            .clone()
            .or_else(|| variable("GITHUB_EVENT_PATH").map(PathBuf::from));
        let Some(path) = path else {
            let problem = Problem::file("", "there is no event: GITHUB_EVENT_PATH is not set");
            return Err(problem.hint("name the file of a payload with --event").into());
        };
        let payload = text::read(&path)?;
        let name = match self.event_name.clone().or_else(|| variable("GITHUB_EVENT_NAME")) {
            Some(name) => name,
            None => event::look(&payload.text, &payload.name)?.to_owned(),
        };
        let mut event = Event::parse(Some(&name), &payload.text, &payload.name)?;
        if let (Event::Push(push), Some(asked)) = (&mut event, &self.r#ref) {
            push.r#ref.clone_from(asked);
        }
        Ok((payload, name, event))
    }
}

impl Given {
    /// The decision on the event, or why it is refused. GitHub is asked where a decision turns on it and a client is
    /// given; locally also only with a token.
    ///
    /// # Errors
    /// On GitHub Actions, commits that are missing and requests that fail.
    pub(crate) fn decision(&self, client: Option<&ClientArgs>) -> Result<Result<Decision, Problem>, Problems> {
        let missing = if runner::on_actions() {
            Missing::Refuse
        } else {
            Missing::Note
        };
        let mut facts = facts::gather(&self.event, || Repo::open(Path::new(".")), missing)?;
        let decide = |facts: &Facts| decide::decide(&self.event, facts, &self.labels);
        let mut decision = decide(&facts);
        let question = decision
            .as_ref()
            .ok()
            .and_then(|made| decide::question(&self.event, made));
        if let Some(question) = question {
            let asked = match client.filter(|_| missing == Missing::Refuse || has_token()) {
                Some(client) => ask(question, client, &mut facts),
                None => Err(Problem::file("", "GitHub is not asked").into()),
            };
            match (asked, missing, client) {
                (Ok(()), ..) => decision = decide(&facts),
                (Err(problems), Missing::Refuse, Some(_)) => return Err(problems),
                (Err(problems), ..) => facts.assumed.push(assumed(question, &problems)),
            }
        }
        for assumption in &facts.assumed {
            anstream::eprintln!("note: {}", text::one_line(assumption));
        }
        Ok(decision)
    }
}

fn has_token() -> bool {
    let set = |name: &str| std::env::var(name).is_ok_and(|token| !token.trim().is_empty());
    set("GH_TOKEN") || set("GITHUB_TOKEN")
}

/// Adds the answer to a question to what is known.
fn ask(question: Question<'_>, client: &ClientArgs, facts: &mut Facts) -> Result<(), Problems> {
    let client = client.client()?;
    match question {
        Question::HeadVerdict(group) => facts.head_verdict = Some(checks::head_verdict(&client, group.pull()?)?),
        Question::FullSweep(head) => facts.full_sweep = Some(checks::full_sweep_passed(&client, head)?),
    }
    Ok(())
}

/// What is assumed where GitHub gives no answer.
fn assumed(question: Question<'_>, problems: &Problems) -> String {
    let why = problems.0.first().map_or("", |problem| problem.message.as_str());
    let instead = match question {
        Question::HeadVerdict(_) => "the verdict of the pull request's head is taken to have passed",
        Question::FullSweep(_) => "no full sweep is assumed to have passed",
    };
    format!("{why}: {instead}")
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
