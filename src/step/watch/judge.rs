//! What disqualifies a run, and what is merely slow.

use std::time::Duration;

use serde::Serialize;

use super::backend::{Backend, Endpoint, Role};
use super::client::Client;
use super::line::{End, Load};
use super::{Ended, Where};
use crate::step::throughput::check::MAX_ERROR_RATE;

/// How full a cache must be to count as full, 0 to 1.
const FULL: f64 = 0.98;
/// How many samples of a log, and of an endpoint, must say the same.
const OF_LOG: usize = 3;
/// Requests that must have come back before a rate of errors means anything while a run goes on.
const ENOUGH: u64 = 20;
/// Running requests grew by this much, and output by no more than the other: a plateau.
const MORE_RUNNING: f64 = 1.5;
const SAME_OUTPUT: f64 = 1.05;

/// How much a verdict weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Weight {
    /// No result of this run can count: stopping it early is right.
    Disqualifies,
    /// It takes its time; that is no reason to stop it.
    Slow,
}

/// One thing that is to be said.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Verdict {
    /// How much it weighs.
    pub weight: Weight,
    /// What it is.
    pub what: String,
    /// The line or the endpoint that shows it.
    pub at: Option<Where>,
}

/// What is judged.
pub(super) struct Evidence<'e> {
    pub client: &'e Client,
    pub backends: &'e [Backend],
    pub endpoints: &'e [Endpoint],
    pub workers: Option<&'e (u64, Where)>,
    pub faults: &'e [(&'static str, Where)],
    pub ended: Option<&'e Ended>,
    pub logs: &'e [(String, Option<u64>)],
    /// For how long nothing moved while this command looked.
    pub quiet: Duration,
    pub stuck_after: Duration,
}

/// Judges.
pub(super) fn judge(evidence: &Evidence<'_>) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for (what, at) in evidence.faults {
        disqualify(&mut verdicts, (*what).to_owned(), Some(at.clone()));
    }
    counts(evidence, &mut verdicts);
    registered(evidence, &mut verdicts);
    progress(evidence, &mut verdicts);
    for backend in evidence.backends {
        saturated(backend, &mut verdicts);
        plateaued(backend, &mut verdicts);
    }
    if let Some(ended) = evidence.ended.filter(|ended| ended.by != End::Benchmark) {
        let by = if ended.by == End::Slurm { "Slurm" } else { "GitHub" };
        disqualify(
            &mut verdicts,
            format!("{by} ended the run before the benchmark did"),
            Some(ended.at.clone()),
        );
    }
    slow(evidence, &mut verdicts);
    verdicts
}

fn disqualify(verdicts: &mut Vec<Verdict>, what: String, at: Option<Where>) {
    verdicts.push(Verdict {
        weight: Weight::Disqualifies,
        what,
        at,
    });
}

/// No request completed, or too many failed.
#[allow(clippy::cast_precision_loss, reason = "counts of requests are small")]
fn counts(evidence: &Evidence<'_>, verdicts: &mut Vec<Verdict>) {
    let client = evidence.client;
    let (Some(phase), Some(done), Some(errors)) = (client.phase(), client.completed, client.errors) else {
        return;
    };
    // The end of a phase counts errors beside what completed, a running count among what is done.
    let all = if phase.is_over { done + errors } else { done };
    if phase.is_over && phase.name == "profiling" && done == 0 {
        disqualify(verdicts, "no request completed".to_owned(), client.counted.clone());
    } else if (phase.is_over || all >= ENOUGH) && all > 0 && errors as f64 / all as f64 > MAX_ERROR_RATE {
        let what = format!(
            "{errors} of {all} requests failed, and at most {:.0} % may",
            MAX_ERROR_RATE * 100.0
        );
        disqualify(verdicts, what, client.counted.clone());
    }
}

/// Workers and endpoints that are missing although the replay runs, or although it is over.
fn registered(evidence: &Evidence<'_>, verdicts: &mut Vec<Verdict>) {
    let runs = evidence.client.phase().is_some() || evidence.ended.is_some();
    if let Some((missing, at)) = evidence.workers.filter(|(missing, _)| *missing > 0) {
        match runs {
            true => disqualify(
                verdicts,
                format!("{missing} workers never registered"),
                Some(at.clone()),
            ),
            false => verdicts.push(Verdict {
                weight: Weight::Slow,
                what: format!("{missing} workers have not registered yet"),
                at: Some(at.clone()),
            }),
        }
    }
    for endpoint in evidence.endpoints.iter().filter(|endpoint| !endpoint.answered) {
        let at = Where {
            file: endpoint.url().to_owned(),
            line: None,
            text: endpoint.failure.clone().unwrap_or_default(),
        };
        let (weight, what) = match runs && evidence.ended.is_none() {
            true => (
                Weight::Disqualifies,
                "a metrics endpoint does not answer while the replay runs",
            ),
            false => (Weight::Slow, "a metrics endpoint does not answer"),
        };
        verdicts.push(Verdict {
            weight,
            what: what.to_owned(),
            at: Some(at),
        });
    }
}

