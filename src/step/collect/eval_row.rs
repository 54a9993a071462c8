//! The row of one task in `agg_eval_<name>.json`.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::config::fields::{Field, Side, Size};
use crate::config::thresholds::{Threshold, Thresholds};
use crate::matrix::envelope::Envelope;
use crate::step::results::answers::Answers;
use crate::step::results::lm_eval::{self, Metrics, ResultFile};
use crate::step::results::loose::Cell;
use crate::step::results::meta::{MetaEnv, UNKNOWN};
use crate::step::results::score::{self, Line, NoScore};

/// One task of one set, with the fields that readers of the aggregate know.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs, reason = "named as published")]
pub struct EvalRow {
    /// What is published of the job; see [`job`].
    #[serde(flatten)]
    job: Job,
    #[serde(skip)]
    pub is_multinode: bool,
    #[serde(skip)]
    pub conc: u64,
    pub task: String,
    pub em_strict: Option<f64>,
    pub em_strict_se: Option<StdErr>,
    pub em_flexible: Option<f64>,
    pub em_flexible_se: Option<StdErr>,
    /// Evaluated samples.
    #[serde(serialize_with = "count")]
    pub n_eff: Option<f64>,
    /// The result file.
    pub source: String,
    /// 0 to 1, unless less is better.
    pub score: f64,
    /// Which metric it is.
    pub score_name: String,
    pub score_se: Option<StdErr>,
    /// There where it is false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub higher_is_better: Option<bool>,
    /// What became of the answers of the job while it ran; for people, and not published.
    #[serde(skip)]
    pub answers: Option<Answers>,
    /// The job whose set it is of, where that is known; not published, as the next.
    #[serde(skip)]
    pub job_id: Option<String>,
    /// The worst of the numbers that the gate holds against the task's floor; `None` where one cannot be read.
    #[serde(skip)]
    pub worst: Option<f64>,
    /// How often all samples were run, where the benchmark says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u64>,
    /// The standard deviation of the score over repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
    /// Whether it is of a category of an accuracy benchmark, which is judged where a threshold names it; not published.
    #[serde(skip)]
    pub is_category: bool,
    /// There where a limit on samples was set: such a row measures no model.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub diagnostic: bool,
}

/// A standard error, as lm-eval writes it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub enum StdErr {
    /// A number.
    Number(f64),
    /// `N/A`: it could not be estimated.
    Text(&'static str),
}

impl StdErr {
    fn of(cell: &Cell) -> Option<Self> {
        match cell {
            Cell::Text(text) if text == "N/A" => Some(Self::Text("N/A")),
            cell => cell.number().map(Self::Number),
        }
    }
}

fn count<S: Serializer>(count: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match count {
        None => serializer.serialize_none(),
        Some(count) => match Cell::Number(*count).integer() {
            Some(whole) => serializer.serialize_u64(whole),
            None => serializer.serialize_f64(*count),
        },
    }
}

/// The rows of a result file, and the tasks of it that have none, each with its reason. A group has a row only where
/// none of its tasks has one. `job` is the planned one, whose model's prefix counts, as it does for the gate.
#[must_use]
pub(crate) fn rows(
    meta: &MetaEnv,
    job: Option<&Envelope>,
    conc: u64,
    result: &ResultFile,
    source: &str,
    thresholds: &Thresholds,
) -> (Vec<EvalRow>, Vec<String>) {
    let (mut rows, mut problems) = (Vec::new(), Vec::new());
    if let Some(failure) = result.failure() {
        problems.push(format!("the eval itself failed: {failure}"));
        return (rows, problems);
    }
    let planned = job.map(|job| job.row.topology.model_prefix.as_str());
    let prefix = planned.or_else(|| meta.model_prefix());
    let base = base(meta, prefix, conc, result, source);
    let mut empty = true;
    let mut groups = Vec::new();
    for (task, metrics) in result.tasks() {
        empty = false;
        let named = thresholds.find(prefix, task).and_then(Threshold::metric);
        match row(&base, task, metrics, named, result) {
            Ok(row) if result.is_group(task) => groups.push(row),
            Ok(row) => rows.push(row),
            // A group without a line of its own is told by its tasks.
            Err(_) if result.is_group(task) => {}
            Err(reason) => problems.push(format!("`{task}` {reason}")),
        }
    }
    let told: HashSet<String> = rows.iter().map(|row| row.task.clone()).collect();
    let is_told = |group: &EvalRow| result.leaves(&group.task).into_iter().any(|leaf| told.contains(leaf));
    groups.retain(|group| !is_told(group));
    rows.append(&mut groups);
    if empty {
        problems.push("`results` holds no task".to_owned());
    }
    (rows, problems)
}

