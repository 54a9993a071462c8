//! What the steps of a job would say: the commands of this binary, asked for real with what is known of the run.

use std::path::PathBuf;

use super::evaluate::Scope;
use super::template;
use super::value::Value;
use crate::config::problem::{Problem, Problems};
use crate::config::tree::Node;
use crate::github::decide::Decision;
use crate::github::gate::{self, For};
use crate::github::needs::Needs;
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
}

/// Outputs of a step.
pub(super) type Outputs = Vec<(String, String)>;

impl Commands {
    /// The context `steps` after a job's steps all ran.
    ///
    /// # Errors
    /// The first command that would fail the job.
    pub(super) fn steps(&self, steps: &[Node<'_>], scope: &Scope, needs: &Needs) -> Result<Value, Problems> {
        let mut all = Vec::new();
        for step in steps {
            let outputs = match get(step, "run") {
                Some(script) => self.step(&words(script.text(), step, scope), needs)?,
                None => Outputs::new(),
            };
            let Some(id) = get(step, "id") else { continue };
            let outputs: Value = outputs
                .iter()
                .map(|(name, value)| (name, value.as_str().into()))
                .collect();
            let step: Value = [
                ("outputs", outputs),
                ("outcome", "success".into()),
                ("conclusion", "success".into()),
            ]
            .into_iter()
            .collect();
            all.push((id.text().to_owned(), step));
        }
        Ok(all.into_iter().collect())
    }

    /// The outputs of one step, by the command of this binary that it runs; of any other none are known.
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
                Ok(plan_files::outputs(&self.plan()?.planned.index))
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
                let (jobs, max_parallel) = plan_files::shard_or_canary(&plan.folder, bucket, index)?;
                Ok(plan_files::shard_outputs(&jobs, max_parallel))
            }
            ["collect", what @ ("results" | "evals"), ..] => {
                let index = self.plan().ok().map(|plan| &plan.planned.index);
                let planned = |index: &plan_files::Index| match *what {
                    "evals" => index.eval_jobs,
                    _ => index.throughput_jobs,
                };
                // A row a job: what a sweep without faults leaves.
                Ok(vec![("rows".to_owned(), index.map_or(0, planned).to_string())])
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
        let verdict = match verdict::course(needs)? {
            Course::NoSweep(reason) => verdict::no_sweep(needs, &reason),
            Course::Reused(reason) => verdict::reused(needs, &reason),
            Course::Ended(problem) => verdict::ended(needs, problem),
            Course::Swept => verdict::with_plan(needs, &self.plan()?.planned, None),
        };
        Problems(verdict.hints).into_result()
    }
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
