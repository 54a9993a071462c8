//! The row of one task in `agg_eval_<name>.json`.

use serde::{Serialize, Serializer};

use crate::step::results::lm_eval::{self, DEFAULT_METRIC, Metrics, ResultFile, SEPARATOR};
use crate::step::results::loose::Cell;
use crate::step::results::meta::{MetaEnv, UNKNOWN};

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
    /// Strict match, else accuracy, else flexible match; 0 to 1.
    pub score: f64,
    /// Which of them.
    pub score_name: &'static str,
    pub score_se: Option<StdErr>,
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

/// The rows of a result file, and the tasks of it that have none, each with its reason.
#[must_use]
pub fn rows(meta: &MetaEnv, conc: u64, result: &ResultFile, source: &str) -> (Vec<EvalRow>, Vec<String>) {
    let (mut rows, mut problems) = (Vec::new(), Vec::new());
    if let Some(failure) = result.failure() {
        problems.push(format!("the eval itself failed: {failure}"));
        return (rows, problems);
    }
    let base = base(meta, conc, result, source);
    let mut empty = true;
    for (task, metrics) in result.tasks() {
        empty = false;
        let scores = metrics.map(|metrics| Scores::of(metrics, &result.declared_metrics(task)));
        match row(&base, task, scores.unwrap_or_default(), result) {
            Ok(row) => rows.push(row),
            // A group without a line of its own is told by its tasks.
            Err(Reason::NoScore) if result.is_group(task) => {}
            Err(reason) => problems.push(format!("`{task}` {reason}")),
        }
    }
    if empty {
        problems.push("`results` holds no task".to_owned());
    }
    (rows, problems)
}

#[derive(Debug, thiserror::Error)]
enum Reason {
    #[error("has no strict match, accuracy or flexible match")]
    NoScore,
    #[error("has {0} for a score, not a number from 0 to 1")]
    NotAScore(Cell),
    #[error("evaluated {0} samples")]
    NoSamples(f64),
}

fn row(base: &EvalRow, task: &str, scores: Scores<'_>, result: &ResultFile) -> Result<EvalRow, Reason> {
    let named = [
        ("em_strict", scores.strict),
        ("accuracy", scores.accuracy),
        ("em_flexible", scores.flexible),
    ];
    let primary = named
        .into_iter()
        .find_map(|(name, found)| found.map(|found| (name, found)));
    let (score_name, primary) = primary.ok_or(Reason::NoScore)?;
    let score = lm_eval::score(primary.value).ok_or_else(|| Reason::NotAScore(primary.value.clone()))?;
    let n_eff = result.effective(task);
    if let Some(n) = n_eff.filter(|n| *n <= 0.0) {
        return Err(Reason::NoSamples(n));
    }
    let value = |found: Option<Found<'_>>| found.and_then(|found| lm_eval::score(found.value));
    let stderr = |found: Option<Found<'_>>| found.and_then(|found| StdErr::of(found.stderr));
    Ok(EvalRow {
        task: task.to_owned(),
        em_strict: value(scores.strict),
        em_strict_se: stderr(scores.strict),
        em_flexible: value(scores.flexible),
        em_flexible_se: stderr(scores.flexible),
        n_eff,
        score,
        score_name,
        score_se: StdErr::of(primary.stderr),
        ..base.clone()
    })
}

/// A metric of a task.
#[derive(Debug, Clone, Copy)]
struct Found<'m> {
    value: &'m Cell,
    stderr: &'m Cell,
}

/// The three metrics that a score may be.
#[derive(Debug, Clone, Copy, Default)]
struct Scores<'m> {
    strict: Option<Found<'m>>,
    accuracy: Option<Found<'m>>,
    flexible: Option<Found<'m>>,
}

impl<'m> Scores<'m> {
    /// Declared metrics come first, in their order; then what every task may have.
    fn of(metrics: &'m Metrics, declared: &[&str]) -> Self {
        let mut scores = Self::default();
        for metric in declared.iter().copied().chain([DEFAULT_METRIC, "acc", "accuracy"]) {
            for (name, value) in metrics {
                let (base, filter) = name.split_once(SEPARATOR).unwrap_or((name, "none"));
                if base != metric || *value == Cell::Null {
                    continue;
                }
                let place = match (filter, metric) {
                    (filter, _) if filter.contains("strict") || filter.contains("resolved") => &mut scores.strict,
                    (filter, _) if filter.contains("flex") || filter.contains("extract") => &mut scores.flexible,
                    ("none", "acc" | "accuracy") => &mut scores.accuracy,
                    ("none", DEFAULT_METRIC) => &mut scores.strict,
                    _ => continue,
                };
                let stderr = lm_eval::stderr(metrics, name);
                place.get_or_insert(Found { value, stderr });
            }
        }
        scores
    }
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
        score_name: "",
        score_se: None,
    }
}
