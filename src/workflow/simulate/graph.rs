//! The graph of jobs: in which order they are asked, what each sees of those before it, and how it ends.

use std::collections::HashSet;

use indexmap::IndexMap;

use super::asked::{State, condition, ended_as, head, in_order, worst};
use super::evaluate::{EvalError, Scope};
use super::template;
use super::value::Value;
use super::{Ask, JobReport, Leg, matrix, trigger};
use crate::config::problem::{Problem, Problems, nearest};
use crate::github::needs::{JobResult, Needs};
use crate::github::text::one_line;
use crate::workflow::check::Files;
use crate::workflow::checks::nesting::MAX_LEVELS;
use crate::workflow::tree::{File, Job, get, pairs};

/// How a workflow went.
pub(super) struct Played {
    pub(super) jobs: Vec<JobReport>,
    pub(super) result: JobResult,
    /// Its jobs' outputs: the context `jobs`.
    outputs: Value,
}

/// Everything that stays the same through a run.
pub(super) struct Player<'a> {
    files: &'a Files<'a>,
    ask: &'a Ask<'a>,
}

/// Where a job stands: its path, how deep, and whether the run is cancelled when it is asked.
struct At {
    path: String,
    level: usize,
    phase: Phase,
}

/// When a job is asked, in a run that is cancelled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Before the cancellation, or without one.
    Before,
    /// It runs when the cancellation comes.
    During,
    /// After it.
    After,
}

/// How a job ended, and why not otherwise.
struct Ended {
    result: JobResult,
    runs: bool,
    why: String,
    fail_fast: Option<bool>,
    legs: Vec<Leg>,
    outputs: IndexMap<String, String>,
}

impl Ended {
    fn without_running(result: JobResult, why: impl Into<String>) -> Self {
        Self {
            result,
            runs: false,
            why: why.into(),
            fail_fast: None,
            legs: Vec::new(),
            outputs: IndexMap::new(),
        }
    }
}

impl<'a> Player<'a> {
    pub(super) fn new(files: &'a Files<'a>, ask: &'a Ask<'a>) -> Self {
        Self { files, ask }
    }

    /// Whether every fault is one of a job that is there, and every output one that its job has.
    pub(super) fn check(&self, file: &File<'_>) -> Result<(), Problems> {
        let mut known = IndexMap::new();
        self.paths(file, "", 0, &mut known);
        let faults = &self.ask.faults;
        let cancelled = faults.cancelled_in.iter().filter(|job| !job.contains('/'));
        let nested = faults.cancelled_in.iter().filter(|job| job.contains('/'));
        let named = faults.results.keys().chain(faults.outputs.keys().map(|(job, _)| job));
        let mut problems = Problems::default();
        for job in named.chain(cancelled) {
            if !known.contains_key(job) {
                let problem = Problem::file(&file.source.name, format!("{} has no job `{job}`", file.file_name()));
                problems.push(problem.hint(nearest(job, known.keys().map(String::as_str))));
            }
        }
        for (job, output) in faults.outputs.keys() {
            let Some(outputs) = known.get(job).filter(|outputs| !outputs.contains(output)) else {
                continue;
            };
            let problem = Problem::file(&file.source.name, format!("`{job}` has no output `{output}`"));
            problems.push(problem.hint(nearest(output, outputs.iter().map(String::as_str))));
        }
        for job in nested {
            let problem = Problem::file(&file.source.name, format!("`{job}` is a job of a called workflow"));
            problems.push(problem.hint("name the job that calls it: the run is cancelled as a whole"));
        }
        problems.into_result()
    }

    /// Every job's path, with the names of its outputs.
    fn paths(&self, file: &File<'_>, prefix: &str, level: usize, known: &mut IndexMap<String, Vec<String>>) {
        for job in file.jobs() {
            let path = format!("{prefix}{}", job.id.text());
            let mut outputs = job.get("outputs").map_or(&[][..], pairs).to_vec();
            if let Some(callee) = self.files.callee(&job).filter(|_| level < MAX_LEVELS) {
                self.paths(callee, &format!("{path}/"), level + 1, known);
                outputs.extend_from_slice(callee.declared("outputs"));
            }
            known.insert(path, outputs.iter().map(|(name, _)| name.text().to_owned()).collect());
        }
    }

    /// Plays the jobs of a workflow; `prefix` is the path of the job that calls it.
    pub(super) fn play(&self, file: &File<'_>, scope: &Scope, prefix: &str, level: usize) -> Result<Played, Problems> {
        self.play_at(file, scope, prefix, level, Phase::Before)
    }

