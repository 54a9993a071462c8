//! `sweepctl workflow simulate`: which jobs run for an event and a plan, without running any.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, error::ErrorKind};
use indexmap::IndexMap;

use super::decide::EventArgs;
use super::plan::PlanArgs;
use super::queue::{self, Trigger};
use super::render::workflow_settings;
use super::{output, rows, usage, workflow};
use crate::config::asked::Refs;
use crate::config::problem::{Problem, Problems};
use crate::config::source::Source;
use crate::config::workflows::Workflows;
use crate::github::decide::Decision;
use crate::github::needs::JobResult;
use crate::github::text::one_line;
use crate::matrix::bucket::{self, Buckets};
use crate::plan_files;
use crate::repo::{CHANGELOG, Repo};
use crate::workflow::check::Files;
use crate::workflow::simulate::{Ask, Commands, Faults, JobReport, Plan, Run, Simulation, simulate};

const HELP: &str = "\
Reads the rendered files and evaluates their conditions, names, matrices and groups as GitHub does. The jobs that decide, \
plan, load shards, check gates or judge are computed; everything else is assumed to succeed, unless --result \
names another end. Called workflows are entered. Nothing is run, and no request is sent.

The plan is the one that the event asks for: of the refs that `decide` names, with the flags of its labels.

Examples:
  sweepctl workflow simulate --event labeled.json
      what a label would start
  sweepctl workflow simulate --event push.json --latest
      a push of the newest changelog entries
  sweepctl workflow simulate --event labeled.json --result canary=failure
      what a failed canary stops
  sweepctl workflow simulate --event labeled.json --cancelled-in sweep-evals
      what still runs after a cancellation";

/// `sweepctl workflow simulate`
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Simulate {
    #[command(flatten)]
    event: EventArgs,
    /// The workflow: the name of its file, without `.yml`
    #[arg(long, value_name = "NAME", default_value = "run-sweep")]
    workflow: String,
    /// The folder that holds `.github`
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
    /// A plan instead of the one that the event asks for: the folder that `plan --emit` or `generate --emit` wrote, or its
    /// index
    #[arg(long, value_name = "FILE|DIR", help_heading = "The plan", conflicts_with_all = ["latest", "base_ref", "head_ref"])]
    plan: Option<PathBuf>,
    /// Plan the newest commit that added changelog entries
    #[arg(long, help_heading = "The plan", conflicts_with_all = ["base_ref", "head_ref"])]
    latest: bool,
    #[command(flatten, next_help_heading = "The plan")]
    refs: Refs,
    /// How a job ends that runs: success, failure or cancelled; `skipped` keeps it from running
    #[arg(long = "result", value_name = "JOB=RESULT", help_heading = "What goes wrong", value_parser = result)]
    results: Vec<(String, JobResult)>,
    /// An output of a job, instead of what is known of it
    #[arg(long = "output", value_name = "JOB.NAME=VALUE", help_heading = "What goes wrong", value_parser = job_output)]
    outputs: Vec<((String, String), String)>,
    /// The job during which the run is cancelled
    #[arg(long, value_name = "JOB", help_heading = "What goes wrong")]
    cancelled_in: Option<String>,
    /// How often the run was started: above 1, the event is an earlier one and stays as it was
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "What goes wrong", value_parser = clap::value_parser!(u64).range(1..))]
    attempt: u64,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
}

fn result(text: &str) -> Result<(String, JobResult), String> {
    let (job, result) = text.split_once('=').ok_or("write JOB=RESULT, such as canary=failure")?;
    let known = [
        JobResult::Success,
        JobResult::Failure,
        JobResult::Cancelled,
        JobResult::Skipped,
    ];
    let result = known.into_iter().find(|known| known.as_str() == result);
    let result = result.ok_or("a result is success, failure, cancelled or skipped")?;
    Ok((job.to_owned(), result))
}

fn job_output(text: &str) -> Result<((String, String), String), String> {
    let (output, value) = text
        .split_once('=')
        .ok_or("write JOB.NAME=VALUE, such as gate.run=false")?;
    let (job, name) = output
        .rsplit_once('.')
        .ok_or("name the job and its output: JOB.NAME=VALUE")?;
    Ok(((job.to_owned(), name.to_owned()), value.to_owned()))
}

