//! The verdict: whether everything that was planned ran.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::needs::{self, CANARY, COLLECT, DECIDE, DROPPED, JobResult, Need, Needs, REUSE_RESULTS};
use super::text::{code, listed};
use crate::config::problem::Problem;
use crate::ledger::publish::{Recipe, RunLedger};
use crate::ledger::{Job, State};
use crate::matrix::bucket::Bucket;
use crate::matrix::envelope::Envelope;
use crate::plan_files::Index;
use crate::plural;

/// A plan, as far as a run made one.
#[derive(Debug, Clone)]
pub struct Planned {
    /// What was planned.
    pub index: Index,
    /// Its jobs.
    pub envelopes: Vec<Envelope>,
}

/// What is said at the end of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Verdict {
    /// Whether everything planned ran and succeeded.
    pub ok: bool,
    /// The verdict in a sentence.
    pub reason: String,
    /// The canary and every bucket of the plan.
    pub buckets: Vec<Line>,
    /// The recipes that are withheld from publication, each with its reason; nothing where nobody counted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
    /// What is wrong.
    pub problems: Vec<String>,
    /// The same with the ways out.
    #[serde(skip)]
    pub hints: Vec<Problem>,
}

/// What became of one bucket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Line {
    /// The bucket, or `canary`.
    pub bucket: String,
    /// Its job in the workflow.
    pub job: String,
    /// What became of that; `None` where the verdict does not wait for it.
    pub result: Option<&'static str>,
    /// Jobs that were planned.
    pub planned: usize,
    /// Of these, jobs that left everything they should; `None` where nobody counted.
    pub done: Option<usize>,
    /// Jobs that left something wrong.
    pub failed: Option<usize>,
    /// Jobs that left nothing.
    pub missing: Option<usize>,
}

/// What a run was to do, by what its first job says; the plan is worth reading only where there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Course {
    /// The decision was not to sweep, for this reason.
    NoSweep(String),
    /// An earlier run stood in, for this reason.
    Reused(String),
    /// There is a plan.
    Swept,
    /// It ended before there was a plan.
    Ended(Problem),
}

/// What a run was to do.
///
/// # Errors
/// The job that decides is not among `needs`.
pub(crate) fn course(needs: &Needs) -> Result<Course, Problem> {
    let decide = needs.job(DECIDE)?;
    if decide.result != JobResult::Success {
        let message = format!("{} {}: nothing ran", code(DECIDE), ended_as(decide.result));
        let hint = "see which step of that job failed: the decision, the check, the search or the plan";
        return Ok(Course::Ended(Problem::file("", message).hint(hint)));
    }
    match decide.outputs.get("run").map(String::as_str) {
        Some("true") => {}
        Some("false") => {
            let reason = decide.outputs.get("reason").filter(|reason| !reason.is_empty());
            return Ok(Course::NoSweep(
                reason.cloned().unwrap_or_else(|| "No reason was given.".to_owned()),
            ));
        }
        _ => {
            let problem = Problem::file("", "`decide` did not say whether to run: it has no output `run`");
            return Ok(Course::Ended(problem.hint(DROPPED)));
        }
    }
    let said = |output: &str| decide.outputs.get(output).map_or("", String::as_str);
    match (said("reuse"), said("jobs")) {
        ("true", _) => Ok(Course::Reused(said("reuse_reason").to_owned())),
        (_, "") => {
            let problem = Problem::file("", "`decide` did not say what is planned: it has no output `jobs`");
            Ok(Course::Ended(problem.hint(DROPPED)))
        }
        _ => Ok(Course::Swept),
    }
}

fn ended_as(result: JobResult) -> &'static str {
    match result {
        JobResult::Success => "succeeded",
        JobResult::Failure => "failed",
        JobResult::Cancelled => "was cancelled",
        JobResult::Skipped => "was skipped",
    }
}

/// The verdict on a run that was not to sweep: green, unless one of its other jobs failed.
#[must_use]
pub(crate) fn no_sweep(needs: &Needs, reason: &str) -> Verdict {
    let mut problems: Vec<Problem> = blocked(needs).into_iter().collect();
    problems.extend(others(needs, &[]));
    Verdict::new(format!("No sweep was asked for. {reason}"), Vec::new(), problems)
}

/// What the decision holds against any verdict, as it says itself.
fn blocked(needs: &Needs) -> Option<Problem> {
    let outputs = &needs.0.get(DECIDE)?.outputs;
    (outputs.get("blocked").map(String::as_str) == Some("true")).then(|| {
        let reason = outputs
            .get("reason")
            .map_or("the decision says so", |reason| reason.trim_end_matches('.'));
        let message = format!("nothing may be merged by this run: {reason}");
        Problem::file("", message).hint("get what is missing to pass, then start this run again")
    })
}