    fn play_at(
        &self,
        file: &File<'_>,
        scope: &Scope,
        prefix: &str,
        level: usize,
        phase: Phase,
    ) -> Result<Played, Problems> {
        let mut states: IndexMap<&str, State> = IndexMap::new();
        let mut reports: IndexMap<&str, JobReport> = IndexMap::new();
        // Jobs that were passed over while the run was not cancelled: nobody waits for them.
        let mut passed_over = HashSet::new();
        for job in in_order(file)? {
            let at = At {
                path: format!("{prefix}{}", job.id.text()),
                level,
                phase: match level {
                    0 => self.phase(file, &job, &passed_over),
                    _ => phase,
                },
            };
            let ended = self.job(file, &job, scope, &states, &at)?;
            if ended.result == JobResult::Skipped && at.phase != Phase::After {
                passed_over.insert(job.id.text());
            }
            let may_fail = job.get("continue-on-error").is_some_and(|node| node.text() == "true");
            let result = match ended.result {
                JobResult::Failure if may_fail && ended.runs => JobResult::Success,
                result => result,
            };
            let report = JobReport {
                job: job.id.text().to_owned(),
                runs: ended.runs,
                result,
                why: ended.why,
                fail_fast: ended.fail_fast,
                legs: ended.legs,
            };
            reports.insert(job.id.text(), report);
            let outputs = ended.outputs;
            states.insert(job.id.text(), State { result, outputs });
        }
        let result = worst(states.values().map(|state| state.result));
        let jobs = file
            .jobs()
            .filter_map(|job| reports.shift_remove(job.id.text()))
            .collect();
        let outputs = states.iter().map(|(id, state)| (*id, state.value())).collect();
        Ok(Played { jobs, result, outputs })
    }

    /// When a job of the workflow itself is asked.
    fn phase(&self, file: &File<'_>, job: &Job<'_, '_>, passed_over: &HashSet<&str>) -> Phase {
        let Some(cancelled) = &self.ask.faults.cancelled_in else {
            return Phase::Before;
        };
        let before = file.ancestors(cancelled);
        let ended = |need: &&str| before.contains(need) || passed_over.contains(need);
        let id = job.id.text();
        if before.contains(id) {
            Phase::Before
        } else if id == cancelled || job.needs().iter().all(ended) {
            Phase::During
        } else {
            Phase::After
        }
    }

    fn job(
        &self,
        file: &File<'_>,
        job: &Job<'_, '_>,
        scope: &Scope,
        states: &IndexMap<&str, State>,
        at: &At,
    ) -> Result<Ended, Problems> {
        let needs: Value = job
            .needs()
            .into_iter()
            .filter_map(|id| Some((id, states.get(id)?.value())))
            .collect();
        let scope = scope.clone().with("needs", needs);
        let asked = match at.phase {
            Phase::After => condition(file, job, &scope, states, true),
            Phase::Before | Phase::During => condition(file, job, &scope, states, false),
        };
        match asked {
            Ok(None) => {}
            Ok(Some(why)) => return Ok(Ended::without_running(JobResult::Skipped, self.kept(why, at))),
            Err(error) => return Ok(Ended::without_running(JobResult::Failure, format!("`if`: {error}"))),
        }
        let forced = self.ask.faults.results.get(&at.path);
        if forced == Some(&JobResult::Skipped) {
            return Ok(Ended::without_running(JobResult::Skipped, "as asked"));
        }
        let mut ended = self.run(job, &scope, states, at, forced)?;
        if at.phase == Phase::During && ended.runs && !matches!(condition(file, job, &scope, states, true), Ok(None)) {
            ended.result = JobResult::Cancelled;
            ended.why = "the run is cancelled while it runs".to_owned();
            ended.outputs.clear();
        }
        for ((path, name), value) in &self.ask.faults.outputs {
            if *path == at.path {
                ended.outputs.insert(name.clone(), value.clone());
            }
        }
        Ok(ended)
    }

    /// A result that was asked for and cannot be, because the job does not run, is said.
    fn kept(&self, why: String, at: &At) -> String {
        match self.ask.faults.results.get(&at.path) {
            Some(result) if *result != JobResult::Skipped => {
                format!("{why} (so it cannot end as {})", result.as_str())
            }
            _ => why,
        }
    }

    /// A job that starts.
    fn run(
        &self,
        job: &Job<'_, '_>,
        scope: &Scope,
        states: &IndexMap<&str, State>,
        at: &At,
        forced: Option<&JobResult>,
    ) -> Result<Ended, Problems> {
        let strategy = job.get("strategy");
        let combinations = match matrix::combinations(strategy, scope) {
            Ok(combinations) => combinations,
            Err(error) => {
                return Ok(Ended::without_running(
                    JobResult::Failure,
                    format!("`strategy`: {error}"),
                ));
            }
        };
        let of_matrix = combinations.len();
        let fail_fast = match strategy.map(|strategy| get(strategy, "fail-fast")) {
            None => Ok(None),
            Some(None) => Ok(Some(true)),
            Some(Some(node)) => template::value(node, scope).map(|value| Some(value.is_truthy())),
        };
        let fail_fast = match fail_fast {
            Ok(fail_fast) => fail_fast,
            Err(error) => {
                return Ok(Ended::without_running(
                    JobResult::Failure,
                    format!("`strategy`: {error}"),
                ));
            }
        };
        let mut ended = Ended {
            runs: true,
            fail_fast,
            ..Ended::without_running(JobResult::Success, "")
        };
        let mut results = Vec::new();
        for (index, combination) in combinations.into_iter().enumerate() {
            let of_leg =
                |name, value: usize| (name, Value::Number(f64::from(u32::try_from(value).unwrap_or(u32::MAX))));
            let strategy = [of_leg("job-index", index), of_leg("job-total", of_matrix)];
            let suffix = matrix::suffix(&combination);
            let scope = scope
                .clone()
                .with("strategy", strategy.into_iter().collect())
                .with("matrix", combination.into_iter().collect());
            let part = self.leg(job, &scope, &suffix, states, at, forced)?;
            results.push(part.result);
            if ended.why.is_empty() {
                ended.why = part.why;
            }
            ended
                .outputs
                .extend(part.outputs.into_iter().filter(|(_, value)| !value.is_empty()));
            ended.legs.extend(part.legs);
        }
        ended.result = worst(results);
        Ok(ended)
    }