impl Simulate {
    /// Simulates and prints.
    ///
    /// # Errors
    /// Files, an event or a plan that cannot be read, and faults of jobs that are not there.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let paths = workflow::in_folder(&self.root);
        if paths.is_empty() {
            let place = self.root.display().to_string();
            let problem = Problem::file(&place, format!("`{place}` holds no workflow"));
            return Err(Problems::from(problem.hint("run `sweepctl render`, or name another --root")).into());
        }
        let sources = crate::repo::all(paths.iter().map(|path| Source::read(path).map(Arc::new)))?;
        let (files, problems) = Files::parse(&sources);
        problems.into_result()?;
        let given = self.event.read()?;
        let decision = given.decision(None)?;
        let trigger = Trigger::of_event(Some(&given.name), &given.payload)?;
        let scratch = tempfile::tempdir()?;
        let ask = Ask {
            workflow: &self.workflow,
            event: &given.name,
            payload: &serde_json::from_str(&given.payload.text)?,
            run: Run {
                id: 1,
                attempt: self.attempt,
            },
            commands: Commands {
                plan: self.plan(decision.as_ref().ok(), &trigger, scratch.path())?,
                decision,
                later: None,
            },
            faults: Faults {
                results: self.results.iter().cloned().collect(),
                outputs: self.outputs.iter().cloned().collect(),
                cancelled_in: self.cancelled_in.clone(),
            },
        };
        let simulation = simulate(&files, &ask)?;
        match output::wants_json(self.json) {
            true => output::json(&simulation),
            false => output::text(&shown(&simulation)),
        }
    }

    /// The plan. Why the event's own cannot be made is what its job says; one that was asked for must be there.
    fn plan(
        &self,
        decision: Option<&Decision>,
        trigger: &Trigger,
        scratch: &Path,
    ) -> anyhow::Result<Result<Plan, Problems>> {
        if let Some(folder) = &self.plan {
            let plan = Plan::read(plan_files::folder(folder).map_err(Problems::from)?.to_owned())?;
            for note in decision.into_iter().flat_map(|decision| differences(&plan, decision)) {
                anstream::eprintln!("note: {note}");
            }
            return Ok(Ok(plan));
        }
        if let Some(note) = decision.filter(|_| self.latest).and_then(left_alone) {
            anstream::eprintln!("note: {note}");
        }
        let refs = match decision {
            _ if self.latest => vec!["--latest".to_owned()],
            _ if self.refs.pair().is_some() => self.refs.flags(),
            Some(Decision {
                run: true,
                base_ref,
                head_ref,
                ..
            }) if !head_ref.is_empty() => {
                vec![format!("--base-ref={base_ref}"), format!("--head-ref={head_ref}")]
            }
            _ => {
                let problem = Problem::file("", "the event does not say what is planned");
                return Ok(Err(problem
                    .hint("name a folder with --plan, or --base-ref and --head-ref")
                    .into()));
            }
        };
        let settings = workflow_settings(&self.root)?;
        let scored = |buckets: &mut Buckets| queue::score(buckets, &self.root, &settings, trigger);
        let planned = emitted(refs, decision, &settings, scored, scratch)?;
        match self.latest || self.refs.pair().is_some() {
            true => Ok(Ok(planned?)),
            false => Ok(planned),
        }
    }
}

/// That an event's commits leave the changelog as it is, where git knows them: it plans nothing, whatever --latest plans.
fn left_alone(decision: &Decision) -> Option<String> {
    let repo = Repo::open(Path::new(".")).ok()?;
    let at = |name: &str| Some(repo.file(&repo.revision(name).ok()?, CHANGELOG).ok()??.text.clone());
    let same = at(&decision.base_ref)? == at(&decision.head_ref)?;
    same.then(|| {
        format!("the event's commits leave {CHANGELOG} as it is, and plan nothing: the plan is that of --latest")
    })
}

/// In which flags a plan that was given is not the one that the event asks for.
fn differences(plan: &Plan, decision: &Decision) -> Vec<String> {
    if !decision.run {
        return Vec::new();
    }
    let (asked, made) = (decision.asked.flags(), plan.planned.index.asked.flags());
    let only = |these: &[String], those: &[String]| -> Vec<String> {
        these.iter().filter(|flag| !those.contains(flag)).cloned().collect()
    };
    let lacks = only(&asked, &made)
        .into_iter()
        .map(|flag| format!("the event asks for `{flag}`, and the plan was made without it"));
    let has = only(&made, &asked)
        .into_iter()
        .map(|flag| format!("the plan was made with `{flag}`, which the event does not ask for"));
    lacks.chain(has).collect()
}

