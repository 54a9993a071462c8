//! The row of one task in `agg_eval_<name>.json`.

use std::collections::HashSet;

use serde::{Serialize, Serializer};

use crate::config::thresholds::{Threshold, Thresholds};
use crate::step::results::answers::Answers;
use crate::step::results::lm_eval::{self, Metrics, ResultFile};
use crate::step::results::loose::Cell;
use crate::step::results::meta::{MetaEnv, UNKNOWN};
use crate::step::results::score::{self, Line, NoScore};

/// One task of one set, with the fields that readers of the aggregate know.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs, reason = "named as in meta_env.json")]
pub struct EvalRow {
    pub is_multinode: bool,
    pub model_prefix: String,
    /// The model that was asked, else that of the job.
    pub model: String,
    /// The runner label in upper case.
    pub hw: String,
    /// In lower case.
    pub framework: String,
    /// In lower case.
    pub precision: String,
    pub spec_decoding: String,
    /// 0 where the job has no fixed lengths.
    pub isl: u64,
    /// 0 where the job has no fixed lengths.
    pub osl: u64,
    pub tp: u64,
    pub ep: u64,
    pub prefill_tp: u64,
    pub prefill_ep: u64,
    pub prefill_num_workers: u64,
    pub decode_tp: u64,
    pub decode_ep: u64,
    pub decode_num_workers: u64,
    pub conc: u64,
    /// `true`, `false` or `none`; `prefill=<flag>,decode=<flag>` where the two differ in a multi-node job.
    pub dp_attention: String,
    pub prefill_dp_attention: String,
    pub decode_dp_attention: String,
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
    /// How often all samples were run, where the benchmark says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u64>,
    /// The standard deviation of the score over repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
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
/// none of its tasks has one.
#[must_use]
pub fn rows(
    meta: &MetaEnv,
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
    let base = base(meta, conc, result, source);
    let mut empty = true;
    let mut groups = Vec::new();
    for (task, metrics) in result.tasks() {
        empty = false;
        let named = thresholds.find(meta.model_prefix(), task).and_then(Threshold::metric);
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
    let stderr = |line: Option<Line<'_>>| line.and_then(|line| StdErr::of(line.stderr));
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
        score_se: StdErr::of(chosen.line.stderr),
        higher_is_better: chosen.less_is_better.then_some(false),
        repeats: metrics.get("repeats").and_then(Cell::integer),
        spread: metrics.get("spread").and_then(Cell::number),
        ..base.clone()
    })
}

/// Everything of a row that does not depend on the task.
fn base(meta: &MetaEnv, conc: u64, result: &ResultFile, source: &str) -> EvalRow {
    let text = |cell: &Cell| cell.text().unwrap_or(UNKNOWN).to_owned();
    let size = |cell: &Cell, or: u64| cell.integer().unwrap_or(or);
    let flag = |cell: &Cell| match cell {
        Cell::Null => None,
        cell => Some(
            cell.flag()
                .map_or_else(|| text(cell).to_lowercase(), |flag| flag.to_string()),
        ),
    };
    let is_multinode = meta.cell("is_multinode").flag().unwrap_or(false);
    let own = flag(meta.cell("dp_attention")).unwrap_or_else(|| "none".to_owned());
    let prefill = flag(meta.cell("prefill_dp_attention")).unwrap_or_else(|| own.clone());
    let decode = flag(meta.cell("decode_dp_attention")).unwrap_or_else(|| own.clone());
    let prefill_tp = size(meta.cell("prefill_tp"), size(meta.cell("tp"), 1));
    let prefill_ep = size(meta.cell("prefill_ep"), size(meta.cell("ep"), 1));
    EvalRow {
        is_multinode,
        model_prefix: text(meta.cell("infmax_model_prefix")),
        model: result.model().map_or_else(|| text(meta.cell("model")), str::to_owned),
        hw: text(meta.cell("hw")).to_uppercase(),
        framework: text(meta.cell("framework")).to_lowercase(),
        precision: text(meta.cell("precision")).to_lowercase(),
        spec_decoding: text(meta.cell("spec_decoding")),
        isl: size(meta.cell("isl"), 0),
        osl: size(meta.cell("osl"), 0),
        tp: size(meta.cell("tp"), prefill_tp),
        ep: size(meta.cell("ep"), prefill_ep),
        prefill_tp,
        prefill_ep,
        prefill_num_workers: size(meta.cell("prefill_num_workers"), 1),
        decode_tp: size(meta.cell("decode_tp"), size(meta.cell("tp"), 1)),
        decode_ep: size(meta.cell("decode_ep"), size(meta.cell("ep"), 1)),
        decode_num_workers: size(meta.cell("decode_num_workers"), 1),
        conc,
        dp_attention: match is_multinode {
            false => own,
            true if prefill == decode => prefill.clone(),
            true => format!("prefill={prefill},decode={decode}"),
        },
        prefill_dp_attention: prefill,
        decode_dp_attention: decode,
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
        repeats: None,
        spread: None,
        diagnostic: false,
    }
}
