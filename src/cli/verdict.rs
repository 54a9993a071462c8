//! `sweepctl verdict`: whether everything that was planned ran.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use super::gate::NeedsArgs;
use super::output;
use super::published::{self, ResultsArgs};
use crate::config::problem::{Problem, Problems, printable};
use crate::github::checks;
use crate::github::client::{Client, Settings};
use crate::github::needs::{DECIDE, Needs};
use crate::github::text;
use crate::github::verdict::{self, Course, Planned, Verdict};
use crate::plan_files;
use crate::runner;
use crate::step::markdown::list;
use crate::step::results::file;

const AFTER_HELP: &str = "\
The verdict is the last job of a run, with `if: ${{ always() }}`, and waits for every other. It is the one check to \
require of a pull request: GitHub counts a skipped job as passed, the verdict does not.

The table counts whole buckets by their results. With --results it counts each job by what became of it, and names the \
recipes that are withheld: name the run's ledger.json, or the folder of what `sweepctl collect ... --plan F --ledger FILE` \
wrote.

The plan is read only if the job `decide` says that there is one.

In a run of a pull request that was started again, GitHub is asked for the verdicts of the commit (one request, with the \
token of GH_TOKEN): this run's would be the newest and cover that of a later run, so it fails where that did not pass. A \
full sweep that passed is noted as an annotation, which `sweepctl decide` finds where `require-sweep` asks for one.";

/// `sweepctl verdict`
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct VerdictArgs {
    #[command(flatten)]
    needs: NeedsArgs,
    /// The plan: its folder, its index, or a list of envelopes
    #[arg(long, value_name = "FILE|DIR")]
    plan: PathBuf,
    #[command(flatten)]
    results: ResultsArgs,
    /// A file to write the verdict to, as JSON
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
}

impl VerdictArgs {
    /// Judges.
    ///
    /// # Errors
    /// Everything that was planned and did not run or did not succeed, and inputs that cannot be read.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let needs = self.needs.read().map_err(Problems::from)?;
        let mut verdict = self.verdict(&needs)?;
        verdict.extend(later(&needs)?);
        if verdict.ok && verdict::is_of_a_full_sweep(&needs) && runner::on_actions() {
            runner::annotate(runner::Level::Notice, checks::FULL_SWEEP, &verdict.reason, None);
        }
        runner::summarize(&markdown(&verdict))?;
        if let Some(out) = &self.output {
            let written = file::write_atomic(out, &serde_json::to_vec(&verdict)?);
            written.with_context(|| format!("`{}` cannot be written", out.display()))?;
        }
        match output::wants_json(self.json) {
            true => output::json(&verdict)?,
            false => output::text(&shown(&verdict))?,
        }
        Problems(verdict.hints).into_result()?;
        Ok(())
    }

    fn verdict(&self, needs: &Needs) -> Result<Verdict, Problems> {
        match verdict::course(needs)? {
            Course::NoSweep(reason) => return Ok(verdict::no_sweep(needs, &reason)),
            Course::Reused(reason) => return Ok(verdict::reused(needs, &reason)),
            Course::Ended(problem) => return Ok(verdict::ended(needs, problem)),
            Course::Swept => {}
        }
        let plan = Planned {
            index: plan_files::index(&self.plan)?,
            envelopes: plan_files::envelopes(&self.plan)?,
        };
        let ledger = self.results.ledger(|| Ok(published::Plan::of(&plan)), needs)?;
        Ok(verdict::with_plan(needs, &plan, ledger.as_ref()))
    }
}

/// What a later run's verdict holds against that of a run that was started again.
fn later(needs: &Needs) -> Result<Option<Problem>, Problems> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let of_a_pull_request = std::env::var("GITHUB_EVENT_NAME").is_ok_and(|name| name == "pull_request");
    let again = of_a_pull_request && number("GITHUB_RUN_ATTEMPT").is_some_and(|attempt| attempt > 1);
    let output = |name: &str| needs.0.get(DECIDE).and_then(|decide| decide.outputs.get(name));
    let decides = output("decides").is_some_and(|decides| decides == "true");
    match (number("GITHUB_RUN_ID"), output("head_ref")) {
        (Some(run), Some(commit)) if again && decides && !commit.is_empty() => {
            let client = Client::new(Settings::from_environment(None)?)?.with_reserve();
            Ok(checks::later_verdict(&client, commit, run)?)
        }
        _ => Ok(None),
    }
}

const HEAD: [&str; 7] = ["bucket", "job", "planned", "done", "failed", "missing", "result"];

fn rows(verdict: &Verdict) -> Vec<Vec<String>> {
    let count = |count: Option<usize>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
    let row = |line: &verdict::Line| {
        vec![
            line.bucket.clone(),
            line.job.clone(),
            line.planned.to_string(),
            count(line.done),
            count(line.failed),
            count(line.missing),
            line.result.unwrap_or("not waited for").to_owned(),
        ]
    };
    verdict.buckets.iter().map(row).collect()
}

fn shown(verdict: &Verdict) -> String {
    let sentence = text::one_line(&verdict.reason);
    let mut shown = match verdict.buckets.is_empty() {
        true => format!("{sentence}\n"),
        false => format!("{sentence}\n\n{}", output::table(&HEAD, &rows(verdict))),
    };
    for withheld in &verdict.withheld {
        shown.push_str(&format!("withheld: {}\n", text::one_line(withheld)));
    }
    shown
}

/// The verdict in a step summary; what is wrong stands in a fence, because results may say anything.
fn markdown(verdict: &Verdict) -> String {
    let mut text = format!("### Verdict\n\n{}\n", verdict.reason);
    if !verdict.buckets.is_empty() {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        text.push_str(&format!("\n{}", line(&HEAD.map(str::to_owned))));
        text.push_str("| --- | --- | ---: | ---: | ---: | ---: | --- |\n");
        rows(verdict).iter().for_each(|cells| text.push_str(&line(cells)));
    }
    if !verdict.withheld.is_empty() {
        text.push_str(&format!("\n#### Withheld\n\n{}", list(&verdict.withheld)));
    }
    // Those past the annotations' limit follow where all commands report them.
    let shown: Vec<String> = verdict
        .problems
        .iter()
        .take(runner::MAX_ANNOTATIONS)
        .map(|p| printable(p))
        .collect();
    if !shown.is_empty() {
        text.push_str(&format!("\n{}\n", runner::fenced(&shown.join("\n"))));
    }
    text
}