/// The verdict on a run in which an earlier one stood in: for a push green if its results were taken over, for a commit of
/// a pull request that of the earlier run.
#[must_use]
pub(crate) fn reused(needs: &Needs, reason: &str) -> Verdict {
    let mut problems: Vec<Problem> = blocked(needs).into_iter().collect();
    problems.extend(others(needs, &[]));
    let decide = needs.0.get(DECIDE);
    let earlier = decide.and_then(|decide| decide.outputs.get("reuse_verdict"));
    let earlier = earlier.map_or("", String::as_str);
    let sentence = match earlier {
        "" => {
            problems.extend(not_taken_over(needs));
            "An earlier run was reused."
        }
        _ => "An earlier run stands in.",
    };
    if !matches!(earlier, "" | "success") {
        let message = format!("the run that stands in ended as {}", code(earlier));
        let hint = "see its verdict; delete the comment that asks for reuse to sweep this commit anew";
        problems.push(Problem::file("", message).hint(hint));
    }
    Verdict::new(format!("{sentence} {reason}"), Vec::new(), problems)
}

/// Results that nobody took over; a job that failed says so itself.
fn not_taken_over(needs: &Needs) -> Option<Problem> {
    let need = needs.0.get(REUSE_RESULTS);
    need.is_none_or(|need| need.result == JobResult::Skipped).then(|| {
        let message = format!("{} did not run: no results were taken over", code(REUSE_RESULTS));
        Problem::file("", message).hint("see its `if`, and whether the verdict waits for it")
    })
}

/// The verdict on a run that ended before there was a plan.
#[must_use]
pub(crate) fn ended(needs: &Needs, problem: Problem) -> Verdict {
    let mut problems = vec![problem];
    problems.extend(others(needs, &[DECIDE.to_owned()]));
    Verdict::new(String::new(), Vec::new(), problems)
}

/// The verdict on a run with a plan. `ledger` says what became of each job; without it only the results of whole buckets
/// are known.
#[must_use]
pub(crate) fn with_plan(needs: &Needs, plan: &Planned, ledger: Option<&RunLedger>) -> Verdict {
    let jobs = ledger.map(|ledger| {
        ledger
            .jobs
            .iter()
            .map(|job| (job.id.as_str(), job))
            .collect::<Jobs<'_>>()
    });
    let ledgers = jobs.as_ref();
    let mut problems: Vec<Problem> = blocked(needs).into_iter().collect();
    problems.extend(counts(needs, &plan.index));
    let groups = groups(plan);
    let canary_stopped =
        plan.index.canary.is_some() && needs.0.get(CANARY).is_none_or(|n| n.result != JobResult::Success);
    let mut lines = Vec::new();
    let mut stopped = Vec::new();
    for group in &groups {
        let need = needs.0.get(&group.job);
        let skipped = need.is_some_and(|need| need.result == JobResult::Skipped);
        if group.job != CANARY && canary_stopped && skipped && group.planned > 0 {
            stopped.push(group);
        } else {
            problems.extend(group.problems(need, ledgers));
        }
        if group.planned > 0 {
            lines.push(group.line(need, ledgers));
        }
    }
    problems.extend(stopped_by_canary(&stopped));
    problems.extend(uncollected(needs, &groups));
    let judged: Vec<String> = groups.iter().map(|group| group.job.clone()).collect();
    problems.extend(others(needs, &judged));
    let reason = match plan.index.jobs {
        0 => "Nothing was planned, and nothing failed.".to_owned(),
        1 => "The one planned job ran and succeeded.".to_owned(),
        jobs => format!("All {jobs} planned jobs ran and succeeded."),
    };
    Verdict {
        withheld: ledger.into_iter().flat_map(RunLedger::withheld).map(withheld).collect(),
        ..Verdict::new(reason, lines, problems)
    }
}

/// Jobs of the ledger by id.
type Jobs<'l> = HashMap<&'l str, &'l Job>;

fn withheld(recipe: &Recipe) -> String {
    let digits: String = recipe.recipe.chars().take(16).collect();
    format!("{} ({digits}): {}", recipe.name, recipe.reason)
}

impl Verdict {
    fn new(green: String, buckets: Vec<Line>, hints: Vec<Problem>) -> Self {
        let reason = match hints.as_slice() {
            [] => green,
            [_] => "The run did not do what was planned.".to_owned(),
            all => format!("The run did not do what was planned: {} problems.", all.len()),
        };
        Self {
            ok: hints.is_empty(),
            reason,
            buckets,
            withheld: Vec::new(),
            problems: hints.iter().map(|problem| problem.message.clone()).collect(),
            hints,
        }
    }