/// Plans as the workflow's step does, into a folder.
fn emitted(
    refs: Vec<String>,
    decision: Option<&Decision>,
    settings: &Workflows,
    scored: impl Fn(&mut Buckets) -> Result<(), Problems>,
    scratch: &Path,
) -> anyhow::Result<Result<Plan, Problems>> {
    let flags = decision.map(|decision| decision.asked.flags()).unwrap_or_default();
    let args = PlanArgs::read(refs.into_iter().chain(flags))
        .map_err(|error| usage(ErrorKind::ValueValidation, error.to_string()))?;
    let plan = || {
        let mut buckets = bucket::of_plan(&args.plan()?, &args.asked)?;
        scored(&mut buckets)?;
        let canary = decision.is_some_and(|decision| decision.canary);
        let folder = scratch.join("plan");
        rows::emit(&folder, buckets, canary, &args.asked, settings)?;
        Plan::read(folder)
    };
    Ok(plan())
}

/// The simulation on a terminal: what the run is, then its jobs, those of called workflows below their caller.
fn shown(simulation: &Simulation) -> String {
    let (workflow, event) = (one_line(&simulation.workflow), one_line(&simulation.event));
    if !simulation.starts {
        return format!(
            "{workflow} does not start on this {event}: {}.\n",
            one_line(&simulation.why)
        );
    }
    let group = match (simulation.group.is_empty(), simulation.cancels) {
        (true, _) => String::new(),
        (false, true) => format!(" It cancels what runs in the group {}.", one_line(&simulation.group)),
        (false, false) => format!(" It waits for the group {}.", one_line(&simulation.group)),
    };
    let mut rows = Vec::new();
    let jobs: Vec<&JobReport> = simulation.jobs.iter().collect();
    add_rows(&jobs, 0, &mut rows);
    format!(
        "{workflow} starts on this {event}, and ends as {}.{group}\n\n{}",
        simulation.result.as_str(),
        output::table(&["job", "runs", "result", "runs on", "name, or why not"], &rows)
    )
}

/// A row for each job; jobs of the same id, of all legs of their caller, share one.
fn add_rows(jobs: &[&JobReport], level: usize, rows: &mut Vec<Vec<String>>) {
    let mut by_id: IndexMap<&str, Vec<&JobReport>> = IndexMap::new();
    for job in jobs {
        by_id.entry(job.job.as_str()).or_default().push(job);
    }
    for (id, jobs) in by_id {
        let legs = || jobs.iter().flat_map(|job| &job.legs);
        let labels = legs()
            .map(|leg| leg.runs_on.join("+"))
            .filter(|labels| !labels.is_empty());
        let runs: usize = jobs.iter().filter(|job| job.runs).map(|job| job.legs.len()).sum();
        let whys: Vec<String> = jobs
            .iter()
            .map(|job| job.why.clone())
            .filter(|why| !why.is_empty())
            .collect();
        let names = legs().map(|leg| leg.name.clone()).collect();
        rows.push(vec![
            format!("{}{id}", "  ".repeat(level)),
            if runs == 0 { "no".to_owned() } else { runs.to_string() },
            counted(jobs.iter().map(|job| job.result.as_str().to_owned()).collect(), 3),
            counted(labels.collect(), 2),
            counted(if whys.is_empty() { names } else { whys }, 1),
        ]);
        let inner: Vec<&JobReport> = legs().flat_map(|leg| &leg.jobs).collect();
        add_rows(&inner, level + 1, rows);
    }
}

/// Texts on one line: each once, with how often it stands where there are several, and so many at most.
fn counted(texts: Vec<String>, most: usize) -> String {
    let mut counts: IndexMap<String, usize> = IndexMap::new();
    for text in texts {
        *counts.entry(one_line(&text)).or_default() += 1;
    }
    let one = |(text, count): (&String, &usize)| match (counts.len(), count) {
        (1, _) | (_, 1) => text.clone(),
        (_, count) => format!("{text} x{count}"),
    };
    let mut shown: Vec<String> = counts.iter().take(most).map(one).collect();
    if counts.len() > most {
        shown.push(format!("{} more", counts.len() - most));
    }
    shown.join(", ")
}
