//! The envelope: what a matrix carries of a row.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::fingerprint::{canonical, hex};
use super::row::{Row, Scenario};
use super::wire::RowJson;
use crate::config::master::search_space::Nodes;
use crate::config::policy::Evaluator;
use crate::config::problem::Problem;
use crate::config::workflows::gpu::{DEFAULT_MINUTES, GpuJob, GpuTimeouts};

/// Minutes that a job may take, unless the settings say otherwise.
pub const TIMEOUT_MINUTES: u64 = DEFAULT_MINUTES;

/// One job of a matrix: everything that its steps need.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Envelope {
    /// 12 hex digits; stable across re-runs, unique in a plan.
    pub id: String,
    /// The job's short name, for people.
    pub name: String,
    /// The runner label, or a runner's name.
    pub runs_on: String,
    /// Minutes that the job may take.
    pub timeout_minutes: u64,
    /// The row, with the overrides applied; written with the defaults that a plan's rows carry.
    #[serde(serialize_with = "with_plan_defaults")]
    pub row: Row,
    /// What a dispatch changed, where it changed anything.
    #[serde(default, skip_serializing_if = "Overrides::is_empty")]
    pub overrides: Overrides,
}

/// What a dispatch changes about every row that it fits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Overrides {
    /// Seconds of an agentic replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<u64>,
    /// What evaluates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eval_framework: Option<String>,
    /// Its suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eval_suite: Option<String>,
    /// The number of samples; empty, `full` or `0` is the whole split.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eval_limit: Option<String>,
    /// Short agentic replays.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub agentx_fast: bool,
    /// Whether the job evaluates, instead of the row's own flag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_eval: Option<bool>,
    /// Whether it does nothing else, instead of the row's own flag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eval_only: Option<bool>,
}

impl Envelope {
    /// Takes a caller's flags for the row's own, and keeps them among the overrides. The id stays that of the plan.
    ///
    /// # Errors
    /// Flags that contradict each other: a job that only evaluates, and does not.
    pub fn set_flags(&mut self, run_eval: Option<bool>, eval_only: Option<bool>) -> Result<(), Problem> {
        let eval = &mut self.row.eval;
        if let Some(run_eval) = run_eval {
            eval.run_eval = Some(run_eval);
        }
        if let Some(eval_only) = eval_only {
            eval.eval_only = eval_only;
        }
        if eval.eval_only && eval.run_eval != Some(true) {
            let problem = Problem::file("", format!("the job {} is eval-only and runs no eval", self.name));
            return Err(problem.hint("set run-eval to true, or eval-only to false"));
        }
        self.overrides.run_eval = run_eval.or(self.overrides.run_eval);
        self.overrides.eval_only = eval_only.or(self.overrides.eval_only);
        Ok(())
    }
}

impl Envelope {
    /// Takes the time that the settings give such a job.
    pub fn set_timeout(&mut self, timeouts: &GpuTimeouts) {
        self.timeout_minutes = timeouts.minutes(GpuJob {
            label: &self.runs_on,
            nodes: self.row.node_kind(),
            scenario: self.row.scenario_type(),
            eval: self.row.runs_eval(),
        });
    }
}

impl Overrides {
    /// Whether nothing is changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Applies what a row has a field for.
    fn apply(&self, row: &mut Row) {
        if let Some(duration) = self.duration {
            let mut topology = (*row.topology).clone();
            if let Scenario::Agentic(offload) = &mut topology.scenario {
                offload.duration = duration;
                row.topology = topology.into();
            }
        }
        if row.runs_eval() && (self.eval_framework.is_some() || self.eval_suite.is_some()) {
            let old = row.eval.evaluator.take();
            let framework = self
                .eval_framework
                .clone()
                .or_else(|| old.as_ref().map(|e| e.framework.clone()));
            // A suite belongs to its framework: another framework starts from its own default suite.
            let kept = old
                .filter(|e| Some(&e.framework) == framework.as_ref())
                .map(|e| e.suite);
            row.eval.evaluator = Some(Evaluator {
                framework: framework.unwrap_or_else(|| "lm-eval".to_owned()),
                suite: self.eval_suite.clone().or(kept).unwrap_or_default(),
            });
        }
    }
}

fn with_plan_defaults<S: serde::Serializer>(row: &Row, serializer: S) -> Result<S::Ok, S::Error> {
    RowJson::from(row).with_plan_defaults().serialize(serializer)
}

/// Wraps rows. Identical rows are told apart by their count, so ids are unique and do not depend on the order; `seen`
/// carries the counts from one list of a plan to the next.
///
/// # Errors
/// None for rows that were built; serialization is the only step that returns one.
pub fn wrap(
    rows: &[Row],
    overrides: &Overrides,
    seen: &mut HashMap<String, u64>,
) -> Result<Vec<Envelope>, serde_json::Error> {
    rows.iter()
        .map(|row| {
            let mut row = row.clone();
            overrides.apply(&mut row);
            let text = identity(&row, overrides)?;
            let count = seen.entry(text.clone()).or_insert(0);
            *count += 1;
            let id = digest(&text, *count);
            Ok(Envelope {
                id,
                name: name(&row),
                runs_on: row.topology.runner.clone(),
                timeout_minutes: TIMEOUT_MINUTES,
                row,
                overrides: overrides.clone(),
            })
        })
        .collect()
}

/// What makes a job that job: the row with its evaluator and the overrides, without the fingerprint that follows
/// from it.
fn identity(row: &Row, overrides: &Overrides) -> Result<String, serde_json::Error> {
    let mut json = RowJson::from(row).with_plan_defaults();
    json.recipe_fingerprint = None;
    // A row that says nothing of evals runs none.
    json.run_eval.get_or_insert(false);
    json.eval_only.get_or_insert(false);
    let value = serde_json::json!({ "row": json, "overrides": overrides });
    let mut text = String::new();
    canonical(&value, &mut text);
    Ok(text)
}

fn digest(identity: &str, count: u64) -> String {
    let mut hash = Sha256::new();
    hash.update(identity.as_bytes());
    if count > 1 {
        hash.update(format!("\n{count}").as_bytes());
    }
    hex(&hash.finalize()[..6])
}

/// The job's short name: what is run, on what, at which concurrency.
fn name(row: &Row) -> String {
    let topology = &row.topology;
    let points: Vec<String> = row.conc.points().iter().map(u64::to_string).collect();
    let split = match &topology.nodes {
        Nodes::Single(p) => format!("tp{}", p.tp),
        Nodes::Multi(roles) => {
            let (p, d) = (&roles.prefill, &roles.decode);
            format!("p{}x{}d{}x{}", p.num_worker, p.tp, d.num_worker, d.tp)
        }
    };
    let what = match &topology.scenario {
        Scenario::Fixed(seq) => seq.to_string(),
        Scenario::Agentic(_) => "agentic".to_owned(),
    };
    let role = match (&row.eval.evaluator, row.eval.eval_only) {
        (Some(evaluator), true) if evaluator.framework != "lm-eval" => format!(" eval:{}", evaluator.framework),
        (_, true) => " eval".to_owned(),
        _ => String::new(),
    };
    let (prefix, precision) = (&topology.model_prefix, &topology.precision);
    let (framework, runner) = (&topology.framework, &topology.runner);
    format!(
        "{prefix} {precision} {framework} {runner} {what} {split} c{}{role}",
        points.join(",")
    )
}