#[derive(Debug, thiserror::Error)]
enum Reason {
    #[error("{0}, so it has no score")]
    NoScore(#[from] NoScore),
    #[error("has {value} for `{key}`, {wanted}")]
    NotAScore {
        value: Cell,
        key: String,
        wanted: &'static str,
    },
    #[error("evaluated {0} samples")]
    NoSamples(f64),
}

fn row(
    base: &EvalRow,
    task: &str,
    metrics: Option<&Metrics>,
    named: Option<&str>,
    result: &ResultFile,
) -> Result<EvalRow, Reason> {
    let metrics = metrics.ok_or(NoScore::Nothing)?;
    let chosen = score::choose(result, task, metrics, named)?;
    let Some(number) = chosen.number() else {
        return Err(Reason::NotAScore {
            value: chosen.line.value.clone(),
            key: chosen.line.key.to_owned(),
            wanted: match chosen.less_is_better {
                true => "not a finite number",
                false => "not a number from 0 to 1",
            },
        });
    };
    let n_eff = result.effective(task);
    if let Some(n) = n_eff.filter(|n| *n <= 0.0) {
        return Err(Reason::NoSamples(n));
    }
    let value = |line: Option<Line<'_>>| line.and_then(|line| lm_eval::score(line.value));
    let stderr = |line: Option<Line<'_>>| line.and_then(|line| StdErr::of(line.stderr()));
    let [strict, flexible] = score::exact_matches(result, task, metrics);
    Ok(EvalRow {
        task: task.to_owned(),
        em_strict: value(strict),
        em_strict_se: stderr(strict),
        em_flexible: value(flexible),
        em_flexible_se: stderr(flexible),
        n_eff,
        score: number,
        score_name: chosen.line.name(),
        score_se: StdErr::of(chosen.line.stderr()),
        higher_is_better: chosen.less_is_better.then_some(false),
        worst: worst(&chosen),
        repeats: metrics.get("repeats").and_then(Cell::integer),
        spread: metrics.get("spread").and_then(Cell::number),
        is_category: result.categories.contains(task),
        ..base.clone()
    })
}

/// The worst of the numbers that the gate judges a score by.
fn worst(score: &score::Score<'_>) -> Option<f64> {
    let numbers: Option<Vec<f64>> = score
        .judged
        .iter()
        .map(|line| score::number(line.value, score.less_is_better).filter(|number| !number.is_nan()))
        .collect();
    let worse = match score.less_is_better {
        true => f64::max,
        false => f64::min,
    };
    numbers?.into_iter().reduce(worse)
}

/// Everything of a row that does not depend on the task.
fn base(meta: &MetaEnv, prefix: Option<&str>, conc: u64, result: &ResultFile, source: &str) -> EvalRow {
    let is_multinode = meta.cell("is_multinode").flag().unwrap_or(false);
    EvalRow {
        job: job(meta, is_multinode, prefix, conc, result.model()),
        is_multinode,
        conc,
        task: String::new(),
        em_strict: None,
        em_strict_se: None,
        em_flexible: None,
        em_flexible_se: None,
        n_eff: None,
        source: source.to_owned(),
        score: 0.0,
        score_name: String::new(),
        score_se: None,
        higher_is_better: None,
        answers: meta.answers.0,
        job_id: None,
        worst: None,
        repeats: None,
        spread: None,
        is_category: false,
        diagnostic: result.limit().is_some(),
    }
}

/// What is published of a job, in the order of published rows; all rows of a set share it.
#[derive(Debug, Clone, PartialEq)]
struct Job(Arc<[(&'static str, Value)]>);

impl Job {
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(own, _)| *own == name).map(|(_, value)| value)
    }
}

impl Serialize for Job {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// What a size is called in `meta_env.json` and in published rows.
struct SizeName {
    size: Size,
    own: &'static str,
    sides: [String; 2],
}

/// The names of published rows and of the metadata that they are made from, put together once.
struct Names {
    /// Each field with its name in `meta_env.json` and its published one.
    fields: Vec<(Field, &'static str, &'static str)>,
    sizes: Vec<SizeName>,
    workers: [String; 2],
}

static NAMES: LazyLock<Names> = LazyLock::new(|| {
    let of_sides = |name: &str| Side::ALL.map(|side| format!("{}_{name}", side.name()));
    let of_evals = Size::ALL.iter().filter(|size| size.names().in_evals);
    let sizes = of_evals.map(|size| SizeName {
        size: *size,
        own: size.names().published,
        sides: of_sides(size.names().published),
    });
    Names {
        fields: Field::of_evals().collect(),
        sizes: sizes.collect(),
        workers: of_sides("num_workers"),
    }
});

/// What is published of a job, by the table of fields: hardware in upper case, framework and precision in lower case,
/// lengths that are not fixed as 0, and the model that was asked, where the result says which.
fn job(meta: &MetaEnv, is_multinode: bool, prefix: Option<&str>, conc: u64, asked: Option<&str>) -> Job {
    let names = &*NAMES;
    let mut job: Vec<(&'static str, Value)> = vec![("is_multinode", is_multinode.into())];
    for (field, from, name) in &names.fields {
        let text = meta.cell(from).text().unwrap_or(UNKNOWN);
        let value = match field {
            Field::Isl | Field::Osl => meta.cell(from).integer().unwrap_or(0).into(),
            Field::Runner => text.to_uppercase().into(),
            Field::Framework | Field::Precision => text.to_lowercase().into(),
            Field::Model => asked.unwrap_or(text).into(),
            Field::ModelPrefix => prefix.unwrap_or(text).into(),
            _ => text.into(),
        };
        job.push((name, value));
    }
    let integer = |name: &str| meta.cell(name).integer();
    let numbers = || names.sizes.iter().filter(|name| !name.size.is_flag());
    for SizeName { own, sides, .. } in numbers() {
        let number = integer(own).or_else(|| integer(&sides[0])).unwrap_or(1);
        job.push((own, number.into()));
    }
    for (side, workers) in names.workers.iter().enumerate() {
        for SizeName { own, sides, .. } in numbers() {
            let number = integer(&sides[side]).or_else(|| integer(own)).unwrap_or(1);
            job.push((&sides[side], number.into()));
        }
        job.push((workers, integer(workers).unwrap_or(1).into()));
    }
    job.push(("conc", conc.into()));
    for SizeName { own, sides, .. } in names.sizes.iter().filter(|name| name.size.is_flag()) {
        let of_node = flag(meta.cell(own)).unwrap_or_else(|| "none".to_owned());
        let [prefill, decode] = [0, 1].map(|side| flag(meta.cell(&sides[side])).unwrap_or_else(|| of_node.clone()));
        let both = match is_multinode {
            false => of_node,
            true if prefill == decode => prefill.clone(),
            true => format!("prefill={prefill},decode={decode}"),
        };
        job.extend([
            (*own, both.into()),
            (&sides[0], prefill.into()),
            (&sides[1], decode.into()),
        ]);
    }
    Job(job.into())
}

/// A flag, or what stands in its place, as text; `None` where nothing does.
fn flag(cell: &Cell) -> Option<String> {
    let other = || cell.text().unwrap_or(UNKNOWN).to_lowercase();
    match cell {
        Cell::Null => None,
        cell => Some(cell.flag().map_or_else(other, |flag| flag.to_string())),
    }
}

impl EvalRow {
    /// A field of the job as published; empty where rows have none of that name.
    #[must_use]
    pub fn text(&self, field: Field) -> String {
        let name = field.in_evals();
        name.map_or_else(String::new, |name| shown(self.job.get(name)))
    }

    /// The sizes of one node, or of a side, as published, each with what it is called in tables.
    pub fn sizes(&self, side: Option<Side>) -> impl Iterator<Item = (Size, String)> {
        NAMES.sizes.iter().map(move |name| {
            let of_side = |side: Side| name.sides[side as usize].as_str();
            (name.size, shown(self.job.get(side.map_or(name.own, of_side))))
        })
    }

    /// The workers of a side.
    #[must_use]
    pub fn workers(&self, side: Side) -> u64 {
        let workers = self.job.get(&NAMES.workers[side as usize]);
        workers.and_then(Value::as_u64).unwrap_or(0)
    }
}

/// A value as text, without quotes.
fn shown(value: Option<&Value>) -> String {
    match value {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}
