//! What the steps of a job would say: the commands of this binary, asked for real with what is known of the run.

use std::path::PathBuf;

use super::evaluate::{Scope, Status};
use super::template::{self, Condition};
use super::value::Value;
use crate::config::problem::{Problem, Problems};
use crate::config::tree::Node;
use crate::github::decide::Decision;
use crate::github::gate::{self, For};
use crate::github::needs::{JobResult, Need, Needs};
use crate::github::verdict::{self, Course, Planned};
use crate::plan_files;
use crate::workflow::tree::{get, pairs};

/// A plan's folder, and what it holds.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The folder that `plan --emit` wrote.
    pub folder: PathBuf,
    /// Its index and its jobs.
    pub planned: Planned,
}

impl Plan {
    /// Reads a plan.
    ///
    /// # Errors
    /// A folder that is none.
    pub fn read(folder: PathBuf) -> Result<Self, Problems> {
        let planned = Planned {
            index: plan_files::index(&folder)?,
            envelopes: plan_files::envelopes(&folder)?,
        };
        Ok(Self { folder, planned })
    }
}

/// What the commands are asked with.
#[derive(Debug, Clone)]
pub struct Commands {
    /// What `decide` says of the event.
    pub decision: Result<Decision, Problem>,
    /// What `plan` writes, or why it fails.
    pub plan: Result<Plan, Problems>,
    /// What a later run's verdict holds against that of a run that was started again; `None` where nothing does.
    pub later: Option<Problem>,
}

/// Outputs of a step.
pub(super) type Outputs = Vec<(String, String)>;

impl Commands {
    /// The context `steps` after a job's steps all succeeded, but for those whose condition skips them.
    ///
    /// # Errors
    /// The first command that would fail the job.
    pub(super) fn steps(&self, steps: &[Node<'_>], scope: &Scope, needs: &Needs) -> Result<Value, Problems> {
        let mut known = needs.clone();
        let mut all: Vec<(String, Value)> = Vec::new();
        for step in steps {
            let scope = scope.clone().with("steps", all.iter().cloned().collect());
            let (result, outputs) = match (is_skipped(step, &scope), get(step, "run")) {
                (true, _) => (JobResult::Skipped, Outputs::new()),
                (false, Some(script)) => {
                    let words = words(script.text(), step, &scope);
                    (JobResult::Success, self.step(&words, &known)?)
                }
                (false, None) => (JobResult::Success, Outputs::new()),
            };
            let Some(id) = get(step, "id") else { continue };
            let said: Value = outputs
                .iter()
                .map(|(name, value)| (name, value.as_str().into()))
                .collect();
            let said: Value = [
                ("outputs", said),
                ("outcome", result.as_str().into()),
                ("conclusion", result.as_str().into()),
            ]
            .into_iter()
            .collect();
            all.push((id.text().to_owned(), said));
            let outputs = outputs.into_iter().collect();
            known.0.insert(id.text().to_owned(), Need { result, outputs });
        }
        Ok(all.into_iter().collect())
    }

    /// The outputs of one step, by the command of this binary that it runs; of any other none are known. `needs` are the
    /// jobs that were waited for, and the steps before it.
    fn step(&self, words: &[String], needs: &Needs) -> Result<Outputs, Problems> {
        let Some(at) = words.iter().position(|word| word == "sweepctl") else {
            return Ok(Outputs::new());
        };
        let words: Vec<&str> = words[at + 1..].iter().map(String::as_str).collect();
        match words.as_slice() {
            ["decide", ..] => Ok(self.decision.clone()?.outputs()),
            // GitHub is not asked: nothing stands in, unless an output of the job is given that says so.
            ["reuse", flag, ..] if flag.starts_with("--") => Ok(vec![("reuse".to_owned(), false.to_string())]),
            ["plan" | "dispatch-plan", rest @ ..] if rest.contains(&"--emit") => {
                let plan = self.plan()?;
                Ok(plan_files::outputs(&plan.planned.index, &plan.folder)?)
            }
            ["gate", rest @ ..] => {
                let asked = option(rest, "--for").unwrap_or_default();
                let asked = <For as clap::ValueEnum>::from_str(asked, false)
                    .map_err(|error| Problem::file("", format!("gate --for: {error}")))?;
                let plan = self.plan().ok().map(|plan| &plan.planned.index);
                Ok(gate::gate(asked, needs, plan, None)?.outputs())
            }
            ["shard", rest @ ..] => {
                let plan = self.plan()?;
                let bucket = option(rest, "--bucket").unwrap_or_default();
                let index = option(rest, "--index")
                    .and_then(|index| index.parse().ok())
                    .unwrap_or(0);
                let jobs = plan_files::shard_or_canary(&plan.folder, bucket, index)?;
                Ok(plan_files::shard_outputs(&jobs))
            }
            ["collect", "sweep", ..] => {
                let jobs = self.plan().map_or(0, |plan| plan.planned.index.jobs);
                // A row a job, and nothing withheld: what a sweep without faults leaves.
                let said = [("rows", jobs), ("published", jobs), ("withheld", 0)];
                Ok(said.map(|(name, count)| (name.to_owned(), count.to_string())).into())
            }
            ["verdict", ..] => self.judged(needs).map(|()| Outputs::new()),
            _ => Ok(Outputs::new()),
        }
    }

    fn plan(&self) -> Result<&Plan, Problems> {
        self.plan.as_ref().map_err(Clone::clone)
    }

    /// The verdict, by the results of whole buckets: nobody collected anything.
    fn judged(&self, needs: &Needs) -> Result<(), Problems> {
        let mut verdict = match verdict::course(needs)? {
            Course::NoSweep(reason) => verdict::no_sweep(needs, &reason),
            Course::Reused(reason) => verdict::reused(needs, &reason),
            Course::Ended(problem) => verdict::ended(needs, problem),
            Course::Swept => verdict::with_plan(needs, &self.plan()?.planned, None),
        };
        verdict.extend(self.later.clone());
        Problems(verdict.hints).into_result()
    }
}

/// Whether a step's condition is false while all before it succeeded. One that asks what is not known before a run does
/// not skip it.
fn is_skipped(step: &Node<'_>, scope: &Scope) -> bool {
    let Some(text) = get(step, "if").map(Node::text) else {
        return false;
    };
    let status = Status {
        success: true,
        failure: false,
        cancelled: false,
    };
    let scope = scope.clone().in_status(status);
    let holds =
        Condition::parse(text).and_then(|condition| condition.map(|condition| condition.holds(&scope)).transpose());
    matches!(holds, Ok(Some(false)))
}

/// The words of a script, with the step's variables in them. Nothing is run.
fn words(script: &str, step: &Node<'_>, scope: &Scope) -> Vec<String> {
    let script = script.replace("\\\n", " ");
    let mut words = shlex::split(&script).unwrap_or_default();
    for (name, node) in get(step, "env").map_or(&[][..], pairs) {
        let variable = format!("${}", name.text());
        if !words.iter().any(|word| word.contains(&variable)) {
            continue;
        }
        // What is not known before the job runs is empty.
        let text = template::value(node, scope)
            .map(|value| value.text())
            .unwrap_or_default();
        for word in &mut words {
            *word = word.replace(&variable, &text);
        }
    }
    words
}

/// `--name value` or `--name=value`.
fn option<'w>(words: &[&'w str], name: &str) -> Option<&'w str> {
    let joined = |word: &&'w str| word.strip_prefix(name)?.strip_prefix('=');
    let apart = || {
        let at = words.iter().position(|word| *word == name)?;
        words.get(at + 1).copied()
    };
    words.iter().find_map(joined).or_else(apart)
}