    fn leg(
        &self,
        job: &Job<'_, '_>,
        scope: &Scope,
        suffix: &str,
        states: &IndexMap<&str, State>,
        at: &At,
        forced: Option<&JobResult>,
    ) -> Result<Ended, Problems> {
        let mut ended = Ended {
            runs: true,
            ..Ended::without_running(forced.copied().unwrap_or(JobResult::Success), "")
        };
        if forced.is_some_and(|result| *result != JobResult::Success) {
            ended.why = "as asked".to_owned();
        }
        let mut leg = match head(job, scope, suffix) {
            Ok(leg) => leg,
            Err(error) => return Ok(Ended::without_running(JobResult::Failure, error.to_string())),
        };
        if ended.result == JobResult::Success {
            match self.files.callee(job).filter(|_| at.level < MAX_LEVELS) {
                Some(callee) => self.call(job, callee, scope, at, &mut ended, &mut leg)?,
                None => self.steps(job, scope, states, &mut ended),
            }
        }
        ended.legs = vec![leg];
        Ok(ended)
    }

    fn call(
        &self,
        job: &Job<'_, '_>,
        callee: &File<'_>,
        scope: &Scope,
        at: &At,
        ended: &mut Ended,
        leg: &mut Leg,
    ) -> Result<(), Problems> {
        let failed = |ended: &mut Ended, what: &str, error: &EvalError| {
            ended.result = JobResult::Failure;
            ended.why = format!("`{what}`: {error}");
        };
        let given = match job.get("with").map(|with| template::value(with, scope)).transpose() {
            Ok(given) => given.unwrap_or(Value::Null),
            Err(error) => {
                failed(ended, "with", &error);
                return Ok(());
            }
        };
        let inside = scope
            .only(&["github", "vars"])
            .with("inputs", trigger::inputs(callee, "workflow_call", &given));
        let played = self.play_at(callee, &inside, &format!("{}/", at.path), at.level + 1, at.phase)?;
        ended.result = played.result;
        if let Some(job) = played
            .jobs
            .iter()
            .find(|job| job.result == played.result && !job.why.is_empty())
            && played.result != JobResult::Success
        {
            ended.why = format!("its job {} {}: {}", job.job, ended_as(job.result), job.why);
        }
        leg.jobs = played.jobs;
        let inside = inside.with("jobs", played.outputs);
        for (name, how) in callee.declared("outputs") {
            let value = get(how, "value").map(|node| template::value(node, &inside)).transpose();
            match value {
                Ok(value) => ended
                    .outputs
                    .insert(name.text().to_owned(), value.map_or_else(String::new, text_of)),
                Err(error) => {
                    failed(ended, "outputs", &error);
                    return Ok(());
                }
            };
        }
        Ok(())
    }

    /// The steps of a job that is assumed to succeed: a command that would fail fails it.
    fn steps(&self, job: &Job<'_, '_>, scope: &Scope, states: &IndexMap<&str, State>, ended: &mut Ended) {
        let needs = job
            .needs()
            .into_iter()
            .filter_map(|id| Some((id.to_owned(), states.get(id)?.need())));
        let needs = Needs(needs.collect());
        let steps = match self.ask.commands.steps(job.steps(), scope, &needs) {
            Ok(steps) => steps,
            Err(problems) => {
                ended.result = JobResult::Failure;
                let messages: Vec<String> = problems.0.iter().map(|problem| one_line(&problem.message)).collect();
                ended.why = messages.join("; ");
                return;
            }
        };
        let inside = scope.clone().with("steps", steps);
        for (name, node) in job.get("outputs").map_or(&[][..], pairs) {
            // An output of a step that is not one of this binary's commands is not known.
            let value = template::value(node, &inside).map_or_else(|_| String::new(), text_of);
            ended.outputs.insert(name.text().to_owned(), value);
        }
    }
}

fn text_of(value: Value) -> String {
    value.text().to_string()
}