    /// Adds what else is wrong.
    pub(crate) fn extend(&mut self, more: impl IntoIterator<Item = Problem>) {
        let mut hints = std::mem::take(&mut self.hints);
        hints.extend(more);
        *self = Self {
            withheld: std::mem::take(&mut self.withheld),
            ..Self::new(
                std::mem::take(&mut self.reason),
                std::mem::take(&mut self.buckets),
                hints,
            )
        };
    }
}

/// Whether the run that is judged is a full sweep, or has one stand in, by the labels that started it.
#[must_use]
pub(crate) fn is_of_a_full_sweep(needs: &Needs) -> bool {
    let says = |name: &str| {
        let decide = needs.0.get(DECIDE);
        decide.and_then(|decide| decide.outputs.get(name)).map(String::as_str) == Some("true")
    };
    says("run") && says("reusable")
}

/// The jobs of one job of the workflow.
struct Group<'p> {
    bucket: String,
    job: String,
    planned: usize,
    envelopes: Vec<&'p Envelope>,
}

/// The canary and every bucket, also those without jobs: one that ran all the same is wrong.
fn groups(plan: &Planned) -> Vec<Group<'_>> {
    let canary = plan.index.canary.as_ref();
    let rest: Vec<&Envelope> = plan
        .envelopes
        .iter()
        .filter(|envelope| canary.is_none_or(|canary| canary.id != envelope.id))
        .collect();
    let canary = Group {
        bucket: CANARY.to_owned(),
        job: CANARY.to_owned(),
        planned: canary.iter().len(),
        envelopes: canary.into_iter().collect(),
    };
    let buckets = Bucket::ALL.iter().map(|bucket| Group {
        bucket: bucket.name().to_owned(),
        job: needs::job_of(*bucket),
        planned: plan.index.jobs_in(*bucket),
        envelopes: rest
            .iter()
            .filter(|envelope| Bucket::of(&envelope.row) == *bucket)
            .copied()
            .collect(),
    });
    [canary].into_iter().chain(buckets).collect()
}

impl Group<'_> {
    /// What is wrong with it, first with the whole, then with each job.
    fn problems(&self, need: Option<&Need>, ledgers: Option<&Jobs<'_>>) -> Vec<Problem> {
        let job = code(&self.job);
        let jobs = plural::count(self.planned, "job");
        let say = |message: String, hint: &str| vec![Problem::file("", message).hint(hint)];
        let Some(need) = need else {
            return match self.planned {
                0 => Vec::new(),
                _ => say(
                    format!("{jobs} planned in {job}, which is not among `needs`"),
                    "let the verdict wait for it",
                ),
            };
        };
        match (self.planned, need.result) {
            (0, JobResult::Skipped) => Vec::new(),
            (0, result) => say(
                format!("{job} {}, and nothing was planned for it", ended_as(result)),
                "see whether the plan is that of this run",
            ),
            (_, JobResult::Skipped) => say(
                format!("{job} was skipped: its {jobs} never ran"),
                "see its `if`, and whether the shard list of `decide` reached it",
            ),
            (_, JobResult::Success) => self.open(ledgers),
            (_, result) => {
                let message = match self.job == CANARY {
                    true => format!("the canary {}: it stopped the fan-out", ended_as(result)),
                    false => format!("{job} {}, with {jobs} planned", ended_as(result)),
                };
                let mut problems = say(message, "see the logs of its jobs, and re-run those that failed");
                problems.extend(self.open(ledgers));
                problems
            }
        }
    }

    /// Jobs that are not done; of those in doubt the result of the whole tells.
    fn open(&self, ledgers: Option<&Jobs<'_>>) -> Vec<Problem> {
        let Some(ledgers) = ledgers else { return Vec::new() };
        let jobs = self
            .envelopes
            .iter()
            .filter_map(|envelope| ledgers.get(envelope.id.as_str()));
        jobs.filter(|job| job.state != State::Done && !job.is_doubted())
            .map(|job| {
                let state = match job.state {
                    State::Failed => "failed",
                    _ => "is missing",
                };
                let message = format!(
                    "{} ({}) of {} {state}: {}",
                    job.name,
                    job.id,
                    code(&self.job),
                    job.reason
                );
                Problem::file("", message).hint("see the log of that job")
            })
            .collect()
    }

    fn line(&self, need: Option<&Need>, ledgers: Option<&Jobs<'_>>) -> Line {
        let result = need.map(|need| need.result);
        let count = |is: fn(Option<State>) -> bool, whole: Option<usize>| match (result, ledgers) {
            (Some(JobResult::Skipped) | None, _) | (_, None) => whole,
            (_, Some(ledgers)) => {
                let state = |envelope: &&&Envelope| is(ledgers.get(envelope.id.as_str()).map(|found| found.state));
                Some(self.envelopes.iter().filter(state).count())
            }
        };
        // Without ledgers a bucket is known as a whole, or not at all.
        let (done, failed, missing) = match (result, self.planned) {
            (Some(JobResult::Success), planned) => (Some(planned), Some(0), Some(0)),
            (Some(JobResult::Skipped) | None, planned) => (Some(0), Some(0), Some(planned)),
            (Some(JobResult::Failure), 1) => (Some(0), Some(1), Some(0)),
            (Some(JobResult::Failure | JobResult::Cancelled), _) => (None, None, None),
        };
        Line {
            bucket: self.bucket.clone(),
            job: self.job.clone(),
            result: result.map(JobResult::as_str),
            planned: self.planned,
            done: count(|state| state == Some(State::Done), done),
            failed: count(|state| state == Some(State::Failed), failed),
            missing: count(|state| !matches!(state, Some(State::Done | State::Failed)), missing),
        }
    }
}