/// A run in which nothing moves.
fn progress(evidence: &Evidence<'_>, verdicts: &mut Vec<Verdict>) {
    if evidence.ended.is_some() || evidence.client.phase().is_none() {
        return;
    }
    let limit = evidence.stuck_after.as_secs_f64();
    if let Some((first, last, at)) = &evidence.client.still
        && last.elapsed - first.elapsed >= limit
    {
        let what = format!(
            "stuck: {} requests sent and {} back for {:.0} s",
            last.sent,
            last.returned,
            last.elapsed - first.elapsed
        );
        return disqualify(verdicts, what, Some(at.clone()));
    }
    // A log that was written to lately is progress, and so is a counter that grew while this command looked.
    let youngest = evidence
        .logs
        .iter()
        .filter_map(|(name, age)| Some((name, (*age)?)))
        .min_by_key(|(_, age)| *age);
    let grew = evidence.endpoints.iter().any(|endpoint| endpoint.answered) && evidence.quiet < evidence.stuck_after;
    if let Some((name, age)) = youngest.filter(|(_, age)| *age >= evidence.stuck_after.as_secs())
        && !grew
    {
        let at = Where {
            file: name.clone(),
            line: None,
            text: String::new(),
        };
        disqualify(verdicts, format!("stuck: no log was written to for {age} s"), Some(at));
    }
}

fn of(backend: &Backend, part: impl Fn(&Load) -> Option<f64>) -> Vec<f64> {
    backend.loads.iter().filter_map(part).collect()
}

fn at(backend: &Backend) -> Option<Where> {
    Some(Where {
        file: backend.source.clone(),
        line: None,
        text: String::new(),
    })
}

/// A full cache and a queue that grows, in every one of the last samples.
fn saturated(backend: &Backend, verdicts: &mut Vec<Verdict>) {
    let with_both: Vec<(f64, f64)> = backend
        .loads
        .iter()
        .filter_map(|load| Some((load.kv?, load.waiting?)))
        .collect();
    let Some(last) = with_both.len().checked_sub(OF_LOG).map(|start| &with_both[start..]) else {
        return;
    };
    let full = last.iter().all(|(kv, _)| *kv >= FULL);
    let grows = last.windows(2).all(|pair| pair[1].1 > pair[0].1);
    if full && grows {
        let what = format!(
            "{} is saturated: its KV cache is full ({:.0} %) and its queue grew from {} to {}",
            backend.role.as_str(),
            last[OF_LOG - 1].0 * 100.0,
            last[0].1,
            last[OF_LOG - 1].1
        );
        disqualify(verdicts, what, at(backend));
    }
}

/// More requests run and wait, and no more tokens come out.
#[allow(clippy::cast_precision_loss, reason = "a few hundred samples")]
fn plateaued(backend: &Backend, verdicts: &mut Vec<Verdict>) {
    if backend.role == Role::Prefill {
        return;
    }
    let (running, output) = (of(backend, |load| load.running), of(backend, |load| load.output));
    let waiting = of(backend, |load| load.waiting);
    let third = running.len() / 3;
    if third < OF_LOG || output.len() != running.len() || waiting.len() != running.len() {
        return;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let ends = |values: &[f64]| (mean(&values[..third]), mean(&values[values.len() - third..]));
    let ((running, more_running), (output, more_output)) = (ends(&running), ends(&output));
    let (waiting, more_waiting) = ends(&waiting);
    let plateau = more_running >= running * MORE_RUNNING && more_output <= output * SAME_OUTPUT && output > 0.0;
    if plateau && more_waiting > waiting {
        let what = format!(
            "{} has plateaued: {running:.0} requests ran at {output:.0} tokens/s, {more_running:.0} run at \
             {more_output:.0}, and the queue grew",
            backend.role.as_str()
        );
        disqualify(verdicts, what, at(backend));
    }
}

/// What takes its time, said so that nobody takes it for a failure.
fn slow(evidence: &Evidence<'_>, verdicts: &mut Vec<Verdict>) {
    let disqualified = verdicts.iter().any(|verdict| verdict.weight == Weight::Disqualifies);
    if disqualified || evidence.ended.is_some() {
        return;
    }
    let what = match evidence.client.phase() {
        None => "the server is loading, or its client has not started",
        Some(phase) if phase.name == "warmup" && !phase.is_over => "the warm-up goes on, and requests come back",
        Some(phase) if !phase.is_over && phase.remaining == Some(0.0) => {
            "the time is over, and the last requests drain"
        }
        Some(_) => return,
    };
    verdicts.push(Verdict {
        weight: Weight::Slow,
        what: what.to_owned(),
        at: None,
    });
}
