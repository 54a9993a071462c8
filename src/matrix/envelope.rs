//! The envelope: what a matrix carries of a row.

use std::collections::HashMap;

use serde::{Deserialize, Deserializer, Serialize};
use sha2::{Digest, Sha256};

use super::fingerprint::{canonical, hex};
use super::priority::Queued;
use super::row::{Row, Scenario, Topology};
use super::unique;
use super::wire::{self, Form, bounded};
use crate::config::asked::{Asked, only_given};
use crate::config::decode::MAX_INTEGER;
use crate::config::fields::Field;
use crate::config::master::search_space::Nodes;
use crate::config::policy::Evaluator;
use crate::config::problem::{Problem, nearest};
use crate::config::workflows::gpu::{DEFAULT_MINUTES, GpuJob, GpuTimeouts};
use crate::findings::plan as findings;

/// Minutes that a job may take, unless the settings say otherwise.
pub const TIMEOUT_MINUTES: u64 = DEFAULT_MINUTES;

/// One job of a matrix: everything that its steps need.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Envelope {
    /// 12 hex digits; stable across re-runs, unique in a plan.
    pub id: String,
    /// The job's short name, for people.
    pub name: String,
    /// The runner label, or a runner's name.
    pub runs_on: String,
    /// Minutes that the job may take.
    pub timeout_minutes: u64,
    /// The key of the config that the row was generated from, where that is known; no part of what the job is, nor of
    /// its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_key: Option<String>,
    /// Its place in the queue, where a scheduler reads it; no part of what the job is, nor of its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Queued>,
    /// The row, with the overrides applied; written with the defaults that a plan's rows carry.
    #[serde(serialize_with = "with_plan_defaults")]
    pub row: Row,
    /// What a dispatch changed, where it changed anything.
    #[serde(default, skip_serializing_if = "Overrides::is_empty")]
    pub overrides: Overrides,
}

/// What differs from what the plan's configs say of the job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Overrides {
    /// What was asked of the sweep, as far as it changes jobs.
    #[serde(flatten, serialize_with = "only_given", deserialize_with = "of_jobs")]
    pub asked: Asked,
    /// Whether the job evaluates, instead of the row's own flag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_eval: Option<bool>,
    /// Whether it does nothing else, instead of the row's own flag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eval_only: Option<bool>,
}

fn of_jobs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Asked, D::Error> {
    let asked = Asked::deserialize(deserializer)?;
    match asked == asked.of_jobs() {
        true => Ok(asked),
        false => Err(serde::de::Error::custom("an override changes a job, not the plan")),
    }
}

/// The names of an envelope's fields.
const FIELDS: [&str; 8] = [
    "id",
    "name",
    "runs-on",
    "timeout-minutes",
    "config-key",
    "priority",
    "row",
    "overrides",
];

impl<'de> Deserialize<'de> for Envelope {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_json(unique::object(deserializer)?).map_err(|problems| serde::de::Error::custom(problems.join("; ")))
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

    /// Reads an envelope.
    ///
    /// # Errors
    /// Everything that is wrong with it, one sentence each: fields that are missing, unknown or of another kind, and
    /// the rules of its shape that its row breaks.
    fn from_json(mut fields: serde_json::Map<String, serde_json::Value>) -> Result<Self, Vec<String>> {
        let mut problems = Vec::new();
        for name in fields.keys().filter(|name| !FIELDS.contains(&name.as_str())) {
            let shown: String = name.chars().take(60).flat_map(char::escape_debug).collect();
            problems.push(format!("unknown field `{shown}` ({})", nearest(name, FIELDS)));
        }
        let mut take = |name: &str| {
            let value = fields.shift_remove(name);
            if value.is_none() {
                problems.push(format!("missing field `{name}`"));
            }
            value
        };
        let (id, name, runs_on) = (take("id"), take("name"), take("runs-on"));
        let (minutes, row) = (take("timeout-minutes"), take("row"));
        let mut text = |name: &str, value: Option<serde_json::Value>| match value {
            Some(serde_json::Value::String(text)) => text,
            None => String::new(),
            Some(other) => {
                problems.push(format!("`{name}` is {}, it must be a text", shown(&other)));
                String::new()
            }
        };
        let (id, name, runs_on) = (text("id", id), text("name", name), text("runs-on", runs_on));
        let config_key = fields
            .shift_remove("config-key")
            .map(|key| text("config-key", Some(key)));
        let priority = fields.shift_remove("priority").map(serde_json::from_value).transpose();
        let priority = priority
            .map_err(|error| problems.push(format!("`priority`: {error}")))
            .ok()
            .flatten();
        let timeout_minutes = minutes.as_ref().and_then(|value| bounded(value, 1));
        if let (Some(value), None) = (&minutes, timeout_minutes) {
            let wanted = format!("a whole number from 1 to {MAX_INTEGER}");
            problems.push(format!("`timeout-minutes` is {}, it must be {wanted}", shown(value)));
        }
        let row = match row {
            Some(serde_json::Value::Object(row)) => {
                let read = wire::from_json(row);
                read.map_err(|error| problems.extend(error.0)).ok()
            }
            Some(other) => {
                problems.push(format!("`row` is {}, it must be an object", shown(&other)));
                None
            }
            None => None,
        };
        let overrides = fields.shift_remove("overrides").map(Overrides::from_json).transpose();
        let overrides = overrides.map_err(|error| problems.push(error)).ok().flatten();
        match row {
            Some(row) if problems.is_empty() => Ok(Self {
                id,
                name,
                runs_on,
                timeout_minutes: timeout_minutes.unwrap_or(TIMEOUT_MINUTES),
                config_key,
                priority,
                row,
                overrides: overrides.unwrap_or_default(),
            }),
            _ => Err(problems),
        }
    }

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
            let problem = findings::ROW.file("", format!("the job {} is eval-only and runs no eval", self.name));
            return Err(problem.hint("set run-eval to true, or eval-only to false"));
        }
        self.overrides.run_eval = run_eval.or(self.overrides.run_eval);
        self.overrides.eval_only = eval_only.or(self.overrides.eval_only);
        Ok(())
    }
}