fn stopped_by_canary(stopped: &[&Group<'_>]) -> Option<Problem> {
    let names: Vec<&String> = stopped.iter().map(|group| &group.job).collect();
    let planned: usize = stopped.iter().map(|group| group.planned).sum();
    (!names.is_empty()).then(|| {
        let message = format!(
            "{} never ran, stopped by the canary: {}",
            plural::count(planned, "job"),
            listed(&names)
        );
        Problem::file("", message).hint("mend what the canary shows, then sweep again")
    })
}

/// The counts that `decide` gave the workflow, against the plan: what it lost on the way was not run.
fn counts(needs: &Needs, plan: &Index) -> Vec<Problem> {
    let Some(decide) = needs.0.get(DECIDE) else {
        return Vec::new();
    };
    let compare = |output: String, planned: usize| match decide.count(DECIDE, &output) {
        Err(problem) => Some(problem),
        Ok(count) if count == planned => None,
        Ok(count) => {
            let message = format!("`decide` says {count} for {}, the plan says {planned}", code(&output));
            Some(Problem::file("", message).hint("see whether the plan is that of this run"))
        }
    };
    let totals = [
        ("jobs".to_owned(), plan.jobs),
        ("canary_jobs".to_owned(), plan.canary.iter().len()),
    ];
    let buckets = Bucket::ALL
        .iter()
        .map(|bucket| (format!("{}_jobs", bucket.name()), plan.jobs_in(*bucket)));
    let wrong = totals
        .into_iter()
        .chain(buckets)
        .filter_map(|(output, planned)| compare(output, planned));
    let mut problems: Vec<Problem> = wrong.collect();
    let mut lists: Vec<String> = Bucket::ALL
        .iter()
        .filter(|bucket| plan.jobs_in(**bucket) > 0)
        .map(|bucket| format!("{}_shards", bucket.name()))
        .collect();
    lists.extend(plan.canary.iter().map(|_| CANARY.to_owned()));
    for list in lists {
        if decide.outputs.get(&list).is_none_or(String::is_empty) {
            let message = format!(
                "the job `decide` gave no output {}, so its jobs could not start",
                code(&list)
            );
            problems.push(Problem::file("", message).hint(DROPPED));
        }
    }
    problems
}

/// A collection that did not run although something did that it collects.
fn uncollected(needs: &Needs, groups: &[Group<'_>]) -> Option<Problem> {
    let ran = |group: &&Group<'_>| needs.0.get(&group.job).is_some_and(|need| need.result.ran());
    let skipped = needs.0.get(COLLECT)?.result == JobResult::Skipped;
    let ran: Vec<&String> = groups.iter().filter(ran).map(|group| &group.job).collect();
    (skipped && !ran.is_empty()).then(|| {
        let message = format!("{} was skipped although {} ran", code(COLLECT), listed(&ran));
        Problem::file("", message).hint("see its `if`")
    })
}

/// Jobs of no bucket that failed or were cancelled. One that was skipped was optional.
fn others(needs: &Needs, judged: &[String]) -> Vec<Problem> {
    let judged: HashSet<&String> = judged.iter().collect();
    let others = needs.0.iter().filter(|(name, _)| !judged.contains(name));
    others
        .filter(|(_, need)| matches!(need.result, JobResult::Failure | JobResult::Cancelled))
        .map(|(name, need)| {
            let message = format!("{} {}", code(name), ended_as(need.result));
            Problem::file("", message).hint("see the log of that job")
        })
        .collect()
}