/// A value as messages show it.
fn shown(value: &serde_json::Value) -> String {
    value.to_string().chars().take(60).collect()
}

impl Overrides {
    fn from_json(value: serde_json::Value) -> Result<Self, String> {
        let read: Self = serde_json::from_value(value).map_err(|error| {
            // The names of numbers' types say nothing to those who write JSON.
            let said = error
                .to_string()
                .replace("u64", "a whole number")
                .replace("struct Overrides", "an object");
            format!("`overrides`: {said}")
        })?;
        match read.asked.duration {
            Some(seconds) if !(1..=MAX_INTEGER).contains(&seconds) => {
                let wanted = format!("a whole number from 1 to {MAX_INTEGER}");
                Err(format!("`overrides.duration` is {seconds}, it must be {wanted}"))
            }
            _ => Ok(read),
        }
    }

    /// Whether nothing is changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Applies what a row has a field for.
fn apply(asked: &Asked, row: &mut Row) {
    if let Some(duration) = asked.duration {
        let mut topology = (*row.topology).clone();
        if let Scenario::Agentic(offload) = &mut topology.scenario {
            offload.duration = duration;
            row.topology = topology.into();
        }
    }
    if row.runs_eval() && (asked.eval_framework.is_some() || asked.eval_suite.is_some()) {
        let old = row.eval.evaluator.take();
        let framework = asked
            .eval_framework
            .clone()
            .or_else(|| old.as_ref().map(|e| e.framework.clone()));
        // A suite belongs to its framework: another framework starts from its own default suite.
        let kept = old
            .filter(|e| Some(&e.framework) == framework.as_ref())
            .map(|e| e.suite);
        row.eval.evaluator = Some(Evaluator {
            framework: framework.unwrap_or_else(|| "lm-eval".to_owned()),
            suite: asked.eval_suite.clone().or(kept).unwrap_or_default(),
        });
    }
}

fn with_plan_defaults<S: serde::Serializer>(row: &Row, serializer: S) -> Result<S::Ok, S::Error> {
    wire::to_json(row, Form::Planned).serialize(serializer)
}

/// Wraps rows. Identical rows are told apart by their count, so ids are unique and do not depend on the order; `seen`
/// carries the counts from one list of a plan to the next.
///
/// # Errors
/// None for rows that were built; serialization is the only step that returns one.
pub fn wrap(rows: &[Row], asked: &Asked, seen: &mut HashMap<String, u64>) -> Result<Vec<Envelope>, serde_json::Error> {
    let overrides = Overrides {
        asked: asked.of_jobs(),
        ..Overrides::default()
    };
    rows.iter()
        .map(|row| {
            let mut row = row.clone();
            apply(&overrides.asked, &mut row);
            let text = identity(&row, &overrides)?;
            let count = seen.entry(text.clone()).or_insert(0);
            *count += 1;
            let id = digest(&text, *count);
            Ok(Envelope {
                id,
                name: name(&row),
                runs_on: row.topology.runner.clone(),
                timeout_minutes: TIMEOUT_MINUTES,
                config_key: row.config_key.take().map(|key| key.to_string()),
                priority: None,
                row,
                overrides: overrides.clone(),
            })
        })
        .collect()
}

/// What makes a job that job: the row with its evaluator and the overrides, without the fingerprint that follows
/// from it.
fn identity(row: &Row, overrides: &Overrides) -> Result<String, serde_json::Error> {
    let mut json = wire::to_json(row, Form::Planned);
    json.shift_remove(&Field::RecipeFingerprint.name());
    // A row that says nothing of evals runs none.
    for field in [Field::RunEval, Field::EvalOnly] {
        json.entry(field.name()).or_insert(false.into());
    }
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
    let points: Vec<String> = row.conc.points().iter().map(u64::to_string).collect();
    let role = match (&row.eval.evaluator, row.eval.eval_only) {
        (Some(evaluator), true) if evaluator.is_benchmark() => format!(" eval:{}", evaluator.suite),
        (Some(evaluator), true) if evaluator.framework != "lm-eval" => format!(" eval:{}", evaluator.framework),
        (_, true) => " eval".to_owned(),
        _ => String::new(),
    };
    format!("{} c{}{role}", recipe_name(&row.topology), points.join(","))
}

/// The short name of what the jobs of one topology share.
#[must_use]
pub fn recipe_name(topology: &Topology) -> String {
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
    let (prefix, precision) = (&topology.model_prefix, &topology.precision);
    let (framework, runner) = (&topology.framework, &topology.runner);
    format!("{prefix} {precision} {framework} {runner} {what} {split}")
}
